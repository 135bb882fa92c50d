//! Limits that the host does not support are logged once.
use crate::common;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use common::{Node, script, with_resources};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[tokio::test(flavor = "multi_thread")]
async fn an_unsupported_limit_is_logged_once() {
    let recorded = WarningRecorder::default();
    tracing::subscriber::set_global_default(recorded.clone()).unwrap();
    let node = Node::new("withheld").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    assert_eq!(withheld(&node).await, [""], "nothing was asked for");

    // Pages of a size that no machine has.
    let pages = |bytes| {
        vec![HugepageLimit {
            page_size: "3MB".to_owned(),
            limit: bytes,
        }]
    };

    for name in ["one", "two"] {
        let config = with_resources(script(name, "exit 0"), |resources| {
            resources.memory_limit_in_bytes = 64 << 20;
            resources.hugepage_limits = pages(3 << 20);
        });
        let id = node.run(&sandbox, &pod, config).await;
        assert_eq!(node.ended(&id).await.exit_code, 0, "it runs without");
    }

    let said = withheld(&node).await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("the host cannot limit hugetlb"),
        "{said:?}"
    );

    // An update of the limit is not supported either.
    let id = node
        .run(&sandbox, &pod, script("three", "sleep 1000"))
        .await;
    let resources = LinuxContainerResources {
        hugepage_limits: pages(6 << 20),
        ..Default::default()
    };

    node.runtime
        .update_container_resources(&id, resources)
        .await
        .unwrap();

    assert_eq!(withheld(&node).await, said);

    let recorded: Vec<String> = recorded
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|line| line.contains(&said[0]))
        .cloned()
        .collect();
    assert_eq!(recorded.len(), 1, "{recorded:?}");

    assert!(
        recorded[0].contains("host cannot apply a container setting"),
        "{recorded:?}"
    );

    node.clear().await;
}

async fn withheld(node: &Node) -> Vec<String> {
    let info = node.runtime.status(true).await.unwrap().info;
    info["withheld"].split('\n').map(str::to_owned).collect()
}

/// All warnings, as lines of text.
#[derive(Clone, Default)]
struct WarningRecorder(Arc<Mutex<Vec<String>>>);

impl Subscriber for WarningRecorder {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}
