//! Expressions of admission policies, match conditions and mutations, in upstream's environments.

use std::sync::Arc;

use coracle_api::Value as Tree;
use coracle_api::codec::json;
use coracle_cel::cost::estimate;
use coracle_cel::eval::{Answer as Decision, Authorize};
use coracle_cel::value::{Authorizer, Check, Request, Verdict};
use coracle_expressions::admission::{
    CompileError, Compiled, Compiler, Evaluation, Failure, Inputs, POLICY_BUDGET, Returns,
    Variables, Visible,
};
use serde_json::{Value, json};

use crate::compare::{Answer, compare};

const OBJECT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"web","namespace":"shop","labels":{"app":"web","tier.x/y":"front"},"annotations":{}},
    "spec":{"replicas":3,"paused":false,"ratio":0.5,"template":{"spec":{"containers":[
        {"name":"a","image":"registry.example.com/a:1","ports":[{"containerPort":80}],
         "resources":{"limits":{"cpu":"500m","memory":"1Gi"}}},
        {"name":"b","image":"b","env":[{"name":"X","value":"1"}]}]}}}}"#;
const OLD_OBJECT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},
    "spec":{"replicas":2,"paused":null}}"#;
const REQUEST: &str = r#"{"operation":"UPDATE","name":"web","namespace":"shop","dryRun":false,
    "kind":{"group":"apps","version":"v1","kind":"Deployment"},
    "resource":{"group":"apps","version":"v1","resource":"deployments"},
    "requestKind":{"group":"apps","version":"v1","kind":"Deployment"},
    "requestResource":{"group":"apps","version":"v1","resource":"deployments"},
    "subResource":"","requestSubResource":"","options":{"fieldManager":"m"},
    "userInfo":{"username":"alice","uid":"7","groups":["a","system:authenticated"],"extra":{"k":["v","w"]}}}"#;
const NAMESPACE: &str =
    r#"{"metadata":{"name":"shop","labels":{"env":"test"}},"spec":{},"status":{"phase":"Active"}}"#;
const PARAMS: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"max":"5","prefixes":"a,b"},"limits":[1,2.5,"x",null]}"#;

const VARIABLES: &[(&str, &str)] = &[
    ("containers", "object.spec.template.spec.containers"),
    ("names", "variables.containers.map(c, c.name)"),
    ("max", "int(params.data.max)"),
    ("pair", "{'a': [variables.max], 'b': [2]}"),
    ("broken", "object.spec.nothing"),
    ("wrong", "1 + 'a'"),
    ("who", "request.userInfo"),
    ("user", "authorizer.serviceAccount('shop', 'web')"),
];

/// What an expression returns, as the oracle names it.
const ANYTHING: &[&str] = &["any", "dyn"];
const BOOL: &[&str] = &["bool"];
const STRING_OR_NULL: &[&str] = &["string", "null"];
const STRING: &[&str] = &["string"];
const OBJECTS: &[&str] = &["Object"];
const PATCHES: &[&str] = &["list(JSONPatch)"];

