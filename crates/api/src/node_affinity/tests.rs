//! Node affinity as upstream's scheduler understands it.

use super::*;

const LABELS: [(&str, &str); 3] = [("zone", "a"), ("cpus", "8"), ("kind", "gpu")];

fn node() -> NodeView<'static, [(&'static str, &'static str)]> {
    NodeView {
        name: "node-1",
        labels: &LABELS,
    }
}

fn requirement<'a>(
    key: &'a str,
    operator: &'a str,
    values: &[&'a str],
) -> NodeSelectorRequirement<'a> {
    NodeSelectorRequirement {
        key,
        operator,
        values: values.to_vec(),
    }
}

fn labels<'a>(requirements: &[NodeSelectorRequirement<'a>]) -> NodeSelectorTerm<'a> {
    NodeSelectorTerm {
        match_expressions: requirements.to_vec(),
        match_fields: Vec::new(),
    }
}

fn fields<'a>(requirements: &[NodeSelectorRequirement<'a>]) -> NodeSelectorTerm<'a> {
    NodeSelectorTerm {
        match_expressions: Vec::new(),
        match_fields: requirements.to_vec(),
    }
}

fn matches(terms: &[NodeSelectorTerm<'_>]) -> Result<bool, String> {
    NodeSelector::new(terms, &Path::Root)
        .matches(&node())
        .map_err(|errors| errors.to_string())
}

#[test]
fn requirements_on_labels() {
    let check = |key, operator, values: &[&str], expected: bool| {
        let found = matches(&[labels(&[requirement(key, operator, values)])]);
        assert_eq!(found, Ok(expected), "{key} {operator} {values:?}");
    };

    check("zone", "In", &["a", "b"], true);
    check("zone", "In", &["b"], false);
    check("zone", "NotIn", &["b"], true);
    check("none", "NotIn", &["b"], true);
    check("zone", "Exists", &[], true);
    check("none", "Exists", &[], false);

    check("none", "DoesNotExist", &[], true);
    check("cpus", "Gt", &["7"], true);
    check("cpus", "Gt", &["8"], false);
    check("cpus", "Lt", &["9"], true);
    check("zone", "Lt", &["9"], false);
}

#[test]
fn requirements_on_the_name() {
    let check = |operator, name: &str, expected: bool| {
        let found = matches(&[fields(&[requirement("metadata.name", operator, &[name])])]);
        assert_eq!(found, Ok(expected), "{operator} {name}");
    };

    check("In", "node-1", true);
    check("In", "node-2", false);
    check("NotIn", "node-2", true);
    check("NotIn", "node-1", false);
    let nameless = NodeView { name: "", ..node() };

    let selector = NodeSelector::new(
        &[fields(&[requirement("metadata.name", "In", &["x"])])],
        &Path::Root,
    );
    assert_eq!(selector.matches(&nameless), Ok(true));
}

#[test]
fn one_term_is_enough_and_an_empty_one_matches_nothing() {
    let (good, bad) = (
        labels(&[requirement("zone", "Exists", &[])]),
        labels(&[requirement("none", "Exists", &[])]),
    );

    assert_eq!(matches(&[]), Ok(false));
    assert_eq!(matches(&[NodeSelectorTerm::default()]), Ok(false));
    assert_eq!(matches(&[bad.clone(), good.clone()]), Ok(true));

    let both = labels(&[
        requirement("zone", "Exists", &[]),
        requirement("none", "Exists", &[]),
    ]);
    assert_eq!(matches(&[both, bad]), Ok(false));
}

#[test]
fn an_invalid_term_is_an_error_only_if_nothing_matches() {
    let nonsense = labels(&[
        requirement("zone", "Near", &["a"]),
        requirement("zone", "In", &[]),
    ]);

    let good = labels(&[requirement("zone", "Exists", &[])]);
    assert_eq!(matches(&[nonsense.clone(), good]), Ok(true));

    let text = "[nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: \"Near\": supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\", nodeSelectorTerms[0].matchExpressions[1].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty]";
    assert_eq!(
        matches(std::slice::from_ref(&nonsense)),
        Err(text.to_owned())
    );

    assert_eq!(
        NodeSelector::new(&[nonsense], &Path::Root)
            .check()
            .unwrap_err()
            .to_string(),
        text
    );

    let two = fields(&[requirement("metadata.name", "In", &["a", "b"])]);
    let text = "nodeSelectorTerms[0].matchFields[0].values: Invalid value: [\"a\",\"b\"]: must have one element";
    assert_eq!(matches(&[two]), Err(text.to_owned()));

    let exists = fields(&[requirement("metadata.name", "Exists", &[])]);
    let text = "nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: \"Exists\": supported values: \"In\", \"NotIn\"";
    assert_eq!(matches(&[exists]), Err(text.to_owned()));
}

#[test]
fn preferences_add_up() {
    let preferred = |weight, key, operator, values: &[&'static str]| {
        (weight, labels(&[requirement(key, operator, values)]))
    };
    let score = |terms: &[(i64, NodeSelectorTerm<'_>)]| {
        PreferredTerms::new(terms, &Path::Root)
            .map(|terms| terms.score(&node()))
            .map_err(|error| error.to_string())
    };

    let terms = [
        preferred(5, "zone", "In", &["a"]),
        preferred(7, "kind", "Exists", &[]),
        preferred(100, "none", "Exists", &[]),
    ];
    assert_eq!(score(&terms), Ok(12));

    assert_eq!(score(&[(9, NodeSelectorTerm::default())]), Ok(0));

    // A term without weight is not validated.
    assert_eq!(score(&[preferred(0, "zone", "Near", &[])]), Ok(0));

    let text = "[1].matchExpressions[0].operator: Unsupported value: \"Near\": supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"";
    assert_eq!(
        score(&[
            preferred(1, "zone", "Exists", &[]),
            preferred(1, "zone", "Near", &[])
        ]),
        Err(text.to_owned())
    );
}

fn object(members: &[(&str, Value)]) -> Value {
    let mut object = Value::object();
    for (name, value) in members {
        object.as_object_mut().unwrap().insert(*name, value.clone());
    }
    object
}

/// `{key, operator: In, values: [value]}` in a term.
fn term(key: &str, value: &str) -> Value {
    let values = Value::Array(vec![value.into()]);
    let requirement = object(&[
        ("key", key.into()),
        ("operator", "In".into()),
        ("values", values),
    ]);
    object(&[("matchExpressions", Value::Array(vec![requirement]))])
}

#[test]
fn selections_come_from_a_pods_spec() {
    let required = object(&[("nodeSelectorTerms", Value::Array(vec![term("zone", "a")]))]);
    let preferred = Value::Array(vec![object(&[
        ("weight", 3i64.into()),
        ("preference", term("kind", "gpu")),
    ])]);

    let affinity = object(&[
        ("requiredDuringSchedulingIgnoredDuringExecution", required),
        ("preferredDuringSchedulingIgnoredDuringExecution", preferred),
    ]);

    let affinity = object(&[("nodeAffinity", affinity)]);
    let spec = |cpus: &str| {
        object(&[
            ("nodeSelector", object(&[("cpus", cpus.into())])),
            ("affinity", affinity.clone()),
        ])
    };

    assert_eq!(
        RequiredNodeAffinity::from_pod_spec(&spec("8")).matches(&node()),
        Ok(true)
    );

    assert_eq!(
        RequiredNodeAffinity::from_pod_spec(&spec("9")).matches(&node()),
        Ok(false)
    );

    assert_eq!(
        RequiredNodeAffinity::from_pod_spec(&Value::object()).matches(&node()),
        Ok(true)
    );

    assert_eq!(
        PreferredTerms::from_pod_spec(&spec("8"))
            .unwrap()
            .score(&node()),
        3
    );
}
