//! Tables of selectors with upstream's texts and messages, and matching.

use proptest::prelude::*;

use super::*;
use crate::value::Value;

fn label_error(text: &str) -> String {
    text.parse::<LabelSelector>().expect_err(text).to_string()
}

#[test]
fn a_label_selector_prints_in_the_order_of_its_keys() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            text.parse::<LabelSelector>()
                .map(|selector| selector.to_string()),
            Ok(expected.to_owned())
        );
    };

    check("", "");
    check("  ", "");
    check(" app = x , tier", "app=x,tier");
    check("b,a==1,!c", "a==1,b,!c");
    check(
        "x in (foo,,baz),y,z notin ()",
        "x in (,baz,foo),y,z notin ()",
    );

    check("a in (b,a,b)", "a in (a,b)");
    check("a in (,)", "a in ()");
    check("n > 5,m<007", "m<007,n>5");
    check("other=", "other=");
    check("a!=", "a!=");
    check("in in (in,notin)", "in in (in,notin)");
    check("notin", "notin");
    check("ex.com/k!=v", "ex.com/k!=v");
}

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[test]
fn invalid_label_selectors_are_refused_in_upstreams_words() {
    let check = |text: &str, expected: &str| assert_eq!(label_error(text), expected, "{text}");
    check(
        "a===b",
        "unable to parse requirement: found '=', expected: identifier",
    );

    check(
        "app gt 1",
        "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt",
    );

    check(
        "app~x",
        &format!("unable to parse requirement: <nil>: Invalid value: \"app~x\": {NAME_PART}"),
    );

    check("app=x y", "found 'y', expected: ',' or 'end of string'");
    check(
        "app in (x",
        "unable to parse requirement: found '', expected: ',' or ')'",
    );

    check(
        "app in x",
        "unable to parse requirement: found 'x' expected: '('",
    );

    check(
        "app in (=",
        "unable to parse requirement: found '=', expected: ',', ')' or identifier",
    );

    check(
        "app in (a,=",
        "unable to parse requirement: found '=', expected: ',', or identifier",
    );

    check(
        "!",
        "unable to parse requirement: found '', expected: identifier",
    );

    check("!a=b", "found '=', expected: ',' or 'end of string'");
    check("a,", "found '', expected: identifier after ','");
    check(
        ",a",
        "found ',', expected: !, identifier, or 'end of string'",
    );

    check(
        "a\0b",
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    );

    let number = "for 'Gt', 'Lt' operators, the value must be an integer";
    check(
        "a>x",
        &format!("unable to parse requirement: values[0]: Invalid value: \"x\": {number}"),
    );

    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    check(
        "a=-",
        &format!("unable to parse requirement: values[0][a]: Invalid value: \"-\": {value}"),
    );

    let both = format!(
        "unable to parse requirement: [values[0]: Invalid value: \"-\": {number}, values[0][a]: Invalid value: \"-\": {value}]"
    );
    check("a<-", &both);
}

#[test]
fn label_selectors_match_as_written() {
    let labels = [
        ("app", "web"),
        ("tier", "front"),
        ("n", "7"),
        ("word", "seven"),
    ];

    let check = |text: &str, expected: bool| {
        assert_eq!(
            text.parse::<LabelSelector>()
                .unwrap()
                .matches(labels.as_slice()),
            expected,
            "{text}"
        );
    };

    for text in [
        "",
        "app",
        "app=web",
        "app==web",
        "app!=x",
        "none!=x",
        "app in (x,web)",
        "app notin (x)",
        "none notin (x)",
    ] {
        check(text, true);
    }

    for text in ["!none", "n>6", "n<8", "app=web,tier=front"] {
        check(text, true);
    }

    for text in [
        "none",
        "!app",
        "app=x",
        "none=",
        "app in (x,y)",
        "app notin (web)",
        "n>7",
        "n<7",
        "word>1",
        "none<1",
    ] {
        check(text, false);
    }

    assert!(!LabelSelector::Nothing.matches(labels.as_slice()));
    assert!(LabelSelector::everything().matches(&None::<&Map>));
}

fn strings(values: &[&str]) -> Value {
    Value::Array(values.iter().copied().map(Value::from).collect())
}

fn label_selector(labels: &[(&str, &str)], expressions: &[(&str, &str, &[&str])]) -> Value {
    let mut selector = Map::new();
    for (key, value) in labels {
        selector.object_mut("matchLabels").insert(*key, *value);
    }

    let expressions = expressions.iter().map(|(key, operator, values)| {
        let mut expression = Map::new();
        expression.insert("key", *key);
        expression.insert("operator", *operator);
        expression.insert("values", strings(values));
        Value::Object(expression)
    });
    selector.insert("matchExpressions", Value::Array(expressions.collect()));

    Value::Object(selector)
}

