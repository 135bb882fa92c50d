//! Conversion of whole objects: recorded views of one object, round trips of full objects, and of
//! generated ones.

use crate::recorded;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Kind};
use coracle_api::codec::{canonical, json};
use coracle_api::convert::convert;
use coracle_api::fuzz::objects::{self, Seeded};

/// Kinds whose storage version differs from the served one: served, stored.
fn moved_kinds() -> impl Iterator<Item = (&'static Kind, &'static Kind)> {
    BUILTIN.resources().iter().filter_map(|resource| {
        let storage = resource.storage.as_ref()?;
        let served = BUILTIN.kind(&resource.group, &resource.version, &resource.kind)?;
        let stored = BUILTIN.kind(&storage.group, &storage.version, &resource.kind)?;
        (served.api_version() != stored.api_version()).then_some((served, stored))
    })
}

fn read(text: &[u8], kind: &Kind) -> Value {
    let root = BUILTIN.root(kind).node();
    let mut value = json::decode(text, Some(root)).unwrap().value;
    canonical::canonicalize(&mut value, root);
    value
}

fn kind_of(object: &Value) -> &'static Kind {
    let text = |name: &str| object.get(name).unwrap().as_str().unwrap();
    BUILTIN.kind_of(text("apiVersion"), text("kind")).unwrap()
}

/// Steps of a scenario whose responses show one object in two versions.
const VIEWS: [(&str, &str, &str); 4] = [
    ("policy-hpa.json", "v2 minimal", "v1 view"),
    ("policy-hpa.json", "v1 create", "v2 view"),
    (
        "policy-hpa.json",
        "v2 many metrics",
        "v1 view of many metrics",
    ),
    ("cluster-lease-event.json", "event", "as events.k8s.io"),
];

#[test]
fn one_object_converts_to_each_version_as_upstream_converts_it() {
    let folder = recorded::path("golden");
    for (file, first, second) in VIEWS {
        let file = recorded::files(&folder, file).remove(0);
        let scenario = json::parse(&std::fs::read(file).unwrap()).unwrap();
        let answer = |step: &str| {
            let steps = scenario.get("steps").unwrap().as_array().unwrap();
            let step = steps
                .iter()
                .find(|found| found.get("name").unwrap().as_str() == Some(step))
                .unwrap();
            let body = step.at(&["expect", "body"]).unwrap();

            // Encoded as in the file: `<` is not escaped there.
            let text = json::to_string(body)
                .replace(r"\u003c\u003ctime\u003e\u003e", "2026-01-02T03:04:05Z");

            read(text.as_bytes(), kind_of(body))
        };

        let (shown, other) = (answer(first), answer(second));
        assert_eq!(
            convert(shown.clone(), kind_of(&other)).unwrap(),
            other,
            "{first}"
        );

        assert_eq!(convert(other, kind_of(&shown)).unwrap(), shown, "{second}");
    }
}

/// Converts there and back; then once more, which changes nothing.
fn there_and_back(object: Value, there: &Kind) -> Value {
    let home = kind_of(&object);
    let round = |object: Value| convert(convert(object, there).unwrap(), home).unwrap();

    let once = round(object);
    assert_eq!(
        round(once.clone()),
        once,
        "{} {}",
        home.api_version(),
        home.name
    );

    let mut settled = once.clone();
    canonical::canonicalize(&mut settled, BUILTIN.root(home).node());
    assert_eq!(
        settled,
        once,
        "the form of {} {}",
        home.api_version(),
        home.name
    );

    once
}

#[test]
fn full_objects_survive_a_round_trip() {
    let folder = recorded::path("facts/roundtrip");
    let mut checked = 0;
    for (served, stored) in moved_kinds() {
        for (home, there) in [(served, stored), (stored, served)] {
            let group = if home.group.is_empty() {
                "core"
            } else {
                &home.group
            };
            let file = folder.join(format!("{group}.{}.{}.json", home.version, home.name));

            // Definitions have no full object in the storage version.
            let Ok(text) = std::fs::read(&file) else {
                continue;
            };
            let object = read(&text, home);
            let back = there_and_back(object.clone(), there);

            // The full autoscaler has contradicting values, of which only some can survive.
            if home.name != "HorizontalPodAutoscaler" {
                assert_eq!(back, object, "{}", file.display());
            }

            checked += 1;
        }
    }

    assert!(checked >= 8, "only {checked} objects");
}

#[test]
fn any_object_is_stable_after_one_round_trip() {
    for (index, (served, stored)) in moved_kinds().enumerate() {
        for seed in 0..100 {
            for (home, there) in [(served, stored), (stored, served)] {
                let root = BUILTIN.root(home).node();
                let mut object = objects::value(root, &mut Seeded::new(seed * 100 + index as u64));
                let fields = object.as_object_mut().unwrap();
                fields.insert("apiVersion", home.api_version());
                fields.insert("kind", home.name.clone());
                let before = object.clone();

                let back = there_and_back(object, there);
                if home.name == "Event" {
                    let mut before = before;
                    canonical::canonicalize(&mut before, root);
                    assert_eq!(back, before, "nothing of an event is lost, seed {seed}");
                }
            }
        }
    }
}

#[test]
fn any_object_in_its_version_is_stable_after_one_conversion() {
    for (index, kind) in BUILTIN.kinds().iter().enumerate() {
        for seed in 0..20 {
            let root = BUILTIN.root(kind).node();
            let mut object = objects::value(root, &mut Seeded::new(seed * 1_000 + index as u64));
            let Some(fields) = object.as_object_mut() else {
                continue;
            };
            fields.insert("apiVersion", kind.api_version());
            fields.insert("kind", kind.name.clone());

            if let Ok(once) = convert(object, kind) {
                assert_eq!(
                    convert(once.clone(), kind).unwrap(),
                    once,
                    "{}, seed {seed}",
                    kind.name
                );
            }
        }
    }
}
