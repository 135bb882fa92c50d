//! Field ownership: `managedFields` on every write, and server-side apply.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use coracle_api::apply::{ApplyError, Conversion, Filter, Tracker, Type, rules};
use coracle_api::catalog::{BUILTIN, api_version, split_api_version};
use coracle_api::codec::json;
use coracle_api::codec::yaml::{self, DuplicateKeys};
use coracle_api::convert::{ConvertError, convert};
use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use coracle_kinds::{only, owned_through};
use http::StatusCode;

use super::create::Written;
use super::{Part, Registry, Requested, Scope, meta};
use crate::ApiError;
use crate::aside::wait_for;
use crate::request::{FieldValidation, WriteOptions};
use crate::status::{Cause, Details, Reason};

/// Runs `work` with the tracker of a request to one part of a resource's objects.
fn with_tracker<T>(
    registry: &Registry,
    scope: &Scope<'_>,
    part: Part,
    work: impl FnOnce(&Tracker<'_>) -> T,
) -> T {
    let api_version = scope.kind.api_version();

    // The same in every version in which fields may be owned.
    let filters: Vec<_> = match owned_fields(scope, part) {
        None => Vec::new(),
        Some(filter) => versions(scope)
            .iter()
            .map(|version| (version.clone(), filter.clone()))
            .collect(),
    };

    let tracker = Tracker {
        api_version: &api_version,
        kind: &scope.kind.name,
        subresource: part.name(),
        of: type_of(scope),
        filters: &filters,
        convert: &|object: &Value, version: &str| in_version(registry, scope, object, version),
    };

    work(&tracker)
}

/// Which fields can be owned through a write of this part; `None`: all.
fn owned_fields(scope: &Scope<'_>, part: Part) -> Option<Filter> {
    match (scope.custom, part) {
        (Some(_), Part::Status) => Some(only(&["status"])),
        _ => owned_through(scope.resource, scope.behaviour, part),
    }
}

/// How fields of the objects of a request are owned.
fn type_of<'a>(scope: &Scope<'a>) -> Type<'a> {
    match scope.custom {
        Some((_, version)) => Type::Declared(&version.declared),
        None => Type::catalogue(scope.of.node()),
    }
}

/// The versions that show what this resource keeps.
fn versions(scope: &Scope<'_>) -> Cow<'static, [Text]> {
    if let Some((custom, _)) = scope.custom {
        let versions = custom.versions.iter();
        return versions
            .map(|version| api_version(&scope.kind.group, &version.name))
            .collect();
    }

    /// By prefix in the store.
    static ALL: LazyLock<HashMap<&str, Vec<Text>>> = LazyLock::new(|| {
        let mut all: HashMap<&str, Vec<Text>> = HashMap::new();
        for resource in BUILTIN.resources() {
            if let Some(storage) = &resource.storage {
                let version = api_version(&resource.group, &resource.version);
                all.entry(&storage.prefix).or_default().push(version);
            }
        }
        all
    });

    let storage = scope.resource.storage.as_ref();
    Cow::Borrowed(
        storage
            .and_then(|storage| ALL.get(storage.prefix.as_str()))
            .map_or(&[], Vec::as_slice),
    )
}

/// The object in another version, in which fields of it are owned.
fn in_version<'a>(
    registry: &Registry,
    scope: &Scope<'a>,
    object: &Value,
    version: &str,
) -> Conversion<'a> {
    if let Some((custom, _)) = scope.custom {
        let (group, name) = split_api_version(version);
        let known = custom.version(name).filter(|_| group == scope.kind.group);
        let Some(known) = known else {
            return Conversion::NoSuchVersion;
        };
        if let Some(requested) = scope.requested() {
            return converted(registry, requested, object, name);
        }
        return Conversion::Done(
            custom.shown(object.clone(), name),
            Type::Declared(&known.declared),
        );
    }

    let Some(kind) = BUILTIN.kind_of(version, &scope.kind.name) else {
        return Conversion::NoSuchVersion;
    };
    match convert(object.clone(), kind) {
        Ok(converted) => Conversion::Done(converted, Type::catalogue(BUILTIN.root(kind).node())),
        Err(ConvertError::NotConvertible { .. }) => Conversion::NoSuchVersion,
        Err(error) => Conversion::Failed(error.to_string()),
    }
}

/// The object as the webhook of its definition converts it.
fn converted<'a>(
    registry: &Registry,
    requested: Requested<'a>,
    object: &Value,
    version: &str,
) -> Conversion<'a> {
    let Some(place) = requested.custom.place(version) else {
        return Conversion::NoSuchVersion;
    };
    let wanted = Requested {
        version: place,
        ..requested
    };

    let failed = || ApiError::unexplained("cannot wait for the conversion webhook");
    let made = wait_for(registry.convert(wanted, vec![object.clone()]));
    match made
        .unwrap_or_else(|| Err(failed()))
        .map(|mut made| made.pop())
    {
        Ok(Some(mut made)) => {
            let version = &requested.custom.versions[place];
            version.prune(&mut made);
            Conversion::Done(made, Type::Declared(&version.declared))
        }
        Ok(None) => Conversion::Failed(failed().message),
        Err(error) => Conversion::Failed(error.message),
    }
}

/// Whether an object requests that its `managedFields` be reset.
pub(super) fn are_forgotten(object: &Value) -> bool {
    let entries = object
        .at(&["metadata", "managedFields"])
        .and_then(Value::as_array);
    entries.is_some_and(<[Value]>::is_empty)
}

