use super::correlate::{Correlator, Sent, Verdict};
use super::*;

fn record(at: i64, message: &str) -> Record {
    Record {
        about: ObjectReference {
            kind: "Pod".into(),
            name: "p".into(),
            ..ObjectReference::default()
        },
        kind: EventType::Normal,
        reason: "Why".into(),
        message: message.to_string(),
        component: "tester".into(),
        host: Text::default(),
        at: Timestamp::from_unix(at, 0),
    }
}

/// Correlates, and caches what would have been sent.
fn correlate(correlator: &mut Correlator, record: &Record) -> (String, i64) {
    let (key, message, count) = match correlator.correlate(record) {
        Verdict::Drop => return ("dropped".to_string(), 0),
        Verdict::New(key, message) => (key, message, 1),
        Verdict::Again(key, message, sent) => (key, message, sent.count + 1),
    };

    correlator.cache_sent(
        key,
        Sent {
            name: "n".to_string(),
            count,
            first: record.at,
        },
        record.at,
    );

    (message, count)
}

#[test]
fn the_same_event_is_counted() {
    let mut correlator = Correlator::default();
    for count in 1..=3 {
        assert_eq!(
            correlate(&mut correlator, &record(0, "x")),
            ("x".to_string(), count)
        );
    }
    assert_eq!(
        correlate(&mut correlator, &record(0, "y")),
        ("y".to_string(), 1)
    );
}

#[test]
fn many_similar_events_are_combined() {
    let mut correlator = Correlator::default();
    for index in 0..9 {
        assert_eq!(
            correlate(&mut correlator, &record(0, &format!("m{index}"))),
            (format!("m{index}"), 1)
        );
    }

    let combined = |index: i64| format!("(combined from similar events): m{index}");
    assert_eq!(
        correlate(&mut correlator, &record(1, "m9")),
        (combined(9), 1)
    );
    assert_eq!(
        correlate(&mut correlator, &record(2, "m10")),
        (combined(10), 2)
    );
    assert_eq!(
        correlate(&mut correlator, &record(700, "m11")),
        ("m11".to_string(), 1),
        "long after, counting restarts"
    );
}

#[test]
fn events_of_one_component_about_one_object_are_limited() {
    let mut correlator = Correlator::default();
    let sent = (0..40)
        .filter(|_| correlate(&mut correlator, &record(0, "x")).0 == "x")
        .count();
    assert_eq!(sent, 25);

    assert_eq!(
        correlate(&mut correlator, &record(301, "x")).0,
        "x",
        "one more after five minutes"
    );

    assert_eq!(correlate(&mut correlator, &record(302, "x")).0, "dropped");

    let mut other = record(302, "x");
    other.about.name = "q".into();
    assert_eq!(
        correlate(&mut correlator, &other).0,
        "x",
        "another object has its own limit"
    );
}
