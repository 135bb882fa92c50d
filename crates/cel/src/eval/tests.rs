use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use coracle_api::Value as Node;
use coracle_api::codec::json;

use super::{Answer, Budget, EvalError, PER_CALL_LIMIT};
use crate::env::Env;
use crate::program::{Activation, Program};
use crate::types::Type;
use crate::value::{Extra, Value, Verdict, shown};

fn program(expression: &str) -> Program {
    let authorizer = Type::object("kubernetes.authorization.Authorizer");
    let env = Env::base()
        .with_library(&crate::library::BINDINGS)
        .with_variable("x", Type::Dyn)
        .with_variable("authorizer", authorizer);
    let checked = env.compile(expression).expect(expression);
    Program::new(&checked).expect(expression)
}

/// The value or the error as text, and the cost.
fn run(expression: &str, x: &Node) -> (String, u64) {
    let program = program(expression);
    let variables = Activation::default().with("x", Value::of(x));
    let outcome = program.eval(&variables, Budget::default());
    let text = match outcome.result {
        Ok(value) => shown(&value),
        Err(error) => error.to_string(),
    };
    (text, outcome.cost)
}

fn tree(text: &str) -> Node {
    json::parse(text.as_bytes()).expect(text)
}

/// Values and costs that upstream's evaluator gave.
#[test]
fn values_and_costs_are_those_of_upstream() {
    let check = |expression: &str, value: &str, cost: u64| {
        let x = tree(r#"{"a": {"b": [1, 2, 3]}, "s": "hello"}"#);
        assert_eq!(
            run(expression, &x),
            (value.to_owned(), cost),
            "{expression}"
        );
    };

    check("x.a.b[0]", "1", 4);
    check("has(x.a)", "true", 1);
    check("has(x.a.c)", "false", 2);
    check("x.a.c", "no such key: c", 3);
    check("x.a.b[3]", "index out of bounds: 3", 4);
    check("1 in [1, 2, 3]", "true", 0);
    check("x.s.startsWith('he')", "true", 3);
    check("1 / 0 == 1", "division by zero", 2);
    check("1 / 0 == 1 || true", "true", 2);
    check("[1].distinct() == [1]", "true", 14);
    check(
        "[-3, 1, -5, -2, 4].sortBy(e, -(e * e)) == [-5, 4, -3, -2, 1]",
        "true",
        145,
    );
    check(
        "[[1],[2],[3,4]].flatten(-1) == [1]",
        "level must be non-negative",
        9,
    );
}

#[test]
fn an_evaluation_ends_at_its_limit() {
    let program = program("lists.range(300).all(a, lists.range(300).all(b, a + b >= 0))");
    let outcome = program.eval(&Activation::default(), Budget::default());
    assert!(matches!(outcome.result, Ok(Value::Bool(true))));

    let budget = Budget {
        cost: 1000,
        interrupt: None,
    };
    let outcome = program.eval(&Activation::default(), budget);
    assert!(matches!(outcome.result, Err(EvalError::CostLimit)));
    assert!(
        outcome.cost > 1000 && outcome.cost < 1400,
        "{}",
        outcome.cost
    );
}

#[test]
fn an_evaluation_can_be_interrupted() {
    let program = program("lists.range(300).all(a, lists.range(300).all(b, a + b >= 0))");
    let stop = AtomicBool::new(true);
    let budget = Budget {
        cost: PER_CALL_LIMIT,
        interrupt: Some(&stop),
    };
    let outcome = program.eval(&Activation::default(), budget);
    assert_eq!(
        outcome
            .result
            .map(|value| shown(&value))
            .map_err(|error| error.to_string()),
        Err("operation interrupted".to_owned())
    );
}

/// Each of these is cheap by upstream's costs, or is charged when it is done.
#[test]
fn work_and_memory_that_cost_nothing_are_bounded() {
    let big = format!("'{}'", "a".repeat(20_000));

    let doubled = |levels: usize| {
        let mut text = "[1, 2, 3, 4, 5, 6, 7, 8]".to_owned();
        for level in 0..levels {
            text = format!("cel.bind(v{level}, {text}, v{level} + v{level})");
        }
        text
    };

    let ends = |expression: &str| {
        assert_eq!(
            run(expression, &Node::Null).0,
            "operation cancelled: actual cost limit exceeded",
            "{}",
            &expression[..expression.len().min(80)]
        );
    };

    ends("lists.range(1000000000000)[0] == 0");
    ends(&format!("{big}.replace('a', {big}).size() == 0"));
    ends(&format!("{big}.replace('', {big}).size() == 0"));
    ends(&format!("9 in {}", doubled(40)));

    let mut shared = "[1]".to_owned();
    for level in 0..40 {
        shared = format!("cel.bind(v{level}, {shared}, [v{level}, v{level}])");
    }
    ends(&format!("{shared} == {shared}"));
    ends(&format!("'%s'.format([{shared}]).size() == 1"));
    ends(&format!("dyn({shared}).flatten(50).size() == 1"));
    ends(&format!(
        "{}.map(a, {}).flatten(2).size() == 1",
        doubled(14),
        doubled(14)
    ));
    ends("'%.60000000f%.60000000f'.format([1.0, 2.0]).size() == 1");
}

#[test]
fn a_large_map_is_built_in_place() {
    let (value, cost) = run(
        "lists.range(20000).transformMap(i, v, v * 2)[19999]",
        &Node::Null,
    );
    assert_eq!(value, "39998");
    assert!(cost < PER_CALL_LIMIT, "{cost}");
}

/// Deep expressions, on a stack as small as that of other threads.
#[test]
fn nesting_does_not_overflow_the_stack() {
    let nested = [
        format!("{}1{}", "[".repeat(120), "]".repeat(120)),
        format!("{}true{}", "(false || ".repeat(80), ")".repeat(80)),
        {
            let mut text = "true".to_owned();
            for level in 0..30 {
                text = format!("[1].all(v{level}, {text})");
            }
            text
        },
        format!("1{}", " + 1".repeat(200)),
    ];
    for text in nested {
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let done = thread.spawn(move || run(&text, &Node::Null).0);
        let text = done.expect("a thread").join().expect("no overflow");
        assert!(!text.is_empty());
    }
}

#[test]
fn a_check_that_takes_time_ends_the_evaluation_until_it_is_answered() {
    let program =
        program("authorizer.group('apps').resource('deployments').check('get').allowed()");
    let requester = Value::Extra(std::sync::Arc::new(Extra::Authorizer(
        crate::value::Authorizer::Requester,
    )));
    let variables = Activation::default().with("authorizer", requester);

    let asked = AtomicU32::new(0);
    let answered = AtomicBool::new(false);
    let authorize = |check: &crate::value::Check| {
        assert_eq!(check.verb, "get");
        asked.fetch_add(1, Ordering::Relaxed);
        if answered.load(Ordering::Relaxed) {
            Answer::Decided(Verdict {
                allowed: true,
                ..Verdict::default()
            })
        } else {
            Answer::Later
        }
    };
    let outcome = program.eval_with_authorizer(&variables, Budget::default(), &authorize);
    assert!(matches!(outcome.result, Err(EvalError::Pending(_))));

    answered.store(true, Ordering::Relaxed);
    let outcome = program.eval_with_authorizer(&variables, Budget::default(), &authorize);
    assert!(matches!(outcome.result, Ok(Value::Bool(true))));
    assert_eq!((asked.load(Ordering::Relaxed), outcome.cost), (2, 350_004));
}

/// Data with a schema: members have its types, names are escaped, and what it does not declare is
/// hidden; the left operand decides how lists compare.
#[test]
fn data_with_a_schema_have_its_types() {
    let schema = tree(
        r#"{"type": "object", "properties": {
            "when": {"type": "string", "format": "date-time"},
            "ratio": {"type": "number"},
            "namespace": {"type": "string"},
            "gone": {"type": "string", "nullable": true},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}}},
            "more": {"type": "array",
                "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}}}
        }}"#,
    );
    let schema = coracle_api::schema::Schema::new(coracle_api::schema::Props::of(&schema))
        .expect("a schema");
    let object = tree(
        r#"{"when": "2026-01-02T03:04:05+01:00", "ratio": 1, "namespace": "n", "gone": null, "extra": 1,
            "set": ["a", "b"], "ports": [{"port": 1, "name": "x"}, {"port": 2, "name": "y"}],
            "more": [{"port": 3, "name": "v"}, {"port": 2, "name": "z"}],
            "kind": "K", "metadata": {"name": "m", "uid": "u"}}"#,
    );
    let value = Value::with_schema(&object, &schema, schema.root_id(), true).expect("an object");

    let check = |expression: &str, expected: &str| {
        let program = program(expression);
        let variables = Activation::default().with("x", value.clone());
        let text = match program.eval(&variables, Budget::default()).result {
            Ok(value) => shown(&value),
            Err(error) => error.to_string(),
        };
        assert_eq!(text, expected, "{expression}");
    };
    check("string(x.when)", "2026-01-02T03:04:05+01:00");
    check("x.when.getHours()", "2");
    check("type(x.ratio) == double", "true");
    check("x.__namespace__", "n");
    check("has(x.gone)", "false");
    check("has(x.extra)", "false");
    check("x.extra", "no such key: extra");
    check("x.metadata.name + x.kind", "mK");
    check("has(x.metadata.uid)", "false");
    check("x.set == ['b', 'a']", "true");
    check("['b', 'a'] == x.set", "false");
    check("(x.set + ['b', 'c']).size()", "3");
    // An element of the object replaces the one with its key, in its place.
    check("(x.ports + x.more).map(p, p.name)", "[x, z, v]");
    check("(x.ports + [x.more[1]])[1].name", "z");
    // A map that the expression wrote has no key, so it comes after the others.
    check(
        "(x.ports + [{'port': dyn(2), 'name': dyn('z')}])[1].name",
        "y",
    );
    check(
        "(x.ports + [{'port': dyn(2), 'name': dyn('z')}]).size()",
        "3",
    );
    check("x.ports.map(p, p.port)", "[1, 2]");
    check("x == 1", "no such overload");
}
