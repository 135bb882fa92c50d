//! Watches: ordered, unique, reliable, atomic, resumable, bookmarkable.

use super::{Subject, assert_compacted, events, pairs, progress};
use crate::{
    Delete, Event, EventKind, KeyRange, Op, Put, RangeRequest, Revision, Txn, Watch, WatchItem,
    WatchRequest,
};
use std::time::Duration;

super::sentences![
    a_watch_sees_what_happens_after_it_was_opened,
    a_watch_from_the_past_sees_everything_since,
    events_carry_the_previous_value,
    a_watch_sees_its_range_only,
    events_of_one_revision_come_together,
    a_watch_resumes_where_another_ended,
    progress_reports_the_revision_of_a_watch,
    progress_comes_after_the_events_before_it,
    periodic_progress_comes_without_further_requests,
    a_watch_below_the_compaction_is_refused,
    a_watch_at_the_compaction_sees_what_happened_then,
    a_watch_from_the_future_sees_nothing_before,
    an_idle_watch_survives_compaction,
    dropping_a_wait_loses_nothing,
    a_list_and_a_watch_after_it_miss_nothing,
];

/// An event in short form.
fn brief(event: &Event) -> String {
    let sign = if event.kind == EventKind::Put {
        "+"
    } else {
        "-"
    };

    let pair = |kv| pairs(std::slice::from_ref(kv)).concat();
    let previous = event
        .previous
        .as_ref()
        .map(|kv| format!(" was {}", pair(kv)))
        .unwrap_or_default();

    format!("{sign}{}{previous}", pair(&event.kv))
}

async fn next(watch: &mut Watch, count: usize) -> Vec<String> {
    events(watch, count).await.iter().map(brief).collect()
}

async fn a_watch_sees_what_happens_after_it_was_opened(s: &Subject<'_>) {
    s.put("a", "before").await;
    let mut watch = s.watch(WatchRequest::new(s.all())).await;
    s.put("a", "1").await;
    s.delete("a").await;
    s.put("b", "2").await;
    assert_eq!(next(&mut watch, 3).await, ["+a=1", "-a=", "+b=2"]);
}

async fn a_watch_from_the_past_sees_everything_since(s: &Subject<'_>) {
    let first = s.put("a", "1").await;
    let second = s.put("a", "2").await;
    let deleted = s.delete("a").await;
    let mut watch = s.watch(WatchRequest::new(s.all()).from(first)).await;
    let found = events(&mut watch, 3).await;
    assert_eq!(
        found.iter().map(brief).collect::<Vec<_>>(),
        ["+a=1", "+a=2", "-a="]
    );

    let revisions: Vec<_> = found.iter().map(|event| event.kv.mod_revision).collect();
    assert_eq!(revisions, [first, second, deleted]);
    assert_eq!(
        (found[1].kv.create_revision, found[1].kv.version),
        (first, 2)
    );

    assert!(watch.created_at() >= deleted);

    s.put("b", "3").await;
    assert_eq!(next(&mut watch, 1).await, ["+b=3"]);
}

async fn events_carry_the_previous_value(s: &Subject<'_>) {
    let first = s.put("a", "1").await;
    s.put("a", "2").await;
    s.delete("a").await;
    s.put("a", "3").await;

    let request = WatchRequest::new(s.all()).from(first).with_previous();
    let mut watch = s.watch(request).await;
    assert_eq!(
        next(&mut watch, 4).await,
        ["+a=1", "+a=2 was a=1", "-a= was a=2", "+a=3"]
    );

    s.put("a", "4").await;
    assert_eq!(next(&mut watch, 1).await, ["+a=4 was a=3"]);
}

async fn a_watch_sees_its_range_only(s: &Subject<'_>) {
    let mut one = s
        .watch(WatchRequest::new(KeyRange::single(s.key("b"))))
        .await;
    let mut some = s
        .watch(WatchRequest::new(KeyRange::between(s.key("b"), s.key("d"))))
        .await;
    for name in ["a", "b", "bb", "c", "d", "b"] {
        s.put(name, "v").await;
    }
    assert_eq!(next(&mut one, 2).await, ["+b=v", "+b=v"]);
    assert_eq!(next(&mut some, 4).await, ["+b=v", "+bb=v", "+c=v", "+b=v"]);
}

async fn events_of_one_revision_come_together(s: &Subject<'_>) {
    let before = s.put("gone", "v").await;
    let mut live = s.watch(WatchRequest::new(s.all())).await;

    let mut then: Vec<Op> = (0..50)
        .map(|n| Op::Put(Put::new(s.key(&format!("k{n:02}")), "v")))
        .collect();
    then.push(Op::Delete(Delete::new(KeyRange::single(s.key("gone")))));
    s.store
        .txn(Txn {
            then,
            ..Txn::default()
        })
        .await
        .unwrap();

    let mut past = s
        .watch(WatchRequest::new(s.all()).from(before.next()))
        .await;
    for watch in [&mut live, &mut past] {
        match watch.next().await.unwrap() {
            WatchItem::Events(events) => assert_eq!(events.len(), 51),
            other => panic!("expected events, got {other:?}"),
        }
    }
}

async fn a_watch_resumes_where_another_ended(s: &Subject<'_>) {
    let first = s.put("n", "0").await;

    for number in 1..40 {
        s.put("n", &number.to_string()).await;
    }

    let mut all = Vec::new();
    let mut from = first;
    while all.len() < 40 {
        let mut watch = s.watch(WatchRequest::new(s.all()).from(from)).await;
        if let WatchItem::Events(events) = watch.next().await.unwrap() {
            let taken = &events[..events.len().min(7)];
            from = taken.last().unwrap().kv.mod_revision.next();
            all.extend(taken.iter().map(brief));
        }
    }

    let expected: Vec<_> = (0..40).map(|number| format!("+n={number}")).collect();
    assert_eq!(all, expected);
}

