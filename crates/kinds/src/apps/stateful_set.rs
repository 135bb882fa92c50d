//! StatefulSet: pods with names and volumes of their own, in order.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::Rule;
use coracle_api::selector::LabelSelector;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names};
use k8s_openapi::api::apps::v1::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetStatus,
};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::workload;
use crate::Part;
use crate::behaviour::Behaviour;
use crate::core::{claim, pod};
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, items, text};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// What may change in the spec.
const MUTABLE: [&str; 7] = [
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
];

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &StatefulSets,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct StatefulSets;

impl Strategy for StatefulSets {
    type Object = StatefulSet;

    fn name_rule(&self) -> Rule {
        names::dns1123_label
    }

    fn validate(&self, new: &View<'_, StatefulSet>, cx: &Context<'_>, errors: &mut Errors) {
        let options = pod::Options::of_template(None, cx.cluster.allow_privileged());
        validate_spec(new, &options, ValidationScope::New, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, StatefulSet>,
        old: &View<'_, StatefulSet>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            validate_status(new.status.as_ref(), old.status.as_ref(), errors);
            return;
        }

        let before = old.spec.as_ref().map(|spec| &spec.template);
        let options = pod::Options::of_template(before, cx.cluster.allow_privileged());
        let mut faults = Errors::new();
        validate_spec(old, &options, ValidationScope::Changed, &mut faults);

        // A set whose template was invalid already stays writable.
        let scope = if faults.is_empty() {
            ValidationScope::Changed
        } else {
            ValidationScope::WithoutTemplate
        };
        validate_spec(new, &options, scope, errors);

        if rest(new.tree) != rest(old.tree) {
            let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
            errors.push(FieldError::forbidden(&SPEC, why));
        }
    }

    fn warnings(
        &self,
        new: &View<'_, StatefulSet>,
        old: Option<&View<'_, StatefulSet>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let Some(spec) = new.spec.as_ref().filter(|_| cx.part == Part::Main) else {
            return Vec::new();
        };
        let changed = old.is_none_or(|old| old.metadata.generation != new.metadata.generation);

        let mut warnings = workload::template_warnings(&spec.template, changed, cx);
        for (index, template) in items(&spec.volume_claim_templates).iter().enumerate() {
            let templates = SPEC.field("volumeClaimTemplates");
            let at = templates.index(index);
            let Some(spec) = &template.spec else { continue };
            match old {
                None => warnings.extend(claim::warnings(spec, &at)),
                Some(_) => warnings.extend(claim::warnings(spec, &at.field("Spec"))),
            }
        }

        if spec.revision_history_limit.is_some_and(|limit| limit < 0) {
            warnings.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                    .to_owned(),
            );
        }

        warnings
    }
}

/// The spec without its mutable fields.
fn rest(set: &Value) -> Option<Value> {
    let mut spec = set.get("spec")?.clone();
    let members = spec.as_object_mut()?;
    members.retain(|name, _| !MUTABLE.contains(&name));
    Some(spec)
}

/// How much of a spec is validated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValidationScope {
    New,
    /// Immutable fields were validated when they were written.
    Changed,
    WithoutTemplate,
}

fn validate_spec(
    set: &View<'_, StatefulSet>,
    options: &pod::Options,
    scope: ValidationScope,
    errors: &mut Errors,
) {
    let nothing = StatefulSetSpec::default();
    let spec = set.spec.as_ref().unwrap_or(&nothing);
    match text(&spec.pod_management_policy) {
        "" => errors.push(FieldError::required(&SPEC.field("podManagementPolicy"), "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let why = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid_str(
                &SPEC.field("podManagementPolicy"),
                other,
                why,
            ));
        }
    }

    validate_update_strategy(spec, errors);

    if let Some(policy) = &spec.persistent_volume_claim_retention_policy {
        let at = SPEC.field("persistentVolumeClaimRetentionPolicy");
        for (name, found) in [
            ("whenDeleted", &policy.when_deleted),
            ("whenScaled", &policy.when_scaled),
        ] {
            let known = ["Retain", "Delete"];
            if !known.contains(&text(found)) {
                errors.push(FieldError::not_supported(
                    &at.field(name),
                    text(found),
                    &known,
                ));
            }
        }
    }

    if scope == ValidationScope::New {
        for (index, template) in items(&spec.volume_claim_templates).iter().enumerate() {
            let templates = SPEC.field("volumeClaimTemplates");
            let at = templates.index(index);
            claim::validate_spec(
                &template.spec.clone().unwrap_or_default(),
                &at.field("spec"),
                errors,
            );
        }
    }

    let numbers = [
        ("replicas", spec.replicas.map(i64::from)),
        ("minReadySeconds", spec.min_ready_seconds.map(i64::from)),
        (
            "ordinals.start",
            spec.ordinals
                .as_ref()
                .and_then(|ordinals| ordinals.start)
                .map(i64::from),
        ),
    ];
    workload::validate_not_negative(&SPEC, &numbers, errors);

    let service = text(&spec.service_name);
    if scope == ValidationScope::New && !service.is_empty() {
        refuse(
            &SPEC.field("serviceName"),
            service,
            names::dns1123_label(service),
            errors,
        );
    }

    let at = SPEC.field("selector");
    let shown = set
        .tree
        .at(&["spec", "selector"])
        .filter(|given| !given.is_null());
    let given = shown.map(|_| &spec.selector);
    workload::validate_selector_is_set(given, "statefulset", errors);

    match LabelSelector::from_value(shown) {
        Err(_) => {
            let shown = internal::pointer(given.map(internal::label_selector));
            errors.push(FieldError::invalid(&at, shown, ""));
        }
        Ok(selector) => {
            workload::validate_selector_matches_template(
                set.tree,
                &selector,
                given.is_some(),
                errors,
            );
            let (template, at) = (as_made(spec), SPEC.field("template"));
            if scope != ValidationScope::WithoutTemplate {
                pod::validate_template(&template, &at, options, errors);
            }
            // Upstream validates these twice.
            pod::validate_template_metadata(&template, &at, options, errors);
        }
    }

    workload::validate_restart_policy(&spec.template, "StatefulSet", errors);
}

