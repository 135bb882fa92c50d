//! Address ranges and ports of a cluster on this machine: those of the flags, those of the last
//! start, or the first free ones. The choice is saved in the data directory, because addresses of
//! objects depend on it, and published in the run directory, where other clusters of this machine
//! read it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use super::pod_network::Plugins;
use crate::instance::Instance;

/// Address ranges and ports of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterNetwork {
    /// Address range of pods.
    pub(crate) cluster_cidr: IpNet,
    /// Address range of Services.
    pub(crate) service_cidr: IpNet,
    pub(crate) https_port: u16,
    pub(crate) kubelet_port: u16,
    /// CNI plugins, unless the built-in bridge is used; needed again to remove pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cni: Option<Plugins>,
}

/// What the flags request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requested {
    pub(crate) cluster_cidr: Option<IpNet>,
    pub(crate) service_cidr: Option<IpNet>,
    pub(crate) https_port: Option<u16>,
    pub(crate) kubelet_port: Option<u16>,
    pub(crate) cni: Option<Plugins>,
    /// Number of simulated nodes. They send no packets, so that their range may overlap others.
    pub(crate) simulated_nodes: u16,
}

/// Why no ranges and ports could be assigned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterNetworkError {
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
        requested: IpNet,
        had: IpNet,
    },
    #[error("no free address range for {0}; set the flag")]
    NoneFree(&'static str),
    #[error("--cluster-cidr {pods} and --service-cidr {services} overlap")]
    Overlap { pods: IpNet, services: IpNet },
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

/// Chooses ranges and ports. `saved` is the choice of the last start, `in_use` are ranges of
/// others.
pub(crate) fn decide(
    requested: &Requested,
    saved: Option<&ClusterNetwork>,
    in_use: &[RangeInUse],
) -> Result<ClusterNetwork, ClusterNetworkError> {
    let service_cidr = range(
        "--service-cidr",
        requested.service_cidr,
        saved.map(|network| network.service_cidr),
        service_ranges(),
        in_use,
    )?;

    let cluster_cidr = range(
        "--cluster-cidr",
        requested.cluster_cidr,
        saved.map(|network| network.cluster_cidr),
        pod_ranges(requested.simulated_nodes).filter(|range| !overlap(range, &service_cidr)),
        in_use,
    )?;

    if overlap(&cluster_cidr, &service_cidr) {
        return Err(ClusterNetworkError::Overlap {
            pods: cluster_cidr,
            services: service_cidr,
        });
    }

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

fn range(
    flag: &'static str,
    requested: Option<IpNet>,
    had: Option<IpNet>,
    defaults: impl Iterator<Item = IpNet>,
    in_use: &[RangeInUse],
) -> Result<IpNet, ClusterNetworkError> {
    match (requested, had) {
        (Some(requested), Some(had)) if requested.trunc() != had => {
            Err(ClusterNetworkError::Changed {
                flag,
                requested,
                had,
            })
        }
        (_, Some(had)) => Ok(had),
        (Some(requested), None) => match in_use
            .iter()
            .find(|in_use| overlap(&in_use.range, &requested))
        {
            Some(RangeInUse { holder, range }) => Err(ClusterNetworkError::Taken {
                flag,
                requested,
                holder: holder.clone(),
                in_use: *range,
            }),
            None => Ok(requested.trunc()),
        },
        (None, None) => defaults
            .into_iter()
            .find(|range| !in_use.iter().any(|in_use| overlap(&in_use.range, range)))
            .ok_or(ClusterNetworkError::NoneFree(flag)),
    }
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// kubeadm's usual range, then the following ones. It is enough for 256 nodes; more simulated nodes
/// get a larger one.
fn pod_ranges(simulated_nodes: u16) -> impl Iterator<Item = IpNet> {
    let large = (simulated_nodes > 256).then(|| net(Ipv4Addr::new(10, 128, 0, 0), 9));
    large
        .into_iter()
        .chain((0..12_u8).map(|at| net(Ipv4Addr::new(10, 244 + at, 0, 0), 16)))
}

fn service_ranges() -> impl Iterator<Item = IpNet> {
    (0..8_u8).map(|at| net(Ipv4Addr::new(10, 96 + 16 * at, 0, 0), 12))
}

fn net(address: Ipv4Addr, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new(address, length).expect("a length of at most 32"))
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

        for range in [other.cluster.cluster_cidr, other.cluster.service_cidr] {
            in_use.push(RangeInUse {
                holder: format!("the cluster in {}", other.data_dir.display()),
                range,
            });
        }
    }

    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    in_use.extend(routes_of(&routes, &instance.bridge()));

    in_use
}

/// Networks in the routing table, except the default route and those of our own bridge.
fn routes_of(table: &str, own: &str) -> Vec<RangeInUse> {
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

        (range.prefix_len() > 0 && interface != own).then(|| RangeInUse {
            holder: format!("interface {interface}"),
            range: IpNet::V4(range),
        })
    };

    table.lines().skip(1).filter_map(parse).collect()
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
                (range_of(pods), range_of(services)),
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
                service_cidr: service_cidr.map(range_of),
                ..Requested::default()
            };

            assert_eq!(
                decide(&requested, None, &[]).unwrap().cluster_cidr,
                range_of(pods),
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
            cluster_cidr: Some(range_of("10.1.0.0/16")),
            ..Requested::default()
        };
        let network = decide(&requested, None, &[]).unwrap();
        assert_eq!(network.cluster_cidr, range_of("10.1.0.0/16"));

        assert_eq!(
            decide(&requested, None, &[in_use("10.1.2.0/24")])
                .unwrap_err()
                .to_string(),
            "--cluster-cidr 10.1.0.0/16: overlaps 10.1.2.0/24 of eth0; choose another range"
        );

        let other = Requested {
            cluster_cidr: Some(range_of("10.2.0.0/16")),
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
            service_cidr: Some(range_of("10.1.0.0/20")),
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

        let found = routes_of(table, "cor-1");
        assert_eq!(
            found,
            vec![RangeInUse {
                holder: "interface eth0".to_string(),
                range: range_of("10.244.0.0/16")
            }]
        );
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
