//! The cgroup resources of a container.

use coracle_api::quantity::Quantity;
use coracle_api::resource_name;
use coracle_cri::v1::{HugepageLimit, LinuxContainerResources};
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};

use crate::pod::PodView;
use crate::qos::{self, quantity};

/// CFS period in microseconds.
const PERIOD: i64 = 100_000;
const LEAST_QUOTA: i64 = 1_000;
const LEAST_SHARES: i64 = 2;
const MOST_SHARES: i64 = 262_144;

/// The resources of one container on a node with this memory.
pub fn of_container(pod: &Pod, container: &Container, memory: i64) -> LinuxContainerResources {
    let own = container.resources.clone().unwrap_or_default();
    let pods = pod.pod_spec().resources.clone().unwrap_or_default();
    let limit = |name: &str| {
        quantity(own.limits.as_ref(), name).or_else(|| quantity(pods.limits.as_ref(), name))
    };
    let cpu = limit("cpu");

    // The request defaults to the limit.
    let request = quantity(own.requests.as_ref(), "cpu").or_else(|| cpu.clone());

    LinuxContainerResources {
        cpu_period: PERIOD,
        cpu_quota: quota(cpu.as_ref()),
        cpu_shares: shares(request.as_ref()),
        memory_limit_in_bytes: limit("memory").map_or(0, |memory| memory.value()),
        oom_score_adj: qos::oom_score(pod, container, memory),
        hugepage_limits: huge_pages(&own),
        ..Default::default()
    }
}

/// CPU shares of a request.
pub fn shares(cpu: Option<&Quantity>) -> i64 {
    let milli = cpu.map_or(0, Quantity::milli_value);
    milli
        .saturating_mul(1024)
        .div_euclid(1000)
        .clamp(LEAST_SHARES, MOST_SHARES)
}

/// CFS quota of a limit in microseconds; 0: no limit.
pub fn quota(cpu: Option<&Quantity>) -> i64 {
    match cpu.map_or(0, Quantity::milli_value) {
        0 => 0,
        milli => milli
            .saturating_mul(PERIOD)
            .div_euclid(1000)
            .max(LEAST_QUOTA),
    }
}

pub const fn period() -> i64 {
    PERIOD
}

fn huge_pages(resources: &ResourceRequirements) -> Vec<HugepageLimit> {
    let limits = resources.limits.iter().flatten();
    limits
        .filter_map(|(name, amount)| {
            let size: Quantity = resource_name::huge_page_size(name)?.parse().ok()?;
            let limit: Quantity = amount.0.parse().ok()?;
            Some(HugepageLimit {
                page_size: kernel_size(size.value()),
                limit: u64::try_from(limit.value()).ok()?,
            })
        })
        .collect()
}

/// `2MB`, the kernel's name.
fn kernel_size(bytes: i64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{}GB", bytes >> 30),
        bytes if bytes >= 1 << 20 => format!("{}MB", bytes >> 20),
        bytes => format!("{}KB", bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

    use super::*;

    fn check(
        requests: &[(&str, &str)],
        limits: &[(&str, &str)],
        shares: i64,
        quota: i64,
        memory: i64,
    ) {
        let list = |pairs: &[(&str, &str)]| -> Option<BTreeMap<String, Text>> {
            Some(
                pairs
                    .iter()
                    .map(|(name, text)| ((*name).to_owned(), Text((*text).to_owned())))
                    .collect(),
            )
        };

        let resources = ResourceRequirements {
            requests: list(requests),
            limits: list(limits),
            ..ResourceRequirements::default()
        };

        let container = Container {
            resources: Some(resources),
            ..Container::default()
        };
        let made = of_container(&Pod::default(), &container, 1 << 30);
        assert_eq!(
            (made.cpu_shares, made.cpu_quota, made.memory_limit_in_bytes),
            (shares, quota, memory)
        );
    }

    #[test]
    fn requests_are_shares_and_limits_are_quotas() {
        check(&[], &[], 2, 0, 0);
        check(&[("cpu", "1")], &[], 1024, 0, 0);
        check(
            &[],
            &[("cpu", "500m"), ("memory", "64Mi")],
            512,
            50_000,
            64 << 20,
        );

        check(&[("cpu", "1m")], &[("cpu", "1m")], 2, 1_000, 0);
        check(&[("cpu", "300")], &[], 262_144, 0, 0);
        check(&[("cpu", "1500m")], &[("cpu", "2")], 1536, 200_000, 0);
    }

    #[test]
    fn huge_pages_have_the_kernels_names() {
        let limits = BTreeMap::from([("hugepages-2Mi".to_owned(), Text("4Mi".to_owned()))]);
        let resources = ResourceRequirements {
            limits: Some(limits),
            ..ResourceRequirements::default()
        };

        assert_eq!(
            huge_pages(&resources),
            [HugepageLimit {
                page_size: "2MB".into(),
                limit: 4 << 20
            }]
        );
    }
}
