//! The graph and the verdicts as tables: wrong, missing and circular references.

use std::sync::Arc;

use coracle_client::{Cached, ObjectKey, Propagation, Resource};

use super::graph::{Effects, Graph};
use super::identity::{Id, Identity};
use super::plan::{Item, Observed, Owners, Plan, Step, Verdict, plan, verdict};
use super::{dependents, item};
use crate::views::{Owned, Owner};

fn config_maps() -> Arc<Resource> {
    Arc::new(Resource::builtin("", "v1", "configmaps"))
}

fn nodes() -> Arc<Resource> {
    Arc::new(Resource::builtin("", "v1", "nodes"))
}

/// A ConfigMap of namespace `a` whose name and UID are the same.
fn object(name: &str, owners: &[Owner]) -> Cached<Owned> {
    Cached {
        key: ObjectKey::new("a", name),
        uid: name.into(),
        version: Default::default(),
        object: Owned {
            owners: owners.into(),
            ..Owned::default()
        },
    }
}

fn owner(name: &str) -> Owner {
    Owner {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: name.into(),
        uid: name.into(),
        blocks: false,
    }
}

fn blocking(name: &str) -> Owner {
    Owner {
        blocks: true,
        ..owner(name)
    }
}

fn said(name: &str) -> Identity {
    Identity::of_owner(&owner(name), "a")
}

fn going(mut object: Cached<Owned>, orphans: bool, foreground: bool) -> Cached<Owned> {
    (
        object.object.is_being_deleted,
        object.object.orphans,
        object.object.foreground,
    ) = (true, orphans, foreground);
    object
}

fn see(graph: &mut Graph, object: Cached<Owned>) -> Effects {
    graph.observed(&config_maps(), &Arc::new(object))
}

fn looks(ids: &[&str]) -> Effects {
    Effects {
        look_at: ids.iter().map(|id| Id::of(id)).collect(),
        ..Effects::default()
    }
}

fn turn(graph: &Graph, name: &str) -> Plan {
    let node = graph.get(&Id::of(name)).unwrap();
    let (identity, resource) = (node.identity(), node.resource().cloned());
    plan(&Observed {
        identity,
        resource,
        turn: Step::Look(item(graph, node)),
    })
}

#[test]
fn an_unobserved_owner_is_verified() {
    let mut graph = Graph::default();
    assert_eq!(
        see(&mut graph, object("child", &[owner("parent")])),
        looks(&["parent"])
    );
    assert!(graph.get(&Id::of("parent")).unwrap().is_virtual());
    assert_eq!(turn(&graph, "parent"), Plan::Verify);
    // It is reported: nothing was wrong.
    assert_eq!(see(&mut graph, object("parent", &[])), Effects::default());
    assert!(!graph.get(&Id::of("parent")).unwrap().is_virtual());
    assert_eq!(turn(&graph, "parent"), Plan::Keep);
}

#[test]
fn dependents_of_an_absent_owner_are_processed() {
    let mut graph = Graph::default();
    see(&mut graph, object("child", &[owner("parent")]));
    assert_eq!(graph.absent(&said("parent")), looks(&["child"]));
    assert!(graph.get(&Id::of("parent")).is_none());
    assert!(graph.absent.has(&said("parent")));
    assert!(matches!(turn(&graph, "child"), Plan::Decide(_)));
    // Reported twice it changes nothing.
    assert_eq!(graph.absent(&said("parent")), Effects::default());
}

#[test]
fn with_an_owner_go_its_dependents() {
    let mut graph = Graph::default();
    see(&mut graph, object("parent", &[]));
    see(&mut graph, object("one", &[owner("parent")]));
    see(&mut graph, object("two", &[owner("parent")]));
    assert_eq!(
        graph.deleted(&object("parent", &[])),
        looks(&["one", "two"])
    );

    assert!(
        graph.absent.has(&said("parent")),
        "so that it is not requested"
    );

    assert_eq!(graph.deleted(&object("parent", &[])), Effects::default());
}

