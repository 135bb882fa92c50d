//! What one StatefulSet needs now. Pure.
//!
//! Pods have ordinals, and names and claims derived from them. `OrderedReady`: each is created when
//! all before it are available, and surplus ones are deleted from the last; `Parallel`: all at
//! once. After that, pods of an old template are replaced from the last to the first. Before all
//! this there must be a revision of the current template.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_api::{Map, Text, Value};
use coracle_client::{Cached, Metadata};

use super::identity::{ClaimPod, POD_NAME, claim_name, is_stale, owners};
use super::status::status;
use super::{POD_REVISION, replace};
use crate::history::{self, History, Revision};
use crate::pods::{Claims, Owner, claims};
use crate::views::{Phase, Pod, StatefulSet, next_available};

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The StatefulSet.
    pub set: Arc<Cached<StatefulSet>>,
    /// The pods that it controls, and those of its namespace that nothing controls.
    pub pods: Vec<Arc<Cached<Pod>>>,
    /// The revisions that it controls, and those of its namespace that nothing controls.
    pub revisions: Vec<Arc<Cached<Revision>>>,
    /// The existing claims of its pods, by name.
    pub claims: BTreeMap<Text, Arc<Cached<Metadata>>>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Ownership of the pods.
    pub claims: Claims,
    /// Ownership of the revisions, and the current one.
    pub history: History,
    /// Whether the current template has its revision already: nothing else is done before.
    pub is_revised: bool,
    /// The steps in order; in parallel if the set is not ordered.
    pub steps: Vec<Step>,
    /// Revisions beyond the history limit, to delete.
    pub forget: Vec<Arc<Cached<Revision>>>,
    /// The desired status.
    pub status: Map,
    /// When to reconcile again without an event.
    pub wake_after: Option<Duration>,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create a pod with its claims.
    Create {
        /// Its ordinal.
        ordinal: usize,
        /// Its template.
        template: Arc<Value>,
        /// The name of the template's revision.
        revision: Text,
    },
    /// Delete a pod.
    Delete(Arc<Cached<Pod>>),
    /// Create the claims of a pod, or set their owners.
    Claims(Arc<Cached<Pod>>, usize),
    /// Set the identity labels of a pod.
    Identify(Arc<Cached<Pod>>),
}

/// The pods of a StatefulSet, by ordinal.
pub(super) struct Numbered {
    /// The desired ones, with the pod if it exists.
    pub(super) wanted: BTreeMap<usize, Option<Arc<Cached<Pod>>>>,
    /// The surplus ones, the last first.
    pub(super) surplus: Vec<(usize, Arc<Cached<Pod>>)>,
}

/// The names of the revisions that pods are compared with.
pub(super) struct Names {
    pub(super) current: Text,
    pub(super) update: Text,
}

/// The revision of a pod.
pub(super) fn revision_of(pod: &Pod) -> &str {
    pod.labels
        .get(POD_REVISION)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn is_up(pod: &Pod) -> bool {
    pod.phase == Phase::Running && pod.is_ready()
}

/// Decides what the StatefulSet needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let set: &StatefulSet = &observed.set;
    let mut plan = Plan {
        claims: Claims::default(),
        history: History::default(),
        is_revised: false,
        steps: Vec::new(),
        forget: Vec::new(),
        status: set.status().cloned().unwrap_or_default(),
        wake_after: None,
    };

    let (Some(selector), Some(template)) = (&set.selector, set.template()) else {
        return plan;
    };
    let members = observed
        .pods
        .iter()
        .filter(|pod| set.ordinal_of(&pod.key.name).is_some());
    plan.claims = claims(&observed.set, members);

    plan.history = history::sort(&set.object, selector, template, &observed.revisions);
    let newest = plan.history.next_number();
    let Some(update) = plan
        .history
        .current
        .clone()
        .filter(|current| current.number >= newest)
    else {
        return plan;
    };

    plan.is_revised = true;
    let current = current(set, &plan.history).unwrap_or_else(|| update.clone());
    let names = Names {
        current: current.key.name.clone(),
        update: update.key.name.clone(),
    };

    let numbered = number(set, &plan.claims.claimed);
    let mut retired = 0;
    if !set.is_being_deleted() {
        let mut steps = Steps {
            observed,
            names: &names,
            current: &current,
            now,
            steps: Vec::new(),
        };

        if steps.establish(&numbered) && set.rolls() {
            let victims = replace::victims(set, &numbered, &names, now);
            retired = victims
                .iter()
                .filter(|pod| revision_of(pod) == names.current.as_str())
                .count();
            steps.steps.extend(victims.into_iter().map(Step::Delete));
        }

        plan.steps = steps.steps;
    }

    plan.status = status(set, &plan.claims.claimed, &names, retired, now);
    plan.forget = surplus_revisions(set, &plan, &names);
    plan.wake_after = next_available(&plan.claims.claimed, set.min_ready_seconds(), now);

    plan
}

