//! Ten typical rules: compiling, evaluating and keeping them, beside cel-go in the same run.
//!
//! cel-go is measured by `tests/tools/cel-oracle` with Kubernetes' options (cost tracking, limit,
//! interrupts). Both work on one thread; trust the ratios. Compiling is parsing, checking and
//! planning. Memory is what the process grows by for each program that is kept.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use coracle_api::Value as Tree;
use coracle_api::codec::json;
use coracle_api::schema::{Props, Schema};
use coracle_cel::env::Env;
use coracle_cel::eval::Budget;
use coracle_cel::program::{Activation, Program};
use coracle_cel::types::{ObjectTypes, Type};
use coracle_cel::value::Value;
use coracle_expressions::declared::Declared;

/// How long each number is measured.
const MEASURED: Duration = Duration::from_millis(300);
/// How many programs are kept to measure their memory.
const KEPT: u32 = 5_000;

/// Rules over `self`, typed by [`SCHEMA`].
const TYPED: [&str; 5] = [
    "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
    "self.ports.all(p, p.port > 0 && p.port < 65536)",
    "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))",
    "!has(self.schedule) || self.schedule.matches('^[0-9*/, -]+$')",
    "self.labels.all(k, k.startsWith('example.com/') && self.labels[k].size() < 64)",
];

/// Rules over `object`, of any type.
const DYNAMIC: [&str; 5] = [
    "object.spec.replicas <= 5",
    "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "has(object.metadata.labels) && 'team' in object.metadata.labels",
    "object.spec.template.spec.containers.all(c, has(c.resources) && quantity(c.resources.limits.memory).isLessThan(quantity('2Gi')))",
    "object.metadata.name.matches('^[a-z][-a-z0-9]*$') && !(object.metadata.namespace in ['kube-system', 'default'])",
];

const SCHEMA: &str = r#"{"type": "object", "required": ["replicas"], "properties": {
    "minReplicas": {"type": "integer"}, "replicas": {"type": "integer"}, "maxReplicas": {"type": "integer"},
    "schedule": {"type": "string", "maxLength": 100},
    "labels": {"type": "object", "maxProperties": 20, "additionalProperties": {"type": "string", "maxLength": 63}},
    "ports": {"type": "array", "maxItems": 20, "items": {"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 15}, "port": {"type": "integer"}}}}}}"#;

const SELF: &str = r#"{"minReplicas": 1, "replicas": 3, "maxReplicas": 10, "schedule": "*/5 * * * 1-5",
    "labels": {"example.com/team": "a", "example.com/tier": "backend", "example.com/zone": "z1"},
    "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}, {"name": "metrics", "port": 9090},
        {"name": "debug", "port": 6060}, {"name": "grpc", "port": 5000}]}"#;

const OBJECT: &str = r#"{"metadata": {"name": "web", "namespace": "shop", "labels": {"team": "a", "app": "web"}},
    "spec": {"replicas": 3, "template": {"spec": {"containers": [
        {"name": "web", "image": "registry.example.com/web:1", "resources": {"limits": {"memory": "512Mi"}}},
        {"name": "proxy", "image": "registry.example.com/proxy:2", "resources": {"limits": {"memory": "64Mi"}}},
        {"name": "logs", "image": "registry.example.com/logs:3", "resources": {"limits": {"memory": "1Gi"}}}]}}}}"#;