async fn progress_reports_the_revision_of_a_watch(s: &Subject<'_>) {
    let mut watch = s
        .watch(WatchRequest::new(KeyRange::prefix(s.key("watched/"))))
        .await;
    let elsewhere = s.put("elsewhere", "v").await;
    s.store.progress().await.unwrap();
    assert!(progress_at_least(s, &mut watch, elsewhere).await);
    let elsewhere = s.put("elsewhere", "w").await;
    watch.request_progress();
    assert!(progress_at_least(s, &mut watch, elsewhere).await);
}

/// A store may report progress at a revision from before the request; then it is requested again.
async fn progress_at_least(s: &Subject<'_>, watch: &mut Watch, revision: Revision) -> bool {
    for _ in 0..100 {
        if progress(watch).await >= revision {
            return true;
        }
        s.store.progress().await.unwrap();
    }
    false
}

async fn progress_comes_after_the_events_before_it(s: &Subject<'_>) {
    let first = s.put("a", "0").await;

    for number in 1..30 {
        s.put("a", &number.to_string()).await;
    }

    let mut watch = s.watch(WatchRequest::new(s.all()).from(first)).await;
    watch.request_progress();

    let mut last = first.previous();
    loop {
        match watch.next().await.unwrap() {
            WatchItem::Events(events) => {
                for event in events {
                    assert!(event.kv.mod_revision > last, "ordered");
                    last = event.kv.mod_revision;
                }
            }
            WatchItem::Progress(revision) => {
                let newest = s.get("a").await.unwrap().mod_revision;
                assert!(
                    revision < newest || last == newest,
                    "nothing before progress is outstanding"
                );

                if revision >= newest {
                    return;
                }

                watch.request_progress();
            }
        }
    }
}

async fn periodic_progress_comes_without_further_requests(s: &Subject<'_>) {
    let request = WatchRequest::new(s.all()).progress_every(Duration::from_millis(200));
    let mut watch = s.watch(request).await;
    let first = progress(&mut watch).await;
    s.put("a", "v").await;
    assert_eq!(next(&mut watch, 1).await, ["+a=v"]);
    assert!(progress(&mut watch).await > first);
}

async fn a_watch_below_the_compaction_is_refused(s: &Subject<'_>) {
    let old = s.put("a", "1").await;
    let kept = s.put("a", "2").await;
    s.store.compact(kept).await.unwrap();
    match s.store.watch(WatchRequest::new(s.all()).from(old)).await {
        Ok(mut watch) => assert_compacted(watch.next().await, kept),
        refused => assert_compacted(refused, kept),
    }
}

async fn a_watch_at_the_compaction_sees_what_happened_then(s: &Subject<'_>) {
    s.put("a", "1").await;
    let kept = s.put("a", "2").await;
    s.put("a", "3").await;
    s.store.compact(kept).await.unwrap();
    let mut watch = s.watch(WatchRequest::new(s.all()).from(kept)).await;
    assert_eq!(next(&mut watch, 2).await, ["+a=2", "+a=3"]);
}

async fn a_watch_from_the_future_sees_nothing_before(s: &Subject<'_>) {
    let now = s.put("a", "0").await;
    let mut watch = s
        .watch(WatchRequest::new(s.all()).from(Revision::new(now.get() + 3)))
        .await;
    for number in 1..5 {
        s.put("a", &number.to_string()).await;
    }
    assert_eq!(next(&mut watch, 2).await, ["+a=3", "+a=4"]);
}

async fn an_idle_watch_survives_compaction(s: &Subject<'_>) {
    s.put("watched/a", "1").await;
    let mut watch = s
        .watch(WatchRequest::new(KeyRange::prefix(s.key("watched/"))))
        .await;
    let mut newest = Revision::ZERO;
    for number in 0..20 {
        newest = s.put("elsewhere", &number.to_string()).await;
    }
    s.store.compact(newest).await.unwrap();
    s.put("watched/a", "2").await;
    assert_eq!(next(&mut watch, 1).await, ["+a=2"]);
}

async fn dropping_a_wait_loses_nothing(s: &Subject<'_>) {
    let first = s.put("n", "0").await;
    let mut watch = s.watch(WatchRequest::new(s.all()).from(first)).await;

    let mut seen = Vec::new();
    for number in 1..30 {
        s.put("n", &number.to_string()).await;
        let wait = Duration::from_micros(number * 20);
        if let Ok(item) = tokio::time::timeout(wait, watch.next()).await
            && let WatchItem::Events(events) = item.unwrap()
        {
            seen.extend(events.iter().map(brief));
        }
    }

    if seen.len() < 30 {
        let missing = 30 - seen.len();
        seen.extend(next(&mut watch, missing).await);
    }

    let expected: Vec<_> = (0..30).map(|number| format!("+n={number}")).collect();
    assert_eq!(seen, expected);
}

async fn a_list_and_a_watch_after_it_miss_nothing(s: &Subject<'_>) {
    s.put("a", "1").await;
    s.put("b", "1").await;
    let list = s.range(RangeRequest::new(s.all())).await;
    s.put("c", "1").await;
    s.delete("a").await;
    let mut watch = s
        .watch(WatchRequest::new(s.all()).from(list.revision.next()))
        .await;
    assert_eq!(pairs(&list.kvs), ["a=1", "b=1"]);
    assert_eq!(next(&mut watch, 2).await, ["+c=1", "-a="]);
}
