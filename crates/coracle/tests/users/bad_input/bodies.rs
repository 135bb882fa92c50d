//! Request bodies that are not valid objects.

use super::{JSON, MAPS, Victim};

const YAML: &str = "Content-Type: application/yaml\r\n";
const PROTOBUF: &str = "Content-Type: application/vnd.kubernetes.protobuf\r\n";

#[test]
fn bodies_that_are_no_objects_are_refused() {
    let victim = Victim::start();
    let post = |headers: &str, body: &[u8], expected: (u16, &str)| {
        victim.check("POST", MAPS, headers, body, expected);
    };

    // Malformed, in every form.
    post(JSON, b"{\"kind\":", (400, "unexpected end of JSON input"));
    post(
        JSON,
        b"[]",
        (400, "cannot unmarshal array into Go value of type"),
    );

    post(
        JSON,
        b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}}",
        (400, "invalid character '}' after top-level value"),
    );

    post(
        YAML,
        b"kind: [ConfigMap",
        (400, "yaml: line 1: did not find expected ',' or ']'"),
    );

    post(
        PROTOBUF,
        b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        (400, "proto: integer overflow"),
    );

    post(PROTOBUF, b"{}", (400, "expected prefix [107 56 115 0]"));

    // Nothing at all.
    post(JSON, b"", (400, "BadRequest"));
    post(PROTOBUF, b"", (400, "empty data"));

    // Of another type, or of none that is known.
    let typed = |object: &str| format!("{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",{object}}}");
    post(
        JSON,
        typed(r#""data":{"k":1}"#).as_bytes(),
        (400, "json: cannot unmarshal number into Go struct field"),
    );

    post(
        JSON,
        typed(r#""data":"text""#).as_bytes(),
        (400, "json: cannot unmarshal string into Go struct field"),
    );

    post(
        JSON,
        br#"{"kind":"Nonsense","apiVersion":"v1"}"#,
        (400, "no kind \\\"Nonsense\\\" is registered"),
    );

    post(
        JSON,
        br#"{"kind":"Secret","apiVersion":"v1"}"#,
        (
            400,
            "Secret in version \\\"v1\\\" cannot be handled as a ConfigMap",
        ),
    );

    post(
        JSON,
        br#"{"metadata":{}}"#,
        (422, "name or generateName is required"),
    );

    victim.stays_well();
}

#[test]
fn bodies_are_bounded_in_size_and_depth() {
    let victim = Victim::start();
    let huge = vec![b' '; 3 * 1024 * 1024 + 1];
    victim.check(
        "POST",
        MAPS,
        JSON,
        &huge,
        (413, "Request entity too large: limit is 3145728"),
    );

    victim.check(
        "DELETE",
        &format!("{MAPS}/none"),
        JSON,
        &huge,
        (413, "limit is 3145728"),
    );

    let patch = "Content-Type: application/merge-patch+json\r\n";
    victim.check(
        "PATCH",
        &format!("{MAPS}/none"),
        patch,
        &huge,
        (413, "limit is 3145728"),
    );

    let deep = |open: &str, close: &str, levels: usize| {
        let value = format!("{}{}", open.repeat(levels), close.repeat(levels));
        format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a","x":{value}}}}}"#)
    };

    for levels in [10_001, 1_000_000] {
        victim.check(
            "POST",
            MAPS,
            JSON,
            deep("[", "]", levels).as_bytes(),
            (400, "exceeded max depth"),
        );

        let anything = victim.ask(
            "POST",
            MAPS,
            YAML,
            deep("[", "]", levels.min(100_000)).as_bytes(),
        );
        assert_eq!(anything.status, 400, "{anything:?}");
    }

    // A few lines that would become gigabytes.
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (name, before) in ('b'..='i').zip('a'..) {
        let copies = vec![format!("*{before}"); 10].join(",");
        bomb.push_str(&format!("{name}: &{name} [{copies}]\n"));
    }

    victim.check(
        "POST",
        MAPS,
        YAML,
        bomb.as_bytes(),
        (400, "excessive aliasing"),
    );

    // Compressed bodies are not unpacked, so that a few bytes cannot become gigabytes.
    let packed = format!("{JSON}Content-Encoding: gzip\r\n");
    victim.check(
        "POST",
        MAPS,
        &packed,
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
        (400, "invalid character '\\\\x1f'"),
    );

    victim.stays_well();
}

#[test]
fn text_that_is_not_utf_8_and_fields_that_stand_twice() {
    let victim = Victim::start();
    let mut invalid =
        br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"utf"},"data":{"k":"x"}}"#
            .to_vec();
    let at = invalid.iter().rposition(|byte| *byte == b'x').unwrap();
    invalid[at] = 0xff;

    // As Go reads it: what is no character is the one that stands for such.
    victim.check("POST", MAPS, JSON, &invalid, (201, "\"k\":\"\u{fffd}\""));
    let name = invalid.windows(3).position(|part| part == b"utf").unwrap();
    invalid[name] = 0xfe;

    victim.check(
        "POST",
        MAPS,
        JSON,
        &invalid,
        (422, "a lowercase RFC 1123 subdomain"),
    );

    let twice =
        br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"twice"},"data":{"k":"1","k":"2"}}"#;
    let strict = format!("{MAPS}?fieldValidation=Strict");
    victim.check(
        "POST",
        &strict,
        JSON,
        twice,
        (400, "duplicate field \\\"data.k\\\""),
    );

    let answer = victim.ask("POST", MAPS, JSON, twice);
    assert_eq!(answer.status, 201);
    assert!(
        answer.head.contains("duplicate field \\\"data.k\\\""),
        "{answer:?}"
    );

    victim.stays_well();
}

