//! What expressions of admission see of a request.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coracle_api::{Map, Value};
use coracle_base::sync::Mutex;
use coracle_cel::eval::{Answer, Authorize};
use coracle_cel::program::Activation;
use coracle_cel::value::{
    Authorizer, Check, Extra, Request as AuthorizerRequest, Value as CelValue, Verdict,
};

/// The values of variables.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Absent on a delete.
    pub object: Option<&'a Value>,
    /// There on an update and on a delete.
    pub old_object: Option<&'a Value>,
    /// See [`RequestFacts::object`].
    pub request: &'a Value,
    /// See [`namespace_object`].
    pub namespace_object: Option<&'a Value>,
    pub params: Option<&'a Value>,
    /// What `authorizer.requestResource` asks about.
    pub request_resource: &'a Arc<Check>,
    pub authorize: &'a Authorize<'a>,
}

impl<'a> Inputs<'a> {
    pub(super) fn activation(&self) -> Activation<'a> {
        let value = |of: Option<&'a Value>| of.map_or(CelValue::Null, CelValue::of);
        let authorizer = Extra::Authorizer(Authorizer::Requester);
        let resource = Extra::ResourceCheck(Arc::clone(self.request_resource));
        Activation::default()
            .with("object", value(self.object))
            .with("oldObject", value(self.old_object))
            .with("request", CelValue::of(self.request))
            .with("namespaceObject", value(self.namespace_object))
            .with("params", value(self.params))
            .with("authorizer", CelValue::Extra(Arc::new(authorizer)))
            .with(
                "authorizer.requestResource",
                CelValue::Extra(Arc::new(resource)),
            )
    }
}

/// What is known of a request: the fields of an AdmissionRequest that expressions see.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    /// Group, version and kind of the objects that expressions see.
    pub kind: [&'a str; 3],
    /// Group, version and resource that show them.
    pub resource: [&'a str; 3],
    /// Those of the request.
    pub request_kind: [&'a str; 3],
    pub request_resource: [&'a str; 3],
    pub subresource: &'a str,
    pub name: &'a str,
    pub namespace: &'a str,
    /// CREATE, UPDATE, DELETE or CONNECT.
    pub operation: &'a str,
    pub user: UserFacts<'a>,
    pub dry_run: bool,
    pub options: Option<&'a Value>,
}

/// Who made it.
#[derive(Clone, Copy, Debug)]
pub struct UserFacts<'a> {
    pub name: &'a str,
    pub uid: &'a str,
    pub groups: &'a [String],
    pub extra: &'a BTreeMap<String, Vec<String>>,
}

impl RequestFacts<'_> {
    /// The value of `request`. Empty fields are absent, as upstream has it.
    #[must_use]
    pub fn object(&self) -> Value {
        let mut request = Map::new();
        let mut set = |name: &'static str, text: &str| {
            if !text.is_empty() {
                request.insert(name, text);
            }
        };
        set("subResource", self.subresource);
        set("requestSubResource", self.subresource);
        set("name", self.name);
        set("namespace", self.namespace);
        set("operation", self.operation);

        request.insert("kind", named(self.kind, "kind"));
        request.insert("resource", named(self.resource, "resource"));
        request.insert("requestKind", named(self.request_kind, "kind"));
        request.insert("requestResource", named(self.request_resource, "resource"));
        request.insert("userInfo", self.user.object());
        request.insert("dryRun", self.dry_run);
        request.insert("options", self.options.cloned().unwrap_or(Value::Null));
        request.insert("uid", "");
        request.insert("object", Value::Null);
        request.insert("oldObject", Value::Null);

        Value::Object(request)
    }

    /// What `authorizer.requestResource` asks about: the resource of the request, not the one that
    /// matched.
    #[must_use]
    pub fn request_resource(&self) -> Arc<Check> {
        let [group, _, resource] = self.request_resource;
        Arc::new(Check {
            user: Authorizer::Requester,
            verb: String::new(),
            request: AuthorizerRequest::Resource {
                group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: self.subresource.to_owned(),
                namespace: self.namespace.to_owned(),
                name: self.name.to_owned(),
                field_selector: String::new(),
                label_selector: String::new(),
            },
        })
    }
}

impl UserFacts<'_> {
    fn object(&self) -> Map {
        let list = |texts: &[String]| -> Vec<Value> {
            texts
                .iter()
                .map(|text| Value::from(text.as_str()))
                .collect()
        };
        let mut user = Map::new();
        if !self.name.is_empty() {
            user.insert("username", self.name);
        }
        if !self.uid.is_empty() {
            user.insert("uid", self.uid);
        }
        if !self.groups.is_empty() {
            user.insert("groups", list(self.groups));
        }
        if !self.extra.is_empty() {
            let mut extra = Map::new();
            for (key, values) in self.extra {
                extra.insert(key.as_str(), list(values));
            }
            user.insert("extra", extra);
        }
        user
    }
}

fn named([group, version, name]: [&str; 3], what: &'static str) -> Map {
    let mut named = Map::new();
    named.insert("group", group);
    named.insert("version", version);
    named.insert(what, name);
    named
}

/// The value of `namespaceObject`: those fields of a namespace that expressions are to see.
#[must_use]
pub fn namespace_object(namespace: &Value) -> Value {
    const METADATA: [&str; 12] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];

    let mut shown = Map::new();
    let mut metadata = Map::new();
    for name in METADATA {
        if let Some(value) = namespace.at(&["metadata", name]) {
            metadata.insert(name, value.clone());
        }
    }
    shown.insert("metadata", metadata);

    for name in ["spec", "status"] {
        let value = namespace.get(name).cloned().unwrap_or_else(Value::object);
        shown.insert(name, value);
    }
    Value::Object(shown)
}

/// What the authorizer has answered to the expressions of one request: it is asked once for each
/// question.
#[derive(Debug, Default)]
pub struct Answers(Mutex<HashMap<Check, Verdict>>);

impl Answers {
    /// The answer, if there is one yet.
    pub fn get(&self, check: &Check) -> Answer {
        let known = self.0.lock();
        match known.get(check) {
            Some(verdict) => Answer::Decided(verdict.clone()),
            None => Answer::Later,
        }
    }

    pub fn add(&self, check: Check, verdict: Verdict) {
        let mut known = self.0.lock();
        known.insert(check, verdict);
    }
}
