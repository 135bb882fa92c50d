//! Job: pods that must succeed a number of times. [`spec`] is shared with CronJobs, [`policies`]
//! are the failure and success policies, [`indexes`] parses lists of indexes, [`status`] validates
//! what controllers write.

mod indexes;
mod policies;
mod print;
pub(super) mod spec;
mod status;

use coracle_api::field_error::FieldError;
use coracle_api::selector::{self, LabelSelector, Values};
use coracle_api::{Map, Path, Value, names};
use k8s_openapi::api::batch::v1::{Job, JobSpec};

use crate::apps::workload;
use crate::behaviour::Behaviour;
use crate::core::pod;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, validate_immutable};
use crate::{OwnMetadata, Part};

const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Jobs,
    printer: printer!(print::print_row),
    ..Behaviour::DEFAULT
};

struct Jobs;

impl Strategy for Jobs {
    type Object = Job;

    /// A changed job is validated as a new one first.
    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: part == Part::Status,
            ..OWN
        }
    }

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        if new.at(&["spec", "manualSelector"]).and_then(Value::as_bool) != Some(true) {
            generate_selector(new);
        }
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn delete_notice(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
             them or set propagationPolicy=Orphan to suppress this warning",
        )
    }

    fn validate(&self, new: &View<'_, Job>, cx: &Context<'_>, errors: &mut Errors) {
        validate_job(new, None, cx, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Job>,
        old: &View<'_, Job>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            return status::validate_change(new, old, errors);
        }
        OWN.validate(new.tree, cx, errors);
        validate_job(new, Some(old), cx, errors);
        OWN.validate_change(new.tree, old.tree, errors);
        validate_spec(new, Some(old), cx, errors);
        validate_unchanged(new, old, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, Job>,
        old: Option<&View<'_, Job>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let Some(spec) = new.spec.as_ref().filter(|_| cx.part == Part::Main) else {
            return Vec::new();
        };

        if old.is_some_and(|old| old.metadata.generation == new.metadata.generation) {
            return Vec::new();
        }

        let name = old
            .is_none()
            .then(|| workload::name_warning(new.tree.meta().name()))
            .flatten();

        name.into_iter()
            .chain(spec::warnings(spec, &SPEC))
            .collect()
    }
}

const OWN: OwnMetadata = OwnMetadata::named(names::dns1123_subdomain);

/// Labels the pods of a job without a manual selector with the job's identity.
fn generate_selector(job: &mut Value) {
    let (name, uid) = (job.meta().name().to_owned(), job.meta().uid().to_owned());
    let Some(spec) = job.as_object_mut().map(|job| job.object_mut("spec")) else {
        return;
    };
    let labels = spec
        .object_mut("template")
        .object_mut("metadata")
        .object_mut("labels");

    let label = |labels: &mut Map, keys: [&'static str; 2], value: &str| {
        for key in keys {
            labels.get_or_insert_with(key, || Value::string(value));
        }
    };

    label(labels, NAME_LABELS, &name);
    label(labels, UID_LABELS, &uid);
    let selector = spec.object_mut("selector").object_mut("matchLabels");
    selector.get_or_insert_with(UID_LABELS[1], || Value::string(&uid));
}

fn validate_job(
    new: &View<'_, Job>,
    old: Option<&View<'_, Job>>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    validate_generated_selector(new, old.map(|old| old.tree), errors);
    validate_spec(new, old, cx, errors);
    let nothing = JobSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);

    // The pod with the highest index has the longest name.
    if let Some(completions) = spec
        .completions
        .filter(|completions| spec::is_indexed(spec) && *completions > 0)
    {
        let name = new.tree.meta().name();
        let longest = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&longest).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {longest}");
            errors.push(FieldError::invalid_str(
                &Path::Root.field("metadata.name"),
                name,
                why,
            ));
        }
    }
}