#[test]
fn a_label_selector_comes_from_an_object_too() {
    let value = label_selector(
        &[("b", "1"), ("a", "2")],
        &[("c", "In", &["y", "x"]), ("d", "DoesNotExist", &[])],
    );
    let selector = LabelSelector::from_value(Some(&value)).unwrap();
    assert_eq!(selector.to_string(), "a=2,b=1,c in (x,y),!d");
    assert_eq!(selector.exact_value("a"), Some("2"));

    assert_eq!(selector.exact_value("c"), None);
    assert_eq!(LabelSelector::from_value(None), Ok(LabelSelector::Nothing));
    assert!(
        LabelSelector::from_value(Some(&Value::object()))
            .unwrap()
            .is_everything()
    );

    let refused = |value: &Value| {
        LabelSelector::from_value(Some(value))
            .unwrap_err()
            .to_string()
    };

    assert_eq!(
        refused(&label_selector(&[], &[("a", "Gt", &["1"])])),
        "\"Gt\" is not a valid label selector operator"
    );

    let empty =
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty";
    assert_eq!(refused(&label_selector(&[], &[("a", "In", &[])])), empty);

    let full =
        "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist";
    assert_eq!(
        refused(&label_selector(&[], &[("a", "Exists", &["x"])])),
        full
    );

    assert_eq!(
        refused(&label_selector(&[("a b", "")], &[])),
        format!("key: Invalid value: \"a b\": {NAME_PART}")
    );
}

#[test]
fn field_selectors_print_sorted_and_escaped() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            text.parse::<FieldSelector>()
                .map(|selector| selector.to_string()),
            Ok(expected.to_owned())
        );
    };

    check("", "");
    check("metadata.name=a", "metadata.name=a");
    check("b==1,a!=2,", "a!=2,b=1");
    check(r"a=x\,y\=\\z", r"a=x\,y\=\\z");
    check("a=", "a=");
    check("=", "");
}

#[test]
fn invalid_field_selectors_are_refused_in_upstreams_words() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            text.parse::<FieldSelector>().unwrap_err().to_string(),
            expected,
            "{text}"
        );
    };

    check("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'");
    check(
        "a=b=c",
        "invalid field selector: unescaped character in value: 61",
    );

    check(
        r"a=\x",
        r"invalid field selector: invalid escape sequence: \x",
    );

    check(
        "a=\\",
        "invalid field selector: invalid escape sequence: \\",
    );
}

#[test]
fn field_selectors_match_and_know_their_fields() {
    let fields = [("metadata.name", "a"), ("status.phase", "Running")];
    let selector: FieldSelector = "metadata.name=a,status.phase!=Failed,absent="
        .parse()
        .unwrap();
    assert!(selector.matches(fields.as_slice()));

    assert_eq!(selector.exact_value("metadata.name"), Some("a"));
    assert_eq!(selector.exact_value("status.phase"), None);
    assert!(
        !"metadata.name!=a"
            .parse::<FieldSelector>()
            .unwrap()
            .matches(fields.as_slice())
    );

    let refused = selector.transform(metadata_field).unwrap_err().to_string();
    assert_eq!(
        refused,
        "\"absent\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );

    let error = FieldLabelError::NotSupported("spec.replicas".to_owned());
    assert_eq!(
        error.to_string(),
        "field label not supported: spec.replicas"
    );

    let dropped = selector
        .transform(|_, _| Ok::<_, ()>(Default::default()))
        .unwrap();
    assert!(dropped.is_everything());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_field_value_survives_its_escaping(value in "\\PC{0,12}") {
        let term = FieldTerm { field: "f".into(), value: value.as_str().into(), negated: false };
        let selector = FieldSelector::new(vec![term]);
        prop_assert_eq!(selector.to_string().parse::<FieldSelector>(), Ok(selector));
    }

    #[test]
    fn a_requirement_and_its_opposite_never_agree(
        key in "[ab]", values in proptest::collection::vec("[xyz]", 1..4), label in proptest::option::of("[wxyz]"),
    ) {
        let label = label.as_deref().map(|value| ("a", value));
        let labels: Vec<(&str, &str)> = label.into_iter().collect();
        let list = values.join(",");
        for (one, other) in [(format!("{key} in ({list})"), format!("{key} notin ({list})")), (key.clone(), format!("!{key}"))] {
            let matches = |text: String| text.parse::<LabelSelector>().unwrap().matches(labels.as_slice());
            prop_assert_ne!(matches(one), matches(other));
        }
    }
}
