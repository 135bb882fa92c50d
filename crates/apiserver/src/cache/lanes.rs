//! Who is woken by what: watchers of one namespace, one object or one node follow a lane of their
//! own.
//!
//! Every event is in the history of the whole resource. A lane has the events of its scope alone,
//! from when its first watcher came, so that five thousand kubelets are not woken by each other's
//! pods, and an idle watcher holds nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use coracle_api::Text;

use super::bells::Bell;
use super::history::{Cursor, Event, Tail};

/// What a watcher wants to hear of, before any selector.
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
pub(super) struct Lane {
    tail: Mutex<Tail>,
    pub(super) bell: Arc<Bell>,
}

impl Lane {
    fn new() -> Lane {
        Lane {
            tail: Mutex::new(Tail::new()),
            bell: Arc::default(),
        }
    }

    pub(super) fn cursor(&self) -> Cursor {
        self.tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cursor()
    }
}

/// A lane as its watchers hold it: it lasts as long as one of them.
pub struct Listening {
    pub bell: Arc<Bell>,
    /// `None`: the history of the whole resource.
    _lane: Option<Arc<Lane>>,
}

impl Listening {
    pub(super) fn everything(bell: Arc<Bell>) -> Listening {
        Listening::to(bell, None)
    }

    pub(super) fn lane(lane: Arc<Lane>) -> Listening {
        Listening::to(lane.bell.clone(), Some(lane))
    }

    fn to(bell: Arc<Bell>, lane: Option<Arc<Lane>>) -> Listening {
        bell.join();
        Listening { bell, _lane: lane }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.bell.leave();
    }
}

/// All lanes of a resource.
#[derive(Default)]
pub(super) struct Lanes {
    namespaces: HashMap<Text, Weak<Lane>>,
    objects: HashMap<Text, Weak<Lane>>,
    nodes: HashMap<Text, Weak<Lane>>,
}

impl Lanes {
    /// The lane of an interest, made if nobody has had it; `None` for everything.
    pub(super) fn join(&mut self, interest: &Interest) -> Option<Arc<Lane>> {
        let (map, key) = match interest {
            Interest::Everything => return None,
            Interest::Namespace(key) => (&mut self.namespaces, key),
            Interest::Object(key) => (&mut self.objects, key),
            Interest::Node(key) => (&mut self.nodes, key),
        };

        if let Some(lane) = map.get(key).and_then(Weak::upgrade) {
            return Some(lane);
        }
        if map.len() == map.capacity() {
            map.retain(|_, lane| lane.strong_count() > 0);
        }

        let lane = Arc::new(Lane::new());
        map.insert(key.clone(), Arc::downgrade(&lane));

        Some(lane)
    }

    /// Ends every lane: its watchers have to start anew. Whoever joins later gets another.
    pub(super) fn close(&mut self) {
        let maps = [&mut self.namespaces, &mut self.objects, &mut self.nodes];
        let lanes = maps
            .into_iter()
            .flat_map(|map| map.drain())
            .filter_map(|(_, lane)| lane.upgrade());

        for lane in lanes {
            lane.tail
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .end();
            lane.bell.ring();
        }
    }

    /// Appends an event to the lanes that it belongs to and hands each bell that is to be rung to
    /// `arm`.
    pub(super) fn append(
        &mut self,
        event: &Event,
        node: Option<usize>,
        mut arm: impl FnMut(&Arc<Bell>),
    ) {
        tell(&mut self.objects, event.entry.key(), event, &mut arm);
        tell(
            &mut self.namespaces,
            event.entry.namespace(),
            event,
            &mut arm,
        );

        let Some(place) = node else { return };
        let now = event.entry.field(place);
        tell(&mut self.nodes, now, event, &mut arm);

        // Whoever had it before hears that it is gone.
        if let Some(before) = event
            .previous
            .as_ref()
            .map(|previous| previous.field(place))
            && before != now
        {
            tell(&mut self.nodes, before, event, &mut arm);
        }
    }
}

fn tell(
    map: &mut HashMap<Text, Weak<Lane>>,
    key: &str,
    event: &Event,
    arm: &mut impl FnMut(&Arc<Bell>),
) {
    let Some(known) = map.get(key) else { return };
    let Some(lane) = known.upgrade() else {
        map.remove(key);
        return;
    };

    lane.tail
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .append(event.clone());

    if lane.bell.arm() {
        arm(&lane.bell);
    }
}
