//! Metrics of the watch caches, read for each page.

use std::sync::Arc;

use coracle_metrics::{Alpha, Beta, Counter, Kind, Reading, Registry, Stability, Stable};

use crate::cache::{Cache, Caches, Counts, ListCounts};

pub(super) fn register(registry: &Registry, caches: &Arc<Caches>) {
    register_objects(registry, caches);
    register_events(registry, caches);
    register_lists(registry, caches);
}

fn register_objects(registry: &Registry, caches: &Arc<Caches>) {
    let gauge = |name, help, read: fn(&Cache) -> u64| {
        registry.read(
            Alpha,
            name,
            Kind::Gauge,
            help,
            ["group", "resource"],
            by_resource(caches, move |cache, labels, reading| {
                reading.add_count(labels, read(cache));
            }),
        );
    };
    gauge(
        "apiserver_resource_objects",
        "Number of stored objects by resource.",
        |cache| cache.snapshot().entries.count() as u64,
    );
    gauge(
        "apiserver_resource_size_estimate_bytes",
        "Size of the stored objects in bytes by resource.",
        |cache| u64::try_from(cache.counts.bytes.get()).unwrap_or_default(),
    );
    gauge(
        "apiserver_watch_cache_resource_version",
        "The revision of the newest change in each watch cache.",
        |cache| cache.revision().get(),
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
            for cache in of.all_with_custom() {
                let resource = crate::status::qualified(cache.storage_version().resource);
                reading.add_count(&[&resource], cache.snapshot().entries.count() as u64);
            }
        },
    );
}

fn register_events(registry: &Registry, caches: &Arc<Caches>) {
    let counter = |stability, name, help, of| counter(registry, caches, stability, name, help, of);

    counter(
        Alpha,
        "apiserver_watch_cache_initializations_total",
        "Number of times that a watch cache was loaded.",
        |counts| &counts.initializations,
    );
    counter(
        Alpha,
        "apiserver_watch_cache_events_received_total",
        "Number of changes that a watch cache received from the store.",
        |counts| &counts.received,
    );
    counter(
        Beta,
        "apiserver_storage_events_received_total",
        "Number of changes that were received from the store.",
        |counts| &counts.received,
    );
    counter(
        Alpha,
        "apiserver_watch_cache_events_dispatched_total",
        "Number of events that a watch cache dispatched to watchers.",
        |counts| &counts.dispatched,
    );
    counter(
        Alpha,
        "apiserver_init_events_total",
        "Number of objects that watches began with.",
        |counts| &counts.initial,
    );
    counter(
        Alpha,
        "apiserver_terminated_watchers_total",
        "Number of watchers that were disconnected because they read too slowly.",
        |counts| &counts.overtaken,
    );
}

fn register_lists(registry: &Registry, caches: &Arc<Caches>) {
    // Lists are read in the order of names: there is no index.
    let indexed = |name, help, of: fn(&ListCounts) -> &Counter| {
        registry.read(
            Alpha,
            name,
            Kind::Counter,
            help,
            ["group", "index", "resource"],
            by_resource(caches, move |cache, [group, resource], reading| {
                let count = of(&cache.counts.lists).get();
                if count > 0 {
                    reading.add_count(&[group, "", resource], count);
                }
            }),
        );
    };
    indexed(
        "apiserver_cache_list_total",
        "Number of lists that were served from the watch cache.",
        |lists| &lists.lists,
    );
    indexed(
        "apiserver_cache_list_fetched_objects_total",
        "Number of objects that lists read from the watch cache.",
        |lists| &lists.read,
    );

    let counter = |name, help, of| counter(registry, caches, Alpha, name, help, of);
    counter(
        "apiserver_cache_list_returned_objects_total",
        "Number of objects that lists returned from the watch cache.",
        |counts| &counts.lists.returned,
    );
    counter(
        "apiserver_storage_list_total",
        "Number of lists that were read from the store.",
        |counts| &counts.stored_lists.lists,
    );
    counter(
        "apiserver_storage_list_fetched_objects_total",
        "Number of objects that lists read from the store.",
        |counts| &counts.stored_lists.read,
    );
    counter(
        "apiserver_storage_list_evaluated_objects_total",
        "Number of objects of lists from the store that were compared with selectors.",
        |counts| &counts.stored_lists.read,
    );
    counter(
        "apiserver_storage_list_returned_objects_total",
        "Number of objects that lists returned from the store.",
        |counts| &counts.stored_lists.returned,
    );

    registry.read(
        Alpha,
        "apiserver_watch_cache_consistent_read_total",
        Kind::Counter,
        "Number of lists from the watch cache that needed the newest version.",
        ["fallback", "group", "resource", "success"],
        by_resource(caches, |cache, [group, resource], reading| {
            let [reached, late] = &cache.counts.consistent_reads;
            for (success, counter) in [("true", reached), ("false", late)] {
                if counter.get() > 0 {
                    let labels = ["false", group, resource, success];
                    reading.add_count(&labels, counter.get());
                }
            }
        }),
    );
    registry.read(
        Alpha,
        "apiserver_watch_cache_read_wait_seconds",
        Kind::Histogram,
        "Time in seconds that reads waited for a watch cache to become fresh.",
        ["group", "resource"],
        by_resource(caches, |cache, labels, reading| {
            if cache.counts.read_waits.count() > 0 {
                reading.add_histogram(labels, &cache.counts.read_waits);
            }
        }),
    );
}

/// A counter of each cache that has counted something: as upstream's, series appear with the first
/// event.
fn counter(
    registry: &Registry,
    caches: &Arc<Caches>,
    stability: Stability,
    name: &'static str,
    help: &'static str,
    of: fn(&Counts) -> &Counter,
) {
    registry.read(
        stability,
        name,
        Kind::Counter,
        help,
        ["group", "resource"],
        by_resource(caches, move |cache, labels, reading| {
            let count = of(&cache.counts).get();
            if count > 0 {
                reading.add_count(labels, count);
            }
        }),
    );
}

/// Reads each cache, with the group and the resource of its objects.
fn by_resource(
    caches: &Arc<Caches>,
    read: impl Fn(&Cache, &[&str; 2], &mut Reading) + Send + Sync + 'static,
) -> impl Fn(&mut Reading) + Send + Sync + 'static {
    let caches = caches.clone();
    move |reading| {
        for cache in caches.all_with_custom() {
            let resource = cache.storage_version().resource;
            read(&cache, &[&resource.group, &resource.plural], reading);
        }
    }
}
