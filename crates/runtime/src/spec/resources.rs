//! Cgroup limits of a container, from CRI resources.

use std::collections::BTreeSet;

use coracle_cgroup::Limits;
use coracle_cri::v1::LinuxContainerResources;

pub(crate) fn limits(resources: &LinuxContainerResources, pids: Option<u32>) -> Limits {
    let given = |value: i64| Some(value).filter(|value| *value != 0);
    let positive = |value: i64| u64::try_from(value).ok().filter(|value| *value > 0);

    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Limits {
        cpu_shares: positive(resources.cpu_shares),
        cpu_weight: None,
        cpu_quota: given(resources.cpu_quota),
        cpu_period: positive(resources.cpu_period),
        memory: given(resources.memory_limit_in_bytes),
        memory_and_swap: given(resources.memory_swap_limit_in_bytes),
        pids: pids.map(i64::from),
        cpuset_cpus: text(&resources.cpuset_cpus),
        cpuset_mems: text(&resources.cpuset_mems),
        hugepages: resources
            .hugepage_limits
            .iter()
            .map(|limit| (limit.page_size.clone(), limit.limit))
            .collect(),
        oom_group: resources
            .unified
            .get("memory.oom.group")
            .is_some_and(|value| value == "1"),
        unified: resources.unified.clone().into_iter().collect(),
    }
}

/// Messages for controllers, or controller files, that the host lacks.
pub(crate) fn unsupported_limits(missing: &BTreeSet<String>) -> Vec<String> {
    missing
        .iter()
        .map(|what| format!("the host cannot limit {what}"))
        .collect()
}
