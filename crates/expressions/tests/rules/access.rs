//! The language in upstream's environments of authentication, authorization and devices: declared
//! by the test as upstream declares them, asked of both.

use std::sync::Arc;

use coracle_api::Value as Tree;
use coracle_api::codec::json;
use coracle_cel::cost::{Range, estimate};
use coracle_cel::env::Env;
use coracle_cel::eval::Budget;
use coracle_cel::library::BINDINGS;
use coracle_cel::program::{Activation, Program};
use coracle_cel::types::{Fields, ObjectType, ObjectTypes, Type};
use coracle_cel::value::{Entries, Map, Value as CelValue};
use coracle_expressions::device_selector::DeviceSelector;
use serde_json::{Value, json};

use crate::compare::{Answer, compare};

fn tree(text: &str) -> Tree {
    json::parse(text.as_bytes()).unwrap()
}

fn object(objects: &mut ObjectTypes, name: &str, fields: &[(&str, Type)]) -> Type {
    let fields = fields.iter().map(|(name, of)| ((*name).into(), of.clone()));
    objects.insert(ObjectType {
        name: name.into(),
        fields: Fields::Named(fields.collect()),
    });
    Type::object(name)
}

/// Asks both about expressions that see one variable. `refusal`: why a place takes no expression,
/// where upstream's compiler of the place is asked too.
fn check(
    env: &Env,
    name: &str,
    value: &CelValue<'_>,
    hints: &(dyn Fn(&[Arc<str>]) -> Option<Range> + Sync),
    refusal: fn(&str) -> Option<String>,
    question: &Value,
    expressions: &[&str],
) {
    let variables = Activation::default().with(name, value.clone());
    let mut questions = Vec::new();
    let mut ours = Vec::new();
    for text in expressions {
        let mut question = question.clone();
        question["expr"] = (*text).into();
        questions.push(question);

        let answer = match refusal(text) {
            Some(refusal) => Answer::default().with("compile", refusal),
            None => Answer::default(),
        };
        let checked = match env.compile(text) {
            Ok(checked) => checked,
            Err(issues) => {
                ours.push(answer.with("errors", issues.to_string()));
                continue;
            }
        };
        let answer = answer.and_checked(&checked, estimate(&checked, hints));
        let program = Program::new(&checked).unwrap();
        let outcome = program.eval(&variables, Budget::default());
        ours.push(answer.evaluated(outcome.result.as_ref(), Some(outcome.cost)));
    }
    compare(&questions, &ours);
}

#[test]
fn claims_of_tokens() {
    const CLAIMS: &str = r#"{"sub":"alice","groups":["a","b"],"email_verified":true,"exp":1700000000,
        "nested":{"roles":["x"],"n":1.5},"nothing":null}"#;
    let env = Env::base().with_variable("claims", Type::map(Type::String, Type::Any));
    let value = tree(CLAIMS);
    let bound: Value = serde_json::from_str(CLAIMS).unwrap();
    check(
        &env,
        "claims",
        &CelValue::of(&value),
        &|_| None,
        |_| None,
        &json!({"env": "claims", "bind": {"claims": bound}}),
        &[
            "claims.sub",
            "claims.sub == 'alice'",
            "'oidc:' + claims.sub",
            "claims['sub']",
            "claims.groups",
            "claims.groups + ['c']",
            "claims.groups.map(g, 'oidc:' + g)",
            "claims.?groups.orValue([])",
            "claims.?missing.orValue('none')",
            "has(claims.missing) ? claims.missing : 'none'",
            "claims.missing",
            "claims.email_verified && claims.exp > 0",
            "claims.email_verified == 1",
            "claims.exp - 5",
            "timestamp(claims.exp)",
            "claims.nested.roles[0]",
            "claims.nested.roles[1]",
            "claims.nested.n < 2.0",
            "'x' in claims.nested.roles",
            "claims.nothing == null",
            "claims.all(k, k.size() < 20)",
            // What one costs that ends at an entry depends on the order of a map, which is random
            // upstream: this map has one entry, and the other is read to its end.
            "{'sub': claims.sub}.exists(k, v, k == 'sub' && v == 'alice')",
            "claims.exists(k, v, k == 'sub' && v == 'bob')",
            "type(claims)",
            "user.username",
            "claims.nested.map(k, k).sort()",
        ],
    );
}

