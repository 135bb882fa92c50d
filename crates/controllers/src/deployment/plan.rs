//! What one Deployment needs now. Pure.
//!
//! Its ReplicaSets are claimed; one of them has its template and is the newest, or has to be
//! created. Then one step is taken: a rollback, a change of size, or the next step of a rollout.
//! The step causes an event, which leads to the next step.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_api::{Map, Text, Value};
use coracle_client::Cached;
use coracle_client::ownership::{Claim, claim};
use std::sync::Arc;

use super::revision::{self, REVISION, ROLLBACK, Set};
use super::sizes::{self, Resize, size};
use super::status::Status;
use crate::views::{Deployment, Rollout};

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Deployment.
    pub deployment: Arc<Cached<Deployment>>,
    /// The ReplicaSets that it controls, and those of its namespace that nothing controls.
    pub sets: Vec<Set>,
    /// How many pods that have not ended each ReplicaSet has, by its UID.
    pub running: BTreeMap<Text, usize>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Orphans to adopt.
    pub adopt: Vec<Set>,
    /// ReplicaSets to release.
    pub release: Vec<Set>,
    /// The step to take.
    pub step: Step,
    /// Old ReplicaSets beyond the history limit, to delete.
    pub forget: Vec<Set>,
    /// The status after the step.
    pub status: Map,
    /// The revision to write to the Deployment, if it changed.
    pub revision: Option<String>,
    /// When to reconcile again without an event.
    pub wake_after: Option<Duration>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing to do.
    Nothing,
    /// It selects everything, which is a user error.
    SelectsAll,
    /// The strategy is unknown.
    UnknownStrategy,
    /// Create the newest ReplicaSet.
    Create(Value),
    /// Update the annotations of the newest ReplicaSet.
    Update(Value),
    /// Resize ReplicaSets.
    Resize(Vec<Resize>),
    /// Roll back, or report why not.
    Rollback(Rollback),
}

/// The result of a rollback request.
#[derive(Clone, Debug, PartialEq)]
pub enum Rollback {
    /// The revision, and the Deployment with its template.
    To(i64, Value),
    /// The template is the same already.
    Unchanged(i64),
    /// There is no such revision.
    NotFound,
}

/// Decides what the Deployment needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let deployment = &observed.deployment;
    let (mut adopt, mut release, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for set in &observed.sets {
        let controller = set
            .controller
            .as_ref()
            .map(|controller| controller.uid.as_str());

        let none = Map::new();
        let labels = set.object.object.meta().labels().unwrap_or(&none);

        let going = deployment.is_being_deleted();
        match claim(
            &deployment.uid,
            going,
            controller,
            deployment.selects(labels),
            set.is_being_deleted(),
        ) {
            Claim::Keep => sets.push(set.clone()),
            Claim::Adopt => {
                adopt.push(set.clone());
                sets.push(set.clone());
            }
            Claim::Release => release.push(set.clone()),
            Claim::Ignore => {}
        }
    }

    let newest = revision::newest(deployment, &sets).cloned();
    let others: Vec<&Set> = sets
        .iter()
        .filter(|set| newest.as_ref().is_none_or(|newest| newest.uid != set.uid))
        .collect();

    let view = View {
        observed,
        sets: &sets,
        newest: newest.as_ref(),
        others,
        now,
    };

    let Decided {
        step,
        forget,
        status,
        wake_after,
    } = view.decide();
    let revision = view.revision(&step);

    Plan {
        adopt,
        release,
        step,
        forget,
        status,
        revision,
        wake_after,
    }
}

/// A Deployment and its ReplicaSets.
struct View<'a> {
    observed: &'a Observed,
    sets: &'a [Set],
    newest: Option<&'a Set>,
    others: Vec<&'a Set>,
    now: Timestamp,
}

struct Decided {
    step: Step,
    forget: Vec<Set>,
    status: Map,
    wake_after: Option<Duration>,
}

