//! Memory of a cached pod: whole, metadata only, the projections of scheduler and controllers, and,
//! for comparison, a typed struct. `cargo bench -p coracle --bench caches`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what fails here is the benchmark, and it prints"
)]

mod counting;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::typed::TypedError;
use coracle_client::{Cached, Metadata, Projection, Typed, Whole};
use counting::sys;
use std::sync::Arc;

/// How many of them are held while it is counted.
const PODS: usize = 1000;
/// A typical running Pod, as a server sends it.
const POD: &str = include_str!("../../api/benches/measure/pod.json");

fn main() {
    let text = String::from_utf8(json::to_vec(&json::parse(POD.as_bytes()).unwrap())).unwrap();
    println!("one pod in JSON {:>33} bytes", text.len());
    let whole = held::<Whole>("whole", &text);
    held::<Metadata>("metadata", &text);
    held::<Scheduled>("as the scheduler sees it", &text);
    held::<coracle_controllers::views::Pod>("as controllers see it", &text);
    let typed = held::<Typed<k8s_openapi::api::core::v1::Pod>>("as a struct of k8s-openapi", &text);
    println!("the whole pod costs {:.2} of the struct", whole / typed);
}

/// A pod as the scheduler's cache has it.
#[expect(dead_code, reason = "it is held, not read")]
struct Scheduled(coracle_scheduler::pod::Pod);

impl Projection for Scheduled {
    fn project(object: &Arc<Value>) -> Result<Scheduled, TypedError> {
        Ok(Scheduled(coracle_scheduler::pod::Pod::from_object(object)))
    }
}

/// What one costs, on average.
fn held<T: Projection>(what: &str, text: &str) -> f64 {
    let before = sys::in_use();
    let mut all = Vec::with_capacity(PODS);
    for index in 0..PODS {
        // Each has a name and a UID of its own, as in a cluster.
        let mut pod = json::parse(text.as_bytes()).unwrap();
        pod.meta_mut()
            .set_name(&format!("web-5b9d7c6f4d-{index:05}"));
        pod.meta_mut()
            .set_uid(&format!("00000000-0000-4000-8000-{index:012}"));
        all.push(Arc::new(Cached::<T>::of(pod).unwrap()));
    }

    let used = u32::try_from((sys::in_use() - before) / PODS).unwrap();
    println!("{what:40} {used:8} bytes");
    drop(all);

    f64::from(used)
}