#[test]
fn a_foreground_deletion_wakes_dependents_and_then_the_owner() {
    let mut graph = Graph::default();
    see(&mut graph, object("parent", &[]));
    see(&mut graph, object("child", &[blocking("parent")]));

    let parent = || going(object("parent", &[]), false, true);
    assert_eq!(see(&mut graph, parent()), looks(&["child", "parent"]));
    assert_eq!(
        see(&mut graph, parent()),
        Effects::default(),
        "it begins once"
    );

    assert_eq!(turn(&graph, "parent"), Plan::Wait(vec![Id::of("child")]));

    // The child waits for dependents itself: it is not woken, and still waited for.
    see(
        &mut graph,
        going(object("child", &[blocking("parent")]), false, true),
    );

    assert_eq!(turn(&graph, "parent"), Plan::Wait(vec![]));
    assert_eq!(graph.deleted(&object("child", &[])), looks(&["parent"]));
    assert_eq!(turn(&graph, "parent"), Plan::Release);
}

#[test]
fn one_that_was_going_when_it_was_first_seen_begins_too() {
    let mut graph = Graph::default();
    let first = see(&mut graph, going(object("parent", &[]), false, true));
    assert_eq!(first, looks(&["parent"]));
    let first = see(&mut graph, going(object("other", &[]), true, false));
    assert_eq!(
        first,
        Effects {
            orphan: Some(Id::of("other")),
            ..Effects::default()
        }
    );
}

#[test]
fn a_dependent_that_does_not_block_delays_no_owner() {
    let mut graph = Graph::default();
    see(&mut graph, object("child", &[owner("parent")]));
    see(&mut graph, going(object("parent", &[]), false, true));
    assert_eq!(turn(&graph, "parent"), Plan::Release);
}

#[test]
fn a_reference_that_stops_to_block_wakes_the_owner() {
    let check = |owners: &[Owner]| {
        let mut graph = Graph::default();
        see(&mut graph, going(object("parent", &[]), false, true));
        see(&mut graph, object("child", &[blocking("parent")]));
        assert!(matches!(turn(&graph, "parent"), Plan::Wait(_)));
        assert_eq!(see(&mut graph, object("child", owners)), looks(&["parent"]));
        assert_eq!(turn(&graph, "parent"), Plan::Release);
    };
    check(&[owner("parent")]);
    check(&[]);
}

#[test]
fn an_orphaning_owner_names_its_dependents() {
    let mut graph = Graph::default();
    see(&mut graph, object("parent", &[]));
    see(&mut graph, object("child", &[owner("parent")]));
    let effects = see(&mut graph, going(object("parent", &[]), true, false));
    assert_eq!(effects.orphan, Some(Id::of("parent")));
    assert!(effects.look_at.is_empty());

    let named = dependents(&graph, graph.get(&Id::of("parent")).unwrap());
    assert_eq!(
        named
            .iter()
            .map(|one| one.key.to_string())
            .collect::<Vec<_>>(),
        ["a/child"]
    );
}

#[test]
fn an_owner_of_another_namespace_is_reported_in_either_order() {
    let elsewhere = || {
        let mut child = object("child", &[owner("parent")]);
        child.key.namespace = "b".into();
        child
    };

    let check_reported = |effects: &Effects| {
        let (dependent, named) = &effects.misplaced[0];
        assert_eq!(
            (dependent.name.as_str(), dependent.namespace.as_str()),
            ("child", "b")
        );

        assert_eq!(
            named.to_string(),
            "[v1/ConfigMap, namespace: b, name: parent, uid: parent]"
        );

        assert_eq!(effects.look_at.last(), Some(&Id::of("child")));
    };

    let mut graph = Graph::default();
    see(&mut graph, object("parent", &[]));
    check_reported(&see(&mut graph, elsewhere()));
    let mut graph = Graph::default();
    assert!(
        see(&mut graph, elsewhere()).misplaced.is_empty(),
        "not known yet"
    );

    check_reported(&see(&mut graph, object("parent", &[])));

    // The parent exists, whatever the wrong reference claims.
    let wrong = Identity {
        namespace: "b".into(),
        ..said("parent")
    };
    assert_eq!(graph.absent(&wrong), looks(&["child"]));

    assert!(graph.get(&Id::of("parent")).is_some());
}

