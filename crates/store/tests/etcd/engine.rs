//! The etcd engine: rejected requests, unavailable members, and watches meanwhile.

use crate::cluster::{Cluster, Release};
use coracle_store::{
    Event, InvalidRequest, KeyRange, Op, Put, Revision, Store, StoreError, Txn, Unavailable, Watch,
    WatchItem, WatchRequest,
    etcd::{ConfigError, Etcd, EtcdConfig},
};
use std::time::Duration;

fn impatient(cluster: &Cluster) -> Etcd {
    let second = Duration::from_secs(1);
    let config = EtcdConfig {
        request_timeout: second,
        attempt_timeout: second,
        watch_patience: second,
        ..EtcdConfig::new(cluster.endpoints())
    };
    Etcd::new(&config).unwrap()
}

async fn event(watch: &mut Watch) -> Event {
    match watch.next().await.unwrap() {
        WatchItem::Events(mut events) if events.len() == 1 => events.remove(0),
        other => panic!("expected one event, got {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_too_large_request_returns_a_typed_error() {
    let cluster = Cluster::start(Release::V34, 1).await;
    let store = cluster.store();
    for size in [1_600_000, 3_000_000] {
        let refused = store.put(Put::new("large", vec![0; size])).await;
        match refused {
            Err(StoreError::Invalid(InvalidRequest::TooLarge { bytes, limit })) => {
                assert!(bytes > size && limit < size, "{bytes} {limit}");
            }
            other => panic!("expected too large, got {other:?}"),
        }
    }

    let ops = (0..200)
        .map(|n| Op::Put(Put::new(format!("k{n}"), "v")))
        .collect();
    match store
        .txn(Txn {
            then: ops,
            ..Txn::default()
        })
        .await
    {
        Err(StoreError::Invalid(InvalidRequest::TooManyOps {
            count: 200,
            limit: 128,
        })) => {}
        other => panic!("expected too many operations, got {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_etcd_requests_and_watches_end_as_unavailable() {
    let mut cluster = Cluster::start(Release::V36, 1).await;
    let store = impatient(&cluster);
    let mut watch = store
        .watch(WatchRequest::new(KeyRange::all()))
        .await
        .unwrap();

    cluster.kill(0);

    let unreachable = |error: Option<StoreError>| {
        assert!(
            matches!(
                error,
                Some(StoreError::Unavailable(Unavailable::Unreachable { .. }))
            ),
            "{error:?}"
        );
    };

    unreachable(store.get("a".into()).await.err());
    unreachable(store.put(Put::new("a", "1")).await.err());
    unreachable(watch.next().await.err());
    unreachable(watch.next().await.err());
    cluster.restart(0);
    cluster.wait().await;
    store.put(Put::new("a", "1")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_quorum_requests_fail_and_afterwards_nothing_is_lost() {
    let mut cluster = Cluster::start(Release::V36, 3).await;
    let store = impatient(&cluster);
    let patient = cluster.store();
    let mut watch = patient
        .watch(WatchRequest::new(KeyRange::all()))
        .await
        .unwrap();

    store.put(Put::new("a", "1")).await.unwrap();
    cluster.kill(0);
    cluster.kill(1);
    assert!(matches!(
        store.get("a".into()).await,
        Err(StoreError::Unavailable(_))
    ));

    assert!(matches!(
        store.put(Put::new("a", "2")).await,
        Err(StoreError::Unavailable(_))
    ));

    cluster.restart(0);
    cluster.wait().await;
    let revision = patient.put(Put::new("a", "3")).await.unwrap();
    assert_eq!(&event(&mut watch).await.kv.value[..], b"1");

    loop {
        // The write with unknown outcome may have happened.
        let event = event(&mut watch).await;
        if event.kv.mod_revision == revision {
            break assert_eq!(&event.kv.value[..], b"3");
        }
        assert_eq!(&event.kv.value[..], b"2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_watches_move_away_from_a_member_that_hangs() {
    let cluster = Cluster::start(Release::V36, 3).await;
    let store = cluster.store();
    store.put(Put::new("a", "1")).await.unwrap();

    let mut watch = store
        .watch(WatchRequest::new(KeyRange::all()))
        .await
        .unwrap();
    watch.request_progress();

    watch.next().await.unwrap();

    // The preferred member, which the watch is on too, because nothing has failed yet.
    cluster.hang(0);
    assert_eq!(
        &store.get("a".into()).await.unwrap().unwrap().value[..],
        b"1",
        "a read is asked of another"
    );

    let revision = store.put(Put::new("a", "2")).await.unwrap();

    // Only an unanswered ping shows that the watch's member hangs.
    assert_eq!(
        event(&mut watch).await.kv.mod_revision,
        revision,
        "the watch moves on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_resumes_when_its_member_restarts() {
    for release in [Release::V34, Release::V36] {
        let mut cluster = Cluster::start(release, 1).await;
        let store = cluster.store();
        let mut watch = store
            .watch(WatchRequest::new(KeyRange::prefix("k")).with_previous())
            .await
            .unwrap();

        for round in 0..3 {
            let written = store.put(Put::new("k", round.to_string())).await.unwrap();
            let received = event(&mut watch).await;
            assert_eq!(
                (received.kv.mod_revision, received.previous.is_some()),
                (written, round > 0)
            );

            cluster.kill(0);
            cluster.restart(0);
            cluster.wait().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_watch_gets_all_events_or_a_compaction_error() {
    let mut cluster = Cluster::start(Release::V36, 3).await;
    let endpoints = cluster.endpoints();
    let cut_off = Etcd::new(&EtcdConfig::new(&endpoints[..1])).unwrap();
    let others = Etcd::new(&EtcdConfig::new(&endpoints[1..])).unwrap();

    let first = cut_off.put(Put::new("k", "0")).await.unwrap();
    let mut watch = cut_off
        .watch(WatchRequest::new(KeyRange::all()).from(first))
        .await
        .unwrap();
    assert_eq!(event(&mut watch).await.kv.mod_revision, first);

    cluster.kill(0);

    // The killed member may have been the leader: retry until the others have elected a new one.
    while others.put(Put::new("k", "1")).await.is_err() {}
    let kept = others.put(Put::new("k", "2")).await.unwrap();
    others.compact(kept).await.unwrap();
    let missed = first.next();
    assert_eq!(others.status().await.unwrap().compacted, kept);

    cluster.restart(0);

    // The member may accept the watch before or after it has applied the compaction.
    match watch.next().await {
        Err(StoreError::Compacted {
            requested,
            compacted,
        }) => {
            assert_eq!((requested, compacted), (missed, kept))
        }
        Ok(WatchItem::Events(events)) => assert_eq!(events[0].kv.mod_revision, missed),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_before_the_compaction_ends_with_an_error() {
    let cluster = Cluster::start(Release::V36, 1).await;
    let store = cluster.store();
    let status = store.status().await.unwrap();
    assert_eq!(
        (status.compacted, status.version.starts_with("3.6")),
        (Revision::ZERO, true)
    );

    let first = store.put(Put::new("k", "0")).await.unwrap();
    let kept = store.put(Put::new("k", "1")).await.unwrap();
    store.compact(kept).await.unwrap();
    let mut late = store
        .watch(WatchRequest::new(KeyRange::prefix("k")).from(first))
        .await
        .unwrap();

    for _ in 0..2 {
        match late.next().await {
            Err(StoreError::Compacted {
                requested,
                compacted,
            }) => {
                assert_eq!((requested, compacted), (first, kept))
            }
            other => panic!("expected compacted, got {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_watches_block_nothing_and_lose_nothing() {
    let cluster = Cluster::start(Release::V36, 1).await;
    let store = std::sync::Arc::new(cluster.store());
    let first = store.current_revision().await.unwrap().next();

    let mut unread = Vec::new();
    for _ in 0..10 {
        unread.push(
            store
                .watch(WatchRequest::new(KeyRange::all()))
                .await
                .unwrap(),
        );
    }

    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..20 {
        let store = store.clone();
        writers.spawn(async move {
            for number in 0..50 {
                store
                    .put(Put::new(format!("k{writer}"), number.to_string()))
                    .await
                    .unwrap();
            }
        });
    }

    writers.join_all().await;

    for mut watch in unread {
        let mut next = first;
        while next.get() < first.get() + 1000 {
            if let WatchItem::Events(events) = watch.next().await.unwrap() {
                for event in events {
                    assert_eq!(event.kv.mod_revision, next);
                    next = next.next();
                }
            }
        }
    }
}

#[tokio::test]
async fn an_invalid_endpoint_is_named_in_the_error() {
    assert!(matches!(
        Etcd::new(&EtcdConfig::new([""; 0])),
        Err(ConfigError::NoEndpoint)
    ));

    let refused = Etcd::new(&EtcdConfig::new(["not a url"]))
        .err()
        .map(|error| error.to_string());
    assert!(
        refused
            .as_deref()
            .is_some_and(|text| text.contains("not a url")),
        "{refused:?}"
    );
}