const EXPRESSIONS: &[(&str, &[&str])] = &[
    ("object.spec.replicas <= 5", BOOL),
    ("object.spec.replicas <= int(params.data.max)", BOOL),
    ("object.spec.replicas", BOOL),
    ("'a' + 1", BOOL),
    ("object.spec.missing == 1", BOOL),
    (
        "has(object.spec.missing) || has(object.metadata.labels)",
        BOOL,
    ),
    (
        "!has(object.metadata.labels.app) || object.metadata.labels['app'] == 'web'",
        BOOL,
    ),
    ("object.metadata.labels['tier.x/y'] == 'front'", BOOL),
    (
        "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
        BOOL,
    ),
    (
        "object.spec.template.spec.containers.exists(c, c.name == 'b' && has(c.env))",
        BOOL,
    ),
    (
        "object.spec.template.spec.containers.map(c, c.image)",
        ANYTHING,
    ),
    (
        "object.spec.template.spec.containers.filter(c, has(c.resources)).map(c, quantity(c.resources.limits.memory).isGreaterThan(quantity('512Mi')))",
        ANYTHING,
    ),
    (
        "quantity(object.spec.template.spec.containers[0].resources.limits.cpu).add(quantity('1')).compareTo(quantity('1500m'))",
        ANYTHING,
    ),
    (
        "object.spec.template.spec.containers[?5].image.orValue('none')",
        STRING,
    ),
    ("object.?spec.?nothing.hasValue()", BOOL),
    ("object.?spec.?paused.orValue(true)", BOOL),
    ("object.spec.paused == oldObject.spec.paused", BOOL),
    ("oldObject.spec.paused == null", BOOL),
    (
        "object.spec.ratio < 1.0 && object.spec.replicas > 2.5",
        BOOL,
    ),
    (
        "object.spec.replicas != oldObject.spec.replicas && request.operation == 'UPDATE'",
        BOOL,
    ),
    ("object == oldObject", BOOL),
    ("object.metadata == oldObject.metadata", BOOL),
    (
        "request.userInfo.username + ' in ' + request.userInfo.groups.join(',')",
        STRING,
    ),
    ("'v' in request.userInfo.extra['k']", BOOL),
    ("request.userInfo.extra.k.size()", ANYTHING),
    ("request.options.fieldManager == 'm'", BOOL),
    ("request.object", ANYTHING),
    ("request.kind", ANYTHING),
    (
        "request.resource.group + request.resource.version + request.resource.resource",
        STRING,
    ),
    ("request.dryRun", BOOL),
    ("request.name == object.metadata.name", BOOL),
    ("namespaceObject.metadata.name == request.namespace", BOOL),
    ("namespaceObject.metadata.labels.env", STRING_OR_NULL),
    ("namespaceObject.status.phase", ANYTHING),
    ("namespaceObject.foo", ANYTHING),
    ("has(namespaceObject.metadata.deletionTimestamp)", BOOL),
    ("params.limits.map(x, type(x))", ANYTHING),
    ("params.limits[0] + 1", ANYTHING),
    ("params.limits.exists(x, x == 2.5)", BOOL),
    (
        "params.data.prefixes.split(',').exists(p, object.metadata.name.startsWith(p))",
        BOOL,
    ),
    ("null", STRING_OR_NULL),
    ("true ? 'a' : null", STRING_OR_NULL),
    ("dyn('a')", STRING),
    ("variables.names", ANYTHING),
    (
        "variables.names.exists(n, n == 'a') && variables.max == 5",
        BOOL,
    ),
    ("variables.pair.a[0] + variables.pair.b[0]", ANYTHING),
    ("variables.pair['a'][1]", ANYTHING),
    ("variables.broken", ANYTHING),
    ("variables.broken == 1 || true", BOOL),
    ("variables.wrong", ANYTHING),
    ("variables.nothing", ANYTHING),
    ("has(variables.names) && has(variables.max)", BOOL),
    ("variables.who.username", STRING),
    ("variables.who.nothing", STRING),
    (
        "variables.user.group('apps').resource('deployments').check('get').allowed()",
        BOOL,
    ),
    ("type(variables)", ANYTHING),
    (
        "authorizer.group('').resource('pods').namespace('shop').check('get').allowed()",
        BOOL,
    ),
    (
        "authorizer.group('').resource('pods').namespace('shop').check('get').reason()",
        STRING,
    ),
    (
        "authorizer.group('').resource('pods').check('delete').errored()",
        BOOL,
    ),
    (
        "authorizer.group('').resource('pods').check('delete').error()",
        STRING,
    ),
    ("authorizer.path('/healthz').check('get').allowed()", BOOL),
    ("authorizer.path('').check('get').allowed()", BOOL),
    (
        "authorizer.group('').resource('').check('get').allowed()",
        BOOL,
    ),
    ("authorizer.requestResource.check('update').allowed()", BOOL),
    ("authorizer.requestResource.check('create').allowed()", BOOL),
    (
        "authorizer.group('apps').resource('deployments').subresource('status').name('frontend').namespace('shop').check('update').allowed()",
        BOOL,
    ),
    (
        "authorizer.serviceAccount('shop', 'web').requestResource",
        ANYTHING,
    ),
    (
        "authorizer.serviceAccount('Shop', 'web').path('/a').check('get').allowed()",
        BOOL,
    ),
    (
        "authorizer.serviceAccount('shop', '').path('/a').check('get').allowed()",
        BOOL,
    ),
    (
        "authorizer.group('').resource('pods').fieldSelector('metadata.name=a').labelSelector('x in (y)').check('list').allowed()",
        BOOL,
    ),
    (
        "authorizer.group('').resource('pods').labelSelector('x in (').check('list').allowed()",
        BOOL,
    ),
    (
        "authorizer.group('').resource('pods').check('get').allowed() && authorizer.group('').resource('pods').check('list').allowed() && authorizer.path('/a').check('get').allowed()",
        BOOL,
    ),
    ("type(authorizer)", ANYTHING),
    ("self.spec", BOOL),
    ("Object{}", ANYTHING),
    ("object.metadata.name.matches('^w[a-z]+$')", BOOL),
    ("object.metadata.name.find('[')", STRING),
    (
        "format.dns1123Label().validate(object.metadata.name).hasValue()",
        BOOL,
    ),
    ("1 / (object.spec.replicas - 3)", ANYTHING),
    (
        "duration('1h') < timestamp('2024-01-01T00:00:00Z') - timestamp('2023-12-31T00:00:00Z')",
        BOOL,
    ),
    ("[1, 2].map(x, [1, 2].map(y, x * y))", ANYTHING),
    (
        "object.metadata.labels.transformList(k, v, k + '=' + v).sort()",
        ANYTHING,
    ),
    ("object.metadata.labels.all(k, v, k != v)", BOOL),
    ("jsonpatch.escapeKey('a/b~c')", STRING),
    ("cel.bind(x, 1, x + x)", ANYTHING),
];