/// Requests that the `managedFields` of an object be reset, by an empty entry: an empty list would
/// be normalized to an absent one.
pub(super) fn forget(object: &mut Value) {
    object
        .meta_mut()
        .members()
        .insert("managedFields", vec![Value::object()]);
}

/// The new object with its owners after a create, update or patch.
pub(super) fn tracked(
    registry: &Registry,
    scope: &Scope<'_>,
    part: Part,
    live: Option<&Value>,
    new: Value,
    options: &WriteOptions,
    now: Timestamp,
) -> Value {
    let manager = rules::manager_or_user_agent(&options.field_manager, &scope.caller.user_agent);
    let track = |live, new| {
        with_tracker(registry, scope, part, |tracker| {
            tracker.update_or_forget(live, new, &manager, now)
        })
    };

    if scope.storage_version.keeps(scope.kind) {
        return track(live, new);
    }

    // Fields are owned by their names in the version that was written.
    let live = live.map(|live| scope.storage_version.show(Cow::Borrowed(live), scope.kind));
    let shown = scope
        .storage_version
        .show(Cow::Borrowed(&new), scope.kind)
        .into_owned();
    let mut tracked = track(live.as_deref(), shown);
    let entries = tracked.meta_mut().members().remove("managedFields");

    let mut new = new;
    match entries {
        Some(entries) => new.meta_mut().members().insert("managedFields", entries),
        None => new.meta_mut().members().remove("managedFields"),
    };

    new
}

impl Registry {
    /// Applies a configuration to the object, or creates it.
    pub async fn apply(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let config = Configuration::read(body)?;
        let now = (self.now)();

        let force = options.force.unwrap_or_default();
        let put = |live: Option<&Value>| {
            let live = live.map(|live| scope.storage_version.show(Cow::Borrowed(live), scope.kind));
            let applied = with_tracker(self, scope, part, |tracker| {
                tracker.apply(
                    live.as_deref(),
                    &config.tree,
                    &options.field_manager,
                    force,
                    now,
                )
            });
            let applied = applied.map_err(refused)?;

            config.refused_by(options.field_validation)?;
            let mut object = typed(&applied, scope)?;
            self.settle(scope, &mut object)?;

            if live.is_none() {
                check_uid_is_unset(scope, name, &object)?;
            }

            meta::settle_namespace(&mut object, scope)?;
            meta::check_name(&object, name)?;

            Ok::<_, ApiError>(object)
        };

        let warnings = config.warnings(options.field_validation);
        if self.cache(scope)?.get(&scope.key(name)).is_none() && part == Part::Main {
            return self
                .insert_tracked(scope, put(None)?, options, warnings)
                .await;
        }

        let mut written = self
            .change_tracked(scope, name, part, options, |old| put(Some(old)))
            .await?;
        written.warnings.splice(..0, warnings);

        Ok(written)
    }
}

/// An apply with a UID does not create an object: the one with that UID does not exist.
fn check_uid_is_unset(scope: &Scope<'_>, name: &str, object: &Value) -> Result<(), ApiError> {
    let uid = object.meta().uid();
    if uid.is_empty() {
        return Ok(());
    }
    let why = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    Err(ApiError::conflict(scope.resource, name, &why))
}

/// The configuration to apply, as it was sent.
pub(super) struct Configuration {
    pub(super) tree: Value,
    repeated: Option<DuplicateKeys>,
}

impl Configuration {
    pub(super) fn read(body: &[u8]) -> Result<Configuration, ApiError> {
        let (tree, repeated) = yaml::decode_strict(body).map_err(|error| {
            ApiError::bad_request(format!(
                "error decoding YAML: error converting YAML to JSON: {error}"
            ))
        })?;

        match &tree {
            Value::Object(_) | Value::Null => Ok(Configuration { tree, repeated }),
            other => Err(ApiError::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go \
                 value of type map[string]interface {{}}",
                other.type_name()
            ))),
        }
    }

    /// Refused for keys that are given twice, if the request wants that. Upstream looks after it
    /// has applied.
    pub(super) fn refused_by(&self, validation: FieldValidation) -> Result<(), ApiError> {
        match &self.repeated {
            Some(keys) if validation == FieldValidation::Strict => Err(ApiError::bad_request(
                format!("error strict decoding YAML: error converting YAML to JSON: {keys}"),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn warnings(&self, validation: FieldValidation) -> Vec<String> {
        let warned = self
            .repeated
            .iter()
            .filter(|_| validation == FieldValidation::Warn);
        warned
            .flat_map(|keys| keys.each().map(str::to_owned))
            .collect()
    }
}

/// The object decoded by its type: the result of apply on untyped text.
fn typed(object: &Value, scope: &Scope<'_>) -> Result<Value, ApiError> {
    let decoded = json::decode(&json::to_vec(object), Some(scope.of.node()));
    decoded
        .map(|decoded| decoded.value)
        .map_err(|error| ApiError::bad_request(error.to_string()))
}

pub(super) fn refused(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.0.iter().map(|conflict| Cause {
                reason: "FieldManagerConflict",
                message: conflict.message(),
                field: conflict.path.to_string(),
            });

            let details = Details {
                causes: causes.collect(),
                ..Details::default()
            };

            let mut refused = ApiError::new(
                StatusCode::CONFLICT,
                Reason::Conflict,
                conflicts.to_string(),
            );
            refused.details = Some(Box::new(details));

            refused
        }
        error @ (ApplyError::Kind(_) | ApplyError::ManagedFields) => {
            ApiError::bad_request(error.to_string())
        }
        other => ApiError::unexplained(other.to_string()),
    }
}
