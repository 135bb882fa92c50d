//! Transactions and compare-and-swap.

use super::{Subject, pairs, short};
use crate::{
    Compare, Delete, InvalidRequest, KeyRange, Op, OpAnswer, Put, PutLease, PutValue, RangeRequest,
    Relation, Revision, StoreError, SwapError, Target, Txn,
};
use bytes::Bytes;

super::sentences![
    of_two_creators_one_wins_and_the_other_sees_the_winner,
    of_many_writers_that_saw_the_same_revision_one_wins,
    a_removal_needs_the_seen_revision,
    all_writes_of_a_transaction_share_a_revision,
    a_transaction_sees_its_own_writes,
    comparisons_decide_which_branch_runs,
    an_absent_key_compares_as_zero_and_has_no_value,
    a_comparison_over_a_range_must_hold_for_every_key,
    a_transaction_inside_another_compares_for_itself,
    a_transaction_that_only_reads_leaves_the_revision,
    a_failing_transaction_writes_nothing,
    a_key_may_be_written_once_in_a_transaction,
    a_put_may_keep_what_is_there,
    an_empty_key_is_refused,
];

fn then(ops: Vec<Op>) -> Txn {
    Txn {
        then: ops,
        ..Txn::default()
    }
}

fn compare(key: Bytes, relation: Relation, with: Target) -> Compare {
    Compare {
        range: KeyRange::single(key),
        relation,
        with,
    }
}

