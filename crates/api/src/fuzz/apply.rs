//! Properties of server-side apply for any input.

use super::patches::halves;
use crate::Value;
use crate::apply::fields_v1 as codec;
use crate::apply::{Declared, Form, Owners, Tracker, Type, only_version};
use crate::codec::json;
use crate::time::Timestamp;

/// A text is no field set, or its encoding is sorted and round-trips.
pub fn fields_v1(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(set) = codec::decode(text) else { return };
    let written = codec::encode(&set);

    let again = codec::decode(written.as_str()).expect("what is written can be read");
    assert_eq!(
        codec::encode(&again).as_str(),
        written.as_str(),
        "the written form is stable"
    );

    assert_eq!(again, set, "{} is another set", written.as_str());
    assert_eq!(set.union(&set), set, "a set is its union with itself");
    assert_eq!(
        set.intersection(&set),
        set,
        "a set is its intersection with itself"
    );

    assert!(
        set.difference(&set).is_empty(),
        "a set less itself is empty"
    );

    assert!(
        set.paths().iter().all(|path| set.has(&path.0)),
        "a set has what it lists"
    );

    assert_eq!(set.paths().len(), set.len(), "a set lists all it has");
}

/// A configuration, a live object with owners, and a schema, a line each: the configuration is
/// refused, or applying it again, without force, changes nothing. For objects of any type: built
/// in, declared by the schema, or deduced.
pub fn apply(data: &[u8]) {
    let (config, rest) = halves(data);
    let (live, schema) = halves(rest);
    let Ok(mut config) = json::parse(config) else {
        return;
    };

    let live = json::parse(live)
        .ok()
        .filter(|live| live.as_object().is_some());
    if let Some(live) = &live {
        owners(live);
    }

    let declared = json::parse(schema)
        .ok()
        .and_then(|schema| Declared::object(&schema, false).ok());
    let declared = declared.as_ref().map(Type::Declared);

    let pod = Type::of_kind("v1", "Pod");
    for of in [pod, declared, Some(Type::Deduced)].into_iter().flatten() {
        let tracker = Tracker {
            api_version: "v1",
            kind: "Pod",
            subresource: "",
            of,
            filters: &[],
            convert: &only_version,
        };

        if let Some(members) = config.as_object_mut() {
            members.insert("apiVersion", tracker.api_version);
            members.insert("kind", tracker.kind);
        }

        let Ok(once) = tracker.apply(live.as_ref(), &config, "fuzz", true, NOON) else {
            continue;
        };

        let twice = tracker.apply(Some(&once), &config, "fuzz", false, NOON);
        assert_eq!(
            twice.as_ref(),
            Ok(&once),
            "applying again is something else"
        );

        // A write is tracked, or its owners are dropped; it never fails.
        tracker.update_or_forget(live.as_ref(), once, "other", NOON);
    }
}

/// Entries are refused, or round-trip.
fn owners(object: &Value) {
    let Ok(owners) = Owners::decode(object) else {
        return;
    };
    for form in [Form::Text, Form::Tree] {
        let mut written = Value::object();
        owners.clone().encode(&mut written, form);
        let mut again = Value::object();
        Owners::decode(&written)
            .expect("what is written can be read")
            .encode(&mut again, form);
        assert_eq!(again, written, "the written form is stable");
    }
}

const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);
