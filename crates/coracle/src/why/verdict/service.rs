//! The state of a Service: its endpoints.

use coracle_api::Value;

use super::{Verdict, first_below, verdict_of};
use crate::why::Facts;
use crate::why::timeline::text;

/// The selector of a Service as a label selector; `None`: it has none.
pub(in crate::why) fn selector(service: &Value) -> Option<String> {
    let wanted = service
        .at(&["spec", "selector"])
        .and_then(Value::as_object)?;
    let terms = wanted
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
    let terms: Vec<String> = terms.collect();
    (!terms.is_empty()).then(|| terms.join(","))
}

/// The endpoints of a Service, by its slices and pods.
pub(super) fn summarize(facts: &Facts) -> Verdict {
    let spec = |name: &str| text(&facts.object, &["spec", name]);
    if spec("type") == "ExternalName" {
        return verdict_of(
            format!("is an alias of {}", spec("externalName")),
            Vec::new(),
        );
    }

    let of_kind = |kind: &'static str| {
        facts
            .below
            .iter()
            .filter(move |below| text(below, &["kind"]) == kind)
    };

    let endpoints = of_kind("EndpointSlice").flat_map(|slice| {
        slice
            .get("endpoints")
            .and_then(Value::as_array)
            .unwrap_or_default()
    });

    let is_ready = |endpoint: &&Value| {
        endpoint
            .at(&["conditions", "ready"])
            .and_then(Value::as_bool)
            != Some(false)
    };

    let ready = endpoints.filter(is_ready).count();
    let Some(selector) = selector(&facts.object) else {
        return verdict_of(
            format!("has {ready} ready endpoints and no selector"),
            Vec::new(),
        );
    };

    let mut waits = Vec::new();
    if of_kind("Pod").next().is_none() {
        waits.push(format!("no pods match its selector {selector}"));
    } else if ready == 0 {
        waits.extend(first_below(facts));
    }

    verdict_of(format!("has {ready} ready endpoints"), waits)
}