/// The template with the fields that the controller sets in every pod.
fn as_made(spec: &StatefulSetSpec) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let claims = items(&spec.volume_claim_templates);
    if let Some(pod) = &mut template.spec {
        pod.subdomain = None;
        pod.hostname = None;
        let named: BTreeSet<&str> = claims
            .iter()
            .filter_map(|claim| claim.metadata.name.as_deref())
            .collect();

        let own = items(&pod.volumes)
            .iter()
            .filter(|volume| !named.contains(volume.name.as_str()))
            .cloned();

        let claimed = claims.iter().map(|claim| {
            let name = claim.metadata.name.clone().unwrap_or_default();
            let source = PersistentVolumeClaimVolumeSource {
                claim_name: name.clone(),
                ..Default::default()
            };

            Volume {
                name,
                persistent_volume_claim: Some(source),
                ..Volume::default()
            }
        });
        let volumes: Vec<Volume> = claimed.chain(own).collect();
        pod.volumes = (!volumes.is_empty()).then_some(volumes);
    }

    template
}

fn validate_update_strategy(spec: &StatefulSetSpec, errors: &mut Errors) {
    let at = SPEC.field("updateStrategy");
    let strategy = spec.update_strategy.as_ref();

    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    match (
        strategy
            .and_then(|strategy| strategy.type_.as_deref())
            .unwrap_or_default(),
        rolling,
    ) {
        ("", _) => errors.push(FieldError::required(&at, "")),
        ("OnDelete", Some(rolling)) => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid(
                &at.field("rollingUpdate"),
                shown(rolling),
                why,
            ));
        }
        ("RollingUpdate", Some(rolling)) => {
            let at = at.field("rollingUpdate");
            workload::validate_not_negative(
                &at,
                &[("partition", rolling.partition.map(i64::from))],
                errors,
            );

            if let Some(most) = &rolling.max_unavailable {
                let at = at.field("maxUnavailable");
                workload::validate_int_or_percent(most, &at, errors);

                if workload::amount(most) == 0 {
                    errors.push(FieldError::invalid(
                        &at,
                        workload::shown(most),
                        "cannot be 0",
                    ));
                }

                workload::validate_at_most_100_percent(most, &at, errors);
            }
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        (other, rolling) => {
            let whole = internal::object(&[
                ("Type", internal::text(other)),
                ("RollingUpdate", internal::pointer(rolling.map(shown))),
            ]);

            errors.push(FieldError::invalid(
                &at,
                whole,
                "must be 'RollingUpdate' or 'OnDelete'",
            ));
        }
    }
}

fn shown(rolling: &RollingUpdateStatefulSetStrategy) -> String {
    let most = rolling.max_unavailable.as_ref().map(|most| match most {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(share) => internal::text(share),
    });
    internal::object(&[
        (
            "Partition",
            rolling.partition.unwrap_or_default().to_string(),
        ),
        ("MaxUnavailable", internal::pointer(most)),
    ])
}

fn validate_status(
    new: Option<&StatefulSetStatus>,
    old: Option<&StatefulSetStatus>,
    errors: &mut Errors,
) {
    let nothing = StatefulSetStatus::default();
    let status = new.unwrap_or(&nothing);
    let or_zero = |number: Option<i32>| i64::from(number.unwrap_or_default());
    let (all, ready) = (i64::from(status.replicas), or_zero(status.ready_replicas));

    let available = or_zero(status.available_replicas);
    let numbers = [
        ("replicas", Some(all)),
        ("readyReplicas", Some(ready)),
        ("currentReplicas", status.current_replicas.map(i64::from)),
        ("updatedReplicas", status.updated_replicas.map(i64::from)),
        ("availableReplicas", Some(available)),
        ("observedGeneration", status.observed_generation),
        ("collisionCount", status.collision_count.map(i64::from)),
    ];
    workload::validate_not_negative(&STATUS, &numbers, errors);

    let parts = [
        ("readyReplicas", ready),
        ("currentReplicas", or_zero(status.current_replicas)),
        ("updatedReplicas", or_zero(status.updated_replicas)),
        ("availableReplicas", available),
    ];

    for (name, count) in parts.into_iter().filter(|(_, count)| *count > all) {
        let why = "cannot be greater than status.replicas";
        errors.push(FieldError::invalid(
            &STATUS.field(name),
            count.to_string(),
            why,
        ));
    }

    if available > ready {
        let why = "cannot be greater than status.readyReplicas";
        errors.push(FieldError::invalid(
            &STATUS.field("availableReplicas"),
            available.to_string(),
            why,
        ));
    }

    let before = old.and_then(|old| old.collision_count);
    workload::validate_collisions(status.collision_count, before, errors);
}

fn print_row(set: &StatefulSet, now: Timestamp) -> Row {
    let spec = set.spec.as_ref();
    let (names, images) = cells::template_containers(spec.map(|spec| &spec.template));
    let ready = set
        .status
        .as_ref()
        .and_then(|status| status.ready_replicas)
        .unwrap_or_default();

    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or_default();
    row![
        cells::name(&set.metadata),
        format!("{ready}/{wanted}"),
        cells::age(&set.metadata, now),
        names,
        images
    ]
}
