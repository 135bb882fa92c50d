//! Policies and bindings, read anew when one changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use coracle_api::catalog::BUILTIN;
use coracle_api::{Map, Value};
use coracle_store::Revision;

use super::params::{ParamKind, ParamRef};
use crate::admission::matching::{Criteria, Question};
use crate::aside::aside;
use crate::cache::{Cache, Caches, Entry, Snapshot, any_notified};

/// A policy, and what binds it.
pub(super) struct Hook<P> {
    pub(super) policy: Arc<Policy<P>>,
    /// At least one, by name.
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// All policies that are bound, by name.
pub(super) type Hooks<P> = Arc<[Hook<P>]>;

pub(super) struct Policy<P> {
    pub(super) name: String,
    revision: Revision,
    /// Whether a request goes on if the policy cannot be evaluated.
    pub(super) fails_open: bool,
    /// `None`: it has no constraints, which is an error.
    pub(super) criteria: Option<Criteria>,
    /// `None`: it has no parameters.
    pub(super) params: Option<ParamKind>,
    pub(super) compiled: P,
}

pub(super) struct Binding {
    pub(super) name: String,
    revision: Revision,
    /// The name of the policy.
    policy: String,
    /// `None`: everything that the policy is about.
    pub(super) criteria: Option<Criteria>,
    pub(super) params: Option<ParamRef>,
    /// What follows from a validation that fails.
    pub(super) actions: Vec<String>,
}

impl<P> Hook<P> {
    /// Whether the policy may concern a request; one without constraints is wrong for all.
    pub(super) fn may_concern(&self, question: &Question<'_>) -> bool {
        let criteria = self.policy.criteria.as_ref();
        criteria.is_none_or(|criteria| criteria.has_rule_for(question))
    }
}

impl<P> Policy<P> {
    fn new(policy: &Value, revision: Revision, compile: fn(&Value) -> P) -> Policy<P> {
        let spec = |name: &str| policy.at(&["spec", name]);
        let constraints = spec("matchConstraints").and_then(Value::as_object);
        let params = spec("paramKind").and_then(Value::as_object);
        Policy {
            name: policy.meta().name().to_owned(),
            revision,
            fails_open: spec("failurePolicy").and_then(Value::as_str) == Some("Ignore"),
            criteria: constraints.map(Criteria::of_match_resources),
            params: params.map(ParamKind::of),
            compiled: compile(policy),
        }
    }
}

impl Binding {
    fn new(binding: &Value, revision: Revision) -> Binding {
        let empty = Map::new();
        let spec = binding.get("spec").and_then(Value::as_object);
        let spec = spec.unwrap_or(&empty);
        let actions = spec.items("validationActions").iter();
        Binding {
            name: binding.meta().name().to_owned(),
            revision,
            policy: spec.text("policyName").to_owned(),
            criteria: spec
                .below("matchResources")
                .map(Criteria::of_match_resources),
            params: spec.below("paramRef").map(ParamRef::of),
            actions: actions
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        }
    }
}

/// The policies of one kind, and their bindings.
pub(super) struct Source<P> {
    caches: Arc<Caches>,
    policies: Arc<Cache>,
    bindings: Arc<Cache>,
    compile: fn(&Value) -> P,
    last: Mutex<Last<P>>,
}

/// What was read last, and from what.
struct Last<P> {
    from: Option<[Arc<Snapshot>; 2]>,
    /// Also those that are not bound.
    policies: Vec<Arc<Policy<P>>>,
    bindings: Vec<Arc<Binding>>,
    hooks: Hooks<P>,
}

impl<P> Source<P> {
    pub(super) fn new(
        caches: &Arc<Caches>,
        policies: &str,
        bindings: &str,
        compile: fn(&Value) -> P,
    ) -> Source<P> {
        let cache = |plural: &str| {
            let cache = BUILTIN
                .resource("admissionregistration.k8s.io", "v1", plural)
                .and_then(|resource| caches.get(&resource.storage.as_ref()?.prefix));
            cache.expect("policies are built in").clone()
        };
        Source {
            caches: caches.clone(),
            policies: cache(policies),
            bindings: cache(bindings),
            compile,
            last: Mutex::new(Last {
                from: None,
                policies: Vec::new(),
                bindings: Vec::new(),
                hooks: Hooks::default(),
            }),
        }
    }

    /// The bound policies of the moment.
    pub(super) fn hooks(&self) -> Hooks<P> {
        let now = [self.policies.snapshot(), self.bindings.snapshot()];
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |from: &[Arc<Snapshot>; 2]| {
            Arc::ptr_eq(&from[0], &now[0]) && Arc::ptr_eq(&from[1], &now[1])
        };
        if !last.from.as_ref().is_some_and(is_same) {
            aside(|| self.read(&mut last, &now));
            last.from = Some(now);
        }
        last.hooks.clone()
    }

    /// Compiles what changes, so that requests need not. Never returns.
    pub(super) async fn follow(&self) {
        let notifiers = [&self.policies, &self.bindings].map(|cache| cache.notifier().clone());
        loop {
            let changed = any_notified(&notifiers);
            self.hooks();
            changed.await;
        }
    }

    fn read(&self, last: &mut Last<P>, [policies, bindings]: &[Arc<Snapshot>; 2]) {
        let known = last.policies.iter();
        let known: HashMap<Revision, &Arc<Policy<P>>> =
            known.map(|policy| (policy.revision, policy)).collect();
        let made = policies.entries.iter().map(|entry| {
            let known = known
                .get(&entry.revision)
                .filter(|known| known.name == entry.key());
            match known {
                Some(known) => Arc::clone(known),
                None => {
                    let tree = self.tree(entry, &self.policies);
                    Arc::new(Policy::new(&tree, entry.revision, self.compile))
                }
            }
        });
        last.policies = made.collect();

        let known = last.bindings.iter();
        let known: HashMap<Revision, &Arc<Binding>> =
            known.map(|binding| (binding.revision, binding)).collect();
        let made = bindings.entries.iter().map(|entry| {
            let known = known
                .get(&entry.revision)
                .filter(|known| known.name == entry.key());
            match known {
                Some(known) => Arc::clone(known),
                None => Arc::new(Binding::new(
                    &self.tree(entry, &self.bindings),
                    entry.revision,
                )),
            }
        });
        last.bindings = made.collect();

        last.hooks = bound(&last.policies, &last.bindings);
    }

    fn tree(&self, entry: &Entry, cache: &Cache) -> Arc<Value> {
        self.caches.trees.of(entry, cache.storage_version().of)
    }
}

/// Policies with their bindings. A binding without a policy has no effect, nor has a policy without
/// a binding.
fn bound<P>(policies: &[Arc<Policy<P>>], bindings: &[Arc<Binding>]) -> Hooks<P> {
    let mut by_policy: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
    for binding in bindings {
        let of = by_policy.entry(&binding.policy).or_default();
        of.push(binding.clone());
    }

    let hooks = policies.iter().filter_map(|policy| {
        Some(Hook {
            policy: policy.clone(),
            bindings: by_policy.remove(policy.name.as_str())?,
        })
    });
    hooks.collect()
}
