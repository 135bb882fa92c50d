//! The DNS configuration of a pod.

use coracle_cri::v1::DnsConfig;
use k8s_openapi::api::core::v1::{Pod, PodDNSConfig};
use std::net::IpAddr;

use crate::pod::PodView;

/// Upstream's resolver limits.
const SERVERS: usize = 3;
const SEARCHES: usize = 32;
const SEARCH_CHARS: usize = 2048;
const SEARCH_CHARS_EACH: usize = 253;

/// The resolver of a pod, and what was omitted: texts of the event `DNSConfigForming`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolver {
    pub config: DnsConfig,
    pub warnings: Vec<String>,
    /// The pod requests cluster DNS, and the node has no cluster DNS server.
    pub misses_cluster: bool,
}

/// The cluster's DNS.
pub struct Cluster<'a> {
    pub servers: &'a [IpAddr],
    pub domain: &'a str,
}

/// The resolver by the pod's DNS policy and `dnsConfig`; `host` is the text of the host's
/// `resolv.conf`.
pub fn resolver(pod: &Pod, cluster: &Cluster<'_>, host: &str) -> Resolver {
    let spec = pod.pod_spec();
    let mut made = Resolver {
        config: parse(host),
        ..Resolver::default()
    };

    let asks_cluster = match spec.dns_policy.as_deref().unwrap_or("ClusterFirst") {
        "None" => {
            made.config = DnsConfig::default();
            false
        }
        "Default" => false,
        "ClusterFirst" => !pod.is_host_network(),
        _ => true,
    };
    made.misses_cluster = asks_cluster && cluster.servers.is_empty();

    if asks_cluster && !made.misses_cluster {
        made.config.servers = cluster.servers.iter().map(ToString::to_string).collect();
        made.config.options = vec!["ndots:5".to_owned()];

        if !cluster.domain.is_empty() {
            let domain = cluster.domain;
            let first = [
                format!("{}.svc.{domain}", pod.namespace()),
                format!("svc.{domain}"),
                domain.to_owned(),
            ];
            made.config.searches = unique(first.into_iter().chain(made.config.searches));
        }
    }

    if let Some(own) = &spec.dns_config {
        add(&mut made.config, own);
    }

    fit(&mut made);

    made
}

/// Parses `resolv.conf`: servers accumulate, the last `search` line wins, an option replaces
/// another of its name.
fn parse(text: &str) -> DnsConfig {
    let mut config = DnsConfig::default();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
    {
        let mut fields = line.split_whitespace();
        match fields.next() {
            Some("nameserver") => config.servers.extend(fields.next().map(str::to_owned)),
            Some("search") => {
                let names = fields.filter(|name| *name != ".");
                config.searches = names
                    .map(|name| name.strip_suffix('.').unwrap_or(name).to_owned())
                    .collect();
            }
            Some("options") => {
                fields.for_each(|option| replace_option(&mut config.options, option.to_owned()))
            }
            _ => {}
        }
    }

    config
}

/// The pod's `dnsConfig` comes after its policy.
fn add(config: &mut DnsConfig, own: &PodDNSConfig) {
    let more = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    config.servers = unique(config.servers.drain(..).chain(more(&own.nameservers)));
    config.searches = unique(config.searches.drain(..).chain(more(&own.searches)));
    for option in own.options.iter().flatten() {
        let name = option.name.clone().unwrap_or_default();
        let option = match option.value.as_deref().filter(|value| !value.is_empty()) {
            Some(value) => format!("{name}:{value}"),
            None => name,
        };
        replace_option(&mut config.options, option);
    }
}

fn replace_option(options: &mut Vec<String>, option: String) {
    let name = |option: &str| option.split(':').next().unwrap_or_default().to_owned();
    options.retain(|other| name(other) != name(&option));
    options.push(option);
}