/// The revision that was rolled out before the current template.
fn current(set: &StatefulSet, history: &History) -> Option<Arc<Cached<Revision>>> {
    let name = set.status()?.text("currentRevision");
    history
        .current
        .iter()
        .chain(&history.old)
        .find(|revision| revision.key.name.as_str() == name)
        .cloned()
}

fn number(set: &StatefulSet, pods: &[Arc<Cached<Pod>>]) -> Numbered {
    let range = set.start()..set.start() + set.replicas();
    let mut wanted: BTreeMap<usize, Option<Arc<Cached<Pod>>>> =
        range.map(|ordinal| (ordinal, None)).collect();

    let mut surplus = Vec::new();
    for pod in pods {
        let Some(ordinal) = set.ordinal_of(&pod.key.name) else {
            continue;
        };
        match wanted.get_mut(&ordinal) {
            Some(place) => *place = Some(pod.clone()),
            None => surplus.push((ordinal, pod.clone())),
        }
    }

    surplus.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));

    Numbered { wanted, surplus }
}

fn surplus_revisions(set: &StatefulSet, plan: &Plan, names: &Names) -> Vec<Arc<Cached<Revision>>> {
    let is_live = |revision: &Cached<Revision>| {
        let name = revision.key.name.as_str();
        name == names.current.as_str()
            || plan
                .claims
                .claimed
                .iter()
                .any(|pod| revision_of(pod) == name)
    };

    let live = plan
        .history
        .old
        .iter()
        .filter(|revision| is_live(revision))
        .count();

    // Those in use do not count against the limit.
    plan.history
        .surplus(set.history_limit().saturating_add(live), is_live)
}

/// The steps found so far.
struct Steps<'a> {
    observed: &'a Observed,
    names: &'a Names,
    current: &'a Arc<Cached<Revision>>,
    now: Timestamp,
    steps: Vec<Step>,
}

/// Whether to continue with the following pods.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    Stop,
}