/// Validates the generated selector. Jobs from before the pods had prefixed labels need not have
/// these.
fn validate_generated_selector(new: &View<'_, Job>, old: Option<&Value>, errors: &mut Errors) {
    let shown = new
        .tree
        .at(&["spec", "selector"])
        .filter(|selector| !selector.is_null());

    let manual = new
        .tree
        .at(&["spec", "manualSelector"])
        .and_then(Value::as_bool)
        == Some(true);

    let Some(shown) = shown.filter(|_| !manual) else {
        return;
    };
    let (name, uid) = (new.tree.meta().name(), new.tree.meta().uid());
    let place = ["spec", "template", "metadata", "labels"];

    let old_labels = old.map(|old| old.at(&place).and_then(Value::as_object));
    let both = old_labels.is_none_or(|labels| {
        labels.is_some_and(|labels| {
            labels.contains_key(NAME_LABELS[1]) && labels.contains_key(UID_LABELS[1])
        })
    });

    let labels = new.tree.at(&place).and_then(Value::as_object);
    let mut expected = Map::new();
    for index in 0..if both { 2 } else { 1 } {
        for (key, value) in [(UID_LABELS[index], uid), (NAME_LABELS[index], name)] {
            expected.insert(key, value);
            let metadata = SPEC.field("template.metadata.labels");

            let (at, why) = (metadata.key(key), format!("must be '{value}'"));
            match labels
                .and_then(|labels| labels.get(key))
                .and_then(Value::as_str)
            {
                None => errors.push(FieldError::required(&at, why)),
                Some(found) if found != value => {
                    let shown = labels.map_or_else(
                        || "null".to_owned(),
                        |all| coracle_api::field_error::as_json(&Value::Object(all.clone())),
                    );
                    errors.push(FieldError::invalid(&at, shown, why));
                }
                Some(_) => {}
            }
        }
    }

    if LabelSelector::from_value(Some(shown)).is_ok_and(|selector| !selector.matches(&expected)) {
        let found = new.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let found = internal::pointer(found.map(internal::label_selector));
        errors.push(FieldError::invalid(
            &SPEC.field("selector"),
            found,
            "`selector` not auto-generated",
        ));
    }
}

fn validate_spec(
    new: &View<'_, Job>,
    old: Option<&View<'_, Job>>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let nothing = JobSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);
    let before = old.and_then(|old| old.spec.as_ref());
    let options = pod::Options::of_template(
        before.map(|spec| &spec.template),
        cx.cluster.allow_privileged(),
    );
    spec::validate(spec, new.tree.get("spec"), &SPEC, &options, errors);

    let values =
        match before.is_some_and(|before| selector::has_bad_value(before.selector.as_ref())) {
            true => Values::Kept,
            false => Values::Validated,
        };

    match &spec.selector {
        None => errors.push(FieldError::required(&SPEC.field("selector"), "")),
        Some(found) => selector::validate(Some(found), values, &SPEC.field("selector"), errors),
    }

    let shown = new
        .tree
        .at(&["spec", "selector"])
        .filter(|selector| !selector.is_null());

    if let Ok(selector) = LabelSelector::from_value(shown) {
        workload::validate_selector_matches_template(new.tree, &selector, shown.is_some(), errors);
    }
}

