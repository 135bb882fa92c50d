use std::sync::Arc;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_cel::eval::{Answer, Authorize};
use coracle_cel::value::{Authorizer, Check, Request, Verdict};

use super::{
    AnnotationValue, Answers, Because, Compiled, Compiler, Conditions, Evaluation, Inputs, Matched,
    POLICY_BUDGET, Returns, Stopped, ValidatingPolicy, Variables, Visible,
};

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

fn refuses(_: &Check) -> Answer {
    Answer::Decided(Verdict::default())
}

/// Calls `work` with what a request for an object is to expressions.
fn with_inputs<T>(object: &str, authorize: &Authorize<'_>, work: impl Fn(&Inputs<'_>) -> T) -> T {
    let (object, request) = (tree(object), tree(r#"{"operation": "CREATE"}"#));
    let check = Arc::new(Check {
        user: Authorizer::Requester,
        verb: String::new(),
        request: Request::Path("/".to_owned()),
    });
    work(&Inputs {
        object: Some(&object),
        old_object: None,
        request: &request,
        namespace_object: None,
        params: None,
        request_resource: &check,
        authorize,
    })
}

const SEES: Visible = Visible {
    params: false,
    authorizer: true,
    patches: false,
};

/// The results of expressions that share variables, and what is left of the budget.
fn evaluated(
    variables: &[(&str, &str)],
    expressions: &[&str],
    budget: u64,
) -> Result<(Vec<String>, u64), String> {
    let mut compiler = Compiler::with_variables();
    let variables = Variables::compile(&mut compiler, variables.iter().copied(), SEES);
    let compiled: Vec<Compiled> = expressions
        .iter()
        .map(|text| Compiled {
            text: (*text).to_owned(),
            expression: compiler.compile(text, SEES, Returns::Anything),
        })
        .collect();

    with_inputs(r#"{"a": 1}"#, &refuses, |inputs| {
        let mut evaluation = Evaluation::new(*inputs, &variables, budget);
        let mut results = Vec::new();
        for compiled in &compiled {
            let result = evaluation
                .evaluate(compiled)
                .map_err(|out| out.to_string())?;
            results.push(match result {
                Ok(value) => coracle_cel::value::shown(&value),
                Err(failure) => failure.to_string(),
            });
        }
        Ok((results, evaluation.budget()))
    })
}

#[test]
fn a_variable_is_evaluated_once_and_paid_for_by_the_first_that_selects_it() {
    let check = |variables: &[(&str, &str)], expressions: &[&str], expected: &[&str], cost: u64| {
        let (results, left) = evaluated(variables, expressions, 1000).unwrap();
        assert_eq!(results, expected, "{expressions:?}");
        assert_eq!(1000 - left, cost, "{expressions:?}");
    };

    // A selection costs 2 steps: the variable, and its member.
    check(
        &[("v", "object.a")],
        &["variables.v == 1"],
        &["true"],
        2 + 3,
    );
    check(
        &[("v", "object.a")],
        &["variables.v == 1", "variables.v == 1"],
        &["true", "true"],
        2 + 3 + 3,
    );
    check(
        &[("v", "object.none")],
        &["true || variables.v"],
        &["true"],
        0,
    );
    check(&[("v", "1")], &["has(variables.v)"], &["true"], 1);
    check(
        &[("v", "object.a"), ("w", "variables.v + 1")],
        &["variables.w == 2"],
        &["true"],
        2 + 3 + 3,
    );
}

#[test]
fn a_variable_that_fails_is_an_error_where_it_is_selected() {
    let check = |variables: &[(&str, &str)], expression: &str, expected: &str| {
        let (results, _) = evaluated(variables, &[expression], POLICY_BUDGET).unwrap();
        assert_eq!(results, [expected], "{expression}");
    };
    check(
        &[("v", "object.none")],
        "variables.v == 1",
        "expression 'variables.v == 1' resulted in error: composited variable \"v\" fails to evaluate: no such key: none",
    );
    check(&[("v", "object.none")], "variables.v == 1 || true", "true");
    check(
        &[("v", "1 +")],
        "variables.v == 1",
        "expression 'variables.v == 1' resulted in error: composited variable \"v\" fails to compile: compilation failed: \
         ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', \
         'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^",
    );
}

#[test]
fn nothing_more_is_evaluated_when_the_budget_is_spent() {
    let check = |variables: &[(&str, &str)], expressions: &[&str], budget| {
        assert_eq!(
            evaluated(variables, expressions, budget).unwrap_err(),
            "validation failed due to running out of cost budget, no further validation rules will be run"
        );
    };
    check(&[], &["object.a == 1", "object.a == 1"], 5);
    check(&[("v", "object.a")], &["variables.v == 1"], 4);
    assert!(evaluated(&[("v", "object.a")], &["variables.v == 1"], 5).is_ok());
}

#[test]
fn a_thousand_variables_may_each_use_the_one_before() {
    let names: Vec<String> = (0..1000).map(|index| format!("v{index}")).collect();
    let texts: Vec<String> = (0..1000)
        .map(|index| match index {
            0 => "1".to_owned(),
            index => format!("variables.v{} + 1", index - 1),
        })
        .collect();
    let variables: Vec<(&str, &str)> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();

    let small = std::thread::Builder::new().stack_size(1 << 20);
    std::thread::scope(|scope| {
        let thread = small.spawn_scoped(scope, || {
            evaluated(&variables, &["variables.v999"], POLICY_BUDGET).unwrap()
        });
        assert_eq!(thread.unwrap().join().unwrap().0, ["1000"]);
    });
}

#[test]
fn one_false_condition_decides_and_otherwise_a_failure_does() {
    let check = |conditions: &[&str], expected: Matched| {
        let compiler = Compiler::plain();
        let named = conditions.iter().map(|text| (*text, *text));
        let conditions = Conditions::compile(&compiler, named, SEES);
        let held = with_inputs(r#"{"a": 1}"#, &refuses, |inputs| {
            conditions.hold(inputs, &Variables::default())
        });
        assert_eq!(held.unwrap(), expected);
    };
    let no_key = |text: &str| format!("expression '{text}' resulted in error: no such key: x");

    check(&[], Matched::Yes);
    check(&["object.a == 1", "true"], Matched::Yes);
    check(
        &["object.x == 1", "object.a == 2"],
        Matched::No("object.a == 2".to_owned()),
    );
    check(
        &["object.x == 1", "true"],
        Matched::Failed(no_key("object.x == 1")),
    );
    check(
        &["object.x == 1", "object.x == 2", "object.x == 1"],
        Matched::Failed(format!(
            "[{}, {}]",
            no_key("object.x == 1"),
            no_key("object.x == 2")
        )),
    );
}

