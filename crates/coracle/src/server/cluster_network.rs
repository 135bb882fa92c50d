//! Address ranges and ports of a cluster on this machine: those of the flags, those of the last
//! start, or the first free ones. The choice is saved in the data directory, because addresses of
//! objects depend on it, and published in the run directory, where other clusters of this machine
//! read it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::pod_network::Plugins;
use super::ranges::{self, Ranges, RangesError, overlap};
use crate::instance::Instance;

/// Address ranges and ports of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterNetwork {
    /// Address ranges of pods.
    pub(crate) cluster_cidr: Ranges,
    /// Address ranges of Services.
    pub(crate) service_cidr: Ranges,
    pub(crate) https_port: u16,
    pub(crate) kubelet_port: u16,
    /// CNI plugins, unless the built-in bridge is used; needed again to remove pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cni: Option<Plugins>,
}

impl ClusterNetwork {
    /// The address of the cluster DNS.
    pub(crate) fn dns_address(&self) -> Option<IpAddr> {
        nth_address(self.service_cidr.primary(), 10)
    }
}

/// What the flags request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requested {
    /// Empty: not requested; as for Services.
    pub(crate) cluster_cidr: Vec<IpNet>,
    pub(crate) service_cidr: Vec<IpNet>,
    pub(crate) https_port: Option<u16>,
    pub(crate) kubelet_port: Option<u16>,
    pub(crate) cni: Option<Plugins>,
    /// Number of simulated nodes. They send no packets, so that their range may overlap others.
    pub(crate) simulated_nodes: u16,
}

/// Why no ranges and ports could be assigned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterNetworkError {
    #[error("{flag}: {error}")]
    Ranges {
        flag: &'static str,
        error: RangesError,
    },
    #[error("{flag} {requested}: overlaps {in_use} of {holder}; choose another range")]
    Taken {
        flag: &'static str,
        requested: IpNet,
        holder: String,
        in_use: IpNet,
    },
    #[error(
        "{flag} {requested}: this cluster was created with {had}, and ranges cannot be changed later"
    )]
    Changed {
        flag: &'static str,
        requested: Ranges,
        had: Ranges,
    },
    #[error("no free address range for {0}; set the flag")]
    NoneFree(&'static str),
    #[error("--cluster-cidr {pods} and --service-cidr {services} overlap")]
    Overlap { pods: IpNet, services: IpNet },
    #[error(
        "--service-cidr {services}: pods have no addresses of one of these IP versions; set --cluster-cidr too"
    )]
    Unreachable { services: Ranges },
    #[error(
        "--cluster-cidr {pods} and --service-cidr {services}: the first range of both must be of the same IP version"
    )]
    Primary { pods: Ranges, services: Ranges },
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("{}: invalid content: {error}", file.display())]
    Damaged {
        file: PathBuf,
        error: serde_json::Error,
    },
}

/// An address range in use on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeInUse {
    holder: String,
    range: IpNet,
}

const CLUSTER_CIDR: &str = "--cluster-cidr";
const SERVICE_CIDR: &str = "--service-cidr";

/// Chooses ranges and ports. `saved` is the choice of the last start, `in_use` are ranges of
/// others.
pub(crate) fn decide(
    requested: &Requested,
    saved: Option<&ClusterNetwork>,
    in_use: &[RangeInUse],
) -> Result<ClusterNetwork, ClusterNetworkError> {
    // Where only one of the flags is set, the other range follows its IP versions.
    let versions = [&requested.cluster_cidr, &requested.service_cidr]
        .into_iter()
        .find(|ranges| !ranges.is_empty())
        .map_or_else(
            || vec![true],
            |ranges| ranges.iter().map(ranges::is_four).collect(),
        );

    let service_cidr = choose(
        SERVICE_CIDR,
        &requested.service_cidr,
        saved.map(|network| &network.service_cidr),
        &versions,
        in_use,
        service_ranges,
    )?;

    let free_of_services = |range: &IpNet| {
        let services = service_cidr.all().iter();
        services.into_iter().all(|other| !overlap(range, other))
    };
    let cluster_cidr = choose(
        CLUSTER_CIDR,
        &requested.cluster_cidr,
        saved.map(|network| &network.cluster_cidr),
        &versions,
        in_use,
        |four| {
            let all = pod_ranges(four, requested.simulated_nodes);
            all.into_iter().filter(free_of_services).collect()
        },
    )?;

    check_together(&cluster_cidr, &service_cidr)?;

    let port = |requested: Option<u16>, had: Option<u16>, default: u16| {
        requested.or(had).unwrap_or(default)
    };

    Ok(ClusterNetwork {
        cluster_cidr,
        service_cidr,
        https_port: port(
            requested.https_port,
            saved.map(|network| network.https_port),
            6443,
        ),
        kubelet_port: port(
            requested.kubelet_port,
            saved.map(|network| network.kubelet_port),
            10250,
        ),
        cni: requested.cni.clone(),
    })
}