async fn of_two_creators_one_wins_and_the_other_sees_the_winner(s: &Subject<'_>) {
    let created = s.store.create(Put::new(s.key("a"), "first")).await.unwrap();
    match s.store.create(Put::new(s.key("a"), "second")).await {
        Err(SwapError::Conflict {
            found: Some(found), ..
        }) => {
            assert_eq!(short(&found), format!("a=first@{created}({created},1)"));
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

async fn of_many_writers_that_saw_the_same_revision_one_wins(s: &Subject<'_>) {
    let seen = s.put("a", "0").await;
    let writers = (0..8).map(|n| s.store.replace(seen, Put::new(s.key("a"), n.to_string())));

    let mut wins = Vec::new();
    for outcome in join_all(writers.collect()).await {
        match outcome {
            Ok(revision) => wins.push(revision),
            Err(SwapError::Conflict {
                found: Some(found), ..
            }) => assert!(found.mod_revision > seen),
            Err(other) => panic!("expected a conflict, got {other:?}"),
        }
    }

    assert_eq!(wins, [s.get("a").await.unwrap().mod_revision]);

    match s.store.replace(seen, Put::new(s.key("gone"), "x")).await {
        Err(SwapError::Conflict { found: None, .. }) => {}
        other => panic!("expected a conflict without a key, got {other:?}"),
    }
}

type Swapped<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Revision, SwapError>> + Send + 'a>>;

/// Polls all futures until each is done.
async fn join_all(mut futures: Vec<Swapped<'_>>) -> Vec<Result<Revision, SwapError>> {
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(outcome) => {
                done.push(outcome);
                false
            }
            std::task::Poll::Pending => true,
        });

        if futures.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;

    done
}

async fn a_removal_needs_the_seen_revision(s: &Subject<'_>) {
    let old = s.put("a", "1").await;
    let new = s.put("a", "2").await;
    assert!(matches!(
        s.store.remove(s.key("a"), old).await,
        Err(SwapError::Conflict { found: Some(_), .. })
    ));
    let removed = s.store.remove(s.key("a"), new).await.unwrap();
    assert!(removed > new);
    assert_eq!(s.get("a").await, None);
}

async fn all_writes_of_a_transaction_share_a_revision(s: &Subject<'_>) {
    s.put("gone", "v").await;
    let before = s.put("b", "old").await;

    let ops = vec![
        Op::Put(Put::new(s.key("a"), "1")),
        Op::Put(Put::new(s.key("b"), "2").with_previous()),
        Op::Delete(Delete::new(KeyRange::single(s.key("gone"))).with_previous()),
    ];
    let answer = s.store.txn(then(ops)).await.unwrap();
    assert_eq!(answer.revision, before.next());

    let answer_pairs = match &answer.answers[..] {
        [
            OpAnswer::Put { previous: None },
            OpAnswer::Put {
                previous: Some(old),
            },
            OpAnswer::Delete {
                deleted: 1,
                previous,
            },
        ] => [pairs(std::slice::from_ref(old)), pairs(previous)].concat(),
        other => panic!("unexpected answers {other:?}"),
    };
    assert_eq!(answer_pairs, ["b=old", "gone=v"]);

    let found = s.range(RangeRequest::new(s.all())).await;
    assert!(
        found
            .kvs
            .iter()
            .all(|kv| kv.mod_revision == answer.revision)
    );

    assert_eq!(pairs(&found.kvs), ["a=1", "b=2"]);
}

async fn a_transaction_sees_its_own_writes(s: &Subject<'_>) {
    s.put("b", "old").await;
    let all = || Op::Range(RangeRequest::new(s.all()));
    let ops = vec![
        all(),
        Op::Put(Put::new(s.key("a"), "new")),
        all(),
        Op::Delete(Delete::new(KeyRange::single(s.key("b")))),
        all(),
    ];

    let answer = s.store.txn(then(ops)).await.unwrap();
    let seen: Vec<_> = answer
        .answers
        .iter()
        .filter_map(|answer| {
            if let OpAnswer::Range(range) = answer {
                Some(pairs(&range.kvs))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(seen, [vec!["b=old"], vec!["a=new", "b=old"], vec!["a=new"]]);
}

async fn comparisons_decide_which_branch_runs(s: &Subject<'_>) {
    let created = s.put("a", "m").await;
    let modified = s.put("a", "n").await;
    let check = async |relation: Relation, with: Target, expected: bool| {
        let compare = vec![compare(s.key("a"), relation, with.clone())];
        let answer = s
            .store
            .txn(Txn {
                compare,
                ..Txn::default()
            })
            .await
            .unwrap();
        assert_eq!(answer.succeeded, expected, "{relation:?} {with:?}");
    };

    use Relation::{Equal, Greater, Less, NotEqual};

    check(Equal, Target::ModRevision(modified), true).await;
    check(Equal, Target::ModRevision(created), false).await;
    check(Greater, Target::ModRevision(created), true).await;
    check(Equal, Target::CreateRevision(created), true).await;
    check(Less, Target::CreateRevision(modified), true).await;
    check(Equal, Target::Version(2), true).await;

    check(Greater, Target::Version(2), false).await;
    check(NotEqual, Target::Version(1), true).await;
    check(Equal, Target::Value("n".into()), true).await;
    check(Greater, Target::Value("m".into()), true).await;
    check(Less, Target::Value("m".into()), false).await;
    check(Equal, Target::Lease(None), true).await;
}

async fn an_absent_key_compares_as_zero_and_has_no_value(s: &Subject<'_>) {
    let check = async |range: KeyRange, with: Target, expected: bool| {
        let compare = vec![Compare {
            range,
            relation: Relation::Equal,
            with: with.clone(),
        }];

        let answer = s
            .store
            .txn(Txn {
                compare,
                ..Txn::default()
            })
            .await
            .unwrap();
        assert_eq!(answer.succeeded, expected, "{with:?}");
    };

    for range in [KeyRange::single(s.key("none")), s.all()] {
        check(range.clone(), Target::ModRevision(Revision::ZERO), true).await;
        check(range.clone(), Target::CreateRevision(Revision::ZERO), true).await;
        check(range.clone(), Target::Version(0), true).await;
        check(range.clone(), Target::Version(1), false).await;
        check(range, Target::Value("".into()), false).await;
    }
}

async fn a_comparison_over_a_range_must_hold_for_every_key(s: &Subject<'_>) {
    s.put("a", "1").await;
    let last = s.put("b", "2").await;

    let check = async |relation: Relation, revision: Revision, expected: bool| {
        let compare = vec![Compare {
            range: s.all(),
            relation,
            with: Target::ModRevision(revision),
        }];

        let answer = s
            .store
            .txn(Txn {
                compare,
                ..Txn::default()
            })
            .await
            .unwrap();
        assert_eq!(answer.succeeded, expected);
    };
    check(Relation::Less, last.next(), true).await;

    check(Relation::Less, last, false).await;
}

async fn a_transaction_inside_another_compares_for_itself(s: &Subject<'_>) {
    let inner = |value: &'static str| {
        Op::Txn(Txn {
            compare: vec![compare(
                s.key("a"),
                Relation::Equal,
                Target::Value("1".into()),
            )],
            then: vec![Op::Put(Put::new(s.key("b"), value))],
            otherwise: vec![Op::Put(Put::new(s.key("c"), value))],
        })
    };

    s.put("a", "1").await;
    let ops = vec![Op::Put(Put::new(s.key("d"), "1")), inner("seen")];
    let answer = s.store.txn(then(ops)).await.unwrap();
    assert!(matches!(&answer.answers[1], OpAnswer::Txn(inner) if inner.succeeded));
    assert_eq!(
        pairs(&s.range(RangeRequest::new(s.all())).await.kvs),
        ["a=1", "b=seen", "d=1"]
    );

    assert_eq!(
        s.get("b").await.unwrap().mod_revision,
        s.get("d").await.unwrap().mod_revision
    );

    // It sees the state before the whole transaction, not the write beside it.
    let ops = vec![Op::Put(Put::new(s.key("a"), "2")), inner("before")];
    let answer = s.store.txn(then(ops)).await.unwrap();
    assert!(matches!(&answer.answers[1], OpAnswer::Txn(inner) if inner.succeeded));
    assert_eq!(
        pairs(&s.range(RangeRequest::new(s.all())).await.kvs),
        ["a=2", "b=before", "d=1"]
    );
}

async fn a_transaction_that_only_reads_leaves_the_revision(s: &Subject<'_>) {
    let before = s.put("a", "1").await;
    let answer = s
        .store
        .txn(then(vec![Op::Range(RangeRequest::new(s.all()))]))
        .await
        .unwrap();
    assert_eq!(answer.revision, before);
}

async fn a_failing_transaction_writes_nothing(s: &Subject<'_>) {
    let before = s.put("z", "1").await;
    let keep = Put {
        value: PutValue::Keep,
        ..Put::new(s.key("none"), "")
    };

    let ops = vec![Op::Put(Put::new(s.key("a"), "1")), Op::Put(keep)];
    match s.store.txn(then(ops)).await {
        Err(StoreError::Invalid(InvalidRequest::KeyNotFound)) => {}
        other => panic!("expected key not found, got {other:?}"),
    }

    assert_eq!(s.get("a").await, None);
    assert_eq!(s.put("z", "2").await, before.next());
}

async fn a_key_may_be_written_once_in_a_transaction(s: &Subject<'_>) {
    let put = |name: &str| Op::Put(Put::new(s.key(name), "v"));
    let delete = |name: &str| Op::Delete(Delete::new(KeyRange::prefix(s.key(name))));
    let branch = |then, otherwise| {
        Op::Txn(Txn {
            compare: Vec::new(),
            then,
            otherwise,
        })
    };

    let check = async |ops: Vec<Op>, allowed: bool| match s.store.txn(then(ops.clone())).await {
        Ok(_) => assert!(allowed, "{ops:?}"),
        Err(StoreError::Invalid(InvalidRequest::DuplicateKey)) => assert!(!allowed, "{ops:?}"),
        Err(other) => panic!("{other:?}"),
    };
    check(vec![put("a"), put("b")], true).await;

    check(vec![put("a"), put("a")], false).await;
    check(vec![put("ab"), delete("a")], false).await;
    check(vec![delete("a"), put("ab")], false).await;
    check(vec![delete("a"), delete("a")], true).await;
    check(vec![branch(vec![put("a")], vec![put("a")])], true).await;
    check(vec![put("a"), branch(vec![], vec![put("a")])], false).await;
}

async fn a_put_may_keep_what_is_there(s: &Subject<'_>) {
    s.put("a", "kept").await;
    let keep = Put {
        value: PutValue::Keep,
        ..Put::new(s.key("a"), "")
    };
    s.store.put(keep).await.unwrap();

    let found = s.get("a").await.unwrap();
    assert_eq!((&found.value[..], found.version), (&b"kept"[..], 2));

    let keep = Put {
        lease: PutLease::Keep,
        ..Put::new(s.key("a"), "new")
    };
    s.store.put(keep).await.unwrap();

    assert_eq!(s.get("a").await.unwrap().version, 3);
}

async fn an_empty_key_is_refused(s: &Subject<'_>) {
    match s.store.put(Put::new(Bytes::new(), "v")).await {
        Err(StoreError::Invalid(InvalidRequest::EmptyKey)) => {}
        other => panic!("expected an empty key, got {other:?}"),
    }
}
