//! Watch events of pods during changes, as curl receives them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::codec::json;

use crate::cluster::{Cluster, Server, on_every_engine};
use crate::simulated_nodes::{apply, start, until};

/// Timeout of an event.
const PATIENCE: Duration = Duration::from_secs(180);

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {coracle.local/simulate: 'stop=3s'}
    spec: {terminationGracePeriodSeconds: 20, containers: [{name: web, image: 'web:1'}]}
";

on_every_engine! {
    expired_events_are_deleted_and_watches_report_it,
}

/// A running watch; stopped when dropped.
struct Watch {
    child: Child,
    events: Receiver<Value>,
}

impl Watch {
    fn begin(server: &Server, path: &str) -> Watch {
        let mut child = server
            .command(&["get", "--raw", path])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();

        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            let events = lines
                .map_while(Result::ok)
                .map(|line| json::parse(line.as_bytes()).unwrap());
            events.into_iter().try_for_each(|event| sender.send(event))
        });

        Watch { child, events }
    }

    /// The next event, up to the one that is wanted.
    fn up_to(&self, mut wanted: impl FnMut(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        while !seen.last().is_some_and(&mut wanted) {
            let event = self.events.recv_timeout(PATIENCE);
            seen.push(Event(event.unwrap_or_else(|_| {
                panic!("nothing came after {}", shown(&seen))
            })));
        }
        seen
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

struct Event(Value);

impl Event {
    fn of(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap()
    }

    fn object(&self) -> &Value {
        self.0.get("object").unwrap()
    }

    fn name(&self) -> &str {
        self.object().meta().name()
    }

    fn version(&self) -> u64 {
        self.object().meta().resource_version().parse().unwrap()
    }

    fn is_running(&self) -> bool {
        self.object()
            .at(&["status", "phase"])
            .and_then(Value::as_str)
            == Some("Running")
    }

    fn is_ready(&self) -> bool {
        let conditions = self
            .object()
            .at(&["status", "conditions"])
            .and_then(Value::as_array);
        conditions.unwrap_or_default().iter().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some("Ready")
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    }

    fn node(&self) -> Option<&str> {
        self.object()
            .at(&["spec", "nodeName"])
            .and_then(Value::as_str)
    }
}

fn shown(events: &[Event]) -> String {
    let events = events
        .iter()
        .map(|event| format!("{} {} {}", event.of(), event.name(), event.version()));
    events.collect::<Vec<_>>().join(", ")
}

/// Checks the order of events of a deleted pod and its replacement.
fn check_order(events: &[Event], old: &str) {
    let (gone, new): (Vec<&Event>, Vec<&Event>) =
        events.iter().partition(|event| event.name() == old);
    assert!(
        gone[0].of() == "MODIFIED" && gone[0].object().meta().is_being_deleted(),
        "{}",
        shown(events)
    );

    let last = gone.last().unwrap();
    assert!(
        last.of() == "DELETED" && last.object().get("spec").is_some(),
        "{}",
        shown(events)
    );

    assert!(
        gone[..gone.len() - 1]
            .iter()
            .all(|event| event.of() == "MODIFIED"),
        "{}",
        shown(events)
    );

    assert!(
        gone.iter().all(|event| event.version() <= last.version()),
        "{}",
        shown(events)
    );

    let first = new[0];
    let phase = first
        .object()
        .at(&["status", "phase"])
        .and_then(Value::as_str);

    assert!(
        first.of() == "ADDED" && first.node().is_none() && phase == Some("Pending"),
        "{}",
        shown(events)
    );

    assert!(
        new[1..].iter().all(|event| event.of() == "MODIFIED"),
        "{}",
        shown(events)
    );

    let scheduled = new.iter().position(|event| event.node().is_some()).unwrap();
    let running = new.iter().position(|event| event.is_running()).unwrap();
    assert!(0 < scheduled && scheduled < running, "{}", shown(events));

    let place = |wanted: &Event| {
        events
            .iter()
            .position(|event| std::ptr::eq(event, wanted))
            .unwrap()
    };

    assert!(
        place(gone[0]) < place(first) && place(first) < place(last),
        "{}",
        shown(events)
    );

    // Everything in the order in which it was written.
    assert!(events.is_sorted_by_key(Event::version), "{}", shown(events));
}

#[test]
fn a_watch_shows_a_deleted_pod_and_its_replacement() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "2", &[]);
    apply(&server, folder.path(), "web.yaml", DEPLOYMENT);
    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);
    let pod = || server.kubectl(&["get", "pods", "-o", "jsonpath={.items[0].metadata.name}"]);
    let old = pod();

    let list = server.kubectl(&["get", "--raw", "/api/v1/namespaces/default/pods"]);
    let list = json::parse(list.as_bytes()).unwrap();
    let version = list.meta().resource_version();
    let new_style = format!("/api/v1/namespaces/default/pods?watch=true&resourceVersion={version}");
    let old_style = format!("/api/v1/watch/namespaces/default/pods?resourceVersion={version}");
    let watches = [new_style, old_style].map(|path| Watch::begin(&server, &path));
    server.kubectl(&["delete", "pod", &old, "--timeout=180s"]);

    let mut received = watches.iter().map(|watch| {
        let (mut gone, mut ready) = (false, false);
        watch.up_to(|event| {
            gone |= event.of() == "DELETED";
            ready |= event.name() != old && event.is_ready();
            gone && ready
        })
    });
    let (one, other) = (received.next().unwrap(), received.next().unwrap());
    check_order(&one, &old);

    assert_eq!(shown(&one), shown(&other), "the older path shows the same");

    until("nothing happens any more", || pod() != old);
    let new = pod();
    server.kubectl(&["annotate", "pod", &new, "seen=once"]);

    for watch in &watches {
        let events = watch.up_to(|event| event.object().meta().annotation("seen") == Some("once"));
        let [event] = events.as_slice() else {
            panic!("more than one: {}", shown(&events))
        };
        assert_eq!((event.of(), event.name()), ("MODIFIED", new.as_str()));
        assert!(
            event.is_running() && event.node().is_some(),
            "the whole object comes along"
        );
    }

    drop(watches);
    server.stop();
}

fn expired_events_are_deleted_and_watches_report_it(cluster: &Cluster) {
    let server = cluster.start_with(&["--event-ttl", "4s"]);
    let watch = Watch::begin(&server, "/api/v1/namespaces/default/events?watch=true");
    let event = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Event\nmetadata: {{name: {name}, namespace: default}}\nreason: Tried\n\
             involvedObject: {{kind: Pod, name: web, namespace: default}}\n---\n"
        )
    };

    let names = ["a", "b", "c"];
    apply(
        &server,
        cluster.path(),
        "events.yaml",
        &names.map(event).concat(),
    );

    server.kubectl(&["create", "configmap", "stays"]);

    for what in ["ADDED", "DELETED"] {
        let mut seen = 0;
        let received = watch.up_to(|_| {
            seen += 1;
            seen == names.len()
        });

        // They hang on one lease, as a rule, and go at one revision, in any order.
        let mut named: Vec<&str> = received
            .iter()
            .filter(|event| event.of() == what)
            .map(Event::name)
            .collect();
        named.sort_unstable();

        assert_eq!(named, names, "{}", shown(&received));
    }

    assert_eq!(server.kubectl(&["get", "events", "-o", "name"]), "");
    assert_eq!(
        server.kubectl(&["get", "configmap", "-o", "name"]),
        "configmap/stays\n"
    );

    server.stop();
}
