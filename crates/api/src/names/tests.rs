//! Tables of valid and invalid names with upstream's messages.

use proptest::prelude::*;

use super::*;

fn check(rule: Rule, name: &str, expected: &[&str]) {
    let messages = rule(name);
    assert_eq!(messages.len(), expected.len(), "{name:?}: {messages:?}");
    for (message, start) in messages.iter().zip(expected) {
        assert!(message.starts_with(start), "{name:?}: {message}");
    }
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of";
const DNS1035: &str = "a DNS-1035 label must consist of";

#[test]
fn dns_names_follow_their_rfcs() {
    let (long, longer) = ("a".repeat(64), "a".repeat(254));
    for good in ["a", "0", "my-name", "123-abc", &long[1..]] {
        check(dns1123_label, good, &[]);
        check(dns1123_subdomain, good, &[]);
    }

    check(dns1123_label, "a.b", &["must not contain dots"]);
    check(
        dns1123_label,
        &long,
        &["must be no more than 63 characters"],
    );

    for bad in ["", "-a", "a-", "A", "a_b", "é"] {
        check(dns1123_label, bad, &[LABEL]);
        check(dns1123_subdomain, bad, &[SUBDOMAIN]);
        check(dns1035_label, bad, &[DNS1035]);
    }

    check(dns1123_subdomain, "example.com", &[]);
    check(dns1123_subdomain, "a..b", &[SUBDOMAIN]);
    check(
        dns1123_subdomain,
        &longer,
        &["must be no more than 253 characters"],
    );

    check(dns1123_subdomain_with_underscore, "_srv._tcp.a_b", &[]);
    check(dns1123_subdomain_with_underscore, "__a", &[SUBDOMAIN]);
    check(dns1035_label, "1a", &[DNS1035]);

    check(dns1035_label, "a1", &[]);
    check(wildcard_dns1123_subdomain, "*.example.com", &[]);
    check(
        wildcard_dns1123_subdomain,
        "*.*.com",
        &["a wildcard DNS-1123 subdomain must start with '*.'"],
    );

    check(fully_qualified_name, "a.b.c", &[]);
    check(
        fully_qualified_name,
        "a.b",
        &["should be a domain with at least three segments separated by dots"],
    );

    check(fully_qualified_domain_name, "a.b.", &[]);
    check(
        fully_qualified_domain_name,
        "a.",
        &["should be a domain with at least two segments separated by dots"],
    );
}

#[test]
fn a_message_is_upstreams_to_the_letter() {
    assert_eq!(
        dns1123_label("Foo"),
        [
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        ]
    );

    assert_eq!(
        qualified_name("a b"),
        [
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ]
    );

    assert_eq!(
        config_map_key("a/b"),
        [
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        ]
    );
}

#[test]
fn keys_and_values_of_labels() {
    let (long, longer) = ("a".repeat(64), "a".repeat(254));
    for good in ["a", "A.b_c-d", "example.com/a", "1", &long[1..]] {
        check(qualified_name, good, &[]);
    }

    check(
        qualified_name,
        "",
        &["name part must be non-empty", "name part must consist of"],
    );

    check(qualified_name, "/x", &["prefix part must be non-empty"]);
    check(
        qualified_name,
        "x/",
        &["name part must be non-empty", "name part must consist of"],
    );

    check(
        qualified_name,
        "a/b/c",
        &["a valid label key must consist of"],
    );

    check(
        qualified_name,
        "X/b",
        &["prefix part a lowercase RFC 1123 subdomain must consist of"],
    );

    check(
        qualified_name,
        &format!("{longer}/b"),
        &["prefix part must be no more than 253 bytes"],
    );

    check(
        qualified_name,
        &long,
        &["name part must be no more than 63 bytes"],
    );

    check(label_value, "", &[]);
    check(label_value, "My_Value.1", &[]);
    check(
        label_value,
        "-",
        &["a valid label must be an empty string or consist of"],
    );

    check(label_value, &long, &["must be no more than 63 bytes"]);
}

#[test]
fn keys_variables_ports_and_headers() {
    check(config_map_key, "a.b", &[]);
    check(config_map_key, "..", &["must not be '..'"]);
    check(config_map_key, "..a", &["must not start with '..'"]);

    check(config_map_key, "", &["a valid config key must consist of"]);
    check(c_identifier, "_a1", &[]);
    check(
        c_identifier,
        "1a",
        &["a valid C identifier must start with"],
    );

    check(env_var_name, "my.env-name", &[]);
    check(
        env_var_name,
        "1",
        &["a valid environment variable name must consist of alphabetic"],
    );

    check(env_var_name, ".", &["must not be '.'"]);
    check(relaxed_env_var_name, "1 ~", &[]);
    check(
        relaxed_env_var_name,
        "",
        &["environment variable name must be non-empty"],
    );

    check(
        relaxed_env_var_name,
        "=a",
        &["a valid environment variable name must consist only of printable ASCII"],
    );

    check(port_name, "dns-tcp", &[]);
    check(
        port_name,
        "",
        &[
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            "must contain at least one letter",
        ],
    );

    check(
        port_name,
        "a--b-",
        &[
            "must not contain consecutive hyphens",
            "must not begin or end with a hyphen",
        ],
    );

    check(
        port_name,
        "abcdefghijklmnop",
        &["must be no more than 15 characters"],
    );

    assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
    assert!(port_number(65535).is_empty());

    check(percent, "93%", &[]);
    check(percent, "%", &["a valid percent string must be"]);
    check(http_header_name, "X-Header-Name", &[]);
    check(
        http_header_name,
        "a_b",
        &["a valid HTTP header must consist of"],
    );

    check(decimal_integer, "-10", &[]);
    check(decimal_integer, "0", &[]);

    for bad in ["-0", "+1", "007", "1.0", "-"] {
        check(
            decimal_integer,
            bad,
            &["must be a valid decimal integer in canonical form"],
        );
    }
}

#[test]
fn paths_and_their_segments() {
    check(path_segment_name, "system:node", &[]);
    check(path_segment_name, "..", &["may not be '..'"]);
    check(
        path_segment_name,
        "a/b%",
        &["may not contain '/'", "may not contain '%'"],
    );

    check(path_segment_prefix, "..", &[]);
    check(absolute_path, "/a", &[]);
    check(absolute_path, "a", &["must be an absolute path"]);
    check(relative_path, "a/..b", &[]);
    check(
        relative_path,
        "/a/../b",
        &["must be a relative path", "must not contain '..'"],
    );

    check(domain_prefixed_path, "acme.io/foo/bar", &[]);
    check(
        domain_prefixed_path,
        "acme.io",
        &["must be a domain-prefixed path (such as \"acme.io/foo\")"],
    );

    check(
        domain_prefixed_path,
        "A/é",
        &[SUBDOMAIN, "Invalid path (regex used for validation is"],
    );
}

#[test]
fn a_base_for_generated_names_may_end_in_a_dash() {
    let check = |base: &str, good: bool| {
        assert_eq!(
            generate_name(base, dns1123_label).is_empty(),
            good,
            "{base:?}"
        );
    };

    check("web-", true);
    check("web", true);
    check("-", false);
    check("é-", false);
    check("Web-", false);
}

#[test]
fn a_generated_name_is_the_base_and_five_characters() {
    assert_eq!(generate("web-", 0), "web-bbbbb");
    assert_eq!(generate("web-", 26 + 27 * 25), "web-98bbb");
    let long = generate(&"a".repeat(70), u64::MAX);
    assert_eq!(long.len(), 63);
    assert_eq!(generate(&"é".repeat(40), 0).chars().count(), 29 + 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_good_base_makes_a_good_name(base in "[a-z0-9]([a-z0-9-]{0,70}[a-z0-9])?-?", random: u64) {
        let name = generate(&base, random);
        prop_assert!(dns1123_label(&name).is_empty(), "{}", name);
    }
}
