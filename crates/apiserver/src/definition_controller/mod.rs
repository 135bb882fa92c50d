//! The controllers of CustomResourceDefinitions: status, finalization, APIServices. Each reads all
//! definitions when one has changed, and writes only what differs.

mod finalizing;
mod naming;
mod services;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::catalog::{BUILTIN, Resource};
use coracle_api::convert::convert;
use coracle_api::schema::check::is_structural;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Text, Value};
use coracle_kinds::Part;
use coracle_kinds::apiextensions::custom_resource_definition::approval::{self, Approval};
use coracle_kinds::apiextensions::custom_resource_definition::condition::{self, Condition};
use coracle_kinds::apiextensions::custom_resource_definition::view::Definition;
use coracle_store::Revision;
use http::StatusCode;
use tracing::warn;

use crate::ApiError;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};
use naming::Taken;

/// How long a failure is left alone before the next attempt.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// The field manager of what is written here.
pub(super) const MANAGER: &str = "kube-apiserver";

/// What health shows of this, by upstream's names.
pub(crate) struct Hooks {
    informers: Arc<Hook>,
    synced: Arc<Hook>,
    controllers: Arc<Hook>,
    services: Arc<Hook>,
    /// APIServices of this server are created with the status that they are available.
    available: Arc<Hook>,
}

impl Hooks {
    pub(crate) fn new() -> Hooks {
        Hooks {
            informers: Hook::new("start-apiextensions-informers"),
            synced: Hook::new("crd-informer-synced"),
            controllers: Hook::new("start-apiextensions-controllers"),
            services: Hook::new("apiservice-registration-controller"),
            available: Hook::new("apiservice-status-local-available-controller"),
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Hook>> {
        vec![
            self.informers.clone(),
            self.synced.clone(),
            self.controllers.clone(),
            self.services.clone(),
            self.available.clone(),
        ]
    }
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks::new()
    }
}

/// Never returns. The caches are filled: definitions that there were are served already.
pub(crate) async fn run(loopback: &Loopback, hooks: &Hooks) {
    hooks.informers.done();
    hooks.synced.done();
    let of_services = [&*hooks.services, &*hooks.available];
    tokio::join!(
        accept(loopback, &hooks.controllers),
        finalizing::run(loopback),
        services::run(loopback, &of_services),
    );
}

/// Accepts names, and reports that in the status.
async fn accept(loopback: &Loopback, hook: &Hook) {
    let mut known = BTreeMap::new();
    loop {
        let cache = loopback.cache(definitions()).clone();

        // Subscribed before anything is read, so that no change in between is missed.
        let mut notified = std::pin::pin!(cache.notifier().notified());
        notified.as_mut().enable();

        if let Err(error) = accept_all(loopback, &mut known).await {
            warn!(
                error = error.message,
                "cannot update CustomResourceDefinition status; retrying"
            );
            tokio::time::sleep(RETRY).await;
            continue;
        }

        hook.done();
        notified.await;
    }
}

/// The parts of a definition that are read often. The whole can be large.
struct Summary {
    revision: Revision,
    /// Metadata, group and names, status.
    tree: Value,
    is_structural: bool,
    /// Its names are accepted and its status says so: nothing that others do changes that.
    is_settled: bool,
}

impl Summary {
    fn of(mut tree: Value, revision: Revision) -> Summary {
        let is_structural = Definition::of(&tree).schemas().all(is_structural);

        if let Some(spec) = tree
            .as_object_mut()
            .and_then(|object| object.below_mut("spec"))
        {
            spec.retain(|name, _| matches!(name, "group" | "names"));
        }

        tree.meta_mut().members().remove("managedFields");

        Summary {
            revision,
            tree,
            is_structural,
            is_settled: false,
        }
    }

    fn group(&self) -> &str {
        Definition::of(&self.tree).spec.text("group")
    }
}

async fn accept_all(
    loopback: &Loopback,
    known: &mut BTreeMap<Text, Summary>,
) -> Result<(), ApiError> {
    loop {
        let cache = loopback.cache(definitions());
        let snapshot = cache.snapshot();
        known.retain(|name, summary| {
            snapshot
                .entries
                .get(name)
                .is_some_and(|entry| entry.revision == summary.revision)
        });

        for entry in snapshot.entries.iter() {
            let summary = || Summary::of(entry.value(cache.storage_version().of), entry.revision);
            known.entry(Text::new(entry.key())).or_insert_with(summary);
        }

        let now = (loopback.registry.now)();

        // One at a time: what it is given may not be given to another.
        let Some((name, wanted)) = first_change(known, now) else {
            return Ok(());
        };
        let Some(entry) = snapshot.entries.get(&name) else {
            continue;
        };

        let mut definition = entry.value(cache.storage_version().of);
        if let (Some(object), Some(status)) = (definition.as_object_mut(), wanted.get("status")) {
            object.insert("status", status.clone());
        }

        write_status(loopback, definition).await?;
    }
}

/// The first definition whose status changes, and the definition with its new status. Those before
/// it that are settled need not be looked at again until they change.
fn first_change(known: &mut BTreeMap<Text, Summary>, now: Timestamp) -> Option<(Text, Value)> {
    let (mut settled, mut changed) = (Vec::new(), None);
    let mut taken: BTreeMap<&str, Taken<'_>> = BTreeMap::new();
    for (name, summary) in known.iter().filter(|(_, summary)| !summary.is_settled) {
        let group = summary.group();
        let taken = taken.entry(group).or_insert_with(|| {
            let of_group = known.values().filter(|other| other.group() == group);
            Taken::by(of_group.map(|other| Definition::of(&other.tree)))
        });

        match plan(summary, taken, now) {
            Some(wanted) => {
                changed = Some((name.clone(), wanted));
                break;
            }
            None if condition::is_true(&summary.tree, "NamesAccepted") => {
                settled.push(name.clone());
            }
            None => {}
        }
    }

    for name in &settled {
        if let Some(summary) = known.get_mut(name) {
            summary.is_settled = true;
        }
    }
    changed
}

pub(super) fn definitions() -> &'static Resource {
    resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
}