fn fit(made: &mut Resolver) {
    let config = &mut made.config;
    if config.servers.len() > SERVERS {
        config.servers.truncate(SERVERS);
        made.warnings.push(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {}",
            config.servers.join(" ")
        ));
    }

    let before = config.searches.len();
    config.searches.truncate(SEARCHES);
    config
        .searches
        .retain(|search| search.len() <= SEARCH_CHARS_EACH);

    while config.searches.join(" ").len() > SEARCH_CHARS {
        config.searches.pop();
    }

    if config.searches.len() < before {
        made.warnings.push(format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {}",
            config.searches.join(" ")
        ));
    }
}

fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    for name in names {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodDNSConfigOption, PodSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    const HOST: &str = "# mine\nnameserver 9.9.9.9\nsearch example.com. .\noptions timeout:2 attempts:1 timeout:3\n";

    fn check(spec: PodSpec, servers: &[&str], searches: &[&str], options: &[&str]) -> Resolver {
        let metadata = ObjectMeta {
            namespace: Some("ns".into()),
            ..ObjectMeta::default()
        };

        let pod = Pod {
            metadata,
            spec: Some(spec),
            ..Pod::default()
        };

        let cluster = Cluster {
            servers: &["10.0.0.10".parse().unwrap()],
            domain: "cluster.local",
        };
        let made = resolver(&pod, &cluster, HOST);
        assert_eq!(made.config.servers, servers);
        assert_eq!(made.config.searches, searches);
        assert_eq!(made.config.options, options);

        made
    }

    fn policy(policy: &str) -> PodSpec {
        PodSpec {
            dns_policy: Some(policy.into()),
            ..PodSpec::default()
        }
    }

    #[test]
    fn the_policy_selects_the_servers() {
        let cluster = [
            "ns.svc.cluster.local",
            "svc.cluster.local",
            "cluster.local",
            "example.com",
        ];

        check(
            policy("ClusterFirst"),
            &["10.0.0.10"],
            &cluster,
            &["ndots:5"],
        );

        let on_host = |name| PodSpec {
            host_network: Some(true),
            ..policy(name)
        };

        let host = (
            &["9.9.9.9"][..],
            &["example.com"][..],
            &["attempts:1", "timeout:3"][..],
        );
        check(on_host("ClusterFirst"), host.0, host.1, host.2);

        check(
            on_host("ClusterFirstWithHostNet"),
            &["10.0.0.10"],
            &cluster,
            &["ndots:5"],
        );

        check(policy("Default"), host.0, host.1, host.2);
        check(policy("None"), &[], &[], &[]);
    }

    #[test]
    fn the_pods_dns_config_is_appended() {
        let own = PodDNSConfig {
            nameservers: Some(vec!["1.1.1.1".into(), "10.0.0.10".into()]),
            searches: Some(vec!["my.dom".into()]),
            options: Some(vec![
                PodDNSConfigOption {
                    name: Some("ndots".into()),
                    value: Some("2".into()),
                },
                PodDNSConfigOption {
                    name: Some("edns0".into()),
                    value: None,
                },
            ]),
        };

        let spec = PodSpec {
            dns_config: Some(own),
            ..policy("ClusterFirst")
        };

        let searches = [
            "ns.svc.cluster.local",
            "svc.cluster.local",
            "cluster.local",
            "example.com",
            "my.dom",
        ];

        check(
            spec,
            &["10.0.0.10", "1.1.1.1"],
            &searches,
            &["ndots:2", "edns0"],
        );
    }

    #[test]
    fn entries_over_the_limits_are_omitted_with_a_warning() {
        let many = (1..5).map(|last| format!("1.1.1.{last}")).collect();
        let own = PodDNSConfig {
            nameservers: Some(many),
            ..PodDNSConfig::default()
        };

        let made = check(
            PodSpec {
                dns_config: Some(own),
                ..policy("None")
            },
            &["1.1.1.1", "1.1.1.2", "1.1.1.3"],
            &[],
            &[],
        );

        assert_eq!(
            made.warnings,
            [
                "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.1.1.1 1.1.1.2 1.1.1.3"
            ]
        );
    }
}
