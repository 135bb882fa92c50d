//! Resource names: `cpu`, `hugepages-2Mi`, `example.com/gpu`, and in quotas `requests.cpu`, `pods`.
//!
//! A name without a domain is Kubernetes' own ("native"); one with a domain is an extended
//! resource, which is counted in whole units and cannot be overcommitted.

/// Whether the name is Kubernetes' own: without a domain, or with one of its own.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether it is an extended resource: not native, and short enough for a quota.
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(REQUESTS)
        && crate::names::qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

/// Whether it can be overcommitted.
pub fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

pub fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// The page size of `hugepages-2Mi`, as text.
pub fn huge_page_size(name: &str) -> Option<&str> {
    name.strip_prefix(HUGE_PAGES)
}

/// Whether it is counted in whole units.
pub fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Whether it is a known resource of a container, a node or a quota.
pub fn is_known(name: &str) -> bool {
    COMPUTED.contains(&name)
        || COUNTED.contains(&name)
        || name == "storage"
        || is_huge_page_in_quota(name)
}

/// Whether it is a known native resource of containers.
pub fn is_known_to_containers(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_page(name)
}

/// Whether it is a known native resource of quotas.
pub fn is_known_to_quotas(name: &str) -> bool {
    COMPUTED.contains(&name) || COUNTED.contains(&name) || is_huge_page_in_quota(name)
}

fn is_huge_page_in_quota(name: &str) -> bool {
    is_huge_page(name.strip_prefix(REQUESTS).unwrap_or(name))
}

const REQUESTS: &str = "requests.";
const HUGE_PAGES: &str = "hugepages-";

/// Resources that a quota sums up.
const COMPUTED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Resources that a quota counts.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_their_classes() {
        let classes = |name: &str| {
            let all = [
                ('n', is_native(name)),
                ('x', is_extended(name)),
                ('o', may_be_overcommitted(name)),
                ('w', is_whole(name)),
                ('k', is_known(name)),
                ('c', is_known_to_containers(name)),
                ('q', is_known_to_quotas(name)),
            ];

            all.into_iter()
                .filter(|(_, is)| *is)
                .map(|(letter, _)| letter)
                .collect::<String>()
        };
        let check = |name: &str, expected: &str| assert_eq!(classes(name), expected, "{name}");
        check("cpu", "nokcq");

        check("storage", "nok");

        check("pods", "nowkq");
        check("requests.cpu", "nokq");
        check("hugepages-2Mi", "nkcq");

        check("requests.hugepages-2Mi", "nokq");
        check("example.com/gpu", "xw");
        check("kubernetes.io/gpu", "no");
        check("requests.example.com/gpu", "");
        check("gpu", "no");
        assert_eq!(huge_page_size("hugepages-2Mi"), Some("2Mi"));
    }
}
