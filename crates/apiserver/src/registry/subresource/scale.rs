//! `scale`: the replicas of an object, as an object of its own.
//!
//! A Scale is made from its parent, changed as any object is (put, patched, applied), and written
//! back into the parent: the number of replicas and the owners of that field. The parent is then
//! updated like any object.

use coracle_api::apply::{FieldPath, Form, Owners, Scale, Tracker, Type, only_version, rules};
use coracle_api::codec::canonical;
use coracle_api::codec::media_type::PatchType;
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::go_text::Quoted;
use coracle_api::selector::LabelSelector;
use coracle_api::{Map, Text, Value};
use coracle_kinds::SPEC;
use http::StatusCode;

use super::{Call, Content, Reply};
use crate::ApiError;
use crate::registry::update::Through;
use crate::registry::{Part, Scope, Write, meta, owners};
use crate::request::Verb;

pub(super) async fn serve(call: &Call<'_>) -> Result<Reply, ApiError> {
    let scope = call.parent;
    let places = Places::of(&scope);
    if call.verb == Verb::Get {
        let parent = call
            .registry
            .current(&scope, call.name)
            .await?
            .value(scope.storage_version.of);
        places.check(&parent)?;
        return Ok(Reply {
            code: StatusCode::OK,
            object: of(&parent, &places, call),
            warnings: Vec::new(),
        });
    }

    let mut warnings = Vec::new();
    let make = |parent: &Value| {
        places.check(parent)?;
        let (scale, noticed) = changed(parent, &places, &scope, call)?;
        warnings = noticed;
        Ok(scale)
    };

    let put = |parent: &Value, scale: &Value| {
        // The parent's schema validates what a definition allows.
        if scope.custom.is_none() {
            validate_scale(scale, call)?;
        }
        Ok(scaled(parent, scale, &places, &scope))
    };
    let through = Through {
        scope: call.scope.as_sent(),
        part: Part::Scale,
        shown: &|parent| of(parent, &places, call),
        put: &put,
    };

    let write = Write::new(call.registry, &scope, Part::Main, call.options.dry_run);
    let written = call
        .registry
        .change_through(&write, Some(&through), call.name, &call.options, make)
        .await;
    let written = written.map_err(|error| error.after(Vec::new()))?;
    warnings.extend(written.warnings);
    let parent = written.entry.value(scope.storage_version.of);

    Ok(Reply {
        code: StatusCode::OK,
        object: of(&parent, &places, call),
        warnings,
    })
}

/// Where in a parent the parts of its Scale are.
struct Places<'a> {
    spec: Vec<&'a str>,
    status: Vec<&'a str>,
    selector: Option<Vec<&'a str>>,
    /// As a definition writes it.
    declared: Option<&'a str>,
}

impl<'a> Places<'a> {
    fn of(scope: &Scope<'a>) -> Places<'a> {
        let parts = |path: &'a str| path.trim_start_matches('.').split('.').collect::<Vec<_>>();
        match scope
            .custom
            .and_then(|(_, version)| version.replicas.as_ref())
        {
            Some(declared) => Places {
                spec: parts(&declared.spec),
                status: parts(&declared.status),
                selector: declared.selector.as_deref().map(parts),
                declared: Some(&declared.spec),
            },
            None => Places {
                spec: vec!["spec", "replicas"],
                status: vec!["status", "replicas"],
                selector: Some(vec!["spec", "selector"]),
                declared: None,
            },
        }
    }

    /// Without the number that is wanted a custom resource has no Scale.
    fn check(&self, parent: &Value) -> Result<(), ApiError> {
        match self.declared {
            Some(path) if parent.at(&self.spec).is_none() => Err(ApiError::internal(format!(
                "the spec replicas field {} does not exist",
                Quoted(path)
            ))),
            _ => Ok(()),
        }
    }

    /// A definition has the path of the selector as text; other kinds have a label selector.
    fn selector(&self, parent: &Value, scope: &Scope<'_>) -> String {
        let given = self.selector.as_ref().and_then(|path| parent.at(path));
        match given {
            Some(Value::String(text)) if self.declared.is_some() => text.to_string(),
            _ if self.declared.is_some() => String::new(),
            // A ReplicationController selects by labels alone.
            Some(Value::Object(labels)) if scope.resource.group.is_empty() => {
                LabelSelector::from_labels(labels).to_string()
            }
            given => LabelSelector::from_value(given)
                .unwrap_or_else(|_| LabelSelector::new(Vec::new()))
                .to_string(),
        }
    }
}

/// The Scale of a parent.
fn of(parent: &Value, places: &Places<'_>, call: &Call<'_>) -> Value {
    let number = |path: &[&str]| parent.at(path).and_then(Value::as_int).unwrap_or_default();
    let mut status = Map::new();
    status.insert("replicas", number(&places.status));
    status.insert("selector", places.selector(parent, &call.parent).as_str());
    let mut spec = Map::new();
    spec.insert("replicas", number(&places.spec));

    let mut scale = Map::new();
    scale.insert("apiVersion", call.scope.kind.api_version());
    scale.insert("kind", call.scope.kind.name.clone());
    scale.insert("spec", spec);
    scale.insert("status", status);

    let metadata = scale.object_mut("metadata");
    for name in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = parent.at(&["metadata", name]) {
            metadata.insert(name, value.clone());
        }
    }

