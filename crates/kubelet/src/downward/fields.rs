//! Pod fields as text.

use std::collections::BTreeMap;

use coracle_api::go_text::Quoted;
use coracle_api::names;
use k8s_openapi::api::core::v1::{ObjectFieldSelector, Pod};

use super::DownwardError;
use crate::pod::PodView as _;

/// The addresses exposed to a pod: its own and its host's, the preferred one first.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodAddresses<'a> {
    pub pod: &'a [String],
    pub host: &'a [String],
}

/// The value of a field in an environment variable.
pub fn field_of_pod(
    selector: &ObjectFieldSelector,
    pod: &Pod,
    addresses: PodAddresses<'_>,
) -> Result<String, DownwardError> {
    let version = selector.api_version.as_deref().unwrap_or("v1");
    if version != "v1" {
        return Err(DownwardError::Version(version.to_owned()));
    }

    let first = |list: &[String]| list.first().cloned().unwrap_or_default();
    let spec = pod.pod_spec();
    match label(&selector.field_path)? {
        "spec.nodeName" => Ok(spec.node_name.clone().unwrap_or_default()),
        "spec.serviceAccountName" => Ok(spec.service_account_name.clone().unwrap_or_default()),
        "status.hostIP" => Ok(first(addresses.host)),
        "status.hostIPs" => Ok(addresses.host.join(",")),
        "status.podIP" => Ok(first(addresses.pod)),
        "status.podIPs" => Ok(addresses.pod.join(",")),
        other => field_of_metadata(other, pod),
    }
}

/// Field paths that variables accept; for some of them there is no value.
fn label(path: &str) -> Result<&str, DownwardError> {
    match subscripted(path) {
        Some(("metadata.annotations" | "metadata.labels", _)) => Ok(path),
        Some(_) => Err(DownwardError::LabelSubscript(path.to_owned())),
        None => match path {
            "spec.host" => Ok("spec.nodeName"), // the name before v1
            "metadata.annotations"
            | "metadata.labels"
            | "metadata.name"
            | "metadata.namespace"
            | "metadata.uid"
            | "spec.nodeName"
            | "spec.restartPolicy"
            | "spec.serviceAccountName"
            | "spec.schedulerName"
            | "status.phase"
            | "status.hostIP"
            | "status.hostIPs"
            | "status.podIP"
            | "status.podIPs" => Ok(path),
            _ => Err(DownwardError::Label(path.to_owned())),
        },
    }
}

/// The value of a metadata field in a downward API file.
pub fn field_of_metadata(path: &str, pod: &Pod) -> Result<String, DownwardError> {
    let metadata = &pod.metadata;
    if let Some((of, key)) = subscripted(path) {
        let (map, reasons) = match of {
            "metadata.annotations" => (
                &metadata.annotations,
                names::qualified_name(&key.to_lowercase()),
            ),
            "metadata.labels" => (&metadata.labels, names::qualified_name(key)),
            _ => return Err(DownwardError::PathSubscript(path.to_owned())),
        };

        if !reasons.is_empty() {
            let reasons = reasons.join(";");
            return Err(DownwardError::Subscript {
                path: path.to_owned(),
                reasons,
            });
        }

        return Ok(map
            .as_ref()
            .and_then(|map| map.get(key))
            .cloned()
            .unwrap_or_default());
    }

    match path {
        "metadata.annotations" => Ok(lines(metadata.annotations.as_ref())),
        "metadata.labels" => Ok(lines(metadata.labels.as_ref())),
        "metadata.name" => Ok(pod.name().to_owned()),
        "metadata.namespace" => Ok(pod.namespace().to_owned()),
        "metadata.uid" => Ok(pod.uid().to_owned()),
        _ => Err(DownwardError::Path(path.to_owned())),
    }
}

/// Splits `metadata.labels['key']` in two.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    let (of, key) = path.strip_suffix("']")?.split_once("['")?;
    (!of.is_empty()).then_some((of, key))
}

/// `key="value"` lines, without a trailing newline.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", Quoted(value)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"metadata":{"name":"web","namespace":"shop","uid":"u-1",
        "labels":{"app":"web","zone":"a"},"annotations":{"note":"two\nlines \"quoted\"","Upper/Case":"u"}},
        "spec":{"nodeName":"n1","serviceAccountName":"sa","containers":[]}}"#;

    fn check(path: &str, expected: Result<&str, &str>) {
        let pod: Pod = serde_json::from_str(POD).unwrap();
        let selector = ObjectFieldSelector {
            field_path: path.to_owned(),
            ..ObjectFieldSelector::default()
        };

        let (ips, hosts) = (
            ["10.0.0.2".to_owned(), "fd00::2".to_owned()],
            ["192.168.0.1".to_owned()],
        );

        let found = field_of_pod(
            &selector,
            &pod,
            PodAddresses {
                pod: &ips,
                host: &hosts,
            },
        );
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
    }

    #[test]
    fn variables_show_fields_of_the_pod() {
        check("metadata.name", Ok("web"));
        check("metadata.namespace", Ok("shop"));
        check("metadata.uid", Ok("u-1"));
        check("metadata.labels", Ok("app=\"web\"\nzone=\"a\""));
        check("metadata.labels['app']", Ok("web"));

        check("metadata.labels['none']", Ok(""));
        check("metadata.annotations['note']", Ok("two\nlines \"quoted\""));
        check("metadata.annotations['Upper/Case']", Ok("u"));
        check(
            "metadata.annotations",
            Ok("Upper/Case=\"u\"\nnote=\"two\\nlines \\\"quoted\\\"\""),
        );

        check("spec.nodeName", Ok("n1"));
        check("spec.host", Ok("n1"));
        check("spec.serviceAccountName", Ok("sa"));
        check("status.podIP", Ok("10.0.0.2"));
        check("status.podIPs", Ok("10.0.0.2,fd00::2"));
        check("status.hostIP", Ok("192.168.0.1"));
        check("status.hostIPs", Ok("192.168.0.1"));
    }

    #[test]
    fn unknown_fields_are_refused_with_upstreams_message() {
        check("status.phase", Err("unsupported fieldPath: status.phase"));
        check(
            "spec.containers",
            Err("field label not supported: spec.containers"),
        );

        check(
            "spec.nodeName['x']",
            Err("field label does not support subscript: spec.nodeName['x']"),
        );

        let pod = Pod::default();
        let refused = field_of_metadata("spec['x']", &pod)
            .unwrap_err()
            .to_string();
        assert_eq!(
            refused,
            "fieldPath \"spec['x']\" does not support subscript"
        );

        let refused = field_of_metadata("metadata.labels['a b']", &pod)
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with("invalid key subscript in metadata.labels['a b']: name part"),
            "{refused}"
        );
    }
}
