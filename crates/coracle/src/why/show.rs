//! Prints the timeline and the verdict, as text and as JSON.

use coracle_api::codec::json;
use coracle_api::time::{MicroTime, Timestamp};
use coracle_api::{Map, Value};

use super::Facts;
use super::timeline::{Entry, text as field};
use super::verdict::Verdict;

/// The text output.
pub(super) fn text(facts: &Facts, verdict: &Verdict, entries: &[Entry]) -> String {
    let mut page = format!("{} {}\n", title(&facts.object), verdict.state);
    for waits in &verdict.waits_for {
        page.push_str(&format!("  because {waits}\n"));
    }

    for owner in &facts.owners {
        page.push_str(&format!("  controlled by {}\n", title(owner)));
    }

    if entries.is_empty() {
        return page;
    }

    page.push_str("\nTimeline:\n");
    let width = entries
        .iter()
        .map(|entry| entry.who.len())
        .max()
        .unwrap_or_default()
        .min(WIDEST);

    let begun = entries.first().map(|entry| entry.when);
    for entry in entries {
        let since = begun
            .map(|begun| elapsed(begun, entry.when))
            .unwrap_or_default();
        page.push_str(&format!(
            "  {} {since:>9}  {:width$}  {}\n",
            clock(entry.when),
            entry.who,
            entry.what
        ));
    }

    if facts.stages.is_none() {
        page.push_str(
            "\nCannot read the server's journal: showing the object and its events only.\n",
        );
    }

    page
}

/// Maximum width of the column of components.
const WIDEST: usize = 34;

/// `pod/web-1 of default`.
fn title(object: &Value) -> String {
    let name = format!(
        "{}/{}",
        field(object, &["kind"]).to_lowercase(),
        object.meta().name()
    );
    match object.meta().namespace() {
        "" => name,
        namespace => format!("{name} of {namespace}"),
    }
}

/// The time of day, to the millisecond; most API times have seconds only, and then no fraction is
/// shown.
fn clock(when: Timestamp) -> String {
    let text = MicroTime(when).text();
    let time = text.get(11..23).unwrap_or_default();
    format!("{:12}", time.strip_suffix(".000").unwrap_or(time))
}

/// Time since the first entry.
fn elapsed(begun: Timestamp, when: Timestamp) -> String {
    let millis = when.since(begun).as_nanos() / 1_000_000;
    match millis {
        ..=0 => String::new(),
        1..10_000 if millis % 1000 > 0 => format!("+{millis} ms"),
        1..10_000 => format!("+{} s", millis / 1000),
        10_000..600_000 => format!("+{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("+{} min", millis / 60_000),
    }
}

/// The JSON output.
pub(super) fn json(facts: &Facts, verdict: &Verdict, entries: &[Entry]) -> String {
    let text = |text: &str| Value::from(text);
    let entry = |entry: &Entry| {
        let mut value = Map::new();
        value.insert("when", MicroTime(entry.when).text());
        value.insert("who", text(&entry.who));
        value.insert("what", text(&entry.what));
        Value::Object(value)
    };

    let mut page = Map::new();
    page.insert("object", title(&facts.object));
    page.insert("uid", facts.object.meta().uid());

    page.insert("state", text(&verdict.state));
    page.insert(
        "waitsFor",
        verdict
            .waits_for
            .iter()
            .map(|waits| text(waits))
            .collect::<Vec<_>>(),
    );

    page.insert(
        "owners",
        facts
            .owners
            .iter()
            .map(|owner| Value::from(title(owner)))
            .collect::<Vec<_>>(),
    );

    page.insert("timeline", entries.iter().map(entry).collect::<Vec<_>>());
    page.insert("journal", facts.stages.is_some());

    String::from_utf8_lossy(&json::to_vec(&Value::Object(page))).into_owned()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;
    use crate::why::{timeline, verdict};

    #[test]
    fn the_timeline_is_printed_in_order() {
        let parsed = |text: &str| yaml::decode(text.as_bytes()).unwrap();
        let facts = Facts {
            object: parsed(
                "{kind: Pod, metadata: {name: p, namespace: d, creationTimestamp: '2026-03-01T11:00:00Z', \
                 managedFields: [{manager: kubectl-run, time: '2026-03-01T11:00:00Z'}]}, spec: {nodeName: n1}, \
                 status: {phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-03-01T11:00:02Z'}]}}",
            ),
            events: Vec::new(),
            stages: Some(vec![parsed(
                "{when: '2026-03-01T11:00:00.250000Z', who: kube-scheduler, what: bind, outcome: n1}",
            )]),
            owners: Vec::new(),
            below: Vec::new(),
        };

        let (entries, verdict) = (timeline::entries(&facts), verdict::summarize(&facts));
        assert_eq!(
            text(&facts, &verdict, &entries),
            "pod/p of d runs on n1 and is ready\n\nTimeline:\n  \
             11:00:00                kubectl-run     created\n  \
             11:00:00.250   +250 ms  kube-scheduler  bind: n1\n  \
             11:00:02          +2 s                  Ready is True\n"
        );

        assert!(json(&facts, &verdict, &entries).contains(r#""state":"runs on n1 and is ready""#));
    }
}