fn user_type(objects: &mut ObjectTypes) -> Type {
    let texts = Type::list(Type::String);
    object(
        objects,
        "kubernetes.UserInfo",
        &[
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", texts.clone()),
            ("extra", Type::map(Type::String, texts)),
        ],
    )
}

#[test]
fn users() {
    const USER: &str =
        r#"{"username":"alice","groups":["a","system:b"],"extra":{"example.org/k":["v"]}}"#;
    let mut objects = ObjectTypes::default();
    let of = user_type(&mut objects);
    let env = Env::base().with_objects(objects).with_variable("user", of);
    let value = tree(USER);
    let bound: Value = serde_json::from_str(USER).unwrap();
    check(
        &env,
        "user",
        &CelValue::of(&value),
        &|_| None,
        |_| None,
        &json!({"env": "user", "bind": {"user": bound}}),
        &[
            "!user.username.startsWith('system:')",
            "user.groups.all(g, !g.startsWith('system:'))",
            "user.uid",
            "has(user.uid)",
            "user.extra",
            "'example.org/k' in user.extra",
            "user.extra['example.org/k'][0] == 'v'",
            "user.extra.all(k, v, v.size() == 1)",
            "user.name",
            "user['username']",
            "user.username + 1",
            "type(user)",
            "user == user",
            "kubernetes.UserInfo{username: 'a'}.username",
        ],
    );
}

#[test]
fn requests_of_the_authorization_webhook() {
    const REQUEST: &str = r#"{"user":"alice","groups":["a"],"uid":"7","extra":{"k":["v"]},
        "resourceAttributes":{"namespace":"shop","verb":"get","group":"apps","version":"v1","resource":"deployments",
            "name":"web","labelSelector":{"requirements":[{"key":"k","operator":"In","values":["v"]}]}}}"#;
    let mut objects = ObjectTypes::default();
    let texts = Type::list(Type::String);
    let requirement = object(
        &mut objects,
        "kubernetes.SelectorRequirement",
        &[
            ("key", Type::String),
            ("operator", Type::String),
            ("values", texts.clone()),
        ],
    );
    let selector = [
        ("rawSelector", Type::String),
        ("requirements", Type::list(requirement)),
    ];
    let fields = object(
        &mut objects,
        "kubernetes.FieldSelectorAttributes",
        &selector,
    );
    let labels = object(
        &mut objects,
        "kubernetes.LabelSelectorAttributes",
        &selector,
    );
    let mut attributes: Vec<_> = [
        "namespace",
        "verb",
        "group",
        "version",
        "resource",
        "subresource",
        "name",
    ]
    .into_iter()
    .map(|name| (name, Type::String))
    .collect();
    attributes.extend([("fieldSelector", fields), ("labelSelector", labels)]);
    let resource = object(&mut objects, "kubernetes.ResourceAttributes", &attributes);
    let path = object(
        &mut objects,
        "kubernetes.NonResourceAttributes",
        &[("path", Type::String), ("verb", Type::String)],
    );
    let request = object(
        &mut objects,
        "kubernetes.SubjectAccessReviewSpec",
        &[
            ("resourceAttributes", resource),
            ("nonResourceAttributes", path),
            ("user", Type::String),
            ("groups", texts.clone()),
            ("extra", Type::map(Type::String, texts)),
            ("uid", Type::String),
        ],
    );

    let env = Env::base()
        .with_objects(objects)
        .with_variable("request", request);
    let value = tree(REQUEST);
    let bound: Value = serde_json::from_str(REQUEST).unwrap();
    check(
        &env,
        "request",
        &CelValue::of(&value),
        &|_| None,
        |_| None,
        &json!({"env": "authorization", "bind": {"request": bound}}),
        &[
            "request.user == 'alice'",
            "has(request.resourceAttributes) && request.resourceAttributes.namespace == 'shop'",
            "has(request.nonResourceAttributes)",
            "request.nonResourceAttributes.path.startsWith('/healthz')",
            "!('system:masters' in request.groups)",
            "request.resourceAttributes.verb in ['get', 'list']",
            "request.resourceAttributes.subresource",
            "has(request.resourceAttributes.subresource)",
            "request.resourceAttributes.labelSelector.requirements.exists(r, r.key == 'k' && r.operator == 'In' && 'v' in r.values)",
            "request.resourceAttributes.fieldSelector.rawSelector",
            "request.resourceAttributes.?fieldSelector.?rawSelector.orValue('')",
            "request.extra['k']",
            "request.resourceAttributes.nothing",
            "request.resourceAttributes.group.matches('^[a-z.]*$')",
            "request",
        ],
    );
}

