//! Requests with invalid options, paths and headers.

use super::{JSON, MAPS, Victim};

#[test]
fn forged_continue_tokens_are_refused() {
    let victim = Victim::start();
    for name in ["a", "b", "c"] {
        let object =
            format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}"}}}}"#);
        assert_eq!(
            victim.ask("POST", MAPS, JSON, object.as_bytes()).status,
            201
        );
    }

    let token = |text: &str| {
        use base64::Engine;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    };

    let check = |token: &str, expected: (u16, &str)| {
        victim.check(
            "GET",
            &format!("{MAPS}?limit=1&continue={token}"),
            "",
            b"",
            expected,
        );
    };

    check(
        "!!!",
        (400, "continue key is not valid: illegal base64 data"),
    );

    check(
        &token("no JSON"),
        (400, "continue key is not valid: invalid character"),
    );

    check(
        &token(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
        (
            400,
            "continue key is not valid: incorrect encoded start resourceVersion",
        ),
    );

    check(
        &token(r#"{"v":"meta.k8s.io/v1","rv":5,"start":""}"#),
        (400, "continue key is not valid: encoded start key empty"),
    );

    check(
        &token(r#"{"v":"v9","rv":5,"start":"a"}"#),
        (400, "server does not recognize this encoded version"),
    );

    // Out of the resource that is listed.
    check(
        &token(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../secrets/x"}"#),
        (400, "continue key is not valid"),
    );

    // Of a time that is yet to come.
    check(
        &token(r#"{"v":"meta.k8s.io/v1","rv":99999999,"start":"a"}"#),
        (504, "Too large resource version"),
    );

    victim.stays_well();
}

#[test]
fn invalid_options_are_reported() {
    let victim = Victim::start();
    let get = |query: &str, expected: (u16, &str)| {
        victim.check("GET", &format!("{MAPS}?{query}"), "", b"", expected);
    };
    get("resourceVersion=abc", (400, "invalid resource version"));
    get("resourceVersion=-1", (400, "invalid resource version"));

    let one = format!("{MAPS}/a?resourceVersion=abc");
    victim.check(
        "GET",
        &one,
        "",
        b"",
        (
            500,
            "resourceVersion: Invalid value: \\\"abc\\\": strconv.ParseUint",
        ),
    );

    get(
        "resourceVersionMatch=Exact",
        (
            422,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
    );

    get(
        "limit=many",
        (
            400,
            "strconv.ParseInt: parsing \\\"many\\\": invalid syntax",
        ),
    );

    get("timeoutSeconds=x&watch=1", (400, "strconv.ParseInt"));
    get(
        "timeout=x",
        (400, "invalid timeout specified in the request URL"),
    );

    get(
        "labelSelector=a%3D%3D%3Db",
        (400, "unable to parse requirement"),
    );

    get(
        "labelSelector=a%20in%20(",
        (400, "unable to parse requirement"),
    );

    get("labelSelector=-x-", (400, "unable to parse requirement"));
    get(
        "fieldSelector=spec.nonsense%3D1",
        (400, "is not a known field selector: only"),
    );

    get("fieldSelector=a", (400, "invalid selector"));
    get("watch=1&sendInitialEvents=true", (422, "sendInitialEvents"));
    get(
        "watch=1&resourceVersionMatch=Exact&resourceVersion=1",
        (422, "resourceVersionMatch"),
    );

    get("watch=1&resourceVersion=abc", (500, "strconv.ParseUint"));
    get(
        "watch=1&timeoutSeconds=-1",
        (200, "\"message\":\"context deadline exceeded\""),
    );

    let object = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#;
    let post = |query: &str, expected: (u16, &str)| {
        victim.check("POST", &format!("{MAPS}?{query}"), JSON, object, expected);
    };
    post("dryRun=Some", (422, "Unsupported value: [\\\"Some\\\"]"));
    post(
        "fieldValidation=Loose",
        (422, "Unsupported value: \\\"Loose\\\""),
    );

    post(&format!("fieldManager={}", "x".repeat(129)), (422, "128"));
    let propagation = format!("{MAPS}/a?propagationPolicy=Maybe");
    victim.check("DELETE", &propagation, "", b"", (422, "Unsupported value"));

    // What cannot be read in a query is as if it were not there.
    get("limit=%zz", (200, "ConfigMapList"));
    victim.stays_well();
}

#[test]
fn a_name_is_validated_before_a_connection_is_made_for_it() {
    let victim = Victim::start();
    for path in [
        "namespaces/default/pods/a%25b/log",
        "namespaces/default/pods/a%25b/exec?command=id&stdout=1",
        "namespaces/default/pods/a%25b/attach?stdout=1",
        "namespaces/default/pods/a%25b/portforward?ports=80",
        "namespaces/default/pods/a%25b/proxy/",
        "namespaces/default/pods/https:a%25b:443/proxy/",
        "namespaces/default/services/a%25b/proxy/",
        "nodes/a%25b/proxy/metrics",
        "nodes/%2e%2e/proxy/metrics",
    ] {
        let reason = match path.contains("%25") {
            true => "may not contain '%'",
            false => "may not be '..'",
        };
        victim.check("GET", &format!("/api/v1/{path}"), "", b"", (400, reason));
    }

    victim.stays_well();
}

#[test]
fn escaped_paths_are_not_resolved() {
    let victim = Victim::start();
    let get = |path: &str, expected: (u16, &str)| victim.check("GET", path, "", b"", expected);
    get(&format!("{MAPS}/%2e%2e"), (400, "may not be '..'"));
    get(&format!("{MAPS}/.."), (400, "may not be '..'"));
    get(&format!("{MAPS}/a%2fb"), (404, ""));
    get(&format!("{MAPS}/a%25b"), (400, "may not contain '%'"));

    get("/api/v1/namespaces/..%2f..%2fsecrets/configmaps", (404, ""));
    get("//api/v1/namespaces", (404, ""));
    get("/api/v1//namespaces", (404, ""));
    get("/api/v1/namespaces/", (200, "NamespaceList"));
    get(
        "/api/v1/nonsense",
        (404, "the server could not find the requested resource"),
    );

    get("/apis/nonsense/v1/things", (404, "404 page not found"));
    get("/%00", (404, ""));
    victim.check(
        "BREW",
        MAPS,
        "",
        b"",
        (
            405,
            "the server does not allow this method on the requested resource",
        ),
    );

    victim.stays_well();
}

#[test]
fn request_headers_are_bounded() {
    let victim = Victim::start();
    let long = "x".repeat(60_000);
    victim.check(
        "GET",
        &format!("{MAPS}?labelSelector={long}"),
        "",
        b"",
        (400, "must be no more than 63"),
    );

    let few = format!("X-Filler: {}\r\n", "x".repeat(1000)).repeat(900);
    victim.check("GET", MAPS, &few, b"", (200, "ConfigMapList"));
    let many = format!("X-Filler: {}\r\n", "x".repeat(10_000)).repeat(120);
    let mut connection = victim.connect();
    connection.send(format!("GET {MAPS} HTTP/1.1\r\nHost: server\r\n{many}\r\n").as_bytes());
    assert_eq!(connection.answer().map(|answer| answer.status), Some(431));

    let mut connection = victim.connect();
    connection.send(
        format!(
            "GET /{} HTTP/1.1\r\nHost: server\r\n\r\n",
            "x".repeat(2 << 20)
        )
        .as_bytes(),
    );

    let status = connection.answer().map(|answer| answer.status);
    assert!(matches!(status, Some(414 | 431)), "{status:?}");

    victim.stays_well();
}
