//! The manifests that the server has, in the order in which they are created.

use std::path::{Path, PathBuf};

use coracle_api::catalog::split_api_version;
use coracle_api::{Map, Value};

use super::WriteError;
use super::server::Server;
use crate::cel::CelError;
use crate::cel::input::{read, read_all};

const ADMISSION: &str = "admissionregistration.k8s.io";

/// What the server has before the request.
#[derive(Default)]
pub(super) struct Manifests {
    namespaces: Vec<Value>,
    definitions: Vec<Value>,
    others: Vec<Value>,
    policies: Vec<Value>,
    bindings: Vec<Value>,
    /// Of policies without a binding.
    params: Option<Value>,
}

impl Manifests {
    pub(super) fn read(
        files: &[PathBuf],
        namespace: Option<&Path>,
        params: Option<&Path>,
    ) -> Result<Manifests, CelError> {
        let mut manifests = Manifests::default();
        for file in files {
            for document in read_all(file)? {
                manifests.add(prepared(document, "an object of --with")?);
            }
        }

        if let Some(file) = namespace {
            let mut namespace = read(file)?;
            if let Some(members) = namespace.as_object_mut() {
                members.insert("apiVersion", "v1");
                members.insert("kind", "Namespace");
            }
            manifests.add(prepared(namespace, "the namespace")?);
        }
        if let Some(file) = params {
            let params = prepared(read(file)?, "the object of --params")?;
            manifests.params = Some(params.clone());
            manifests.add(params);
        }
        Ok(manifests)
    }

    fn add(&mut self, object: Value) {
        let (group, _) = split_api_version(text(&object, &["apiVersion"]));
        let place = match (group, text(&object, &["kind"])) {
            ("", "Namespace") => &mut self.namespaces,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => &mut self.definitions,
            (ADMISSION, "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") => {
                &mut self.policies
            }
            (ADMISSION, "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding") => {
                &mut self.bindings
            }
            _ => &mut self.others,
        };
        place.push(object);
    }

    pub(super) fn has_policies(&self) -> bool {
        !self.policies.is_empty()
    }

    /// Creates all but the policies, and the namespaces of all, for a request about `object`.
    pub(super) async fn create_scene(
        &self,
        server: &Server,
        object: &Value,
    ) -> Result<(), WriteError> {
        for namespace in &self.namespaces {
            server.create(namespace).await?;
        }
        for definition in &self.definitions {
            server.create(definition).await?;
            server.wait_until_established(definition).await?;
        }

        let namespaces = self.others.iter().chain([object]).map(namespace_of);
        for namespace in namespaces {
            server.ensure_namespace(namespace).await?;
        }
        for object in &self.others {
            server.create(object).await?;
        }
        Ok(())
    }

    /// Creates the policies, and bindings of those that have none. Returns what the server warns of.
    pub(super) async fn create_policies(&self, server: &Server) -> Result<Vec<String>, WriteError> {
        let mut warnings = Vec::new();
        for policy in &self.policies {
            server.create(policy).await?;
            warnings.extend(server.type_warnings(policy).await?);
        }

        for binding in &self.bindings {
            server.create(binding).await?;
        }
        for policy in self.policies.iter().filter(|policy| !self.is_bound(policy)) {
            server.create(&self.binding(policy)?).await?;
        }
        Ok(warnings)
    }

    fn is_bound(&self, policy: &Value) -> bool {
        let kind = text(policy, &["kind"]);
        self.bindings.iter().any(|binding| {
            text(binding, &["kind"]).strip_suffix("Binding") == Some(kind)
                && text(binding, &["spec", "policyName"]) == policy.meta().name()
        })
    }

    /// A binding of a policy to everything that it matches.
    fn binding(&self, policy: &Value) -> Result<Value, WriteError> {
        let mut spec = Map::new();
        spec.insert("policyName", policy.meta().name());
        let kind = text(policy, &["kind"]);
        if kind == "ValidatingAdmissionPolicy" {
            spec.insert("validationActions", vec![Value::string("Deny")]);
        }

        let has_params = policy
            .at(&["spec", "paramKind"])
            .is_some_and(|kind| !kind.is_null());
        if has_params {
            let params = self
                .params
                .as_ref()
                .ok_or_else(|| WriteError::NoParameters {
                    policy: described(policy),
                })?;
            let mut reference = Map::new();
            reference.insert("name", params.meta().name());
            if !params.meta().namespace().is_empty() {
                reference.insert("namespace", params.meta().namespace());
            }
            reference.insert("parameterNotFoundAction", "Deny");
            spec.insert("paramRef", Value::Object(reference));
        }

        let mut metadata = Map::new();
        metadata.insert("name", policy.meta().name());
        let mut binding = Map::new();
        binding.insert("apiVersion", text(policy, &["apiVersion"]));
        binding.insert("kind", format!("{kind}Binding"));
        binding.insert("metadata", Value::Object(metadata));
        binding.insert("spec", Value::Object(spec));
        Ok(Value::Object(binding))
    }
}

/// An object of a file without what only servers set.
pub(super) fn prepared(mut object: Value, what: &'static str) -> Result<Value, WriteError> {
    let has = |path: &[&str]| !text(&object, path).is_empty();
    let is_named = has(&["metadata", "name"]) || has(&["metadata", "generateName"]);
    if !(has(&["apiVersion"]) && has(&["kind"]) && is_named) {
        return Err(WriteError::Nameless { what });
    }

    let mut metadata = object.meta_mut();
    for name in ["resourceVersion", "uid", "managedFields"] {
        metadata.members().remove(name);
    }
    Ok(object)
}

/// `Deployment shop/web`.
pub(super) fn described(object: &Value) -> String {
    let kind = text(object, &["kind"]);
    match (object.meta().namespace(), object.meta().name()) {
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

/// The namespace that an object is written to, if it is of a kind with namespaces.
pub(super) fn namespace_of(object: &Value) -> &str {
    match object.meta().namespace() {
        "" => "default",
        namespace => namespace,
    }
}

fn text<'v>(object: &'v Value, path: &[&str]) -> &'v str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}