const MUTATIONS: &[(&str, &[&str])] = &[
    ("Object{}", OBJECTS),
    (
        "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
        OBJECTS,
    ),
    (
        "Object{metadata: Object.metadata{labels: {'a': 'b', 'c': request.name}}}",
        OBJECTS,
    ),
    (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'a'}]}}}}",
        OBJECTS,
    ),
    ("Object{spec: 1}", OBJECTS),
    ("Object{spec: Object.other{}}", OBJECTS),
    ("Object{?spec: optional.none()}", OBJECTS),
    (
        "Object{?spec: optional.of(Object.spec{replicas: 1})}",
        OBJECTS,
    ),
    (
        "Object{spec: Object.spec{d: 1.5, l: ['x'], u: 2u}}",
        OBJECTS,
    ),
    ("object", OBJECTS),
    ("Object{} == Object{}", BOOL),
    ("Object{a: 1} == Object{a: 1}", BOOL),
    ("Object{a: 1}.a + 1", ANYTHING),
    ("Object{a: 1}.b", ANYTHING),
    ("has(Object{a: 1}.b)", BOOL),
    (
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'x'}]",
        PATCHES,
    ),
    (
        "[JSONPatch{op: 'test', path: '/spec/replicas', value: object.spec.replicas}, JSONPatch{op: 'remove', path: '/spec/replicas'}]",
        PATCHES,
    ),
    ("[JSONPatch{op: 'move', from: '/a', path: '/b'}]", PATCHES),
    (
        "[JSONPatch{op: 'add', path: '/spec', value: Object.spec{replicas: 2}}]",
        PATCHES,
    ),
    ("[JSONPatch{op: 1, path: '/b'}]", PATCHES),
    ("[JSONPatch{nothing: 1}]", PATCHES),
    ("JSONPatch{op: 'add'}", PATCHES),
    ("[]", PATCHES),
    ("[JSONPatch{}].map(p, p.op)", ANYTHING),
    ("JSONPatch{op: 'a', path: '/b'}.path", ANYTHING),
    (
        "variables.names.map(n, JSONPatch{op: 'add', path: '/' + n, value: n})",
        PATCHES,
    ),
];

fn returned(names: &[&str]) -> Returns {
    match names {
        ["bool"] => Returns::Bool,
        ["string"] => Returns::String,
        ["string", "null"] => Returns::StringOrNull,
        ["Object"] => Returns::Object,
        ["list(JSONPatch)"] => Returns::JsonPatches,
        _ => Returns::Anything,
    }
}

const DECISIONS: &str = r#"[
    {"verb":"get","resource":"pods","decision":"allow","reason":"because"},
    {"verb":"delete","resource":"pods","error":"boom"},
    {"verb":"list","resource":"pods","decision":"allow"},
    {"path":"/healthz","decision":"allow"},
    {"user":"system:serviceaccount:shop:web","resource":"deployments","decision":"allow"},
    {"verb":"update","resource":"deployments","subresource":"status","namespace":"shop","name":"frontend","decision":"allow","reason":"own"}
]"#;

