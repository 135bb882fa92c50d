//! Leases: keys that are deleted together.

use super::{Subject, events};
use crate::{EventKind, LeaseId, LeaseStatus, Put, StoreError, WatchRequest};
use tokio::time::{Duration, Instant};

super::sentences![
    lease_status_has_the_ttl_and_the_keys,
    revoking_a_lease_deletes_its_keys_at_one_revision,
    an_expired_lease_deletes_its_keys,
    a_lease_kept_alive_does_not_expire,
    a_key_is_detached_when_it_is_written_without_its_lease,
    an_unknown_lease_is_refused,
    an_id_is_granted_once,
];

/// Longer than any store rounds up to.
const LONG: Duration = Duration::from_secs(600);

async fn attach(s: &Subject<'_>, name: &str, lease: LeaseId) {
    s.store
        .put(Put::new(s.key(name), "v").lease(Some(lease)))
        .await
        .expect("put with a lease");
}

async fn lease_status_has_the_ttl_and_the_keys(s: &Subject<'_>) {
    let lease = s.store.grant_lease(LONG, None).await.unwrap();
    attach(s, "b", lease.id).await;
    attach(s, "a", lease.id).await;
    assert_eq!(s.get("a").await.unwrap().lease, Some(lease.id));
    let status = s.store.lease_status(lease.id).await.unwrap();
    assert_eq!(status.keys, [s.key("a"), s.key("b")]);
    assert_eq!(status.granted, LONG);
    assert!(status.remaining <= LONG && status.remaining > LONG / 2);
    assert!(s.store.leases().await.unwrap().contains(&lease.id));
    s.store.revoke_lease(lease.id).await.unwrap();
    assert!(!s.store.leases().await.unwrap().contains(&lease.id));
}

async fn revoking_a_lease_deletes_its_keys_at_one_revision(s: &Subject<'_>) {
    let lease = s.store.grant_lease(LONG, None).await.unwrap();
    attach(s, "a", lease.id).await;
    attach(s, "b", lease.id).await;
    s.put("c", "stays").await;

    let mut watch = s.watch(WatchRequest::new(s.all())).await;
    let revision = s.store.revoke_lease(lease.id).await.unwrap();
    let gone = events(&mut watch, 2).await;
    assert!(
        gone.iter()
            .all(|event| event.kind == EventKind::Delete && event.kv.mod_revision == revision)
    );

    assert!(s.get("a").await.is_none() && s.get("c").await.is_some());
}

async fn an_expired_lease_deletes_its_keys(s: &Subject<'_>) {
    let mut watch = s.watch(WatchRequest::new(s.all()).with_previous()).await;
    attach_shortly(s, "a", Duration::from_secs(1)).await;
    let seen = events(&mut watch, 2).await;
    assert_eq!(
        [seen[0].kind, seen[1].kind],
        [EventKind::Put, EventKind::Delete]
    );
    assert!(seen[1].previous.is_some());
    assert!(s.get("a").await.is_none());
}

/// Attaches a key to a lease. On a slow machine the lease may expire before that is done: then a
/// new one is granted.
async fn attach_shortly(s: &Subject<'_>, name: &str, ttl: Duration) -> LeaseStatus {
    loop {
        let lease = s.store.grant_lease(ttl, None).await.unwrap();
        match s
            .store
            .put(Put::new(s.key(name), "v").lease(Some(lease.id)))
            .await
        {
            Err(StoreError::LeaseNotFound(_)) => {}
            attached => {
                attached.expect("put with a lease");
                return lease;
            }
        }
    }
}

async fn a_lease_kept_alive_does_not_expire(s: &Subject<'_>) {
    while !stays_alive(s).await {}
}

/// Whether it is still alive; if not, we were too late and it had to expire.
async fn stays_alive(s: &Subject<'_>) -> bool {
    let mut begun = Instant::now();
    let lease = attach_shortly(s, "a", Duration::from_secs(2)).await;
    for _ in 0..3 {
        tokio::time::sleep(lease.granted / 3).await;
        let asked = Instant::now();
        match s.store.keep_lease_alive(lease.id).await {
            Err(StoreError::LeaseNotFound(_)) if begun.elapsed() >= lease.granted => return false,
            kept => assert_eq!(kept.unwrap(), lease.granted),
        }
        begun = asked;
    }

    tokio::time::sleep(lease.granted / 3).await;
    let is_there = s.get("a").await.is_some();
    let is_known = s.store.revoke_lease(lease.id).await.is_ok();
    assert!(is_there && is_known || begun.elapsed() >= lease.granted);

    is_there && is_known
}

async fn a_key_is_detached_when_it_is_written_without_its_lease(s: &Subject<'_>) {
    let lease = s.store.grant_lease(LONG, None).await.unwrap();
    attach(s, "a", lease.id).await;
    s.put("a", "free").await;
    assert_eq!(
        s.store.lease_status(lease.id).await.unwrap().keys,
        Vec::<bytes::Bytes>::new()
    );
    s.store.revoke_lease(lease.id).await.unwrap();
    assert!(s.get("a").await.is_some());
}

async fn an_unknown_lease_is_refused(s: &Subject<'_>) {
    let unknown = LeaseId::from_wire(0x0dd_ba11).unwrap();
    let put = s
        .store
        .put(Put::new(s.key("a"), "v").lease(Some(unknown)))
        .await;

    assert!(
        matches!(put, Err(StoreError::LeaseNotFound(id)) if id == unknown),
        "{put:?}"
    );

    assert!(matches!(
        s.store.revoke_lease(unknown).await,
        Err(StoreError::LeaseNotFound(_))
    ));

    assert!(matches!(
        s.store.keep_lease_alive(unknown).await,
        Err(StoreError::LeaseNotFound(_))
    ));

    assert!(matches!(
        s.store.lease_status(unknown).await,
        Err(StoreError::LeaseNotFound(_))
    ));
}

async fn an_id_is_granted_once(s: &Subject<'_>) {
    let id = LeaseId::from_wire(0x5eed).unwrap();
    assert_eq!(s.store.grant_lease(LONG, Some(id)).await.unwrap().id, id);
    assert!(matches!(
        s.store.grant_lease(LONG, Some(id)).await,
        Err(StoreError::LeaseExists(_))
    ));
    s.store.revoke_lease(id).await.unwrap();
}