/// As upstream declares devices: names and values of attributes have bounded lengths.
fn device_size(path: &[Arc<str>]) -> Option<Range> {
    const NAMED: [(&str, u64); 3] = [("driver", 63), ("attributes", 32), ("capacity", 32)];
    let path: Vec<&str> = path.iter().map(|step| &**step).collect();
    let max = match path.as_slice() {
        ["device"] => 0,
        ["device", name] => NAMED.iter().find(|(known, _)| known == name)?.1,
        ["device", "attributes" | "capacity", "@keys"] => 63,
        ["device", "attributes" | "capacity", "@values"] => 32,
        ["device", "attributes" | "capacity", "@values", "@keys"] => 32,
        ["device", "attributes", "@values", _] => 64,
        ["device", "capacity", "@values", "@values"] => 0,
        _ => return None,
    };
    Some(Range { min: 0, max })
}

#[test]
fn devices() {
    let attribute = Type::map(Type::String, Type::map(Type::String, Type::Any));
    let quantity = Type::object("kubernetes.Quantity");
    let capacity = Type::map(Type::String, Type::map(Type::String, quantity));
    let mut objects = ObjectTypes::default();
    let device = object(
        &mut objects,
        "kubernetes.DRADevice",
        &[
            ("driver", Type::String),
            ("attributes", attribute),
            ("capacity", capacity),
        ],
    );
    let env = Env::base()
        .with_library(&BINDINGS)
        .with_objects(objects)
        .with_variable("device", device);

    // Quantities and versions are values of their own, which no tree has.
    let constant = |text: &str| -> CelValue<'static> {
        let program = Program::new(&Env::base().compile(text).unwrap()).unwrap();
        let program: &'static Program = Box::leak(Box::new(program));
        let outcome = program.eval(&Activation::default(), Budget::default());
        outcome.result.unwrap()
    };
    let map = |entries: Vec<(&'static str, CelValue<'static>)>| {
        let mut made = Entries::default();
        for (key, value) in entries {
            made.insert(CelValue::string(key), value);
        }
        CelValue::Map(Map::from(made))
    };
    let attributes = map(vec![
        ("model", CelValue::string("a100")),
        ("index", CelValue::Int(3)),
        ("healthy", CelValue::Bool(true)),
        ("version", constant("semver('1.2.3')")),
    ]);
    let memory = map(vec![("memory", constant("quantity('40Gi')"))]);
    let value = map(vec![
        ("driver", CelValue::string("gpu.example.com")),
        ("attributes", map(vec![("gpu.example.com", attributes)])),
        ("capacity", map(vec![("gpu.example.com", memory)])),
    ]);

    let question = json!({"env": "device", "device": {"driver": "gpu.example.com",
        "attributes": {"model": {"string": "a100"}, "index": {"int": 3}, "healthy": {"bool": true},
            "version": {"version": "1.2.3"}},
        "capacity": {"memory": {"value": "40Gi"}}}});
    check(
        &env,
        "device",
        &value,
        &device_size,
        |text| {
            let refused = DeviceSelector::compile(text).err();
            refused.map(|error| error.to_string())
        },
        &question,
        &[
            "device.driver == 'gpu.example.com'",
            "device.attributes['gpu.example.com'].model == 'a100'",
            "device.attributes['gpu.example.com'].index + 1 > 3",
            "device.attributes['gpu.example.com'].healthy",
            "device.attributes['gpu.example.com'].version.isGreaterThan(semver('1.0.0'))",
            "device.attributes['gpu.example.com'].model.matches('^a[0-9]+$')",
            "'model' in device.attributes['gpu.example.com']",
            "has(device.attributes['gpu.example.com'].missing)",
            "device.attributes['gpu.example.com'].missing",
            "device.attributes['gpu.example.com'].?missing.orValue('x')",
            "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('30Gi'))",
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) == 0",
            "cel.bind(gpu, device.attributes['gpu.example.com'], gpu.model == 'a100' && gpu.index == 3)",
            "cel.bind(a, 1, cel.bind(b, a + 1, a + b))",
            "cel.bind(x.y, 1, 2)",
            "device.nothing",
            "device.attributes['gpu.example.com'].all(k, k.size() < 10)",
        ],
    );
}
