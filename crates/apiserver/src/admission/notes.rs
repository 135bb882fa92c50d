//! What plugins leave beside their verdict.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use coracle_api::names;

/// Of one request.
#[derive(Default)]
pub struct Notes {
    /// What the client should know, whatever becomes of the request.
    pub warnings: Warnings,
    pub audit: AuditAnnotations,
    pub reinvocation: Reinvocation,
}

/// Where plugins leave warnings.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    pub fn add(&self, warning: String) {
        lock(&self.0).push(warning);
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0))
    }
}

/// Annotations of the request's event in the audit log.
#[derive(Debug, Default)]
pub struct AuditAnnotations(Mutex<BTreeMap<String, String>>);

/// Why an annotation was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnnotation {
    #[error("the key of an audit annotation must be a DNS subdomain, '/' and a name")]
    Key,
    #[error("the audit annotation has another value already")]
    Overwritten,
}

impl AuditAnnotations {
    /// Adds an annotation. One that is refused is logged, and changes nothing for the request.
    pub fn add(&self, key: &str, value: &str) {
        match self.try_add(key, value) {
            Ok(()) => tracing::debug!(key, value, "audit annotation"),
            Err(error) => tracing::warn!(key, value, %error, "cannot add audit annotation"),
        }
    }

    fn try_add(&self, key: &str, value: &str) -> Result<(), BadAnnotation> {
        if key.matches('/').count() != 1 || !names::qualified_name(key).is_empty() {
            return Err(BadAnnotation::Key);
        }

        let mut all = lock(&self.0);
        match all.get(key) {
            Some(known) if known != value => Err(BadAnnotation::Overwritten),
            Some(_) => Ok(()),
            None => {
                all.insert(key.to_owned(), value.to_owned());
                Ok(())
            }
        }
    }

    /// All that were added.
    pub fn all(&self) -> BTreeMap<String, String> {
        lock(&self.0).clone()
    }
}

/// Whether mutating plugins run once more, because a later one changed the object; and what they
/// remember of the first time.
#[derive(Default)]
pub struct Reinvocation(Mutex<State>);

#[derive(Default)]
struct State {
    is_requested: bool,
    is_second: bool,
    /// By plugin.
    memories: HashMap<&'static str, Box<dyn Any + Send>>,
}

impl Reinvocation {
    /// Whether the plugins run for the second time.
    pub fn is_second(&self) -> bool {
        lock(&self.0).is_second
    }

    /// Makes the whole chain run once more, after all plugins have run. Plugins that need not see
    /// every change decide themselves whether to do anything then.
    pub fn request(&self) {
        lock(&self.0).is_requested = true;
    }

    /// What a plugin remembers of this request, from its first run to its second.
    pub fn remembered<M: Default + Send + 'static, T>(
        &self,
        plugin: &'static str,
        work: impl FnOnce(&mut M) -> T,
    ) -> T {
        let mut state = lock(&self.0);
        let memory = state
            .memories
            .entry(plugin)
            .or_insert_with(|| Box::new(M::default()));
        let memory = memory
            .downcast_mut::<M>()
            .expect("a plugin has one type of memory");
        work(memory)
    }

    /// Begins the second run, if it was requested.
    pub(super) fn begin_second(&self) -> bool {
        let mut state = lock(&self.0);
        let begins = state.is_requested && !state.is_second;
        state.is_second |= begins;
        begins
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_annotation_has_a_prefix_and_is_not_overwritten() {
        let notes = AuditAnnotations::default();
        let check = |key: &str, value: &str, expected| {
            assert_eq!(notes.try_add(key, value), expected, "{key}={value}");
        };
        check("policy/k", "v", Ok(()));
        check("policy/k", "v", Ok(()));
        check("policy/k", "w", Err(BadAnnotation::Overwritten));
        check("k", "v", Err(BadAnnotation::Key));
        check("a/b/c", "v", Err(BadAnnotation::Key));
        check("policy/-", "v", Err(BadAnnotation::Key));

        assert_eq!(
            notes.all().into_iter().collect::<Vec<_>>(),
            [("policy/k".to_owned(), "v".to_owned())]
        );
    }

    #[test]
    fn the_chain_runs_twice_at_most() {
        let reinvocation = Reinvocation::default();
        assert!(!reinvocation.begin_second());
        reinvocation.request();
        assert!(!reinvocation.is_second());
        assert!(reinvocation.begin_second());

        assert!(reinvocation.is_second());
        reinvocation.request();
        assert!(!reinvocation.begin_second());
    }

    #[test]
    fn a_plugin_remembers_its_first_run() {
        let reinvocation = Reinvocation::default();
        let seen = |plugin| {
            reinvocation.remembered(plugin, |runs: &mut u32| {
                *runs += 1;
                *runs
            })
        };
        assert_eq!((seen("a"), seen("b"), seen("a")), (1, 1, 2));
    }
}
