//! Range reads, writes of single keys, history and compaction.

use super::{Subject, assert_compacted, pairs, short};
use crate::{KeyRange, Put, RangeRequest, Revision, StoreError};

super::sentences![
    a_key_has_its_create_and_mod_revisions,
    a_deleted_key_starts_again_at_version_1,
    a_range_is_in_byte_order_and_ends_before_its_end,
    a_limit_cuts_the_answer_but_not_the_count,
    pages_of_one_revision_do_not_see_later_writes,
    an_old_revision_reads_as_it_was,
    a_future_revision_is_refused,
    compaction_removes_older_revisions_and_keeps_the_compacted_one,
    the_newest_revision_is_never_older_than_an_acknowledged_write,
    deleting_nothing_leaves_the_revision,
];

async fn a_key_has_its_create_and_mod_revisions(s: &Subject<'_>) {
    assert_eq!(s.get("a").await, None);
    let first = s.put("a", "1").await;
    let second = s.put("a", "2").await;
    assert!(second > first);
    assert_eq!(
        short(&s.get("a").await.unwrap()),
        format!("a=2@{second}({first},2)")
    );
}

async fn a_deleted_key_starts_again_at_version_1(s: &Subject<'_>) {
    s.put("a", "1").await;
    s.put("a", "2").await;
    s.delete("a").await;
    assert_eq!(s.get("a").await, None);
    let again = s.put("a", "3").await;
    assert_eq!(
        short(&s.get("a").await.unwrap()),
        format!("a=3@{again}({again},1)")
    );
}

async fn a_range_is_in_byte_order_and_ends_before_its_end(s: &Subject<'_>) {
    for name in ["b", "a", "c", "a1", "a\u{ff}"] {
        s.put(name, name).await;
    }

    let check = async |range: KeyRange, expected: &[&str]| {
        let answer = s.range(RangeRequest::new(range.clone())).await;
        assert_eq!(pairs(&answer.kvs), expected, "{range:?}");
        assert_eq!(answer.count, expected.len() as u64);
    };
    check(s.all(), &["a=a", "a1=a1", "a\u{ff}=a\u{ff}", "b=b", "c=c"]).await;

    check(
        KeyRange::between(s.key("a1"), s.key("c")),
        &["a1=a1", "a\u{ff}=a\u{ff}", "b=b"],
    )
    .await;

    check(KeyRange::single(s.key("b")), &["b=b"]).await;
    check(KeyRange::between(s.key("c"), s.key("a")), &[]).await;
    check(
        KeyRange::prefix(s.key("a")),
        &["a=a", "a1=a1", "a\u{ff}=a\u{ff}"],
    )
    .await;

    let from = KeyRange::from(s.key("b"));
    let answer = s.range(RangeRequest::new(from).limit(2)).await;
    assert_eq!(pairs(&answer.kvs), ["b=b", "c=c"]);
}

async fn a_limit_cuts_the_answer_but_not_the_count(s: &Subject<'_>) {
    for number in 0..5 {
        s.put(&number.to_string(), "v").await;
    }

    let answer = s.range(RangeRequest::new(s.all()).limit(2)).await;
    assert_eq!((answer.kvs.len(), answer.count, answer.more), (2, 5, true));

    let answer = s.range(RangeRequest::new(s.all()).limit(5)).await;
    assert_eq!((answer.kvs.len(), answer.count, answer.more), (5, 5, false));

    let answer = s.range(RangeRequest::new(s.all()).count_only()).await;
    assert_eq!((answer.kvs.len(), answer.count, answer.more), (0, 5, false));

    let answer = s.range(RangeRequest::new(s.all()).keys_only()).await;
    assert_eq!(answer.kvs.len(), 5);
    assert!(
        answer
            .kvs
            .iter()
            .all(|kv| kv.value.is_empty() && kv.version == 1)
    );
}

async fn pages_of_one_revision_do_not_see_later_writes(s: &Subject<'_>) {
    for name in ["a", "b", "c"] {
        s.put(name, "old").await;
    }
    let first = s.range(RangeRequest::new(s.all()).limit(1)).await;
    s.put("b", "new").await;
    s.delete("c").await;
    s.put("d", "new").await;
    let rest = s.all().starting_at([&first.kvs[0].key[..], b"\0"].concat());
    let second = s.range(RangeRequest::new(rest).at(first.revision)).await;
    assert_eq!(pairs(&first.kvs), ["a=old"]);
    assert_eq!(pairs(&second.kvs), ["b=old", "c=old"]);
}

async fn an_old_revision_reads_as_it_was(s: &Subject<'_>) {
    let put = s.put("a", "1").await;
    let changed = s.put("a", "2").await;
    let deleted = s.delete("a").await;

    let again = s.put("a", "3").await;
    let check = async |revision: Revision, expected: &[String]| {
        let answer = s.range(RangeRequest::new(s.all()).at(revision)).await;
        let found: Vec<_> = answer.kvs.iter().map(short).collect();
        assert_eq!(found, expected, "at {revision}");
        assert!(
            answer.revision >= again,
            "an answer has the current revision"
        );
    };
    check(put.previous(), &[]).await;

    check(put, &[format!("a=1@{put}({put},1)")]).await;
    check(changed, &[format!("a=2@{changed}({put},2)")]).await;
    check(deleted, &[]).await;
    check(again, &[format!("a=3@{again}({again},1)")]).await;
}

async fn a_future_revision_is_refused(s: &Subject<'_>) {
    let current = s.put("a", "1").await;
    let future = Revision::new(current.get() + 1_000_000);
    match s.store.range(RangeRequest::new(s.all()).at(future)).await {
        Err(StoreError::FutureRevision { .. }) => {}
        other => panic!("expected a future revision, got {other:?}"),
    }
    match s.store.compact(future).await {
        Err(StoreError::FutureRevision { .. }) => {}
        other => panic!("expected a future revision, got {other:?}"),
    }
}

async fn compaction_removes_older_revisions_and_keeps_the_compacted_one(s: &Subject<'_>) {
    let old = s.put("a", "1").await;
    let kept = s.put("a", "2").await;
    s.put("a", "3").await;
    s.store.compact(kept).await.unwrap();
    assert_compacted(
        s.store.range(RangeRequest::new(s.all()).at(old)).await,
        kept,
    );

    let answer = s.range(RangeRequest::new(s.all()).at(kept)).await;
    assert_eq!(pairs(&answer.kvs), ["a=2"]);

    assert_compacted(s.store.compact(kept).await, kept);
    assert_compacted(s.store.compact(old).await, kept);
}

async fn the_newest_revision_is_never_older_than_an_acknowledged_write(s: &Subject<'_>) {
    for _ in 0..20 {
        let written = s.put("a", "v").await;
        assert!(s.store.current_revision().await.unwrap() >= written);
        assert!(s.get("a").await.unwrap().mod_revision >= written);
    }
    assert!(s.store.status().await.unwrap().revision >= s.get("a").await.unwrap().mod_revision);
}

async fn deleting_nothing_leaves_the_revision(s: &Subject<'_>) {
    let before = s.store.put(Put::new(s.key("other"), "v")).await.unwrap();
    let (revision, deleted) = s
        .store
        .delete(KeyRange::single(s.key("none")))
        .await
        .unwrap();
    assert_eq!((revision, deleted), (before, 0));
}