#[test]
fn an_owner_of_the_cluster_may_have_dependents_everywhere() {
    let mut graph = Graph::default();
    let node = Owner {
        kind: "Node".into(),
        ..owner("n")
    };

    let mut machine = object("n", &[]);
    machine.key.namespace = "".into();
    see(&mut graph, object("early", std::slice::from_ref(&node)));
    assert_eq!(
        graph.observed(&nodes(), &Arc::new(machine)),
        Effects::default()
    );

    assert_eq!(see(&mut graph, object("late", &[node])), Effects::default());
}

#[test]
fn names_that_dependents_disagree_about_are_tried_in_turn() {
    let mut graph = Graph::default();
    let other = Owner {
        name: "other".into(),
        ..owner("parent")
    };

    see(&mut graph, object("one", &[owner("parent")]));
    let effects = see(&mut graph, object("two", std::slice::from_ref(&other)));
    assert_eq!(
        effects,
        looks(&["two"]),
        "it says something else than the first"
    );

    let effects = graph.absent(&said("parent"));
    assert_eq!(
        effects.look_at,
        [Id::of("one")],
        "only those that named it so"
    );

    assert_eq!(effects.requeue_after, Some(Id::of("parent")));
    assert_eq!(
        graph.get(&Id::of("parent")).unwrap().identity(),
        Identity::of_owner(&other, "a")
    );

    // The first was deleted: now all agree.
    graph.deleted(&object("one", &[]));
    assert_eq!(
        graph.absent(&Identity::of_owner(&other, "a")),
        looks(&["two"])
    );

    assert!(graph.get(&Id::of("parent")).is_none());
}

#[test]
fn the_verdict_depends_on_all_owners() {
    let leaf = Item::default();
    let parent = Item {
        has_dependents: true,
        ..Item::default()
    };

    let circular = Item {
        is_waited_for: true,
        ..parent.clone()
    };

    let gone = |propagation, unblock| Verdict::Delete {
        propagation,
        unblock,
    };

    let check = |item: &Item, owners: &[Owners], (orphans, foreground), expected: Verdict| {
        let named = owners
            .iter()
            .enumerate()
            .map(|(n, owner)| (n.to_string().into(), *owner));

        let named: Vec<_> = named.collect();
        assert_eq!(
            verdict(item, &named, orphans, foreground),
            expected,
            "{item:?} {owners:?}"
        );
    };

    let none = (false, false);

    use Owners::{Dangling, Solid, Waiting};
    use Propagation::{Background, Foreground, Orphan};

    check(&leaf, &[], none, Verdict::Keep);
    check(&leaf, &[Solid], none, Verdict::Keep);
    check(
        &leaf,
        &[Solid, Dangling, Waiting],
        none,
        Verdict::Unlink(vec!["1".into(), "2".into()]),
    );

    check(&leaf, &[Dangling], none, gone(Background, false));
    check(&leaf, &[Dangling], (true, false), gone(Orphan, false));
    check(&leaf, &[Dangling], (false, true), gone(Foreground, false));
    check(&leaf, &[Waiting], none, gone(Background, false));
    check(&parent, &[Dangling], none, gone(Background, false));
    check(&parent, &[Waiting, Dangling], none, gone(Foreground, false));
    check(&circular, &[Waiting], none, gone(Foreground, true));
}

#[test]
fn what_is_going_already_is_left_alone() {
    let mut graph = Graph::default();
    see(
        &mut graph,
        going(object("child", &[owner("parent")]), false, false),
    );
    assert_eq!(turn(&graph, "child"), Plan::Keep);
}

/// The number of nodes is that of the objects.
#[test]
fn a_node_is_small() {
    assert!(
        size_of::<(Id, super::node::Node)>() <= 72,
        "{}",
        size_of::<(Id, super::node::Node)>()
    );
    assert!(
        size_of::<Cached<Owned>>() <= 104,
        "{}",
        size_of::<Cached<Owned>>()
    );
}
