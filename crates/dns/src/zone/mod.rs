//! All names of a cluster, as an index that follows the API.
//!
//! Services are found by namespace and name, endpoints by the Service they stand behind, both by
//! address for reverse look-ups. Changes touch what they name and nothing else: a cluster of ten
//! thousand Services costs no more per event than one of ten.

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
    /// The slices of a Service, by its key.
    behind: HashMap<Key, BTreeSet<Key>>,
    /// Which Service has a cluster address.
    by_address: HashMap<IpAddr, Key>,
    /// Which slices have an endpoint's address.
    by_endpoint: HashMap<IpAddr, BTreeSet<Key>>,
}

/// All that a zone is made from.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Takes the place of what was known of this Service.
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
            // A new Service may have the address already: events of two Services come in no order.
            if self.by_address.get(&address) == Some(key) {
                self.by_address.remove(&address);
            }
        }
    }

    /// Takes the place of what was known of this slice.
    pub fn set_slice(&mut self, slice: Slice) {
        self.remove_slice(&slice.key);

        for endpoint in &slice.endpoints {
            self.by_endpoint
                .entry(endpoint.address)
                .or_default()
                .insert(slice.key.clone());
        }

        self.behind
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
            take_away(&mut self.by_endpoint, &endpoint.address, key);
        }
        take_away(&mut self.behind, &slice.service_key(), key);
    }

    /// All of it, in a fixed order.
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

    /// The slices behind a Service, in a fixed order.
    fn slices_of(&self, service: &Key) -> impl Iterator<Item = &Slice> {
        self.behind
            .get(service)
            .into_iter()
            .flatten()
            .filter_map(|key| self.slices.get(key))
    }

    /// Whose cluster address this is.
    fn owner(&self, address: IpAddr) -> Option<&Key> {
        self.by_address.get(&address)
    }

    /// The endpoints at an address, each with the Service it stands behind.
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

fn take_away<K: std::hash::Hash + Eq>(from: &mut HashMap<K, BTreeSet<Key>>, key: &K, what: &Key) {
    let Some(set) = from.get_mut(key) else { return };
    set.remove(what);
    if set.is_empty() {
        from.remove(key);
    }
}
