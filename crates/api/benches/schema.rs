//! Cost of validating, pruning and defaulting a typical running Pod and a custom resource with a
//! realistic schema.
//!
//! Cases that change the object start from a clone, whose cost is printed too: subtract it.

mod measure;

use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_api::codec::json;
use coracle_api::defaults;
use coracle_api::schema::{self, Props, Schema};
use coracle_api::time::Timestamp;
use coracle_api::value::Path;
use measure::{Case, POD, measure};

fn main() {
    let kind = BUILTIN.kind_of("v1", "Pod").expect("Pods are built in");
    let of_pods = schema::for_kind(&BUILTIN, kind, BUILTIN.resource("", "v1", "pods"));
    let pod = json::decode(POD, Some(BUILTIN.root(kind).node()))
        .expect("the fixture decodes")
        .value;

    let definition = definition();
    let of_databases = Schema::new(Props::of(&definition)).expect("the schema compiles");
    let database = database();
    assert!(
        of_databases.validate(&database, &Path::Root).is_empty(),
        "the object is valid"
    );

    assert!(
        of_pods.validate(&pod, &Path::Root).is_empty(),
        "the Pod is valid"
    );

    let mut cases = Vec::new();
    cases.extend(walks("Pod", &of_pods, &pod));
    cases.extend(walks("custom resource", &of_databases, &database));
    cases.extend(defaulting("Pod, running", &pod));
    cases.extend(defaulting("Pod, as written", &written()));

    cases.push(Case::new("schema of Pods      compile", || {
        schema::for_kind(&BUILTIN, kind, None)
    }));
    cases.push(Case::new("schema of a CRD     compile", || {
        Schema::new(Props::of(&definition))
    }));

    let about = format!(
        "a Pod of {} bytes ({} nodes), a custom resource of {} bytes ({} nodes)",
        POD.len() - 1,
        of_pods.len(),
        json::to_vec(&database).len(),
        of_databases.len()
    );
    measure(&about, cases, |_, _| String::new());
}

fn walks<'a>(what: &str, schema: &'a Schema, object: &'a Value) -> Vec<Case<'a>> {
    let on_clone = |walk: fn(&Schema, &mut Value)| {
        move || {
            let mut object = object.clone();
            walk(schema, &mut object);
            object
        }
    };

    let case = |walk: &str| format!("{what:18}  {walk:12}");
    vec![
        Case::new(case("validate"), move || {
            schema.validate(object, &Path::Root)
        }),
        Case::new(case("lists"), move || schema.validate_lists(object)),
        Case::new(case("clone"), on_clone(|_, _| {})),
        Case::new(
            case("+ prune"),
            on_clone(|schema, object| drop(schema.prune(object))),
        ),
        Case::new(case("+ nulls"), on_clone(Schema::prune_nulls)),
        Case::new(case("+ default"), on_clone(fill_in)),
    ]
}

fn fill_in(schema: &Schema, object: &mut Value) {
    schema.default(object).expect("defaults are small");
}

/// All defaults of a Pod, including those that depend on other fields; and the copy that each round
/// begins with.
fn defaulting(what: &str, pod: &Value) -> [Case<'static>; 2] {
    let kind = BUILTIN.kind_of("v1", "Pod").expect("Pods are built in");
    let (cloned, defaulted) = (pod.clone(), pod.clone());
    [
        Case::new(format!("{what:18}  clone"), move || cloned.clone()),
        Case::new(format!("{what:18}  + defaults"), move || {
            let mut pod = defaulted.clone();
            defaults::apply(&mut pod, kind, Timestamp::from_unix(0, 0))
                .expect("defaults are small");
            pod
        }),
    ]
}

/// A Pod as a user writes it.
fn written() -> Value {
    let text = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[
        {"name":"web","image":"registry.example/web:1.27","ports":[{"containerPort":80}],
        "livenessProbe":{"httpGet":{"port":80}},"resources":{"limits":{"cpu":"500m","memory":"128Mi"}},
        "volumeMounts":[{"name":"data","mountPath":"/data"}]}],"volumes":[{"name":"data"}]}}"#;
    json::parse(text.as_bytes()).expect("the Pod is JSON")
}

/// A schema that uses most features, as operators write them.
fn definition() -> Value {
    let text = r#"{"type":"object","properties":{"spec":{"type":"object","required":["engine","instances"],"properties":{
        "engine":{"type":"string","enum":["postgres","mysql"]},
        "version":{"type":"string","pattern":"^[0-9]+(\\.[0-9]+)*$","maxLength":20},
        "instances":{"type":"integer","format":"int32","minimum":1,"maximum":9},
        "paused":{"type":"boolean","default":false},
        "storage":{"type":"object","required":["size"],"properties":{
            "size":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
            "className":{"type":"string"},"accessModes":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}},
        "users":{"type":"array","maxItems":50,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
            "items":{"type":"object","required":["name"],"properties":{
                "name":{"type":"string","pattern":"^[a-z_][a-z0-9_-]*$","maxLength":63},
                "databases":{"type":"array","items":{"type":"string"}},
                "superuser":{"type":"boolean","default":false},"connectionLimit":{"type":"integer","minimum":-1,"default":-1}}}},
        "parameters":{"type":"object","additionalProperties":{"type":"string"},"maxProperties":200},
        "affinity":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
        "backup":{"type":"object","properties":{"schedule":{"type":"string"},"retention":{"type":"string","format":"duration","default":"168h"},
            "destination":{"type":"string","format":"uri"}},"oneOf":[{"required":["schedule"]},{"required":["destination"]}]}}},
        "status":{"type":"object","properties":{"phase":{"type":"string"},"ready":{"type":"integer"},
            "conditions":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],"items":{"type":"object",
                "required":["type","status"],"properties":{"type":{"type":"string"},"status":{"type":"string","enum":["True","False","Unknown"]},
                "reason":{"type":"string"},"message":{"type":"string","maxLength":32768},
                "lastTransitionTime":{"type":"string","format":"date-time"}}}}}}}}"#;

    json::parse(text.as_bytes()).expect("the schema is JSON")
}

/// An object of that schema, about 3 KiB long.
fn database() -> Value {
    let users: Vec<String> = (0..16)
        .map(|at| format!(r#"{{"name":"user_{at}","databases":["app_{at}","reports"],"superuser":false,"connectionLimit":{at}}}"#))
        .collect();
    let parameters: Vec<String> = (0..24)
        .map(|at| format!(r#""parameter_{at}":"value {at}""#))
        .collect();
    let conditions: Vec<String> = ["Ready", "Available", "BackedUp", "Upgraded"]
        .iter()
        .map(|of| format!(r#"{{"type":"{of}","status":"True","reason":"AsExpected","message":"all is well","lastTransitionTime":"2026-03-01T12:00:00Z"}}"#))
        .collect();

    let text = format!(
        r#"{{"apiVersion":"db.example.com/v1","kind":"Database","metadata":{{"name":"main","namespace":"prod"}},"spec":{{"engine":"postgres",
        "version":"17.2","instances":3,"storage":{{"size":"100Gi","className":"fast","accessModes":["ReadWriteOnce"]}},"users":[{}],
        "parameters":{{{}}},"affinity":{{"nodeAffinity":{{"weight":5}}}},"backup":{{"schedule":"0 3 * * *"}}}},
        "status":{{"phase":"Running","ready":3,"conditions":[{}]}}}}"#,
        users.join(","),
        parameters.join(","),
        conditions.join(",")
    );

    json::parse(text.as_bytes()).expect("the object is JSON")
}