impl View<'_> {
    fn deployment(&self) -> &Cached<Deployment> {
        &self.observed.deployment
    }

    fn decide(&self) -> Decided {
        let deployment = self.deployment();
        if deployment.selects_all() {
            return self.counted(Step::SelectsAll, Vec::new());
        }
        if deployment.is_being_deleted() {
            return self.counted(Step::Nothing, Vec::new());
        }

        let rollback = deployment.object.object.meta().annotation(ROLLBACK);
        if deployment.is_paused() {
            let forget = if rollback.is_none() {
                self.surplus_sets()
            } else {
                Vec::new()
            };
            return self.counted(self.rescale(), forget);
        }

        if let Some(to) = rollback.and_then(|text| text.parse().ok()) {
            return self.counted(Step::Rollback(self.rollback(to)), Vec::new());
        }
        if sizes::is_due(deployment, self.sets) {
            return self.counted(self.rescale(), Vec::new());
        }

        self.rollout()
    }

    /// A step that is not part of a rollout.
    fn counted(&self, step: Step, forget: Vec<Set>) -> Decided {
        let status = Status::counted(self.deployment(), self.sets, self.newest, self.now);
        Decided {
            step,
            forget,
            status: status.done(),
            wake_after: None,
        }
    }

    fn rescale(&self) -> Step {
        // The annotations of the newest come first, so that nothing overwrites them.
        if let Some(step) = self.refreshed() {
            return step;
        }
        resize(sizes::scaled(self.deployment(), self.newest, &self.others))
    }

    fn rollout(&self) -> Decided {
        let step = match self.deployment().rollout() {
            Rollout::Unknown => Step::UnknownStrategy,
            Rollout::Recreate => self.recreate(),
            Rollout::Rolling { .. } => match self.newest {
                None => self.create(),
                Some(newest) => self.refreshed().unwrap_or_else(|| {
                    resize(sizes::rolling(self.deployment(), newest, &self.others))
                }),
            },
        };

        let mut status = Status::counted(self.deployment(), self.sets, self.newest, self.now);
        if let Step::Create(set) = &step {
            status.created(set.meta().name());
        }

        status.progress();
        let forget = if step == Step::Nothing && status.is_complete() {
            self.surplus_sets()
        } else {
            Vec::new()
        };

        let wake_after = status.wake_after();
        Decided {
            step,
            forget,
            status: status.done(),
            wake_after,
        }
    }

    fn recreate(&self) -> Step {
        let emptied = sizes::emptied(&self.others);
        if !emptied.is_empty() {
            return Step::Resize(emptied);
        }

        let has_pods = |set: &&&Set| {
            set.counted("replicas") > 0
                || self
                    .observed
                    .running
                    .get(&set.uid)
                    .is_some_and(|pods| *pods > 0)
        };

        if self.others.iter().any(|set| has_pods(&set)) {
            return Step::Nothing;
        }

        let Some(newest) = self.newest else {
            return self.create();
        };

        if let Some(step) = self.refreshed() {
            return step;
        }

        let to = self.deployment().replicas();
        resize(
            (size(newest) != to)
                .then(|| Resize {
                    set: newest.clone(),
                    to,
                })
                .into_iter()
                .collect(),
        )
    }

    fn next_revision(&self) -> i64 {
        self.others
            .iter()
            .map(|set| revision::revision(set))
            .max()
            .unwrap_or_default()
            + 1
    }

    fn create(&self) -> Step {
        let deployment = self.deployment();
        let mut set = revision::new_set(deployment, self.next_revision());
        let others = self.others.iter().map(|set| size(set)).sum();
        let to = sizes::of_newest(deployment, 0, others);
        if let Some(Value::Object(spec)) = set.as_object_mut().and_then(|set| set.get_mut("spec")) {
            spec.insert("replicas", to);
        }
        Step::Create(set)
    }

    /// Updates the annotations of the newest ReplicaSet, if needed.
    fn refreshed(&self) -> Option<Step> {
        let newest = self.newest?;
        let deployment = self.deployment();
        let mut set = Value::clone(&newest.object.object);
        revision::annotate(&mut set, deployment, self.next_revision());

        let ready = deployment.min_ready_seconds();
        if newest.min_ready_seconds() != ready
            && let Some(Value::Object(spec)) =
                set.as_object_mut().and_then(|set| set.get_mut("spec"))
        {
            spec.insert("minReadySeconds", ready);
        }

        (set != *newest.object.object).then_some(Step::Update(set))
    }

    /// The revision to write to the Deployment.
    fn revision(&self, step: &Step) -> Option<String> {
        let set = match step {
            Step::Create(set) | Step::Update(set) => set,
            Step::SelectsAll => return None,
            _ => &self.newest?.object.object,
        };
        let noted = self.deployment().object.object.meta().annotation(REVISION);
        set.meta()
            .annotation(REVISION)
            .filter(|revision| noted != Some(*revision))
            .map(ToOwned::to_owned)
    }

    /// Empty old ReplicaSets beyond the history limit, the oldest revisions first.
    fn surplus_sets(&self) -> Vec<Set> {
        let Some(limit) = self.deployment().history_limit() else {
            return Vec::new();
        };
        let mut kept: Vec<&Set> = self
            .others
            .iter()
            .copied()
            .filter(|set| !set.is_being_deleted())
            .collect();
        let over = kept.len().saturating_sub(limit);

        kept.sort_by_key(|set| revision::revision(set));
        let is_settled = |set: &&Set| {
            let meta = set.object.object.meta();
            set.counted("replicas") == 0
                && size(set) == 0
                && meta.generation() <= set.counted("observedGeneration")
        };

        kept.into_iter()
            .take(over)
            .filter(is_settled)
            .cloned()
            .collect()
    }

    fn rollback(&self, to: i64) -> Rollback {
        let mut revisions: Vec<i64> = self
            .sets
            .iter()
            .map(|set| revision::revision(set))
            .collect();
        revisions.sort_unstable();

        let to = match to {
            0 => revisions.iter().rev().nth(1).copied().unwrap_or_default(),
            to => to,
        };

        let Some(set) = self
            .sets
            .iter()
            .find(|set| to != 0 && revision::revision(set) == to)
        else {
            return Rollback::NotFound;
        };

        let deployment = self.deployment();
        if revision::same_template(set.template(), deployment.template()) {
            return Rollback::Unchanged(to);
        }

        let mut template = set.template().cloned().unwrap_or_default();
        template.meta_mut().set_label(revision::HASH, None);
        let mut back = Value::clone(&deployment.object.object);
        if let Some(Value::Object(spec)) =
            back.as_object_mut().and_then(|back| back.get_mut("spec"))
        {
            spec.insert("template", template);
        }

        revision::restore_annotations(&mut back, set);

        Rollback::To(to, back)
    }
}

fn resize(sizes: Vec<Resize>) -> Step {
    if sizes.is_empty() {
        Step::Nothing
    } else {
        Step::Resize(sizes)
    }
}
