//! The cache of an informer and the changes it reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::codec::json;
use coracle_api::resource_version::ResourceVersion;
use tokio::sync::mpsc::UnboundedReceiver;

use super::Cached;
use super::projection::Whole;
use super::state::Shared;
use super::subscription::Change;
use crate::key::ObjectKey;

/// The cache entry for `name uid version users`.
fn object(text: &str) -> Arc<Cached<Whole>> {
    let mut words = text.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (name, uid, version, users) = (word(), word(), word(), word());
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"{uid}","resourceVersion":"{version}","managedFields":[{{}}],"annotations":{{"users":"{users}"}}}}}}"#
    );
    Arc::new(Cached::of(json::parse(text.as_bytes()).unwrap()).unwrap())
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

/// All changes so far: `+a` added, `~a` updated, `-a` deleted, `?a` deletion missed, `.` initial
/// objects complete. An exclamation mark means that it existed before.
fn reported(from: &mut UnboundedReceiver<Change<Whole>>) -> String {
    let mut words = Vec::new();
    while let Ok(change) = from.try_recv() {
        words.push(match change {
            Change::Added {
                object,
                initial: true,
            } => format!("+{}!", object.key.name),
            Change::Added {
                object,
                initial: false,
            } => format!("+{}", object.key.name),
            Change::Updated { new, .. } => format!("~{}", new.key.name),
            Change::Deleted {
                object,
                certain: true,
            } => format!("-{}", object.key.name),
            Change::Deleted {
                object,
                certain: false,
            } => format!("?{}", object.key.name),
            Change::Synced => ".".to_string(),
        });
    }

    words.join(" ")
}

fn replace(shared: &Shared<Whole>, objects: &[&str], version: u64) {
    let objects: BTreeMap<_, _> = objects
        .iter()
        .map(|text| object(text))
        .map(|object| (object.key.clone(), object))
        .collect();
    shared.replace(objects, ResourceVersion(version));
}

#[test]
fn the_reported_change_depends_on_the_cache() {
    let shared = Shared::default();
    let mut changes = shared.write().follow();
    replace(&shared, &["a u1 1", "b u2 2"], 2);
    assert_eq!(reported(&mut changes), "+a! +b! .");
    assert!(*shared.synced().borrow());

    let check = |changes: &mut UnboundedReceiver<_>, text: &str, expected: &str| {
        shared.write().put(object(text));
        assert_eq!(reported(changes), expected, "{text}");
    };

    check(&mut changes, "a u1 3", "~a");
    check(&mut changes, "a u1 3", "");
    check(&mut changes, "c u3 4", "+c");

    // Another object of that name: the deletion of the first one was missed.
    check(&mut changes, "c u4 5", "?c +c");
    shared.write().remove(&key("c"), Some(object("c u4 6")));
    assert_eq!(reported(&mut changes), "-c");

    shared.write().remove(&key("c"), None);
    assert_eq!(
        reported(&mut changes),
        "",
        "an unknown object is not deleted"
    );
}

#[test]
fn a_relist_reports_only_differences() {
    let shared = Shared::default();
    replace(&shared, &["a u1 1", "b u2 2", "c u3 3", "d u4 4"], 4);
    let mut changes = shared.write().follow();
    assert_eq!(
        reported(&mut changes),
        "+a! +b! +c! +d! .",
        "a late subscriber gets everything once"
    );

    replace(&shared, &["a u1 1", "b u2 7", "d u9 8", "e u5 6"], 8);
    assert_eq!(reported(&mut changes), "?c ~b ?d +d +e");

    replace(&shared, &["a u1 1", "b u2 7", "d u9 8", "e u5 6"], 9);
    assert_eq!(reported(&mut changes), "");
    assert_eq!(shared.read().version, ResourceVersion(9));

    shared.write().advance_version(ResourceVersion(5));
    assert_eq!(
        shared.read().version,
        ResourceVersion(9),
        "it never decreases"
    );
}

#[test]
fn managed_fields_are_not_cached() {
    assert!(
        object("a u 1")
            .object
            .at(&["metadata", "managedFields"])
            .is_none()
    );
}

#[test]
fn indexes_follow_every_change() {
    let shared = Shared::default();
    replace(
        &shared,
        &[
            "one u1 1 ernie,bert",
            "two u2 2 bert,oscar",
            "tre u3 3 ernie,elmo",
        ],
        3,
    );

    let by_user = |map: &Cached<Whole>| -> Vec<Text> {
        map.meta()
            .annotation("users")
            .unwrap_or_default()
            .split(',')
            .map(Text::new)
            .collect()
    };

    shared
        .write()
        .add_index("byUser", Box::new(by_user))
        .unwrap();

    assert!(
        shared
            .write()
            .add_index("byUser", Box::new(by_user))
            .is_err()
    );

    let check = |user: &str, expected: &[&str]| {
        let state = shared.read();
        let found: Vec<&str> = state
            .index("byUser")
            .unwrap()
            .objects_of(user)
            .map(|map| map.key.name.as_str())
            .collect();
        assert_eq!(found, expected, "{user}");
    };

    check("ernie", &["one", "tre"]);
    check("bert", &["one", "two"]);
    shared.write().put(object("one u1 4 oscar"));
    check("ernie", &["tre"]);
    check("oscar", &["one", "two"]);
    shared.write().remove(&key("two"), None);
    check("bert", &[]);

    check("oscar", &["one"]);
    replace(&shared, &["tre u3 3 ernie,elmo"], 5);
    check("oscar", &[]);
    let state = shared.read();
    assert_eq!(
        state.index("byUser").unwrap().values().collect::<Vec<_>>(),
        ["elmo", "ernie"]
    );

    assert!(state.index("byName").is_err());
}

#[test]
fn a_listener_is_called_directly_and_sees_the_new_cache() {
    let shared = Arc::new(Shared::default());
    replace(&shared, &["a u1 1"], 1);
    let (tell, mut changes) = tokio::sync::mpsc::unbounded_channel();

    let held = shared.clone();
    shared.listen(Box::new(move |change| {
        if let Some(object) = change.object() {
            assert!(
                object.key.name != "bad",
                "this one makes the listener panic"
            );

            let found = held
                .read()
                .objects
                .get(&object.key)
                .map(|held| held.version);

            assert_eq!(
                found,
                Some(object.version).filter(|_| !matches!(change, Change::Deleted { .. }))
            );
        }

        tell.send(change.clone()).unwrap();
    }));

    assert_eq!(reported(&mut changes), "+a! .");

    shared.change(|state| state.put(object("bad u9 2")));
    assert_eq!(reported(&mut changes), "", "it panicked");

    shared.change(|state| state.put(object("b u2 3")));
    assert_eq!(
        reported(&mut changes),
        "+b",
        "after a panic the listener is called for the next change"
    );

    replace(&shared, &["b u2 4"], 4);
    assert_eq!(reported(&mut changes), "?a ~b");

    shared.end();
    shared.change(|state| state.put(object("c u3 5")));
    assert_eq!(reported(&mut changes), "");
    assert_eq!(
        Arc::strong_count(&shared),
        1,
        "a listener that holds the informer does not leak it"
    );
}
