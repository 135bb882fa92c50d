//! Single requests, compared with recorded responses of the stock API server.

use std::process::Command;

use coracle_api::Value;

use crate::cluster::{Raw, Server};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn with_port(name: &str, port: u16) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"type":"NodePort","ports":[{{"port":80,"nodePort":{port}}}]}}}}"#
    )
}

#[test]
fn a_service_that_is_no_longer_a_node_port_releases_its_ports() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());

    let raw = Raw::new(&server.kubeconfig);
    for (place, other) in ["ClusterIP", "ExternalName"].iter().enumerate() {
        let name = format!("first-{place}");
        assert_eq!(raw.post(SERVICES, &with_port(&name, 31700)).status, 201);

        let patch = format!(r#"{{"spec":{{"type":"{other}","externalName":"example.org"}}}}"#);
        assert_eq!(
            raw.patch(&format!("{SERVICES}/{name}"), "merge", &patch)
                .status,
            200,
            "{other}"
        );

        let second = format!("second-{place}");
        assert_eq!(
            raw.post(SERVICES, &with_port(&second, 31700)).status,
            201,
            "{other}: it is free again"
        );

        assert_eq!(
            raw.post(SERVICES, &with_port("third", 31700)).status,
            422,
            "and taken again"
        );

        assert_eq!(
            raw.send(
                "DELETE",
                &format!("{SERVICES}/{second}"),
                "application/json",
                ""
            )
            .status,
            200
        );
    }
}

#[test]
fn an_added_service_cidr_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let raw = Raw::new(&server.kubeconfig);

    let range = r#"{"metadata":{"name":"more"},"spec":{"cidrs":["192.168.1.0/28"]}}"#;
    assert_eq!(
        raw.post("/apis/networking.k8s.io/v1/servicecidrs", range)
            .status,
        201
    );

    let service =
        r#"{"metadata":{"name":"there"},"spec":{"clusterIP":"192.168.1.3","ports":[{"port":80}]}}"#;
    assert_eq!(raw.post(SERVICES, service).status, 201);
}

#[test]
fn refusals_have_upstreams_messages() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let raw = Raw::new(&server.kubeconfig);
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let delete = |path: &str, body: &str| raw.send("DELETE", path, "application/json", body);
    let answer = delete(&format!("{classes}/system-cluster-critical"), "");
    let why = "priorityclasses.scheduling.k8s.io \"system-cluster-critical\" is forbidden: this is a system priority \
               class and cannot be deleted";
    assert_eq!(answer.refusal(), (403, why));

    let both = r#"{"propagationPolicy":"Orphan","orphanDependents":true}"#;
    let answer = delete(
        "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
        both,
    );
    assert_eq!(answer.status, 422, "{:?}", answer.body);

    let status = format!("{SERVICES}/kubernetes/status");
    assert_eq!(raw.send("GET", &status, "", "").status, 200);
    assert_eq!(
        raw.send("GET", &format!("{status}/more"), "", "").status,
        404,
        "nothing is below it"
    );
}

#[test]
fn events_are_selected_by_who_reports_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let raw = Raw::new(&server.kubeconfig);
    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str, who: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"involvedObject":{{"namespace":"default"}},"reason":"Tried",{who}}}"#
        )
    };

    assert_eq!(
        raw.post(events, &event("a", r#""source":{"component":"old"}"#))
            .status,
        201
    );

    assert_eq!(
        raw.post(
            events,
            &event("b", r#""reportingComponent":"example.org/new""#)
        )
        .status,
        201
    );

    let found = |selector: &str| {
        let answer = raw.send(
            "GET",
            &format!("{events}?fieldSelector=reason%3DTried,{selector}"),
            "",
            "",
        );

        let items = answer
            .body
            .get("items")
            .and_then(Value::as_array)
            .unwrap_or_default()
            .to_vec();

        items
            .iter()
            .map(|item| item.meta().name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(found("source%3Dold"), ["a"]);

    assert_eq!(found("source%3Dexample.org/new"), ["b"]);
    assert_eq!(found("source!%3Dold"), ["b"]);
}

#[test]
fn head_requests_are_answered_in_both_http_versions() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());

    let file = |name: &str| folder.path().join("pki").join(name).display().to_string();
    for path in [
        "/healthz",
        "/version",
        "/api",
        "/openapi/v2",
        "/metrics",
        "/api/v1/namespaces",
        "/nothing",
    ] {
        let head = |version: &str| {
            let mut curl = Command::new("curl");
            curl.args([
                "--silent",
                "--show-error",
                "--head",
                version,
                "--cacert",
                &file("ca.crt"),
            ]);

            curl.args(["--cert", &file("admin.crt"), "--key", &file("admin.key")]);

            let output = curl
                .arg(format!("https://{}{path}", server.address))
                .output()
                .unwrap();

            // curl takes a body that comes after all for a broken protocol.
            assert!(output.status.success(), "{version} {path}: {output:?}");

            let text = String::from_utf8(output.stdout).unwrap().to_lowercase();
            let of = |name: &str| {
                text.lines()
                    .find_map(|line| line.strip_prefix(name).map(str::to_owned))
            };

            (
                of("http/1.1 ").or(of("http/2 ")).unwrap()[..3].to_owned(),
                of("content-type: "),
            )
        };
        assert_eq!(head("--http2"), head("--http1.1"), "{path}");
    }
}
