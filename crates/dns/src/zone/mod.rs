//! The names of a cluster, as an index that follows the API.
//!
//! Services are indexed by namespace and name, endpoints by their Service, both by address for PTR
//! queries. The cost of a change does not depend on the size of the cluster.

pub mod answer;
pub mod facts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use facts::{Endpoint, Form, Key, Service, Slice};
use serde::{Deserialize, Serialize};

/// The names of one cluster.
#[derive(Debug, Default)]
pub struct Zone {
    namespaces: BTreeSet<String>,
    services: HashMap<Key, Service>,
    slices: HashMap<Key, Slice>,
    /// Slices by Service.
    slices_by_service: HashMap<Key, BTreeSet<Key>>,
    /// Services by cluster IP.
    by_address: HashMap<IpAddr, Key>,
    /// Slices by endpoint address.
    by_endpoint: HashMap<IpAddr, BTreeSet<Key>>,
}

/// The facts of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub namespaces: Vec<String>,
    pub services: Vec<Service>,
    pub slices: Vec<Slice>,
}

impl Zone {
    pub fn add_namespace(&mut self, name: &str) {
        self.namespaces.insert(name.to_owned());
    }

    pub fn remove_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// Adds or replaces a Service.
    pub fn set_service(&mut self, service: Service) {
        self.remove_service(&service.key);
        if let Form::Addresses(addresses) = &service.form {
            self.by_address.extend(
                addresses
                    .iter()
                    .map(|address| (*address, service.key.clone())),
            );
        }
        self.services.insert(service.key.clone(), service);
    }

    pub fn remove_service(&mut self, key: &Key) {
        let Some(Service {
            form: Form::Addresses(addresses),
            ..
        }) = self.services.remove(key)
        else {
            return;
        };

        for address in addresses {
            // A new Service may already have the address: events of two Services are not ordered.
            if self.by_address.get(&address) == Some(key) {
                self.by_address.remove(&address);
            }
        }
    }

    /// Adds or replaces a slice.
    pub fn set_slice(&mut self, slice: Slice) {
        self.remove_slice(&slice.key);

        for endpoint in &slice.endpoints {
            self.by_endpoint
                .entry(endpoint.address)
                .or_default()
                .insert(slice.key.clone());
        }

        self.slices_by_service
            .entry(slice.service_key())
            .or_default()
            .insert(slice.key.clone());

        self.slices.insert(slice.key.clone(), slice);
    }

    pub fn remove_slice(&mut self, key: &Key) {
        let Some(slice) = self.slices.remove(key) else {
            return;
        };
        for endpoint in &slice.endpoints {
            remove_from(&mut self.by_endpoint, &endpoint.address, key);
        }
        remove_from(&mut self.slices_by_service, &slice.service_key(), key);
    }

    /// The facts, sorted.
    pub fn snapshot(&self) -> Snapshot {
        let mut services: Vec<_> = self.services.values().cloned().collect();
        services.sort_by(|a, b| a.key.cmp(&b.key));
        let mut slices: Vec<_> = self.slices.values().cloned().collect();
        slices.sort_by(|a, b| a.key.cmp(&b.key));
        Snapshot {
            namespaces: self.namespaces.iter().cloned().collect(),
            services,
            slices,
        }
    }

    fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.services.get(&Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The slices of a Service, sorted.
    fn slices_of(&self, service: &Key) -> impl Iterator<Item = &Slice> {
        self.slices_by_service
            .get(service)
            .into_iter()
            .flatten()
            .filter_map(|key| self.slices.get(key))
    }

    /// The Service with this cluster IP.
    fn owner(&self, address: IpAddr) -> Option<&Key> {
        self.by_address.get(&address)
    }

    /// The endpoints with an address, each with its Service.
    fn endpoints_at(&self, address: IpAddr) -> impl Iterator<Item = (Key, &Endpoint)> {
        let slices = self.by_endpoint.get(&address).into_iter().flatten();
        slices
            .filter_map(|key| self.slices.get(key))
            .flat_map(move |slice| {
                let here = slice
                    .endpoints
                    .iter()
                    .filter(move |endpoint| endpoint.address == address);
                here.map(|endpoint| (slice.service_key(), endpoint))
            })
    }
}

impl From<Snapshot> for Zone {
    fn from(snapshot: Snapshot) -> Zone {
        let mut zone = Zone {
            namespaces: snapshot.namespaces.into_iter().collect(),
            ..Zone::default()
        };

        snapshot
            .services
            .into_iter()
            .for_each(|service| zone.set_service(service));

        snapshot
            .slices
            .into_iter()
            .for_each(|slice| zone.set_slice(slice));

        zone
    }
}

impl Slice {
    fn service_key(&self) -> Key {
        Key {
            namespace: self.key.namespace.clone(),
            name: self.service.clone(),
        }
    }
}

fn remove_from<K: std::hash::Hash + Eq>(from: &mut HashMap<K, BTreeSet<Key>>, key: &K, what: &Key) {
    let Some(set) = from.get_mut(key) else { return };
    set.remove(what);
    if set.is_empty() {
        from.remove(key);
    }
}
