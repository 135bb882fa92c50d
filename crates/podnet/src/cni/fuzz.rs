//! Properties of plugin results and network configurations.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::config::NetworkList;
use super::exec::{Call, PluginError};
use super::{INTERFACE, result};

/// Messages stay short, whatever a plugin prints.
const MAX_MESSAGE: usize = 8 << 10;

/// An output is a result, whose addresses belong to the pod, or an error that can be shown. A configuration is refused, or
/// gives each plugin an input that the next one's previous result is in.
pub fn cni(data: &[u8]) {
    let call = Call {
        command: "ADD",
        sandbox: "sandbox",
        netns: None,
        interface: INTERFACE,
        arguments: Vec::new(),
        plugins: &[],
        timeout: Duration::ZERO,
    };

    match call.parse_output("plugin", true, data, &[]) {
        Ok(Some(output)) => addresses(&output),
        Ok(None) => assert!(data.iter().all(u8::is_ascii_whitespace)),
        Err(error) => shown(&error),
    }
    if let Err(error) = call.parse_output("plugin", false, data, data) {
        shown(&error);
    }

    if let Ok(list) = NetworkList::read(data) {
        inputs(&list);
    }
}

fn addresses(output: &Value) {
    let text = output.to_string();
    for address in result::addresses(output, INTERFACE) {
        let printed = address.to_string();
        // An address may be written in another way; a plain IPv4 address has one.
        assert!(
            address.is_ipv6() || text.contains(&printed),
            "{printed} of {text}"
        );
    }
}

fn shown(error: &PluginError) {
    let parsed_from_json = matches!(error, PluginError::Failed { code, .. } if *code != 0);
    assert!(
        parsed_from_json
            || error.to_string().len() <= MAX_MESSAGE
            || !matches!(error, PluginError::InvalidResult { .. })
    );
}

fn inputs(list: &NetworkList) {
    let again = NetworkList::read(&list.text).expect("the text was read before");
    assert_eq!(&again, list);
    assert!(!list.name.contains('/'), "the name becomes a file name");

    let capabilities = BTreeMap::from([("portMappings", json!([{"hostPort": 80}]))]);
    let mut previous = None;
    for plugin in &list.plugins {
        for program in plugin.programs().take(1) {
            assert!(!program.contains('/'), "a program is looked up by its name");
        }
        let input = list.input(plugin, &capabilities, previous.as_ref());
        assert_eq!(input.get("name"), Some(&json!(list.name)));
        assert!(input.get("prevResult").is_some() || previous.is_none());
        previous = Some(json!({"ips": [{"address": "10.0.0.2/24"}]}));
    }
}
