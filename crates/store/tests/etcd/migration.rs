//! Migration from one store into another: an embedded one and an etcd.

use crate::cluster::{Cluster, Release};
use coracle_store::{
    KeyRange, Put, RangeRequest, Revision, Store, StoreError, WatchRequest,
    embedded::{Config, Embedded, SystemClock, commands, files::RealFiles},
    migrate::{self, MigrateError},
};
use std::{sync::Arc, time::Duration};

/// Keys as `key=value`, and whether they have a lease.
async fn contents(store: &dyn Store) -> Vec<(String, bool)> {
    let answer = store
        .range(RangeRequest::new(KeyRange::all()))
        .await
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |kv: &coracle_store::KeyValue| format!("{}={}", text(&kv.key), text(&kv.value));
    answer
        .kvs
        .iter()
        .map(|kv| (pair(kv), kv.lease.is_some()))
        .collect()
}

/// Reads and watches at this revision fail as compacted.
async fn is_compacted_at(store: &dyn Store, revision: Revision) {
    let read = store
        .range(RangeRequest::new(KeyRange::all()).at(revision))
        .await;
    assert!(
        matches!(read, Err(StoreError::Compacted { .. })),
        "{revision}: {read:?}"
    );

    let watched = match store
        .watch(WatchRequest::new(KeyRange::all()).from(revision))
        .await
    {
        Ok(mut watch) => watch.next().await.map(drop),
        Err(error) => Err(error),
    };

    assert!(
        matches!(watched, Err(StoreError::Compacted { .. })),
        "{revision}: {watched:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_migrates_into_an_embedded_store_and_back_into_another_etcd() {
    for (first, second) in [(Release::V34, Release::V36), (Release::V36, Release::V34)] {
        let (from, to) = (
            Cluster::start(first, 1).await,
            Cluster::start(second, 1).await,
        );

        let etcd = from.store();
        let lease = etcd
            .grant_lease(Duration::from_secs(600), None)
            .await
            .unwrap()
            .id;

        for number in 0..1200 {
            etcd.put(Put::new(
                format!("/registry/{number:04}"),
                format!("v{number}"),
            ))
            .await
            .unwrap();
        }

        etcd.put(Put::new("/registry/leased", "x").lease(Some(lease)))
            .await
            .unwrap();
        let (gone, _) = etcd
            .delete(KeyRange::single("/registry/0000"))
            .await
            .unwrap();

        let wanted = contents(&etcd).await;

        let directory = tempfile::tempdir().unwrap();
        let copied = migrate::read(&etcd, &KeyRange::all()).await.unwrap();
        let report = commands::import(copied.clone(), directory.path(), Some(gone)).unwrap();
        assert_eq!((report.keys, report.revision), (1200, gone.next()));
        assert!(
            commands::import(copied, directory.path(), None).is_err(),
            "it holds a store"
        );

        let files = Arc::new(RealFiles::new(directory.path()).unwrap());
        let store =
            Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap();
        assert_eq!(contents(&store).await, wanted);

        is_compacted_at(&store, gone).await;
        let newest = store.put(Put::new("/registry/new", "y")).await.unwrap();
        assert!(newest > gone);

        let other: Arc<dyn Store> = Arc::new(to.store());
        let copied = migrate::read(&store, &KeyRange::all()).await.unwrap();
        migrate::raise_revision(&other, newest.next())
            .await
            .unwrap();
        let revision = migrate::write(copied.clone(), &*other, &KeyRange::all())
            .await
            .unwrap();
        assert_eq!(contents(&*other).await, contents(&store).await);

        let lowest = other
            .range(RangeRequest::new(KeyRange::all()))
            .await
            .unwrap();

        assert!(
            lowest.kvs.iter().all(|kv| kv.mod_revision > newest),
            "no revision is met twice"
        );

        is_compacted_at(&*other, newest).await;
        assert!(other.put(Put::new("a", "b")).await.unwrap() > revision);

        let again = migrate::write(copied, &*other, &KeyRange::all())
            .await
            .unwrap_err();
        assert!(matches!(again, MigrateError::NotEmpty), "{again}");

        let far = migrate::raise_revision(&other, Revision::new(1_000_000_000))
            .await
            .unwrap_err();
        assert!(matches!(far, MigrateError::TooFar { .. }), "{far}");
    }
}
