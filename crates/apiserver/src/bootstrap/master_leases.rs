//! The addresses of all servers of a cluster: each keeps a key with its own in the store that they
//! share, under a lease that ends soon after the server. Upstream's servers do the same.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_store::{KeyRange, LeaseId, Put, RangeRequest, Store, StoreError};
use tokio::sync::Mutex;

const PREFIX: &str = "/registry/masterleases/";
/// How long the address of a server stays that does not renew it.
const LASTS: Duration = Duration::from_secs(15);
/// How often it is renewed, and those of others are read.
pub(super) const RENEWED_EVERY: Duration = Duration::from_secs(10);

/// The key of this server.
pub struct MasterLease {
    store: Arc<dyn Store>,
    own: IpAddr,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lease: Option<LeaseId>,
    /// The server is leaving: its key is not written again.
    is_over: bool,
}

impl MasterLease {
    pub(crate) fn new(store: Arc<dyn Store>, own: IpAddr) -> MasterLease {
        MasterLease {
            store,
            own,
            state: Mutex::default(),
        }
    }

    /// Renews the own address, and returns those of all servers.
    pub(super) async fn renewed(&self) -> Result<Vec<IpAddr>, StoreError> {
        let mut state = self.state.lock().await;
        let is_alive = match state.lease {
            Some(lease) => self.store.keep_lease_alive(lease).await.is_ok(),
            None => false,
        };
        let all = self.all().await?;
        if state.is_over || (is_alive && all.contains(&self.own)) {
            return Ok(all);
        }

        let lease = self.store.grant_lease(LASTS, None).await?.id;
        let put = Put::new(key(self.own), value(self.own)).lease(Some(lease));
        self.store.put(put).await?;
        state.lease = Some(lease);
        self.all().await
    }

    /// Removes the own address.
    pub(super) async fn end(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        state.is_over = true;
        let key = KeyRange::single(key(self.own));
        self.store.delete(key).await.map(drop)
    }

    async fn all(&self) -> Result<Vec<IpAddr>, StoreError> {
        let range = RangeRequest::new(KeyRange::prefix(PREFIX)).keys_only();
        let found = self.store.range(range).await?.kvs;
        let addresses = found.iter().filter_map(|kv| {
            let key = std::str::from_utf8(&kv.key).ok()?;
            key.strip_prefix(PREFIX)?.parse().ok()
        });
        Ok(addresses.collect())
    }
}

fn key(address: IpAddr) -> Bytes {
    format!("{PREFIX}{address}").into()
}

/// An Endpoints object, which is what upstream's servers read.
fn value(address: IpAddr) -> Bytes {
    let mut ip = Map::new();
    ip.insert("ip", address.to_string());
    let mut subset = Map::new();
    subset.insert("addresses", vec![Value::Object(ip)]);
    let mut object = Map::new();
    object.insert("kind", "Endpoints");
    object.insert("apiVersion", "v1");
    object.insert("metadata", Map::new());
    object.insert("subsets", vec![Value::Object(subset)]);
    json::to_vec(&Value::Object(object)).into()
}