fn check_together(pods: &Ranges, services: &Ranges) -> Result<(), ClusterNetworkError> {
    for (pods, services) in pods
        .all()
        .iter()
        .flat_map(|one| services.all().iter().map(move |other| (*one, *other)))
    {
        if overlap(&pods, &services) {
            return Err(ClusterNetworkError::Overlap { pods, services });
        }
    }

    if !services.is_within(pods) {
        return Err(ClusterNetworkError::Unreachable {
            services: services.clone(),
        });
    }
    if ranges::is_four(pods.primary()) != ranges::is_four(services.primary()) {
        return Err(ClusterNetworkError::Primary {
            pods: pods.clone(),
            services: services.clone(),
        });
    }

    Ok(())
}

/// The ranges of a flag: those of the last start, those requested, or the first free default of
/// each version (true: 4).
fn choose(
    flag: &'static str,
    requested: &[IpNet],
    had: Option<&Ranges>,
    versions: &[bool],
    in_use: &[RangeInUse],
    defaults: impl Fn(bool) -> Vec<IpNet>,
) -> Result<Ranges, ClusterNetworkError> {
    let ranges = |all: &[IpNet]| {
        Ranges::of(all).map_err(|error| ClusterNetworkError::Ranges { flag, error })
    };
    let holder = |range: &IpNet| in_use.iter().find(|other| overlap(&other.range, range));

    match had {
        Some(had) if requested.is_empty() => return Ok(had.clone()),
        Some(had) => {
            let requested = ranges(requested)?;
            return match requested == *had {
                true => Ok(requested),
                false => Err(ClusterNetworkError::Changed {
                    flag,
                    requested,
                    had: had.clone(),
                }),
            };
        }
        None => {}
    }

    for range in requested {
        if let Some(RangeInUse {
            holder,
            range: other,
        }) = holder(range)
        {
            return Err(ClusterNetworkError::Taken {
                flag,
                requested: *range,
                holder: holder.clone(),
                in_use: *other,
            });
        }
    }
    if !requested.is_empty() {
        return ranges(requested);
    }

    let free = versions.iter().map(|four| {
        defaults(*four)
            .into_iter()
            .find(|range| holder(range).is_none())
            .ok_or(ClusterNetworkError::NoneFree(flag))
    });
    ranges(&free.collect::<Result<Vec<_>, _>>()?)
}

/// kubeadm's usual range, then the following ones. It is enough for 256 nodes; more simulated nodes
/// get a larger one. Those of IPv6 are kind's.
fn pod_ranges(four: bool, simulated_nodes: u16) -> Vec<IpNet> {
    if !four {
        return (0..16).map(|at| net6(0x0244 + at, 56)).collect();
    }
    let large = (simulated_nodes > 256).then(|| net(Ipv4Addr::new(10, 128, 0, 0), 9));
    large
        .into_iter()
        .chain((0..12_u8).map(|at| net(Ipv4Addr::new(10, 244 + at, 0, 0), 16)))
        .collect()
}

fn service_ranges(four: bool) -> Vec<IpNet> {
    match four {
        true => (0..8_u8)
            .map(|at| net(Ipv4Addr::new(10, 96 + 16 * at, 0, 0), 12))
            .collect(),
        false => (0..16).map(|at| net6(0x0096 + at, 112)).collect(),
    }
}

fn net(address: Ipv4Addr, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new(address, length).expect("a length of at most 32"))
}