#[test]
fn media_types_are_negotiated_or_refused() {
    let victim = Victim::start();
    let object = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#;
    victim.check(
        "POST",
        MAPS,
        "Content-Type: text/plain\r\n",
        object,
        (415, "the body of the request was in an unknown format"),
    );

    victim.check(
        "POST",
        MAPS,
        "Content-Type: nonsense\r\n",
        object,
        (415, "UnsupportedMediaType"),
    );

    victim.check(
        "POST",
        MAPS,
        "Content-Type: ;;;\r\n",
        object,
        (415, "UnsupportedMediaType"),
    );

    victim.check("POST", MAPS, "", object, (201, "ConfigMap"));

    let patch = |media: &str, expected| {
        let header = format!("Content-Type: {media}\r\n");
        victim.check("PATCH", &format!("{MAPS}/a"), &header, b"{}", expected);
    };

    patch("application/json", (415, "Unsupported Media Type"));
    patch(
        "application/json-patch+json",
        (400, "cannot unmarshal object"),
    );

    victim.check(
        "GET",
        MAPS,
        "Accept: application/xml\r\n",
        b"",
        (406, "Available representations: application/json"),
    );

    victim.check("GET", MAPS, "Accept: \r\n", b"", (200, "ConfigMapList"));
    victim.check(
        "GET",
        MAPS,
        "Accept: application/json;as=Nonsense;v=v1;g=meta.k8s.io\r\n",
        b"",
        (406, "NotAcceptable"),
    );

    victim.stays_well();
}

/// Bodies of one user that never end, four more than the server holds: so many are refused at
/// least, the others wait.
#[test]
fn endless_bodies_are_buffered_up_to_a_limit() {
    const LARGEST: usize = 3 << 20;

    let victim = Victim::start();
    let head =
        format!("POST {MAPS} HTTP/1.1\r\nHost: server\r\n{JSON}Content-Length: {LARGEST}\r\n\r\n");

    let (sender, receiver) = std::sync::mpsc::channel();
    for _ in 0..12 {
        let (mut connection, head, sender) = (victim.connect(), head.clone(), sender.clone());
        std::thread::spawn(move || {
            connection.send(head.as_bytes());
            connection.send(&vec![b' '; LARGEST - 1]);
            // Waiting clients get no response until the test is over.
            if let Some(answer) = connection.answer() {
                sender.send(answer.status).unwrap_or_default();
            }
        });
    }

    for _ in 0..4 {
        assert_eq!(receiver.recv().unwrap(), 429);
    }

    assert_eq!(victim.ask("GET", "/readyz", "", b"").status, 200);
}
