//! The timeline of an object, in order. Pure.

use coracle_api::Value;
use coracle_api::time::{MicroTime, Time, Timestamp};

use super::Facts;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) when: Timestamp,
    /// The component; empty: unknown.
    pub(super) who: String,
    pub(super) what: String,
}

/// All entries, the oldest first.
pub(super) fn entries(facts: &Facts) -> Vec<Entry> {
    let object = &facts.object;
    let mut all: Vec<Entry> = created(object).into_iter().collect();
    all.extend(facts.stages.iter().flatten().filter_map(stage));

    all.extend(facts.events.iter().filter_map(event));
    all.extend(items(object, "conditions").iter().filter_map(condition));
    all.extend(
        items(object, "containerStatuses")
            .iter()
            .flat_map(container),
    );

    all.extend(object.meta().deletion_timestamp().map(|until| {
        let grace = object
            .meta()
            .deletion_grace_period_seconds()
            .unwrap_or_default();

        Entry {
            when: until.plus_seconds(-grace),
            who: String::new(),
            what: "deletion requested".to_string(),
        }
    }));

    // Most API times have whole seconds, the journal has more: a stable sort keeps entries of one
    // second in the order above.
    all.sort_by_key(|entry| entry.when);
    all.dedup_by(|one, other| one.what == other.what && one.who == other.who);

    all
}

pub(super) fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object
        .at(&["status", name])
        .and_then(Value::as_array)
        .unwrap_or_default()
}

pub(super) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.at(path).and_then(Value::as_str).unwrap_or_default()
}

fn time(text: &str) -> Option<Timestamp> {
    MicroTime::parse(text)
        .map(|time| time.0)
        .or_else(|_| Time::parse(text).map(|time| time.0))
        .ok()
}

fn created(object: &Value) -> Option<Entry> {
    let meta = object.meta();
    let writers = object
        .at(&["metadata", "managedFields"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    // A manager of a subresource has not created the object.
    let whole = writers
        .iter()
        .filter(|writer| text(writer, &["subresource"]).is_empty());
    let first = whole.min_by_key(|writer| time(text(writer, &["time"])));
    let who = first
        .map(|writer| text(writer, &["manager"]))
        .unwrap_or_default()
        .to_string();

    let owner = meta.owner_references().find(|owner| owner.controller);
    let what = match owner {
        Some(owner) => format!("created, for {} {}", owner.kind, owner.name),
        None => "created".to_string(),
    };

    Some(Entry {
        when: meta.creation_timestamp()?,
        who,
        what,
    })
}

fn stage(stage: &Value) -> Option<Entry> {
    let (what, outcome) = (text(stage, &["what"]), text(stage, &["outcome"]));
    let what = if outcome.is_empty() {
        what.to_string()
    } else {
        format!("{what}: {outcome}")
    };
    Some(Entry {
        when: time(text(stage, &["when"]))?,
        who: text(stage, &["who"]).to_string(),
        what,
    })
}

/// The time of the last occurrence of an event. Its times are whole seconds, but its name ends with
/// the exact time of the first occurrence.
pub(super) fn event_time(event: &Value) -> Option<Timestamp> {
    let paths: [&[&str]; 4] = [
        &["series", "lastObservedTime"],
        &["lastTimestamp"],
        &["eventTime"],
        &["firstTimestamp"],
    ];
    let whole_seconds = paths.iter().find_map(|path| time(text(event, path)))?;

    let moment = named_moment(event.meta().name());
    Some(
        moment
            .filter(|moment| moment.unix_seconds() == whole_seconds.unix_seconds())
            .unwrap_or(whole_seconds),
    )
}

/// The time in the name of an event: nanoseconds in hexadecimal after the last dot.
fn named_moment(name: &str) -> Option<Timestamp> {
    let nanos = i64::from_str_radix(name.rsplit_once('.')?.1, 16).ok()?;
    let rest = u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?;
    Some(Timestamp::from_unix(nanos.div_euclid(1_000_000_000), rest))
}

fn event(event: &Value) -> Option<Entry> {
    let when = event_time(event)?;
    let who = [
        text(event, &["source", "component"]),
        text(event, &["reportingComponent"]),
    ];

    let who = who
        .into_iter()
        .find(|who| !who.is_empty())
        .unwrap_or_default()
        .to_string();

    let count = event
        .at(&["series", "count"])
        .or_else(|| event.get("count"));

    let count = count.and_then(Value::as_int).unwrap_or(1);
    let often = if count > 1 {
        format!(" ({count} times)")
    } else {
        String::new()
    };

    // One line per event: output of a probe may have several.
    let message = text(event, &["message"]).trim_end().replace('\n', " ");
    let what = format!("{}: {message}{often}", text(event, &["reason"]));

    Some(Entry { when, who, what })
}

fn condition(condition: &Value) -> Option<Entry> {
    let when = time(text(condition, &["lastTransitionTime"]))?;
    let parts = [text(condition, &["reason"]), text(condition, &["message"])];
    let parts: Vec<&str> = parts.into_iter().filter(|text| !text.is_empty()).collect();
    let why = if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join(": "))
    };

    let what = format!(
        "{} is {}{why}",
        text(condition, &["type"]),
        text(condition, &["status"])
    );

    Some(Entry {
        when,
        who: String::new(),
        what,
    })
}

fn container(status: &Value) -> Vec<Entry> {
    let name = text(status, &["name"]);
    let entry = |path: &[&str], what: String| {
        Some(Entry {
            when: time(text(status, path))?,
            who: String::new(),
            what,
        })
    };

    let ended = |state: &str| {
        let code = status
            .at(&[state, "terminated", "exitCode"])
            .and_then(Value::as_int)?;

        let reason = text(status, &[state, "terminated", "reason"]);
        let why = if ["", "Error", "Completed"].contains(&reason) {
            String::new()
        } else {
            format!(" ({reason})")
        };
        let what = format!("container {name} ended with exit code {code}{why}");

        entry(&[state, "terminated", "finishedAt"], what)
    };

    [
        entry(
            &["state", "running", "startedAt"],
            format!("container {name} started"),
        ),
        ended("state"),
        ended("lastState"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn check(event: &str, expected: &str) {
        let event = yaml::decode(event.as_bytes()).unwrap();
        assert_eq!(MicroTime(event_time(&event).unwrap()).text(), expected);
    }

    #[test]
    fn an_event_is_one_line() {
        let text = "{metadata: {name: web}, lastTimestamp: '2026-03-09T06:56:16Z', reason: Unhealthy, count: 2, message: \"no:\\nfile\\n\"}";
        let entry = event(&yaml::decode(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(entry.what, "Unhealthy: no: file (2 times)");
    }

    #[test]
    fn the_time_of_an_event_is_taken_from_its_name_if_it_occurred_once() {
        let named =
            |name: &str, last: &str| format!("metadata: {{name: {name}}}\nlastTimestamp: '{last}'");
        let first = "2026-03-09T06:56:16Z";
        check(
            &named("web.189b19eb2a9e6d15", first),
            "2026-03-09T06:56:16.123456Z",
        );

        check(
            &named("web.189b19eb2a9e6d15", "2026-03-09T07:00:00Z"),
            "2026-03-09T07:00:00.000000Z",
        );

        check(&named("web.by-hand", first), "2026-03-09T06:56:16.000000Z");
        check(&named("web", first), "2026-03-09T06:56:16.000000Z");
        check(
            "metadata: {name: web}\neventTime: '2026-03-09T06:56:16.250000Z'",
            "2026-03-09T06:56:16.250000Z",
        );
    }
}
