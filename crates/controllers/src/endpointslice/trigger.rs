//! The time of the change that caused the last update of endpoints: clients measure the propagation
//! delay by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use crate::views::{Pod, Service};

/// What was known when endpoints were last computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Triggers {
    service: Option<Timestamp>,
    pods: BTreeMap<Text, Timestamp>,
    is_known: bool,
}

impl Triggers {
    /// The earliest of the changes since then; `None` if nothing with a time changed.
    pub(crate) fn advance(
        &mut self,
        service: &Service,
        pods: &[Arc<Cached<Pod>>],
    ) -> Option<Timestamp> {
        let ready = |pod: &Arc<Cached<Pod>>| {
            let since = pod.ready.and_then(|(_, since)| since)?;
            Some((pod.key.name.clone(), since))
        };
        let now: BTreeMap<Text, Timestamp> = pods.iter().filter_map(ready).collect();
        let changed = now
            .iter()
            .filter(|(pod, time)| self.pods.get(*pod).is_none_or(|known| known < *time));

        let service = service.created();
        let service_changed = service.filter(|time| self.service.is_none_or(|known| known < *time));
        let earliest = changed.map(|(_, time)| *time).chain(service_changed).min();

        let was_known = std::mem::replace(
            self,
            Triggers {
                service,
                pods: now,
                is_known: true,
            },
        )
        .is_known;

        if was_known { earliest } else { service }
    }
}