/// `fd00:10:THIRD::/LENGTH`.
fn net6(third: u16, length: u8) -> IpNet {
    let address = Ipv6Addr::new(0xfd00, 0x10, third, 0, 0, 0, 0, 0);
    IpNet::V6(Ipv6Net::new(address, length).expect("a length of at most 128"))
}

/// The choice of the last start.
pub(crate) fn saved(instance: &Instance) -> Result<Option<ClusterNetwork>, ClusterNetworkError> {
    let file = saved_file(instance);
    match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| ClusterNetworkError::Damaged { file, error }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ClusterNetworkError::File { file, error }),
    }
}

/// Saves the choice for the next start.
pub(crate) fn save(
    instance: &Instance,
    network: &ClusterNetwork,
) -> Result<(), ClusterNetworkError> {
    write(&saved_file(instance), network)
}

fn saved_file(instance: &Instance) -> PathBuf {
    instance.data_dir.join("cluster.json")
}

/// What a running cluster publishes for other clusters of the machine.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    data_dir: PathBuf,
    /// Its network namespace: ranges conflict only within one.
    network: String,
    #[serde(flatten)]
    cluster: ClusterNetwork,
}

/// Publishes the choice for other clusters of this machine.
pub(crate) fn publish(
    instance: &Instance,
    network: &ClusterNetwork,
) -> Result<(), ClusterNetworkError> {
    let published = Published {
        data_dir: instance.data_dir.clone(),
        network: own_network(),
        cluster: network.clone(),
    };
    write(&instance.run_dir().join(PUBLISHED_FILE), &published)
}

const PUBLISHED_FILE: &str = "cluster.json";

/// Ranges of other clusters and of network interfaces of this machine.
pub(crate) fn ranges_in_use(instance: &Instance) -> Vec<RangeInUse> {
    let mut in_use = Vec::new();
    let own = instance.run_dir();

    let folder = own.parent().map(fs::read_dir);
    for entry in folder.into_iter().flatten().flatten().flatten() {
        if entry.path() == own {
            continue;
        }

        let Ok(bytes) = fs::read(entry.path().join(PUBLISHED_FILE)) else {
            continue;
        };

        let Ok(other) = serde_json::from_slice::<Published>(&bytes) else {
            continue;
        };
        if other.network != own_network() || !other.data_dir.exists() {
            continue;
        }

        for ranges in [other.cluster.cluster_cidr, other.cluster.service_cidr] {
            in_use.extend(ranges.all().iter().map(|range| RangeInUse {
                holder: format!("the cluster in {}", other.data_dir.display()),
                range: *range,
            }));
        }
    }

    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    in_use.extend(routes_of(&routes, &instance.interfaces()));
    let routes = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    in_use.extend(routes6_of(&routes, &instance.interfaces()));

    in_use
}

/// Networks in the routing table, except the default route and those of our own interfaces.
fn routes_of(table: &str, own: &[String]) -> Vec<RangeInUse> {
    let parse = |line: &str| {
        let mut fields = line.split_whitespace();
        let interface = fields.next()?;

        let hex = |text: &str| {
            u32::from_str_radix(text, 16)
                .ok()
                .map(|bits| Ipv4Addr::from(bits.swap_bytes()))
        };
        let (address, mask) = (hex(fields.next()?)?, hex(fields.nth(5)?)?);
        let range = Ipv4Net::with_netmask(address, mask).ok()?;

        let is_own = own.iter().any(|own| own == interface);
        (range.prefix_len() > 0 && !is_own).then(|| RangeInUse {
            holder: format!("interface {interface}"),
            range: IpNet::V4(range),
        })
    };

    table.lines().skip(1).filter_map(parse).collect()
}

/// The same of IPv6, without link-local and multicast addresses, which every interface has.
fn routes6_of(table: &str, own: &[String]) -> Vec<RangeInUse> {
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let address = Ipv6Addr::from(u128::from_str_radix(fields.first()?, 16).ok()?);
        let length = u8::from_str_radix(fields.get(1)?, 16).ok()?;
        let interface = fields.get(9)?;

        let range = Ipv6Net::new(address, length).ok()?;
        let is_own = own.iter().any(|own| own == interface) || *interface == "lo";
        let is_everywhere =
            length == 0 || address.is_unicast_link_local() || address.is_multicast();
        (!is_own && !is_everywhere).then(|| RangeInUse {
            holder: format!("interface {interface}"),
            range: IpNet::V6(range),
        })
    };

    table.lines().filter_map(parse).collect()
}

