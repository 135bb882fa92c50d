//! `scale`: how many replicas something has, shown as an object of its own.
//!
//! A Scale is made from its parent, changed as any object is (put, patched, applied), and goes back into the parent as a
//! number and the owners of that number. The parent then takes the road of an update.

use coracle_api::apply::{FieldPath, Form, Owners, Scale, Tracker, Type, only_version, rules};
use coracle_api::codec::canonical;
use coracle_api::codec::media_type::PatchType;
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::selector::LabelSelector;
use coracle_api::{Map, Text, Value};
use http::StatusCode;

use super::strategy::SPEC;
use super::subresource::{Call, Content, Reply};
use super::{Part, Scope, meta, owners};
use crate::ApiError;

pub(super) async fn serve(call: &Call<'_>) -> Result<Reply, ApiError> {
    let scope = Scope::new(call.scope.resource, call.scope.namespace, call.scope.caller);
    if call.verb == "get" {
        let parent = call.registry.get(&scope, call.name)?.value(scope.of);
        return Ok(Reply { code: StatusCode::OK, object: of(&parent, call), warnings: Vec::new() });
    }
    let mut warnings = Vec::new();
    let make = |parent: &Value| {
        let (scale, noticed) = changed(parent, &scope, call)?;
        warnings = noticed;
        judge(&scale, call)?;
        Ok(scaled(parent, &scale, &scope))
    };
    let written = call.registry.change_tracked(&scope, call.name, Part::Main, &call.options, make).await;
    let written = written.map_err(|error| error.after(Vec::new()))?;
    warnings.extend(written.warnings);
    let parent = written.entry.value(scope.of);
    Ok(Reply { code: StatusCode::OK, object: of(&parent, call), warnings })
}

/// The Scale of a parent.
fn of(parent: &Value, call: &Call<'_>) -> Value {
    let number = |path: &[&str]| parent.at(path).and_then(Value::as_int).unwrap_or_default();
    let selector = match parent.at(&["spec", "selector"]) {
        // A ReplicationController selects by labels alone.
        Some(Value::Object(labels)) if call.scope.resource.group.is_empty() => {
            LabelSelector::from_labels(labels)
        }
        given => LabelSelector::from_value(given).unwrap_or_else(|_| LabelSelector::new(Vec::new())),
    };
    let mut status = Map::new();
    status.insert("replicas", number(&["status", "replicas"]));
    status.insert("selector", selector.to_string().as_str());
    let mut spec = Map::new();
    spec.insert("replicas", number(&["spec", "replicas"]));
    let mut scale = Map::new();
    scale.insert("apiVersion", call.scope.kind.api_version());
    scale.insert("kind", call.scope.kind.name.clone());
    scale.insert("spec", spec);
    scale.insert("status", status);
    let metadata = scale.object_mut("metadata");
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = parent.at(&["metadata", name]) {
            metadata.insert(name, value.clone());
        }
    }
    let mut scale = Value::Object(scale);
    canonical::canonicalize(&mut scale, call.scope.of.node());
    scale
}

/// What the request makes of the Scale of a parent, with its owners.
fn changed(parent: &Value, scope: &Scope<'_>, call: &Call<'_>) -> Result<(Value, Vec<String>), ApiError> {
    let mut live = of(parent, call);
    let api_version = scope.kind.api_version();
    let replicas = replicas(&api_version);
    let translation = Scale { api_version: &api_version, replicas: &replicas };
    let owned = Owners::decode(parent).unwrap_or_default();
    translation.owners_of_scale(&owned).encode(&mut live, Form::Text);
    let scale_version = call.scope.kind.api_version();
    let tracker = Tracker {
        api_version: &scale_version,
        kind: &call.scope.kind.name,
        subresource: call.subresource,
        of: Type::catalogue(call.scope.of.node()),
        filters: &Vec::new(),
        convert: &only_version,
    };
    let now = (call.registry.now)();
    if let Content::Patch(PatchType::Apply, body) = &call.content {
        let config = owners::Configuration::read(body)?;
        let force = call.options.force.unwrap_or_default();
        let validation = call.options.field_validation;
        let applied = tracker.apply(Some(&live), &config.tree, &call.options.field_manager, force, now);
        let applied = applied.map_err(owners::refused)?;
        config.refused_by(validation)?;
        return Ok((applied, config.warnings(validation)));
    }
    let (mut new, warnings) = call.object(Some(&live))?;
    meta::check_name(&new, call.name)?;
    meta::settle_namespace(&mut new, scope)?;
    if let Content::Object(_) = call.content {
        check_uid(&new, parent, scope, call)?;
    }
    canonical::canonicalize(&mut new, call.scope.of.node());
    let manager = rules::manager_or_user_agent(&call.options.field_manager, &scope.caller.user_agent);
    Ok((tracker.update_or_forget(Some(&live), new, &manager, now), warnings))
}

fn check_uid(scale: &Value, parent: &Value, scope: &Scope<'_>, call: &Call<'_>) -> Result<(), ApiError> {
    let (given, found) = (scale.meta().uid(), parent.meta().uid());
    if given.is_empty() || given == found {
        return Ok(());
    }
    let key = scope.store_key(call.name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {given}, UID in object meta: {found}",
        String::from_utf8_lossy(&key)
    );
    Err(ApiError::conflict(scope.resource, call.name, &why))
}

fn judge(scale: &Value, call: &Call<'_>) -> Result<(), ApiError> {
    let replicas = scale.at(&["spec", "replicas"]).and_then(Value::as_int).unwrap_or_default();
    if replicas >= 0 {
        return Ok(());
    }
    let why = "must be greater than or equal to 0";
    let error = FieldError::invalid(&SPEC.field("replicas"), replicas.to_string(), why);
    Err(ApiError::invalid(call.scope.kind, call.name, &FieldErrors(vec![error])))
}

/// The parent with the number of a Scale, and the owners of it.
fn scaled(parent: &Value, scale: &Value, scope: &Scope<'_>) -> Value {
    let mut new = parent.clone();
    let replicas_wanted = scale.at(&["spec", "replicas"]).and_then(Value::as_int).unwrap_or_default();
    if let Some(parent) = new.as_object_mut() {
        parent.object_mut("spec").insert("replicas", replicas_wanted);
    }
    match scale.meta().resource_version() {
        "" => {
            new.meta_mut().members().remove("resourceVersion");
        }
        version => {
            let version = Text::new(version);
            new.meta_mut().members().insert("resourceVersion", version);
        }
    }
    let api_version = scope.kind.api_version();
    let replicas = replicas(&api_version);
    let translation = Scale { api_version: &api_version, replicas: &replicas };
    let owned = Owners::decode(parent).unwrap_or_default();
    let of_scale = Owners::decode(scale).unwrap_or_default();
    translation.owners_of_parent(&owned, &of_scale).encode(&mut new, Form::Text);
    new
}

fn replicas(api_version: &str) -> [(Text, Option<FieldPath>); 1] {
    [(Text::new(api_version), Some(FieldPath::fields(&["spec", "replicas"])))]
}
