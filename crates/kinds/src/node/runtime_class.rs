//! RuntimeClass: which runtime a pod runs in, at what cost, and on which nodes. Its handler never
//! changes.

use std::collections::BTreeSet;

use coracle_api::field_error::FieldError;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, meta, names, node_label};
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::api::node::v1::{RuntimeClass, Scheduling};

use crate::OwnMetadata;
use crate::Part;
use crate::behaviour::Behaviour;
use crate::core::pod::{self, Options};
use crate::print::Row;
use crate::print::cells::{age, name};
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::internal_form::{self, Form};
use crate::validate::{items, text, validate_immutable, validate_required};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &RuntimeClasses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

/// A toleration as errors show it.
const TOLERATION: Form = Form::Struct(&[
    ("Key", "key", Form::Text),
    ("Operator", "operator", Form::Text),
    ("Value", "value", Form::Text),
    ("Effect", "effect", Form::Text),
    ("TolerationSeconds", "tolerationSeconds", Form::Same),
]);

struct RuntimeClasses;

impl Strategy for RuntimeClasses {
    type Object = RuntimeClass;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            known_finalizers: false,
            on_update: false,
            ..OwnMetadata::named(self.name_rule())
        }
    }

    fn validate(&self, new: &View<'_, RuntimeClass>, _: &Context<'_>, errors: &mut Errors) {
        let at = Path::Root.field("handler");
        validate_required(&new.handler, names::dns1123_label, &at, errors);

        if let Some(overhead) = &new.overhead {
            let amounts = overhead.pod_fixed.iter().flatten();
            let amounts = amounts.map(|(name, amount)| (name.clone(), amount.clone()));
            let at = Path::Root.field("overhead");
            let options = Options::of_template(None, false);
            pod::validate_overhead(&amounts.collect(), &at, &options, errors);
        }

        if let Some(scheduling) = &new.scheduling {
            let tolerations = new.tree.at(&["scheduling", "tolerations"]);
            let at = Path::Root.field("scheduling");
            validate_scheduling(scheduling, tolerations, &at, errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, RuntimeClass>,
        old: &View<'_, RuntimeClass>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
        self.own_metadata(cx.part)
            .validate_change(new.tree, old.tree, errors);
        validate_immutable(new.tree, old.tree, &["handler"], "\"\"", errors);
    }

    fn warnings(
        &self,
        new: &View<'_, RuntimeClass>,
        _: Option<&View<'_, RuntimeClass>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let selector = new
            .scheduling
            .as_ref()
            .and_then(|scheduling| scheduling.node_selector.as_ref());

        selector
            .into_iter()
            .flatten()
            .filter_map(|(key, _)| node_label::deprecation(key))
            .map(|message| format!("scheduling.nodeSelector: {message}"))
            .collect()
    }
}

/// `tree` has the tolerations as they were sent, for errors that show them.
fn validate_scheduling(
    scheduling: &Scheduling,
    tree: Option<&Value>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let selector = scheduling.node_selector.iter().flatten();
    meta::validate::labels(selector, &at.field("nodeSelector"), errors);

    let at = at.field("tolerations");
    let tolerations = items(&scheduling.tolerations);
    let options = Options::of_template(None, false);
    pod::validate_tolerations(tolerations, &at, &options, errors);

    let mut seen = BTreeSet::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        if !seen.insert(identity(toleration)) {
            let sent = tree.and_then(|tree| tree.as_array()?.get(index));
            let shown = internal_form::shown(sent, &TOLERATION);
            errors.push(FieldError::duplicate(&at.index(index), shown));
        }
    }
}

/// What makes two tolerations the same: everything but the seconds.
fn identity(toleration: &Toleration) -> [&str; 4] {
    [
        text(&toleration.key),
        text(&toleration.operator),
        text(&toleration.value),
        text(&toleration.effect),
    ]
}

fn print_row(class: &RuntimeClass, now: Timestamp) -> Row {
    row![
        name(&class.metadata),
        class.handler.as_str(),
        age(&class.metadata, now)
    ]
}
