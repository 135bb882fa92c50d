//! Who owns which fields: `managedFields` on every write, and server-side apply.

use coracle_api::apply::{ApplyError, Element, Filter, Step, Tracker, Type, only_version, rules};
use coracle_api::codec::{json, yaml};
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
    let status = Element::Field(Text::const_new("status"));
    let filters = match part {
        Part::Main if scope.has_status() => {
            let everything_else = scope.of.iter().filter(|field| field.name() != "status");
            let kept =
                everything_else.map(|field| vec![Step::Element(Element::Field(field.field.name.clone()))]);
            vec![(api_version.clone(), Filter::Only(kept.collect()))]
        }
        Part::Status => {
            let metadata = Element::Field(Text::const_new("metadata"));
            let kept = vec![vec![Step::Element(status)], vec![Step::Element(metadata)]];
            vec![(api_version.clone(), Filter::Only(kept))]
        }
        _ => Vec::new(),
    };
    let tracker = Tracker {
        api_version: &api_version,
        kind: &scope.kind.name,
        subresource: part.name(),
        of: Type::catalogue(scope.of.node()),
        filters: &filters,
        convert: &only_version,
    };
    work(&tracker)
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
    with_tracker(scope, part, |tracker| tracker.update_or_forget(live, new, &manager, now))
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
            let applied = with_tracker(scope, part, |tracker| {
                tracker.apply(live, &config, &options.field_manager, force, now)
            });
            let mut object = typed(&applied.map_err(refused)?, scope)?;
            self.settle(scope, &mut object);
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

fn refused(error: ApplyError) -> ApiError {
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
