//! The webhooks that configurations name, read anew when one changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coracle_api::catalog::BUILTIN;
use coracle_api::{Map, Value};
use coracle_expressions::admission::{Compiler, Conditions, Visible};

use crate::admission::matching::Criteria;
use crate::cache::{Cache, Caches, Snapshot};
use crate::webhook::ClientConfig;

/// One webhook of a configuration.
pub(super) struct Hook {
    pub(super) configuration: String,
    pub(super) name: String,
    /// Tells it from all others of a moment.
    pub(super) uid: String,
    pub(super) criteria: Criteria,
    pub(super) conditions: Conditions,
    pub(super) client: ClientConfig,
    pub(super) review_versions: Vec<String>,
    /// `None`: it is not set.
    pub(super) side_effects: Option<String>,
    pub(super) timeout: Duration,
    /// Whether a request goes on if the webhook fails.
    pub(super) fails_open: bool,
    /// Whether it is called again if another one changes the object after it.
    pub(super) is_reinvocable: bool,
}

impl Hook {
    fn new(configuration: &str, webhook: &Map, uid: String) -> Hook {
        let texts = |name: &str| {
            let texts = webhook.items(name).iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let conditions = webhook.items("matchConditions").iter();
        let conditions = conditions
            .filter_map(Value::as_object)
            .map(|condition| (condition.text("name"), condition.text("expression")));
        let visible = Visible {
            authorizer: true,
            ..Visible::default()
        };
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_int);
        let client = webhook.below("clientConfig").map(ClientConfig::of);

        Hook {
            configuration: configuration.to_owned(),
            name: webhook.text("name").to_owned(),
            uid,
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::compile(&Compiler::plain(), conditions, visible),
            client: client.unwrap_or_default(),
            review_versions: texts("admissionReviewVersions"),
            side_effects: webhook.str("sideEffects").map(str::to_owned),
            timeout: Duration::from_secs(seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(10)),
            fails_open: webhook.text("failurePolicy") == "Ignore",
            is_reinvocable: webhook.text("reinvocationPolicy") == "IfNeeded",
        }
    }
}

/// All webhooks of one kind of configuration, in the order in which they are called.
type Hooks = Arc<[Arc<Hook>]>;

/// The webhooks of one kind of configuration.
pub(super) struct Source {
    cache: Arc<Cache>,
    caches: Arc<Caches>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// What the hooks were read from.
    snapshot: Option<Arc<Snapshot>>,
    hooks: Hooks,
}

impl Source {
    pub(super) fn new(caches: &Arc<Caches>, plural: &str) -> Source {
        let cache = BUILTIN
            .resource("admissionregistration.k8s.io", "v1", plural)
            .and_then(|resource| caches.get(&resource.storage.as_ref()?.prefix));
        Source {
            cache: cache.expect("configurations are built in").clone(),
            caches: caches.clone(),
            last: Mutex::default(),
        }
    }

    /// The webhooks of the moment.
    pub(super) fn hooks(&self) -> Hooks {
        let snapshot = self.cache.snapshot();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &Arc<Snapshot>| Arc::ptr_eq(known, &snapshot);
        if !last.snapshot.as_ref().is_some_and(is_same) {
            last.hooks = self.read(&snapshot, &last.hooks);
            last.snapshot = Some(snapshot);
        }
        last.hooks.clone()
    }

    fn read(&self, snapshot: &Snapshot, before: &Hooks) -> Hooks {
        // Compiled conditions are kept: the UID has the version of the configuration.
        let known: HashMap<&str, &Arc<Hook>> = before
            .iter()
            .map(|hook| (hook.uid.as_str(), hook))
            .collect();
        let of = self.cache.storage_version().of;

        // By name, which is the order of the snapshot.
        let configured = snapshot.entries.iter().flat_map(|entry| {
            let configuration = self.caches.trees.of(entry, of);
            let webhooks = configuration.get("webhooks").and_then(Value::as_array);
            let webhooks: Vec<Map> = webhooks
                .unwrap_or_default()
                .iter()
                .filter_map(Value::as_object)
                .cloned()
                .collect();

            let name = configuration.meta().name().to_owned();
            let revision = entry.revision;
            webhooks
                .into_iter()
                .enumerate()
                .map(move |(place, webhook)| {
                    let uid = format!("{name}/{revision}/{place}");
                    (name.clone(), uid, webhook)
                })
        });
        let hooks = configured.map(|(name, uid, webhook)| match known.get(uid.as_str()) {
            Some(hook) => Arc::clone(hook),
            None => Arc::new(Hook::new(&name, &webhook, uid)),
        });
        hooks.collect()
    }
}
