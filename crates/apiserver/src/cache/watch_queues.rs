//! Queues of events for watchers of one namespace, one object or one node.
//!
//! Every event is in the history of the whole resource. A queue has only the events of its scope,
//! since its first watcher began, so that five thousand kubelets are not woken by each other's
//! pods, and an idle watcher retains nothing.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use coracle_api::Text;
use coracle_base::sync::Mutex;

use super::history::{Cursor, Event, Tail};
use super::notifier::Notifier;

/// Which events a watcher gets, before any selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    Everything,
    Namespace(Text),
    /// By its key: `namespace/name`.
    Object(Text),
    /// Pods of one node.
    Node(Text),
}

/// The events of one scope.
pub(super) struct WatchQueue {
    tail: Mutex<Tail>,
    pub(super) notifier: Arc<Notifier>,
}

impl WatchQueue {
    fn new() -> WatchQueue {
        WatchQueue {
            tail: Mutex::new(Tail::new()),
            notifier: Arc::default(),
        }
    }

    pub(super) fn cursor(&self) -> Cursor {
        self.tail.lock().cursor()
    }
}

/// A watcher's share of a queue, which lasts as long as one watcher has it.
pub struct Listening {
    pub notifier: Arc<Notifier>,
    /// `None`: the history of the whole resource.
    _queue: Option<Arc<WatchQueue>>,
}

impl Listening {
    pub(super) fn everything(notifier: Arc<Notifier>) -> Listening {
        Listening::to(notifier, None)
    }

    pub(super) fn queue(queue: Arc<WatchQueue>) -> Listening {
        Listening::to(queue.notifier.clone(), Some(queue))
    }

    fn to(notifier: Arc<Notifier>, queue: Option<Arc<WatchQueue>>) -> Listening {
        notifier.join();
        Listening {
            notifier,
            _queue: queue,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.notifier.leave();
    }
}

/// The queues of a resource.
#[derive(Default)]
pub(super) struct WatchQueues {
    namespaces: HashMap<Text, Weak<WatchQueue>>,
    objects: HashMap<Text, Weak<WatchQueue>>,
    nodes: HashMap<Text, Weak<WatchQueue>>,
}

impl WatchQueues {
    /// The queue of an interest, created if there is none; `None` for everything.
    pub(super) fn join(&mut self, interest: &Interest) -> Option<Arc<WatchQueue>> {
        let (map, key) = match interest {
            Interest::Everything => return None,
            Interest::Namespace(key) => (&mut self.namespaces, key),
            Interest::Object(key) => (&mut self.objects, key),
            Interest::Node(key) => (&mut self.nodes, key),
        };

        if let Some(queue) = map.get(key).and_then(Weak::upgrade) {
            return Some(queue);
        }
        if map.len() == map.capacity() {
            map.retain(|_, queue| queue.strong_count() > 0);
        }

        let queue = Arc::new(WatchQueue::new());
        map.insert(key.clone(), Arc::downgrade(&queue));

        Some(queue)
    }

    /// Ends every queue: its watchers must start again. Later watchers get new queues.
    pub(super) fn close(&mut self) {
        let maps = [&mut self.namespaces, &mut self.objects, &mut self.nodes];
        let queues = maps
            .into_iter()
            .flat_map(|map| map.drain())
            .filter_map(|(_, queue)| queue.upgrade());

        for queue in queues {
            queue.tail.lock().end();
            queue.notifier.notify();
        }
    }

    /// Appends an event to the queues that it belongs to and passes each notifier that becomes due
    /// to `arm`.
    pub(super) fn append(
        &mut self,
        event: &Event,
        node: Option<usize>,
        mut arm: impl FnMut(&Arc<Notifier>),
    ) {
        push(&mut self.objects, event.entry.key(), event, &mut arm);
        push(
            &mut self.namespaces,
            event.entry.namespace(),
            event,
            &mut arm,
        );

        let Some(place) = node else { return };
        let now = event.entry.field(place);
        push(&mut self.nodes, now, event, &mut arm);

        // Watchers of the node that had it before see the change too.
        if let Some(before) = event
            .previous
            .as_ref()
            .map(|previous| previous.field(place))
            && before != now
        {
            push(&mut self.nodes, before, event, &mut arm);
        }
    }
}

fn push(
    map: &mut HashMap<Text, Weak<WatchQueue>>,
    key: &str,
    event: &Event,
    arm: &mut impl FnMut(&Arc<Notifier>),
) {
    let Some(known) = map.get(key) else { return };
    let Some(queue) = known.upgrade() else {
        map.remove(key);
        return;
    };

    queue.tail.lock().append(event.clone());

    if queue.notifier.arm() {
        arm(&queue.notifier);
    }
}
