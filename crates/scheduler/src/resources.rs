//! Amounts: the capacity of nodes, the requests of pods.
//!
//! Quantities are added exactly ([`Amounts`]) and rounded once, to the integers that plugins use
//! ([`Resources`]): CPU in millicores, everything else in units.

use coracle_api::quantity::Quantity;
use coracle_api::{Map, Text, resource_name};

pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
pub const PODS: &str = "pods";

/// Whole amounts by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub milli_cpu: i64,
    pub memory: i64,
    pub ephemeral_storage: i64,
    /// All other counted resources, sorted by name.
    pub scalars: Vec<(Text, i64)>,
}

impl Resources {
    /// The amount of one resource, CPU in millicores; 0 if missing.
    pub fn amount(&self, name: &str) -> i64 {
        match name {
            CPU => self.milli_cpu,
            MEMORY => self.memory,
            EPHEMERAL_STORAGE => self.ephemeral_storage,
            other => self.scalar(other),
        }
    }

    pub fn scalar(&self, name: &str) -> i64 {
        self.index(name).map_or(0, |index| self.scalars[index].1)
    }

    /// Whether no resource is named, not even with amount zero.
    pub fn is_empty(&self) -> bool {
        self.milli_cpu == 0
            && self.memory == 0
            && self.ephemeral_storage == 0
            && self.scalars.is_empty()
    }

    pub fn add(&mut self, other: &Resources) {
        self.change(other, 1);
    }

    pub fn remove(&mut self, other: &Resources) {
        self.change(other, -1);
    }

    fn change(&mut self, other: &Resources, sign: i64) {
        self.milli_cpu += sign * other.milli_cpu;
        self.memory += sign * other.memory;
        self.ephemeral_storage += sign * other.ephemeral_storage;
        for (name, amount) in &other.scalars {
            match self.index(name) {
                Ok(index) => self.scalars[index].1 += sign * amount,
                Err(index) => self.scalars.insert(index, (name.clone(), sign * amount)),
            }
        }
    }

    fn index(&self, name: &str) -> Result<usize, usize> {
        self.scalars
            .binary_search_by(|(own, _)| own.as_str().cmp(name))
    }
}

/// Whether a resource counts beside CPU, memory and ephemeral storage.
pub fn is_scalar(name: &str) -> bool {
    resource_name::is_extended(name)
        || resource_name::is_huge_page(name)
        || name.contains("kubernetes.io/")
        || name.starts_with("attachable-volumes-")
}

/// Exact amounts by resource, sorted by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amounts(Vec<(Text, Quantity)>);

impl Amounts {
    /// A resource list of an object. Invalid quantities were rejected by validation, and are
    /// skipped.
    pub(crate) fn from_map(list: Option<&Map>) -> Amounts {
        let amounts = list.into_iter().flat_map(Map::iter);
        let amounts = amounts.filter_map(|(name, amount)| {
            Some((Text::new(name), Quantity::from_value(amount).ok()?))
        });
        Amounts(amounts.collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), amount))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Quantity> {
        self.index(name).ok().map(|index| &self.0[index].1)
    }

    pub(crate) fn set(&mut self, name: &str, amount: &Quantity) {
        match self.index(name) {
            Ok(index) => self.0[index].1 = amount.clone(),
            Err(index) => self.0.insert(index, (Text::new(name), amount.clone())),
        }
    }

    pub(crate) fn add(&mut self, other: &Amounts) {
        for (name, amount) in &other.0 {
            match self.index(name) {
                Ok(index) => self.0[index].1.add(amount),
                Err(index) => self.0.insert(index, (name.clone(), amount.clone())),
            }
        }
    }

    /// Raises every amount to that of `other`, if it is greater.
    pub(crate) fn raise_to(&mut self, other: &Amounts) {
        for (name, amount) in &other.0 {
            match self.index(name) {
                Ok(index) if self.0[index].1 < *amount => self.0[index].1 = amount.clone(),
                Ok(_) => {}
                Err(index) => self.0.insert(index, (name.clone(), amount.clone())),
            }
        }
    }

    pub(crate) fn rounded(&self) -> Resources {
        let mut all = Resources::default();
        for (name, amount) in &self.0 {
            match name.as_str() {
                CPU => all.milli_cpu = amount.milli_value(),
                MEMORY => all.memory = amount.value(),
                EPHEMERAL_STORAGE => all.ephemeral_storage = amount.value(),
                other if is_scalar(other) => all.scalars.push((name.clone(), amount.value())),
                _ => {}
            }
        }
        all
    }

    fn index(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| own.as_str().cmp(name))
    }
}