/// Writes the status of a definition, unless it was changed concurrently: then there will be
/// another round anyway.
pub(super) async fn write_status(loopback: &Loopback, definition: Value) -> Result<(), ApiError> {
    match loopback
        .update(
            definitions(),
            "",
            Part::Status,
            MANAGER,
            &served(definition)?,
        )
        .await
    {
        Err(error) if !matches!(error.code, StatusCode::CONFLICT | StatusCode::NOT_FOUND) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// A definition in the version that is served.
pub(super) fn served(definition: Value) -> Result<Value, ApiError> {
    let kind = BUILTIN.kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let kind = kind.expect("definitions are built in");
    convert(definition, kind).map_err(|error| ApiError::internal(error.to_string()))
}

/// The new status of a definition, if it differs from the current one. Pure.
fn plan(summary: &Summary, taken: &Taken<'_>, now: Timestamp) -> Option<Value> {
    let definition = &summary.tree;
    let view = Definition::of(definition);
    let group = view.spec.text("group");
    let names = naming::names(&view, taken);

    let mut wanted = definition.clone();
    wanted
        .as_object_mut()?
        .object_mut("status")
        .insert("acceptedNames", names.accepted);

    let now = Time(now);
    let (reason, message) = names
        .conflict
        .as_ref()
        .map_or(("NoConflicts", "no conflicts found"), |conflict| {
            (conflict.0, conflict.1.as_str())
        });

    let accepted = names.conflict.is_none();
    condition::set(
        &mut wanted,
        &Condition {
            of: "NamesAccepted",
            status: accepted,
            reason,
            message,
        },
        now,
    );

    // Once established, it stays so.
    if !condition::is_true(definition, "Established") {
        let (reason, message) = match accepted {
            true => (
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
            false => ("NotAccepted", "not all names are accepted"),
        };

        condition::set(
            &mut wanted,
            &Condition {
                of: "Established",
                status: accepted,
                reason,
                message,
            },
            now,
        );
    }

    note_approval(&mut wanted, group, now);
    note_structure(&mut wanted, summary.is_structural, now);

    (wanted != *definition).then_some(wanted)
}

fn note_approval(definition: &mut Value, group: &str, now: Time) {
    if !approval::is_protected(group) {
        return;
    }

    let given = definition
        .meta()
        .annotation(approval::ANNOTATION)
        .map(str::to_owned);
    let approval = Approval::of(given.as_deref());
    let message = approval.explained(given.as_deref());
    let status = approval == Approval::Given;

    let of = "KubernetesAPIApprovalPolicyConformant";
    condition::set(
        definition,
        &Condition {
            of,
            status,
            reason: approval.reason(),
            message: &message,
        },
        now,
    );
}

/// Only definitions of old have schemas that are not structural.
fn note_structure(definition: &mut Value, is_structural: bool, now: Time) {
    match is_structural {
        true => condition::remove(definition, "NonStructuralSchema"),
        false => condition::set(
            definition,
            &Condition {
                of: "NonStructuralSchema",
                status: true,
                reason: "Violations",
                message: "a schema of the definition is not structural",
            },
            now,
        ),
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn definition(name: &str, kind: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}.a.b"}},"spec":{{"group":"a.b","names":{{"plural":"{name}","singular":"","kind":"{kind}","listKind":"{kind}List"}}}}}}"#
        );
        json::parse(text.as_bytes()).unwrap()
    }

    fn conditions_of(definition: &Value) -> String {
        let of = |name: &str| {
            condition::find(definition, name)
                .map_or("-", |found| found.text("reason"))
                .to_owned()
        };
        format!("{} {}", of("NamesAccepted"), of("Established"))
    }

    #[test]
    fn a_definition_is_established_once_its_names_are_its_own() {
        let now = Timestamp::from_unix(1, 0);
        let planned = |definition: &Value, all: &[Value], now| {
            let summary = |tree: &Value| Summary::of(tree.clone(), Revision::FIRST);
            let all = all.iter().map(summary);
            let mut known = all
                .map(|one| (Text::new(one.tree.meta().name()), one))
                .collect();
            let name = Text::new(definition.meta().name());
            let changed = first_change(&mut known, now);
            let is_settled = known[&name].is_settled;
            let changed = changed
                .filter(|(of, _)| *of == name)
                .map(|(_, wanted)| wanted);
            assert!(!is_settled || changed.is_none());
            changed
        };
        let one = planned(&definition("as", "A"), &[definition("as", "A")], now).unwrap();
        assert_eq!(conditions_of(&one), "NoConflicts InitialNamesAccepted");

        assert!(
            planned(&one, std::slice::from_ref(&one), now).is_none(),
            "what is so already is not written again"
        );

        let all = [one.clone(), definition("bs", "A")];
        let two = planned(&all[1], &all, now).unwrap();
        assert_eq!(conditions_of(&two), "ListKindConflict NotAccepted");

        // The other definition is deleted, and the name is free.
        let two = planned(&two, std::slice::from_ref(&two), now).unwrap();
        assert_eq!(conditions_of(&two), "NoConflicts InitialNamesAccepted");
    }
}
