//! `coracle decode`, as a user runs it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn decode(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_coracle"))
        .arg("decode")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn shown(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let output = decode(arguments, input);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn refused(arguments: &[&str], input: &[u8]) -> String {
    let output = decode(arguments, input);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

const YAML: &str = "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: a\n";

#[test]
fn an_object_goes_through_every_form_and_comes_back() {
    let bytes = shown(&["-o", "protobuf"], YAML.as_bytes());
    assert!(bytes.starts_with(b"k8s\0"));
    let json = shown(&["-o", "json"], &bytes);
    assert!(
        json.starts_with(b"{\n    \"apiVersion\": \"v1\","),
        "{}",
        String::from_utf8_lossy(&json)
    );
    assert_eq!(String::from_utf8(shown(&[], &json)).unwrap(), YAML);
}

#[test]
fn a_value_as_etcdctl_prints_it_is_read() {
    let bytes = shown(&["-o", "protobuf"], YAML.as_bytes());
    let value_only = [&bytes, b"\n".as_slice()].concat();
    let with_key = [
        b"/registry/configmaps/default/a\n".as_slice(),
        &bytes,
        b"\n",
    ]
    .concat();

    for printed in [value_only, with_key] {
        assert_eq!(
            String::from_utf8(shown(&["-o", "yaml", "-"], &printed)).unwrap(),
            YAML
        );
    }
}

#[test]
fn several_documents_are_shown_apart() {
    let two = format!("{YAML}---\n# nothing here\n---\n{YAML}");
    assert_eq!(
        String::from_utf8(shown(&[], two.as_bytes())).unwrap(),
        format!("{YAML}---\n{YAML}")
    );
    let error = refused(&["-o", "protobuf"], two.as_bytes());
    assert!(error.contains("pass one object at a time"), "{error}");
}

#[test]
fn json_values_in_a_row_and_brackets_of_yaml_are_read() {
    let two = [
        shown(&["-o", "json"], YAML.as_bytes()),
        shown(&["-o", "json"], YAML.as_bytes()),
    ]
    .concat();
    assert_eq!(
        String::from_utf8(shown(&[], &two)).unwrap(),
        format!("{YAML}---\n{YAML}")
    );
    let flow = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}";
    assert_eq!(String::from_utf8(shown(&[], flow)).unwrap(), YAML);
}

#[test]
fn unknown_fields_are_named_and_left_out() {
    let output = decode(&[], format!("{YAML}foo: 1\n").as_bytes());
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), YAML);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "coracle: standard input: unknown field \"foo\"\n"
    );
}

#[test]
fn mistakes_are_told_with_their_place() {
    let check = |input: &[u8], expected: &str| {
        let error = refused(&[], input);
        assert!(error.contains(expected), "{error}");
    };

    check(
        br#"{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"ports":[{},{"containerPort":"x"}]}]}}"#,
        "spec.containers[0].ports[1].containerPort: json: cannot unmarshal string",
    );

    check(b"a: [", "yaml: line 1: did not find expected node content");
    check(
        b"{\"a\":\n  1,,",
        "line 2, column 5: invalid character ',' looking for beginning of object key string",
    );

    check(b"{\"a\":", "line 1, column 6: unexpected end of JSON input");
    check(b"[1,2]", "expected an object, found array");
    check(b"hello", "expected an object, found string");
    check(b"kind: Pod", "object without apiVersion");
    check(
        b"apiVersion: v1\nkind: 3",
        "kind: json: cannot unmarshal number",
    );

    check(b"apiVersion: v1\nkind: X\na: \xff", "invalid");
    check(
        br#"{"apiVersion":"f/v1","kind":"X","a":1e400}"#,
        "json: cannot unmarshal number 1e400",
    );

    check(b"k8s\0", "empty body");
    check(b"k8s\0\n\x7fabc", "unexpected EOF");
    check(b"k8s:enc:aescbc:v1:key:xyz", "encrypted (aescbc)");
    check(b"", "no object found");
    let error = refused(&["/nowhere/at/all"], b"");
    assert!(
        error.starts_with("coracle: cannot read /nowhere/at/all: "),
        "{error}"
    );
}
