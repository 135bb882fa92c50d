use k8s_openapi::ByteString;

use super::*;
use crate::references::ReferenceError;

const OBJECTS: [(&str, &str); 2] = [("color", "blue"), ("shared", "cm")];

/// The variables of a container given as JSON, or the error.
fn result(container: &str) -> Result<Vec<(String, String)>, String> {
    let pod: Pod = serde_json::from_str(
        r#"{"metadata":{"name":"p","namespace":"ns","uid":"u"},"spec":{"containers":[]}}"#,
    )
    .unwrap();

    let container: Container = serde_json::from_str(container).unwrap();
    let missing = |kind, name: &str| ReferenceError::NotFound {
        kind,
        name: name.to_owned(),
    };

    let entries = OBJECTS.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let hidden = [("shared", "secret"), ("password", "p w")];
    let hidden = hidden.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
    let file = |text: Option<&str>| EnvFile::Read {
        path: "/v/e/f".into(),
        text: text.map(str::to_owned),
    };

    let sources = EnvSources {
        pod: &pod,
        container: &container,
        addresses: PodAddresses {
            pod: &["10.1.1.1".to_owned()],
            host: &["10.0.0.1".to_owned()],
        },
        allocatable: &Amounts::new(),
        services: BTreeMap::from([
            ("KUBERNETES_SERVICE_HOST".to_owned(), "10.96.0.1".to_owned()),
            ("WEB_PORT".to_owned(), "tcp://10.96.0.2:80".to_owned()),
        ]),
        config_maps: BTreeMap::from([
            ("cm".to_owned(), Ok(BTreeMap::from(entries))),
            ("gone".to_owned(), Err(missing("configmap", "gone"))),
            (
                "silent".to_owned(),
                Err(ReferenceError::NotSynced { kind: "configmap" }),
            ),
        ]),
        secrets: BTreeMap::from([
            ("s".to_owned(), Ok(BTreeMap::from(hidden))),
            ("gone".to_owned(), Err(missing("secret", "gone"))),
        ]),
        files: BTreeMap::from([
            (
                ("v".to_owned(), "f".to_owned()),
                file(Some("A='from file'\n")),
            ),
            (("v".to_owned(), "unread".to_owned()), file(None)),
            (("w".to_owned(), "f".to_owned()), EnvFile::NoVolume),
        ]),
    };

    variables(&sources).map_err(|error| error.to_string())
}

#[track_caller]
fn check(container: &str, expected: Result<&[(&str, &str)], &str>) {
    let found = result(container);
    let found = found.as_ref().map(|all| {
        let own = all
            .iter()
            .filter(|(name, _)| name != "KUBERNETES_SERVICE_HOST" && name != "WEB_PORT");
        own.map(|(name, value)| (name.as_str(), value.as_str()))
            .collect::<Vec<_>>()
    });

    assert_eq!(
        found.as_deref().map_err(|text| text.as_str()),
        expected,
        "{container}"
    );
}

#[test]
fn variables_stand_in_the_order_of_the_container_and_services_after_them() {
    let all = result(
        r#"{"name":"c","envFrom":[{"configMapRef":{"name":"cm"}}],"env":[{"name":"Z","value":"1"}]}"#,
    );

    let names: Vec<String> = all.unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "color",
            "shared",
            "Z",
            "KUBERNETES_SERVICE_HOST",
            "WEB_PORT"
        ]
    );
}

#[test]
fn values_refer_to_earlier_variables_and_services() {
    check(
        r#"{"name":"c","envFrom":[{"prefix":"p-","configMapRef":{"name":"cm"}}],"env":[
           {"name":"A","value":"a"},{"name":"B","value":"$(A)$(C)$(p-color)"},{"name":"C","value":"$$(A) $(WEB_PORT)"}]}"#,
        Ok(&[
            ("p-color", "blue"),
            ("p-shared", "cm"),
            ("A", "a"),
            ("B", "a$(C)blue"),
            ("C", "$(A) tcp://10.96.0.2:80"),
        ]),
    );
}

#[test]
fn the_last_of_a_name_wins_and_containers_override_services() {
    check(
        r#"{"name":"c","envFrom":[{"configMapRef":{"name":"cm"}},{"secretRef":{"name":"s"}}],
            "env":[{"name":"color","value":"red"}]}"#,
        Ok(&[("color", "red"), ("shared", "secret"), ("password", "p w")]),
    );
    let all = result(r#"{"name":"c","env":[{"name":"WEB_PORT","value":"mine"}]}"#).unwrap();
    assert_eq!(all.iter().filter(|(name, _)| name == "WEB_PORT").count(), 1);
    assert_eq!(all[0], ("WEB_PORT".to_owned(), "mine".to_owned()));
}

#[test]
fn values_come_from_fields_objects_and_files() {
    check(
        r#"{"name":"c","env":[{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
            {"name":"HOST","valueFrom":{"fieldRef":{"fieldPath":"status.hostIP"}}},
            {"name":"K","valueFrom":{"configMapKeyRef":{"name":"cm","key":"color"}}},
            {"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"password"}}},
            {"name":"F","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"f","key":"A"}}}]}"#,
        Ok(&[
            ("IP", "10.1.1.1"),
            ("HOST", "10.0.0.1"),
            ("K", "blue"),
            ("S", "p w"),
            ("F", "from file"),
        ]),
    );
}

#[test]
fn missing_optional_references_are_skipped() {
    check(
        r#"{"name":"c","envFrom":[{"configMapRef":{"name":"gone","optional":true}}],"env":[
            {"name":"A","valueFrom":{"configMapKeyRef":{"name":"cm","key":"no","optional":true}}},
            {"name":"B","valueFrom":{"secretKeyRef":{"name":"gone","key":"no","optional":true}}},
            {"name":"C","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"f","key":"no","optional":true}}}]}"#,
        Ok(&[]),
    );
}

#[test]
fn missing_references_fail_with_upstreams_message() {
    let from = |what: &str| format!(r#"{{"name":"c","env":[{{"name":"A","valueFrom":{what}}}]}}"#);
    check(
        &from(r#"{"configMapKeyRef":{"name":"gone","key":"k"}}"#),
        Err("configmap \"gone\" not found"),
    );

    check(
        &from(r#"{"secretKeyRef":{"name":"gone","key":"k"}}"#),
        Err("secret \"gone\" not found"),
    );

    check(
        &from(r#"{"configMapKeyRef":{"name":"cm","key":"k"}}"#),
        Err("couldn't find key k in ConfigMap ns/cm"),
    );

    check(
        &from(r#"{"secretKeyRef":{"name":"s","key":"k"}}"#),
        Err("couldn't find key k in Secret ns/s"),
    );

    check(
        &from(r#"{"configMapKeyRef":{"name":"silent","key":"k","optional":true}}"#),
        Err("failed to sync configmap cache: timed out waiting for the condition"),
    );

    check(
        &from(r#"{"fileKeyRef":{"volumeName":"w","path":"f","key":"k"}}"#),
        Err("cannot find the volume \"w\" referenced by FileKeyRef"),
    );

    check(
        &from(r#"{"fileKeyRef":{"volumeName":"v","path":"unread","key":"k","optional":true}}"#),
        Err("couldn't parse env file"),
    );

    check(
        &from(r#"{"fileKeyRef":{"volumeName":"v","path":"f","key":"k"}}"#),
        Err("environment variable key \"k\" not found in file \"/v/e/f\""),
    );

    check(
        r#"{"name":"c","envFrom":[{"secretRef":{"name":"gone"}}]}"#,
        Err("secret \"gone\" not found"),
    );
}