fn own_network() -> String {
    fs::read_link("/proc/self/ns/net")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn write(file: &Path, what: &impl Serialize) -> Result<(), ClusterNetworkError> {
    let text = serde_json::to_vec_pretty(what).expect("it is plain data");
    let fail = |error| ClusterNetworkError::File {
        file: file.to_path_buf(),
        error,
    };

    if fs::read(file).is_ok_and(|known| known == text) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }

    let new = file.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, file))
        .map_err(fail)
}

/// The nth host address of a range. Of the Service range, the first is the API server's, the tenth
/// the DNS server's.
pub(crate) fn nth_address(range: &IpNet, number: usize) -> Option<IpAddr> {
    range.hosts().nth(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn ranges_of(text: &str) -> Ranges {
        text.parse().unwrap()
    }

    fn in_use(text: &str) -> RangeInUse {
        RangeInUse {
            holder: "eth0".to_string(),
            range: range_of(text),
        }
    }

    #[test]
    fn defaults_avoid_ranges_in_use() {
        let check = |taken: &[&str], pods: &str, services: &str| {
            let taken: Vec<RangeInUse> = taken.iter().map(|range| in_use(range)).collect();
            let network = decide(&Requested::default(), None, &taken).unwrap();
            assert_eq!(
                (network.cluster_cidr, network.service_cidr),
                (ranges_of(pods), ranges_of(services)),
                "{taken:?}"
            );
        };

        check(&[], "10.244.0.0/16", "10.96.0.0/12");
        check(&["10.244.3.0/24"], "10.245.0.0/16", "10.96.0.0/12");
        check(
            &["10.100.0.0/16", "10.244.0.0/16"],
            "10.245.0.0/16",
            "10.112.0.0/12",
        );

        check(&["192.168.0.0/16"], "10.244.0.0/16", "10.96.0.0/12");
    }

    #[test]
    fn many_simulated_nodes_get_a_large_range() {
        let check = |simulated_nodes: u16, service_cidr: Option<&str>, pods: &str| {
            let requested = Requested {
                simulated_nodes,
                service_cidr: service_cidr.map(range_of).into_iter().collect(),
                ..Requested::default()
            };

            assert_eq!(
                decide(&requested, None, &[]).unwrap().cluster_cidr,
                ranges_of(pods),
                "{requested:?}"
            );
        };

        check(256, None, "10.244.0.0/16");
        check(257, None, "10.128.0.0/9");
        check(257, Some("10.200.0.0/16"), "10.244.0.0/16");
        check(0, Some("10.244.0.0/16"), "10.245.0.0/16");
    }

    #[test]
    fn requested_ranges_are_used_or_refused() {
        let requested = Requested {
            cluster_cidr: vec![range_of("10.1.0.0/16")],
            ..Requested::default()
        };
        let network = decide(&requested, None, &[]).unwrap();
        assert_eq!(network.cluster_cidr, ranges_of("10.1.0.0/16"));

        assert_eq!(
            decide(&requested, None, &[in_use("10.1.2.0/24")])
                .unwrap_err()
                .to_string(),
            "--cluster-cidr 10.1.0.0/16: overlaps 10.1.2.0/24 of eth0; choose another range"
        );

        let other = Requested {
            cluster_cidr: vec![range_of("10.2.0.0/16")],
            ..Requested::default()
        };

        assert_eq!(
            decide(&other, Some(&network), &[]).unwrap_err().to_string(),
            "--cluster-cidr 10.2.0.0/16: this cluster was created with 10.1.0.0/16, and ranges cannot be changed later"
        );

        // It keeps its range, even if another cluster uses it meanwhile.
        assert_eq!(
            decide(
                &Requested::default(),
                Some(&network),
                &[in_use("10.1.0.0/16")]
            )
            .unwrap(),
            network
        );

        let both = Requested {
            service_cidr: vec![range_of("10.1.0.0/20")],
            ..requested
        };

        assert!(matches!(
            decide(&both, None, &[]),
            Err(ClusterNetworkError::Overlap { .. })
        ));
    }

    #[test]
    fn routes_are_parsed() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     eth0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                     cor-1\t0001F50A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

        let found = routes_of(table, &["cor-1".to_string()]);
        assert_eq!(
            found,
            vec![RangeInUse {
                holder: "interface eth0".to_string(),
                range: range_of("10.244.0.0/16")
            }]
        );
    }

    #[test]
    fn routes_of_ipv6_are_parsed() {
        let table = "fd000010024400000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000002 00000000 00000001 eth0\n\
                     fd000010024500000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000002 00000000 00000001 cor-1\n\
                     fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000002 00000000 00000001 eth0\n\
                     00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n\
                     00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001 lo\n\
                     ff000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000002 00000000 00000001 eth0\n";

        let found = routes6_of(table, &["cor-1".to_string()]);
        assert_eq!(
            found,
            vec![RangeInUse {
                holder: "interface eth0".to_string(),
                range: range_of("fd00:10:244::/64")
            }]
        );
    }

    #[test]
    fn ranges_of_both_versions_go_together() {
        let all = |text: &str| match text {
            "" => Vec::new(),
            text => ranges_of(text).all().to_vec(),
        };
        let check = |pods: &str, services: &str, expected: Result<(&str, &str), &str>| {
            let requested = Requested {
                cluster_cidr: all(pods),
                service_cidr: all(services),
                ..Requested::default()
            };
            let found = decide(&requested, None, &[in_use("fd00:10:244::/64")])
                .map(|network| {
                    (
                        network.cluster_cidr.to_string(),
                        network.service_cidr.to_string(),
                    )
                })
                .map_err(|error| error.to_string());
            let expected = expected
                .map(|(pods, services)| (pods.to_owned(), services.to_owned()))
                .map_err(str::to_owned);
            assert_eq!(found, expected, "{pods} {services}");
        };

        let (four, six) = ("10.1.0.0/16", "fd00:1::/48");
        let (four_services, six_services) = ("10.2.0.0/16", "fd00:2::/112");
        let both = "10.1.0.0/16,fd00:1::/48";
        let both_services = "10.2.0.0/16,fd00:2::/112";

        check(both, both_services, Ok((both, both_services)));
        check(both, four_services, Ok((both, four_services)));
        check(six, six_services, Ok((six, six_services)));
        check(both, "", Ok((both, "10.96.0.0/12,fd00:10:96::/112")));
        check(six, "", Ok((six, "fd00:10:96::/112")));
        check(
            "",
            both_services,
            Ok(("10.244.0.0/16,fd00:10:245::/56", both_services)),
        );

        check(
            four,
            both_services,
            Err(
                "--service-cidr 10.2.0.0/16,fd00:2::/112: pods have no addresses of one of these IP versions; set --cluster-cidr too",
            ),
        );
        check(
            both,
            six_services,
            Err(
                "--cluster-cidr 10.1.0.0/16,fd00:1::/48 and --service-cidr fd00:2::/112: the first range of both must be of the same IP version",
            ),
        );
        check(
            "fd00:10:244::/56",
            "",
            Err(
                "--cluster-cidr fd00:10:244::/56: overlaps fd00:10:244::/64 of eth0; choose another range",
            ),
        );
    }

    #[test]
    fn a_choice_of_an_earlier_version_is_read() {
        let text = r#"{"clusterCidr":"10.244.0.0/16","serviceCidr":"10.96.0.0/12","httpsPort":6443,"kubeletPort":10250}"#;
        let network: ClusterNetwork = serde_json::from_str(text).unwrap();
        assert_eq!(network.cluster_cidr, ranges_of("10.244.0.0/16"));
    }

    #[test]
    fn addresses_of_a_range_are_counted_from_one() {
        let services = range_of("10.96.0.0/12");
        assert_eq!(nth_address(&services, 1).unwrap().to_string(), "10.96.0.1");
        assert_eq!(
            nth_address(&services, 10).unwrap().to_string(),
            "10.96.0.10"
        );
    }
}
