//! Metrics of the watch caches, read for each page.

use std::sync::Arc;

use coracle_metrics::{Alpha, Kind, Registry, Stable};

use crate::cache::Caches;

pub(super) fn register(registry: &Registry, caches: &Arc<Caches>) {
    let of = caches.clone();
    registry.read(
        Alpha,
        "apiserver_resource_objects",
        Kind::Gauge,
        "Number of stored objects by resource.",
        ["group", "resource"],
        move |reading| {
            for cache in of.all() {
                let resource = cache.storage_version().resource;
                let count = cache.snapshot().entries.count() as u64;
                reading.add_count(&[&resource.group, &resource.plural], count);
            }
        },
    );

    // The older name, which has no group of its own.
    let of = caches.clone();
    registry.read(
        Stable,
        "apiserver_storage_objects",
        Kind::Gauge,
        "Number of stored objects by resource.",
        ["resource"],
        move |reading| {
            for cache in of.all() {
                let resource = crate::status::qualified(cache.storage_version().resource);
                reading.add_count(&[&resource], cache.snapshot().entries.count() as u64);
            }
        },
    );

    let of = caches.clone();
    registry.read(
        Alpha,
        "apiserver_watch_cache_resource_version",
        Kind::Gauge,
        "The revision of the newest change in each watch cache.",
        ["group", "resource"],
        move |reading| {
            for cache in of.all() {
                let resource = cache.storage_version().resource;
                let revision = cache.revision().get();
                reading.add_count(&[&resource.group, &resource.plural], revision);
            }
        },
    );
}