    let mut scale = Value::Object(scale);
    canonical::canonicalize(&mut scale, call.scope.of.node());

    scale
}

/// The Scale of a parent after the request, with its owners.
fn changed(
    parent: &Value,
    places: &Places<'_>,
    scope: &Scope<'_>,
    call: &Call<'_>,
) -> Result<(Value, Vec<String>), ApiError> {
    let mut live = of(parent, places, call);
    let api_version = scope.kind.api_version();
    let replicas = replicas(&api_version, places);
    let translation = Scale {
        api_version: &api_version,
        replicas: &replicas,
    };

    let owned = Owners::decode(parent).unwrap_or_default();
    translation
        .owners_of_scale(&owned)
        .encode(&mut live, Form::Text);

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

        let applied = tracker.apply(
            Some(&live),
            &config.tree,
            &call.options.field_manager,
            force,
            now,
        );
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
    let manager =
        rules::manager_or_user_agent(&call.options.field_manager, &scope.caller.user_agent);

    Ok((
        tracker.update_or_forget(Some(&live), new, &manager, now),
        warnings,
    ))
}

fn check_uid(
    scale: &Value,
    parent: &Value,
    scope: &Scope<'_>,
    call: &Call<'_>,
) -> Result<(), ApiError> {
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

fn validate_scale(scale: &Value, call: &Call<'_>) -> Result<(), ApiError> {
    let replicas = scale
        .at(&["spec", "replicas"])
        .and_then(Value::as_int)
        .unwrap_or_default();

    if replicas >= 0 {
        return Ok(());
    }

    let why = "must be greater than or equal to 0";
    let error = FieldError::invalid(&SPEC.field("replicas"), replicas.to_string(), why);

    Err(ApiError::invalid(
        call.scope.kind,
        call.name,
        &FieldErrors::from(error),
    ))
}

/// The parent with the number of a Scale, and the owners of it.
fn scaled(parent: &Value, scale: &Value, places: &Places<'_>, scope: &Scope<'_>) -> Value {
    let mut new = parent.clone();
    let replicas_wanted = scale
        .at(&["spec", "replicas"])
        .and_then(Value::as_int)
        .unwrap_or_default();

    if let (Some(mut at), Some((last, above))) = (new.as_object_mut(), places.spec.split_last()) {
        for name in above {
            at = at.object_mut(name);
        }
        at.insert(Text::new(last), replicas_wanted);
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
    let replicas = replicas(&api_version, places);
    let translation = Scale {
        api_version: &api_version,
        replicas: &replicas,
    };

    let owned = Owners::decode(parent).unwrap_or_default();
    let of_scale = Owners::decode(scale).unwrap_or_default();
    translation
        .owners_of_parent(&owned, &of_scale)
        .encode(&mut new, Form::Text);

    new
}

fn replicas(api_version: &str, places: &Places<'_>) -> [(Text, Option<FieldPath>); 1] {
    [(
        Text::new(api_version),
        Some(FieldPath::fields(&places.spec)),
    )]
}
