//! Who owns which fields: `managedFields` on every write, and server-side apply.

use std::borrow::Cow;

use coracle_api::apply::{ApplyError, Conversion, Element, Filter, Step, Tracker, Type, rules};
use coracle_api::catalog::{BUILTIN, Resource, api_version};
use coracle_api::codec::{json, yaml};
use coracle_api::convert::{ConvertError, convert};
use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use http::StatusCode;

use super::create::Written;
use super::{Part, Registry, Scope, meta};
use crate::ApiError;
use crate::request::WriteOptions;
use crate::status::{Cause, Details};

/// Runs `work` with the tracker of a request to one part of a resource's objects.
fn with_tracker<T>(scope: &Scope<'_>, part: Part, work: impl FnOnce(&Tracker<'_>) -> T) -> T {
    let api_version = scope.kind.api_version();
    // The same in every version in which somebody may own fields.
    let filters: Vec<_> = match places(scope, part) {
        None => Vec::new(),
        Some(places) => versions(scope).map(|version| (version, Filter::Only(places.clone()))).collect(),
    };
    let tracker = Tracker {
        api_version: &api_version,
        kind: &scope.kind.name,
        subresource: part.name(),
        of: Type::catalogue(scope.of.node()),
        filters: &filters,
        convert: &|object: &Value, version: &str| in_version(scope, object, version),
    };
    work(&tracker)
}

/// The versions that show what this resource keeps.
fn versions(scope: &Scope<'_>) -> impl Iterator<Item = Text> {
    let prefix = |resource: &Resource| resource.storage.as_ref().map(|storage| storage.prefix.clone());
    let own = prefix(scope.resource);
    let all = BUILTIN.resources().iter().filter(move |other| prefix(other) == own);
    all.map(|resource| api_version(&resource.group, &resource.version))
}

/// The object as somebody who owns fields of it in another version sees it.
fn in_version(scope: &Scope<'_>, object: &Value, version: &str) -> Conversion<'static> {
    let Some(kind) = BUILTIN.kind_of(version, &scope.kind.name) else { return Conversion::NoSuchVersion };
    match convert(object.clone(), kind) {
        Ok(converted) => Conversion::Done(converted, Type::catalogue(BUILTIN.root(kind).node())),
        Err(ConvertError::NotConvertible { .. }) => Conversion::NoSuchVersion,
        Err(error) => Conversion::Failed(error.to_string()),
    }
}

/// The places whose owners a write of this part follows: those that it can change. None: everywhere.
fn places(scope: &Scope<'_>, part: Part) -> Option<Vec<Vec<Step>>> {
    let field = |name: &'static str| Step::Element(Element::Field(Text::const_new(name)));
    Some(match part {
        Part::Main if scope.has_status() => {
            let everything_else = scope.of.iter().filter(|field| field.name() != "status");
            everything_else
                .map(|field| vec![Step::Element(Element::Field(field.field.name.clone()))])
                .collect()
        }
        Part::Status => vec![vec![field("status")], vec![field("metadata")]],
        Part::EphemeralContainers => vec![vec![field("spec"), field("ephemeralContainers")]],
        Part::Resize => {
            let lists = ["containers", "initContainers"].into_iter();
            let of = |list| {
                ["resources", "resizePolicy"].map(|of| vec![field("spec"), field(list), Step::Any, field(of)])
            };
            lists.flat_map(of).collect()
        }
        _ => return None,
    })
}

/// The new object with its owners after a create, update or patch.
pub(super) fn tracked(
    scope: &Scope<'_>,
    part: Part,
    live: Option<&Value>,
    new: Value,
    options: &WriteOptions,
    now: Timestamp,
) -> Value {
    let manager = rules::manager_or_user_agent(&options.field_manager, &scope.caller.user_agent);
    let track =
        |live, new| with_tracker(scope, part, |tracker| tracker.update_or_forget(live, new, &manager, now));
    if scope.hub.keeps(scope.kind) {
        return track(live, new);
    }
    // Fields are owned by their names in the version that was written.
    let live = live.map(|live| scope.hub.show(Cow::Borrowed(live), scope.kind));
    let shown = scope.hub.show(Cow::Borrowed(&new), scope.kind).into_owned();
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
    /// Applies a configuration: to the object, or to nothing, which makes it.
    pub async fn apply(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let config = yaml::decode(body).map_err(|error| {
            ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}"))
        })?;
        let now = (self.now)();
        let force = options.force.unwrap_or_default();
        let put = |live: Option<&Value>| {
            let live = live.map(|live| scope.hub.show(Cow::Borrowed(live), scope.kind));
            let applied = with_tracker(scope, part, |tracker| {
                tracker.apply(live.as_deref(), &config, &options.field_manager, force, now)
            });
            let mut object = typed(&applied.map_err(refused)?, scope)?;
            self.settle(scope, &mut object)?;
            meta::settle_namespace(&mut object, scope)?;
            meta::check_name(&object, name)?;
            Ok::<_, ApiError>(object)
        };
        if self.cache(scope)?.get(&scope.key(name)).is_none() && part == Part::Main {
            return self.insert_tracked(scope, put(None)?, options, Vec::new()).await;
        }
        self.change_tracked(scope, name, part, options, |old| put(Some(old))).await
    }
}

/// The object as its type has it: what apply made of untyped text.
fn typed(object: &Value, scope: &Scope<'_>) -> Result<Value, ApiError> {
    let decoded = json::decode(&json::to_vec(object), Some(scope.of.node()));
    decoded.map(|decoded| decoded.value).map_err(|error| ApiError::bad_request(error.to_string()))
}

pub(super) fn refused(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.0.iter().map(|conflict| Cause {
                reason: "FieldManagerConflict",
                message: conflict.message(),
                field: conflict.path.to_string(),
            });
            let details = Details { causes: causes.collect(), ..Details::default() };
            let mut refused = ApiError::new(StatusCode::CONFLICT, "Conflict", conflicts.to_string());
            refused.details = Some(Box::new(details));
            refused
        }
        error @ (ApplyError::Kind(_) | ApplyError::ManagedFields) => ApiError::bad_request(error.to_string()),
        other => ApiError::unexplained(other.to_string()),
    }
}