/// Validates that immutable fields do not change.
fn validate_unchanged(new: &View<'_, Job>, old: &View<'_, Job>, errors: &mut Errors) {
    let nothing = JobSpec::default();
    let (spec, before) = (
        new.spec.as_ref().unwrap_or(&nothing),
        old.spec.as_ref().unwrap_or(&nothing),
    );

    if !spec::is_indexed(spec) {
        validate_immutable(new.tree, old.tree, &["spec", "completions"], "null", errors);
    } else if spec.completions != before.completions
        && let Some(completions) = spec.completions
        && Some(completions) != spec.parallelism
    {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(
            &SPEC.field("completions"),
            completions.to_string(),
            why,
        ));
    }

    workload::validate_selector_unchanged(new.tree, old.tree, errors);
    validate_same_template(new.tree, old, errors);
    validate_immutable(
        new.tree,
        old.tree,
        &["spec", "completionMode"],
        "null",
        errors,
    );

    let shown = || {
        let tree = new.tree.at(&["spec", "podFailurePolicy"]);
        internal::pointer(
            spec.pod_failure_policy
                .as_ref()
                .map(|policy| policies::failure_shown(policy, tree)),
        )
    };
    validate_same_policy(new.tree, old.tree, "podFailurePolicy", shown, errors);

    for name in ["backoffLimitPerIndex", "managedBy"] {
        validate_immutable(new.tree, old.tree, &["spec", name], "null", errors);
    }

    let shown = || internal::pointer(spec.success_policy.as_ref().map(policies::success_shown));
    validate_same_policy(new.tree, old.tree, "successPolicy", shown, errors);
}

/// Validates that a policy does not change; the error shows the struct.
fn validate_same_policy(
    new: &Value,
    old: &Value,
    name: &str,
    shown: impl Fn() -> String,
    errors: &mut Errors,
) {
    if new.at(&["spec", name]) != old.at(&["spec", name]) {
        errors.push(FieldError::invalid(
            &SPEC.field(name),
            shown(),
            "field is immutable",
        ));
    }
}

/// The scheduling directives and resources of a suspended job's template may change.
fn validate_same_template(new: &Value, old: &View<'_, Job>, errors: &mut Errors) {
    let nothing = Value::object();
    let template = new.at(&["spec", "template"]).unwrap_or(&nothing);
    let mut before = old
        .tree
        .at(&["spec", "template"])
        .unwrap_or(&nothing)
        .clone();

    let waits = old
        .spec
        .as_ref()
        .is_some_and(|spec| spec.suspend == Some(true));

    let status = old.status.as_ref();
    let suspended = status::holds(old.tree, "Suspended");
    let never_ran = status.is_none_or(|status| status.start_time.is_none());
    let idle = status.is_none_or(|status| status.active.unwrap_or_default() == 0);
    let at = SPEC.field("template");
    let refuse = |at: &Path<'_>, found: &Value, errors: &mut Errors| {
        let shown = coracle_api::field_error::shown(found);
        errors.push(FieldError::invalid(at, shown, "field is immutable"));
    };

    if waits && (never_ran || suspended) && idle {
        take_over(&mut before, template);
        let spec = template.get("spec").unwrap_or(&nothing);
        if before.get("spec") != Some(spec) {
            refuse(&at.field("spec"), spec, errors);
        }
    } else if *template != before {
        refuse(&at, template, errors);
    }
}

fn take_over(before: &mut Value, template: &Value) {
    let carry = |to: &mut Map, from: Option<&Value>, name: &str| {
        match from.and_then(|from| from.get(name)) {
            Some(value) => to.insert(name, value.clone()),
            None => to.remove(name),
        };
    };

    let Some(before) = before.as_object_mut() else {
        return;
    };
    let new_spec = template.get("spec");

    let spec = before.object_mut("spec");
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        carry(spec, new_spec, name);
    }

    let affinity = new_spec.and_then(|spec| spec.get("affinity"));
    if affinity.is_some() || spec.contains_key("affinity") {
        let own = spec.object_mut("affinity");
        carry(own, affinity, "nodeAffinity");
        if own.is_empty() && affinity.is_none() {
            spec.remove("affinity");
        }
    }

    for list in ["containers", "initContainers"] {
        let wanted = new_spec
            .and_then(|spec| spec.get(list))
            .and_then(Value::as_array)
            .unwrap_or_default();

        let Some(own) = spec.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        if own.len() != wanted.len() {
            continue;
        }

        for (own, wanted) in own.iter_mut().zip(wanted) {
            if own.get("name") == wanted.get("name")
                && let Some(own) = own.as_object_mut()
            {
                carry(own, Some(wanted), "resources");
            }
        }
    }
}