impl Steps<'_> {
    fn set(&self) -> &StatefulSet {
        &self.observed.set
    }

    /// Creates missing and deletes surplus pods; `true` if pods may be replaced.
    fn establish(&mut self, numbered: &Numbered) -> bool {
        let ordered = self.set().is_ordered();
        for (ordinal, pod) in &numbered.wanted {
            let go = match pod {
                None => self.missing(*ordinal),
                Some(pod) => self.present(*ordinal, pod),
            };
            if go == Go::Stop && ordered {
                return false;
            }
        }

        for (ordinal, pod) in &numbered.surplus {
            if self.claims_differ(*ordinal, pod, true) {
                self.steps.push(Step::Claims(pod.clone(), *ordinal));
            }
        }

        let first_down = self.first_down(numbered);
        for (_, pod) in &numbered.surplus {
            let is_down =
                !is_up(pod) || !pod.is_available(self.set().min_ready_seconds(), self.now);
            let is_in_the_way = first_down
                .as_ref()
                .is_some_and(|first| first.uid == pod.uid);
            if pod.is_being_deleted || (ordered && is_down && !is_in_the_way) {
                if ordered {
                    return false;
                }
                continue;
            }

            self.steps.push(Step::Delete(pod.clone()));

            if ordered {
                return false;
            }
        }

        true
    }

    /// The first unavailable pod; none if a desired pod does not exist.
    fn first_down(&self, numbered: &Numbered) -> Option<Arc<Cached<Pod>>> {
        let seconds = self.set().min_ready_seconds();
        let is_down = |pod: &Pod| pod.is_being_deleted || !pod.is_available(seconds, self.now);
        let mut wanted = numbered.wanted.values();
        if let Some(first) = wanted.find(|pod| pod.as_ref().is_none_or(|pod| is_down(pod))) {
            return first.clone();
        }

        numbered
            .surplus
            .iter()
            .rev()
            .map(|(_, pod)| pod)
            .find(|pod| is_down(pod))
            .cloned()
    }

    fn missing(&mut self, ordinal: usize) -> Go {
        let set = self.set();
        let mut claims = set.claim_templates().iter().filter_map(|template| {
            self.observed
                .claims
                .get(claim_name(set, template.meta().name(), ordinal).as_str())
        });

        if claims.any(|claim| is_stale(&with_owners(claim), set, ordinal)) {
            return Go::Stop;
        }

        let is_old = set.rolls()
            && match set.partition() {
                Some(partition) => ordinal < set.start() + partition,
                None => {
                    let current = set
                        .status()
                        .map_or(0, |status| status.int("currentReplicas"));
                    ordinal < set.start() + usize::try_from(current).unwrap_or_default()
                }
            };

        let (template, revision) = match is_old {
            true => (
                self.current.template().cloned().unwrap_or_default(),
                self.names.current.clone(),
            ),
            false => (
                set.template().cloned().unwrap_or_default(),
                self.names.update.clone(),
            ),
        };

        self.steps.push(Step::Create {
            ordinal,
            template: Arc::new(template),
            revision,
        });

        Go::Stop
    }

    fn present(&mut self, ordinal: usize, pod: &Arc<Cached<Pod>>) -> Go {
        if pod.has_ended() {
            if !pod.is_being_deleted {
                self.steps.push(Step::Delete(pod.clone()));
            }
            return Go::Stop;
        }

        let seconds = self.set().min_ready_seconds();
        let is_up = is_up(pod) && pod.is_available(seconds, self.now) && !pod.is_being_deleted;
        if !is_up && self.set().is_ordered() && pod.phase != Phase::Pending {
            return Go::Stop;
        }
        if self.claims_differ(ordinal, pod, false) {
            self.steps.push(Step::Claims(pod.clone(), ordinal));
        }

        let is_named =
            pod.labels.get(POD_NAME).and_then(Value::as_str) == Some(pod.key.name.as_str());
        if is_up && !is_named {
            self.steps.push(Step::Identify(pod.clone()));
        }

        if is_up { Go::On } else { Go::Stop }
    }

    /// Whether a claim of a pod is missing, or has the wrong owners.
    fn claims_differ(&self, ordinal: usize, pod: &Cached<Pod>, is_surplus: bool) -> bool {
        let set = self.set();
        let owner = Owner::of(&self.observed.set);
        let about = ClaimPod {
            name: &pod.key.name,
            uid: &pod.uid,
            is_surplus,
        };

        set.claim_templates().iter().any(|template| {
            let name = claim_name(set, template.meta().name(), ordinal);
            match self.observed.claims.get(name.as_str()) {
                None => pod.phase == Phase::Pending && !is_surplus,
                Some(claim) => owners(&with_owners(claim), set, &owner, Some(about)).is_some(),
            }
        })
    }
}

/// A claim, reduced to its owners.
fn with_owners(claim: &Cached<Metadata>) -> Value {
    let mut object = Value::object();
    object
        .meta_mut()
        .set_owner_references(claim.meta().owner_references());
    object
}