#[test]
fn an_unanswered_check_stops_the_evaluation_until_it_is_answered() {
    let answers = Answers::default();
    let compiler = Compiler::plain();
    let text = "authorizer.path('/x').check('get').allowed()";
    let conditions = Conditions::compile(&compiler, [("c", text)], SEES);
    let hold = || {
        let authorize = |check: &Check| answers.get(check);
        with_inputs("{}", &authorize, |inputs| {
            conditions.hold(inputs, &Variables::default())
        })
    };

    let Err(Stopped::Pending(check)) = hold() else {
        panic!("the check is not answered");
    };
    let allowed = Verdict {
        allowed: true,
        ..Verdict::default()
    };
    answers.add(Check::clone(&check), allowed);
    assert_eq!(hold().unwrap(), Matched::Yes);
}

#[test]
fn a_policy_says_what_is_wrong() {
    let check = |spec: &str, expected: &[(bool, Because, &str)]| {
        let policy = ValidatingPolicy::compile(&tree(&format!(r#"{{"spec": {spec}}}"#)));
        let verdict = with_inputs(r#"{"a": 1}"#, &refuses, |inputs| {
            policy.validate(inputs, &|| Duration::ZERO).unwrap()
        });
        let found: Vec<_> = verdict
            .decisions
            .iter()
            .map(|decision| (decision.admits, decision.because, decision.message.as_str()))
            .collect();
        assert_eq!(found, expected, "{spec}");
    };

    check(
        r#"{"validations": [{"expression": "object.a == 1"}, {"expression": " object.a == 2 "}]}"#,
        &[
            (true, Because::Holds, ""),
            (false, Because::Fails, "failed expression: object.a == 2"),
        ],
    );
    check(
        r#"{"validations": [{"expression": "object.a == 2", "message": " no ", "messageExpression": "'a\nb'"}]}"#,
        &[(false, Because::Fails, "no")],
    );
    check(
        r#"{"validations": [{"expression": "object.a == 2", "message": "no", "messageExpression": "' a is ' + string(object.a)"}]}"#,
        &[(false, Because::Fails, "a is 1")],
    );
    check(
        r#"{"validations": [{"expression": "object.x == 2"}]}"#,
        &[(
            false,
            Because::Error,
            "expression 'object.x == 2' resulted in error: no such key: x",
        )],
    );
    check(
        r#"{"failurePolicy": "Ignore", "validations": [{"expression": "object.x == 2"}]}"#,
        &[(
            true,
            Because::Error,
            "expression 'object.x == 2' resulted in error: no such key: x",
        )],
    );
    check(
        r#"{"matchConditions": [{"name": "c", "expression": "object.a == 2"}], "validations": [{"expression": "false"}]}"#,
        &[],
    );
}

#[test]
fn a_policy_annotates_with_what_is_not_blank() {
    let check = |failure_policy: &str, expression: &str, expected: AnnotationValue| {
        let policy = ValidatingPolicy::compile(&tree(&format!(
            r#"{{"spec": {{"failurePolicy": "{failure_policy}", "auditAnnotations": [{{"key": "k", "valueExpression": "{expression}"}}]}}}}"#
        )));
        let verdict = with_inputs(r#"{"a": 1}"#, &refuses, |inputs| {
            policy.validate(inputs, &|| Duration::ZERO).unwrap()
        });
        assert_eq!(verdict.annotations.len(), 1);
        assert_eq!(verdict.annotations[0].value, expected, "{expression}");
    };

    check("Fail", "' v '", AnnotationValue::Publish("v".to_owned()));
    check("Fail", "'  '", AnnotationValue::Exclude);
    check("Fail", "null", AnnotationValue::Exclude);
    check("Ignore", "string(object.x)", AnnotationValue::Exclude);
    check(
        "Fail",
        "string(object.x)",
        AnnotationValue::Error(
            "expression 'string(object.x)' resulted in error: no such key: x".to_owned(),
        ),
    );
}