/// As the oracle's authorizer decides.
fn decided(decisions: &Value, check: &Check) -> Verdict {
    let user = match &check.user {
        Authorizer::Requester => "alice".to_owned(),
        Authorizer::ServiceAccount { namespace, name } => {
            format!("system:serviceaccount:{namespace}:{name}")
        }
    };
    let mut facts = vec![("user", user), ("verb", check.verb.clone())];
    match &check.request {
        Request::Path(path) => facts.push(("path", path.clone())),
        Request::Resource {
            group,
            resource,
            subresource,
            namespace,
            name,
            ..
        } => facts.extend([
            ("group", group.clone()),
            ("resource", resource.clone()),
            ("subresource", subresource.clone()),
            ("namespace", namespace.clone()),
            ("name", name.clone()),
        ]),
    }

    let fact = |name: &str| {
        let found = facts.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let is_meant = |decision: &&Value| {
        [
            "user",
            "verb",
            "path",
            "group",
            "resource",
            "subresource",
            "namespace",
            "name",
        ]
        .iter()
        .all(|name| {
            decision[name]
                .as_str()
                .is_none_or(|wanted| wanted == fact(name))
        })
    };
    let found = decisions.as_array().unwrap().iter().find(is_meant);
    let text = |name: &str| found.and_then(|decision| decision[name].as_str());
    Verdict {
        allowed: text("decision") == Some("allow"),
        reason: text("reason").unwrap_or_default().to_owned(),
        error: text("error").map(str::to_owned),
    }
}

fn tree(text: &str) -> Tree {
    json::parse(text.as_bytes()).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Asks both about expressions that see everything.
fn check(expressions: &[(&str, &[&str])], visible: Visible) {
    let decisions = parsed(DECISIONS);
    let authorize: &Authorize<'_> = &|check: &Check| Decision::Decided(decided(&decisions, check));
    let (object, old_object) = (tree(OBJECT), tree(OLD_OBJECT));
    let (request, namespace, params) = (tree(REQUEST), tree(NAMESPACE), tree(PARAMS));
    // What the oracle's request resource is.
    let request_resource = Arc::new(Check {
        user: Authorizer::Requester,
        verb: String::new(),
        request: Request::Resource {
            group: "apps".into(),
            resource: "deployments".into(),
            subresource: "status".into(),
            namespace: "shop".into(),
            name: "frontend".into(),
            field_selector: String::new(),
            label_selector: String::new(),
        },
    });
    let inputs = Inputs {
        object: Some(&object),
        old_object: Some(&old_object),
        request: &request,
        namespace_object: Some(&namespace),
        params: Some(&params),
        request_resource: &request_resource,
        authorize,
    };

    let mut questions = Vec::new();
    let mut ours = Vec::new();
    for (text, returns) in expressions {
        // Upstream counts what variables cost elsewhere.
        let variables: &[_] = if text.contains("variables") {
            VARIABLES
        } else {
            &[]
        };
        questions.push(question(text, returns, variables, visible, &decisions));
        ours.push(answer(text, returned(returns), variables, visible, inputs));
    }
    compare(&questions, &ours);
}

fn question(
    text: &str,
    returns: &[&str],
    variables: &[(&str, &str)],
    visible: Visible,
    decisions: &Value,
) -> Value {
    let mut question = json!({"env": "admission", "expr": text, "returns": returns,
        "params": visible.params, "authorizer": visible.authorizer, "patch": visible.patches,
        "decisions": decisions,
        "bind": {"object": parsed(OBJECT), "oldObject": parsed(OLD_OBJECT), "request": parsed(REQUEST),
            "namespaceObject": parsed(NAMESPACE), "params": parsed(PARAMS)}});
    if !variables.is_empty() {
        let named = |(name, text): &(&str, &str)| json!({"name": name, "expression": text});
        question["variables"] = variables.iter().map(named).collect();
    }
    question
}

fn answer(
    text: &str,
    returns: Returns,
    variables: &[(&str, &str)],
    visible: Visible,
    inputs: Inputs<'_>,
) -> Answer {
    let mut compiler = match variables {
        [] => Compiler::plain(),
        _ => Compiler::with_variables(),
    };
    let has_variables = !variables.is_empty();
    let variables = Variables::compile(&mut compiler, variables.iter().copied(), visible);

    let mut answer = Answer::default();
    let mut compiled = compiler.compile(text, visible, returns);
    if let Err(error) = &compiled {
        answer = answer.with("compile", error.to_string());
        if let CompileError::Output { .. } = error {
            compiled = compiler.compile(text, visible, Returns::Anything);
        }
    }
    match compiler.check(text, visible) {
        Err(issues) => return answer.with("errors", issues.to_string()),
        Ok(checked) => answer = answer.and_checked(&checked, estimate(&checked, &|_| None)),
    }
    if let Err(CompileError::Program(error)) = &compiled {
        return answer.with("program", error.to_string());
    }

    let compiled = Compiled {
        text: text.to_owned(),
        expression: compiled,
    };
    let mut evaluation = Evaluation::new(inputs, &variables, POLICY_BUDGET);
    let result = evaluation.evaluate(&compiled).unwrap();
    let cost = (!has_variables).then(|| POLICY_BUDGET - evaluation.budget());
    match &result {
        Ok(value) => answer.evaluated(Ok(value), cost),
        Err(Failure::Evaluation { error, .. }) => answer.evaluated(Err(error), cost),
        Err(Failure::Compilation(error)) => answer.with("err", error.as_str()),
    }
}

#[test]
fn expressions_of_policies_have_upstreams_results_and_costs() {
    check(
        EXPRESSIONS,
        Visible {
            params: true,
            authorizer: true,
            patches: false,
        },
    );
}

#[test]
fn expressions_of_mutations_have_upstreams_results_and_costs() {
    check(
        MUTATIONS,
        Visible {
            params: true,
            authorizer: true,
            patches: true,
        },
    );
}
