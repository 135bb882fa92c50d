//! The `/etc/hosts` file of a pod.

use k8s_openapi::api::core::v1::{HostAlias, Pod};

use crate::pod::PodView;

/// For a pod with its own network: its host name and addresses.
pub fn managed(pod: &Pod, addresses: &[String], name: &str, domain: &str) -> String {
    let mut text = "# Kubernetes-managed hosts file.\n\
        127.0.0.1\tlocalhost\n\
        ::1\tlocalhost ip6-localhost ip6-loopback\n\
        fe00::0\tip6-localnet\n\
        fe00::0\tip6-mcastprefix\n\
        fe00::1\tip6-allnodes\n\
        fe00::2\tip6-allrouters\n"
        .to_owned();

    for address in addresses {
        text += &match domain.is_empty() {
            true => format!("{address}\t{name}\n"),
            false => format!("{address}\t{name}.{domain}\t{name}\n"),
        };
    }

    text + &aliases(pod)
}

/// For a pod on the host network: the host's file.
pub fn of_host(pod: &Pod, host: &str) -> String {
    format!(
        "# Kubernetes-managed hosts file (host network).\n{host}{}",
        aliases(pod)
    )
}

fn aliases(pod: &Pod) -> String {
    let aliases = pod.pod_spec().host_aliases.as_deref().unwrap_or_default();
    if aliases.is_empty() {
        return String::new();
    }

    let line = |alias: &HostAlias| {
        format!(
            "{}\t{}\n",
            alias.ip,
            alias.hostnames.as_deref().unwrap_or_default().join("\t")
        )
    };
    let lines: String = aliases.iter().map(line).collect();

    format!("\n# Entries added by HostAliases.\n{lines}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;

    #[test]
    fn the_file_has_the_pods_name_and_its_aliases() {
        let hostnames = Some(vec!["foo".to_owned(), "bar".to_owned()]);
        let alias = HostAlias {
            ip: "1.2.3.4".into(),
            hostnames,
        };

        let spec = PodSpec {
            host_aliases: Some(vec![alias]),
            ..PodSpec::default()
        };

        let pod = Pod {
            spec: Some(spec),
            ..Pod::default()
        };

        let addresses = ["10.0.0.2".to_owned(), "fd00::2".to_owned()];
        let text = managed(&pod, &addresses, "web", "sub.ns.svc.cluster.local");
        assert!(text.contains("10.0.0.2\tweb.sub.ns.svc.cluster.local\tweb\nfd00::2\tweb.sub"));
        assert!(text.ends_with("\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n"));
        assert!(
            of_host(&pod, "127.0.0.1 me\n")
                .starts_with("# Kubernetes-managed hosts file (host network).\n127")
        );

        assert!(managed(&Pod::default(), &addresses[..1], "web", "").ends_with("10.0.0.2\tweb\n"));
    }
}