struct Measured {
    compile: f64,
    eval: f64,
    bytes: f64,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn main() {
    let tree = |text: &str| json::parse(text.as_bytes()).expect("the fixture is JSON");
    let (definition, typed, dynamic) = (tree(SCHEMA), tree(SELF), tree(OBJECT));
    let schema = Schema::new(Props::of(&definition)).expect("the schema compiles");
    let root = schema.root_id();
    let declared = Declared::of_node(&schema, root).expect("the schema has a type");
    let mut objects = ObjectTypes::default();
    let of = declared.cel_type("self", &mut objects);
    let typed_env = Env::base()
        .with_objects(objects)
        .with_variable("self", of.clone())
        .with_variable("oldSelf", of);
    let dynamic_env = Env::base().with_variable("object", Type::Dyn);

    let upstream = upstream();
    let value = Value::with_schema(&typed, &schema, root, false).expect("the object fits");
    let mut ours = Vec::new();
    for rule in TYPED {
        ours.push(measure(&typed_env, rule, "self", &value));
    }
    for rule in DYNAMIC {
        ours.push(measure(&dynamic_env, rule, "object", &Value::of(&dynamic)));
    }

    let mut text = String::from("rule: ours / cel-go, ratio of cel-go's number to ours\n");
    for ((rule, ours), theirs) in TYPED.iter().chain(&DYNAMIC).zip(&ours).zip(&upstream) {
        writeln!(text, "{rule}").expect("a string takes all");
        line(&mut text, "compile, ns", ours.compile, theirs.compile);
        line(&mut text, "evaluate, ns", ours.eval, theirs.eval);
        line(&mut text, "memory, bytes", ours.bytes, theirs.bytes);
    }
    let sum = |of: fn(&Measured) -> f64, all: &[Measured]| all.iter().map(of).sum::<f64>() / 10.0;
    writeln!(text, "mean of the ten").expect("a string takes all");
    line(
        &mut text,
        "compile, ns",
        sum(|m| m.compile, &ours),
        sum(|m| m.compile, &upstream),
    );
    line(
        &mut text,
        "evaluate, ns",
        sum(|m| m.eval, &ours),
        sum(|m| m.eval, &upstream),
    );
    line(
        &mut text,
        "memory, bytes",
        sum(|m| m.bytes, &ours),
        sum(|m| m.bytes, &upstream),
    );
    print!("{text}");
}

fn line(text: &mut String, name: &str, ours: f64, theirs: f64) {
    writeln!(
        text,
        "  {name:14} {ours:10.0} / {theirs:10.0}  {:6.1}",
        theirs / ours
    )
    .expect("a string takes all");
}

fn measure(env: &Env, rule: &str, variable: &str, value: &Value<'_>) -> Measured {
    let compile = || {
        let checked = env.compile(rule).expect("the rule compiles");
        Program::new(&checked).expect("the rule is a program")
    };
    let program = compile();
    let activation = Activation::default().with(variable, value.clone());
    let outcome = program.eval(&activation, Budget::default());
    assert!(
        matches!(outcome.result, Ok(Value::Bool(true))),
        "{rule}: {:?}",
        outcome.result
    );

    let measured = |run: &mut dyn FnMut()| per_run(run);
    let compiled = measured(&mut || drop(black_box(compile())));
    let evaluated = measured(&mut || drop(black_box(program.eval(&activation, Budget::default()))));
    let before = resident();
    let kept: Vec<_> = (0..KEPT).map(|_| compile()).collect();
    let bytes = (resident() - before) / f64::from(KEPT);
    drop(kept);
    Measured {
        compile: compiled,
        eval: evaluated,
        bytes,
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn per_run(run: &mut dyn FnMut()) -> f64 {
    for _ in 0..20 {
        run();
    }
    let started = Instant::now();
    let mut count = 0.0;
    while started.elapsed() < MEASURED {
        for _ in 0..10 {
            run();
        }
        count += 10.0;
    }
    started.elapsed().as_secs_f64() * 1e9 / count
}

/// The memory of this process, in bytes.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("the kernel tells");
    let pages: f64 = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("a number of pages");
    pages * 4096.0
}

/// What the oracle measures of the same rules.
fn upstream() -> Vec<Measured> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("test-tools")
        .join("cel-oracle");
    let mut process = Command::new(program)
        .arg("bench")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the oracle is built by scripts/test-prereqs.sh");
    let mut input = process.stdin.take().expect("piped");
    for rule in TYPED {
        let rule = Tree::from(rule);
        writeln!(
            input,
            r#"{{"env": "crd", "expr": {}, "schema": {}, "self": {}}}"#,
            json::to_string(&rule),
            SCHEMA.replace('\n', " "),
            SELF.replace('\n', " ")
        )
        .expect("the oracle reads");
    }
    for rule in DYNAMIC {
        let rule = Tree::from(rule);
        writeln!(
            input,
            r#"{{"env": "admission", "expr": {}, "bind": {{"object": {}}}}}"#,
            json::to_string(&rule),
            OBJECT.replace('\n', " ")
        )
        .expect("the oracle reads");
    }
    drop(input);

    let output = process.wait_with_output().expect("the oracle answers");
    String::from_utf8(output.stdout)
        .expect("JSON is text")
        .lines()
        .map(|line| {
            let answer = json::parse(line.as_bytes()).expect("an answer is JSON");
            assert_eq!(
                answer.get("value").and_then(Tree::as_str),
                Some("true"),
                "{line}"
            );
            let number = |name: &str| match answer.get(name) {
                Some(Tree::Float(number)) => *number,
                other => panic!("{name} is {other:?}"),
            };
            Measured {
                compile: number("compile"),
                eval: number("eval"),
                bytes: number("bytes"),
            }
        })
        .collect()
}
