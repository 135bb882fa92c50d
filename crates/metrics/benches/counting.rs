//! What counting costs: one operation of each sort, on one thread. `cargo bench -p
//! coracle-metrics`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it prints what it measures"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coracle_metrics::{Alpha, Buckets, Counters, Histograms, Registry};

const TIMES: u32 = 20_000_000;

fn main() {
    let registry = Registry::default();
    let counter = registry.counter(Alpha, "a_total", "A.");
    measure("counter", || counter.inc());

    let buckets = || Buckets::exponential_seconds(0.001, 2.0, 15);
    let histogram = registry.histogram(Alpha, "b_seconds", "B.", buckets());
    let took = Duration::from_micros(1234);
    measure("histogram", || histogram.took(black_box(took)));

    let family: Counters<(&'static str, u16)> =
        registry.counters(Alpha, "c_total", "C.", ["verb", "code"]);
    for code in 200..230 {
        family.of(&("GET", code)).inc();
    }
    measure("counter of a family of 30", || {
        family.of(black_box(&("GET", 201))).inc();
    });

    let host: Arc<str> = "192.0.2.1:6443".into();
    let family: Histograms<(&'static str, Arc<str>)> =
        registry.histograms(Alpha, "d_seconds", "D.", ["verb", "host"], buckets());
    let key = ("GET", host);
    measure("histogram of a family with a host", || {
        family.of(black_box(&key)).took(took);
    });

    measure("reading the clock", || {
        black_box(Instant::now());
    });
}

fn measure(what: &str, work: impl Fn()) {
    let began = Instant::now();
    for _ in 0..TIMES {
        work();
    }
    let each = began.elapsed().as_nanos() / u128::from(TIMES);
    println!("{what}: {each} ns");
}
