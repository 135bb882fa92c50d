//! Properties of the options of connecting subresources.

use super::backend::ProxyName;
use super::options::{self, CommandOptions, LogOptions, ports_for_kubelet};
use crate::request::Query;

/// What is sent to a kubelet can be read by it.
pub(crate) fn options(query: &Query, name: &str) {
    let command = CommandOptions::parse(query).for_kubelet();
    let sent: Vec<String> = Query::parse(&command)
        .all("command")
        .map(str::to_owned)
        .collect();
    let given: Vec<&str> = query.all("command").collect();
    assert_eq!(sent, given);

    if let Ok(options) = LogOptions::parse(query, "pod") {
        let sent = Query::parse(&options.for_kubelet());
        assert_eq!(
            sent.get("tailLines").is_some(),
            query.get("tailLines").is_some_and(|text| !text.is_empty())
        );
    }
    if let Ok(fields) = options::ports(query) {
        let ports = ports_for_kubelet(&fields);
        assert!(ports.is_empty() || Query::parse(&ports).get("port").is_some());
    }
    if let Ok(name) = ProxyName::parse(name, "pod") {
        assert!(!name.name.is_empty() && !name.name.contains(':'));
    }
}
