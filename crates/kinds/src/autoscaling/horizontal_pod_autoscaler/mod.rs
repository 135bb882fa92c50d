//! HorizontalPodAutoscaler: scales a workload by metrics of its pods. It is validated as `v2`, its
//! storage version.

mod behavior;
mod metrics;
mod print;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};
use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
};

use crate::Part;
use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{items, text, validate_not_negative, validate_required};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &HorizontalPodAutoscalers,
    printer: printer!(print::print_row),
    ..Behaviour::DEFAULT
};

struct HorizontalPodAutoscalers;

impl Strategy for HorizontalPodAutoscalers {
    type Object = HorizontalPodAutoscaler;

    fn validate(
        &self,
        new: &View<'_, HorizontalPodAutoscaler>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_spec(new, None, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, HorizontalPodAutoscaler>,
        old: &View<'_, HorizontalPodAutoscaler>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            let Some(status) = &new.status else { return };
            let at = Path::Root.field("status");
            let current = status.current_replicas.unwrap_or_default();
            validate_not_negative(current.into(), &at.field("currentReplicas"), errors);

            return validate_not_negative(
                status.desired_replicas.into(),
                &at.field("desiredReplicas"),
                errors,
            );
        }

        validate_spec(new, Some(old), errors);
    }
}

/// How the `apiVersion` of a reference is validated.
#[derive(Clone, Copy, PartialEq)]
enum ApiVersion {
    /// It names a group.
    WithGroup,
    /// It may be that of the core group.
    Any,
    /// Not at all: it was invalid before.
    Unchecked,
}

fn validate_spec(
    new: &HorizontalPodAutoscaler,
    old: Option<&View<'_, HorizontalPodAutoscaler>>,
    errors: &mut Errors,
) {
    let (spec, old) = (&new.spec, old.map(|old| &old.spec));
    validate_bounds(spec, old, errors);
    let target = &spec.scale_target_ref;

    let same = old.map(|old| &old.scale_target_ref).is_some_and(|old| {
        text(&old.api_version) == text(&target.api_version) && old.kind == target.kind
    });
    let version = match target.kind.as_str() {
        _ if same => ApiVersion::Unchecked,
        // The only kind of the core group that can be scaled.
        "ReplicationController" => ApiVersion::Any,
        _ => ApiVersion::WithGroup,
    };
    validate_reference(target, version, &SPEC.field("scaleTargetRef"), errors);

    metrics::validate(spec, old, &SPEC.field("metrics"), errors);

    if let Some(behavior) = &spec.behavior {
        let at = SPEC.field("behavior");
        behavior::validate(behavior.scale_up.as_ref(), &at.field("scaleUp"), errors);
        behavior::validate(behavior.scale_down.as_ref(), &at.field("scaleDown"), errors);
    }
}

fn validate_bounds(
    spec: &HorizontalPodAutoscalerSpec,
    old: Option<&HorizontalPodAutoscalerSpec>,
    errors: &mut Errors,
) {
    // Scaling to zero is off, but an autoscaler that has it already may keep it.
    let least = if old.is_some_and(|old| old.min_replicas == Some(0)) {
        0
    } else {
        1
    };

    if let Some(found) = spec.min_replicas.filter(|found| *found < least) {
        let detail = format!("must be greater than or equal to {least}");
        errors.push(FieldError::invalid(
            &SPEC.field("minReplicas"),
            found.to_string(),
            detail,
        ));
    }

    let at = SPEC.field("maxReplicas");
    let most = spec.max_replicas;
    if most == 0 {
        errors.push(FieldError::required(&at, "must be set and greater than 0"));
    } else if most < 0 {
        errors.push(FieldError::invalid(
            &at,
            most.to_string(),
            "must be greater than or equal to 1",
        ));
    }

    if spec.min_replicas.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&at, most.to_string(), detail));
    }
}

fn validate_reference(
    reference: &CrossVersionObjectReference,
    version: ApiVersion,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(
        &reference.kind,
        names::path_segment_name,
        &at.field("kind"),
        errors,
    );

    validate_required(
        &reference.name,
        names::path_segment_name,
        &at.field("name"),
        errors,
    );

    let found = text(&reference.api_version);
    refuse(
        &at.field("apiVersion"),
        found,
        version_fault(found, version),
        errors,
    );
}

fn version_fault(api_version: &str, wanted: ApiVersion) -> Option<String> {
    match api_version.matches('/').count() {
        _ if wanted == ApiVersion::Unchecked => None,
        0 if wanted == ApiVersion::WithGroup => {
            Some("apiVersion must specify API group".to_owned())
        }
        0 | 1 => (wanted == ApiVersion::WithGroup && api_version.starts_with('/'))
            .then(|| "apiVersion must specify API group".to_owned()),
        _ => Some(format!("unexpected GroupVersion string: {api_version}")),
    }
}

/// Whether some object reference of a metric has an invalid `apiVersion` already.
fn has_bad_reference(old: &HorizontalPodAutoscalerSpec) -> bool {
    items(&old.metrics)
        .iter()
        .filter(|metric| metric.type_ == "Object")
        .filter_map(|metric| metric.object.as_ref())
        .any(|object| {
            version_fault(text(&object.described_object.api_version), ApiVersion::Any).is_some()
        })
}
