//! The ranges and ports of a cluster on this machine: what was asked for, what it had before, or
//! the first that is free.
//!
//! Whatever was chosen is written into the data directory, because the addresses of a cluster's
//! objects depend on it; and into the run directory, where other clusters of the machine see it
//! while this one runs.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use super::pod_network::Plugins;
use crate::instance::Instance;

/// What a cluster has on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    /// Addresses of pods.
    pub(crate) cluster_cidr: IpNet,
    /// Addresses of Services.
    pub(crate) service_cidr: IpNet,
    pub(crate) https_port: u16,
    pub(crate) kubelet_port: u16,
    /// Who connects its pods, if it is not the built-in bridge: whoever takes them down has to ask
    /// the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cni: Option<Plugins>,
}

/// What the person who started it wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) cluster_cidr: Option<IpNet>,
    pub(crate) service_cidr: Option<IpNet>,
    pub(crate) https_port: Option<u16>,
    pub(crate) kubelet_port: Option<u16>,
    pub(crate) cni: Option<Plugins>,
    /// So many nodes there are that send no packets: they may have ranges that would be in
    /// somebody's way.
    pub(crate) simulated_nodes: u16,
}

/// Why a cluster has no place here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error("{flag} {wanted}: {holder} has {held} already; choose another range")]
    Taken {
        flag: &'static str,
        wanted: IpNet,
        holder: String,
        held: IpNet,
    },
    #[error(
        "{flag} {wanted}: this cluster has {had} since it was made, and addresses that were given out cannot change"
    )]
    Changed {
        flag: &'static str,
        wanted: IpNet,
        had: IpNet,
    },
    #[error("no range is free for {0}; choose one with the flag")]
    NoneFree(&'static str),
    #[error("--cluster-cidr {pods} and --service-cidr {services} overlap")]
    Overlap { pods: IpNet, services: IpNet },
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("{}: not what a cluster writes there: {error}", file.display())]
    Damaged {
        file: PathBuf,
        error: serde_json::Error,
    },
}

/// A range that somebody on this machine uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    holder: String,
    range: IpNet,
}

/// Decides. `remembered` is what this cluster had before, `held` what others have.
pub(crate) fn decide(
    wanted: &Wanted,
    remembered: Option<&Place>,
    held: &[Held],
) -> Result<Place, PlaceError> {
    let service_cidr = range(
        "--service-cidr",
        wanted.service_cidr,
        remembered.map(|place| place.service_cidr),
        service_ranges(),
        held,
    )?;

    let cluster_cidr = range(
        "--cluster-cidr",
        wanted.cluster_cidr,
        remembered.map(|place| place.cluster_cidr),
        pod_ranges(wanted.simulated_nodes).filter(|range| !overlap(range, &service_cidr)),
        held,
    )?;

    if overlap(&cluster_cidr, &service_cidr) {
        return Err(PlaceError::Overlap {
            pods: cluster_cidr,
            services: service_cidr,
        });
    }

    let port =
        |wanted: Option<u16>, had: Option<u16>, default: u16| wanted.or(had).unwrap_or(default);

    Ok(Place {
        cluster_cidr,
        service_cidr,
        https_port: port(
            wanted.https_port,
            remembered.map(|place| place.https_port),
            6443,
        ),
        kubelet_port: port(
            wanted.kubelet_port,
            remembered.map(|place| place.kubelet_port),
            10250,
        ),
        cni: wanted.cni.clone(),
    })
}

fn range(
    flag: &'static str,
    wanted: Option<IpNet>,
    had: Option<IpNet>,
    defaults: impl Iterator<Item = IpNet>,
    held: &[Held],
) -> Result<IpNet, PlaceError> {
    match (wanted, had) {
        (Some(wanted), Some(had)) if wanted.trunc() != had => {
            Err(PlaceError::Changed { flag, wanted, had })
        }
        (_, Some(had)) => Ok(had),
        (Some(wanted), None) => match held.iter().find(|held| overlap(&held.range, &wanted)) {
            Some(Held { holder, range }) => Err(PlaceError::Taken {
                flag,
                wanted,
                holder: holder.clone(),
                held: *range,
            }),
            None => Ok(wanted.trunc()),
        },
        (None, None) => defaults
            .into_iter()
            .find(|range| !held.iter().any(|held| overlap(&held.range, range)))
            .ok_or(PlaceError::NoneFree(flag)),
    }
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// Upstream's usual range, then those that follow it. It is enough for 256 nodes; for more of those
/// that are simulated there is a larger one.
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

/// What the cluster of this directory had before.
pub(crate) fn remembered(instance: &Instance) -> Result<Option<Place>, PlaceError> {
    let file = memory(instance);
    match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| PlaceError::Damaged { file, error }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PlaceError::File { file, error }),
    }
}

/// Remembers it for the next start.
pub(crate) fn remember(instance: &Instance, place: &Place) -> Result<(), PlaceError> {
    write(&memory(instance), place)
}

fn memory(instance: &Instance) -> PathBuf {
    instance.data_dir.join("cluster.json")
}

/// What a running cluster shows to the others of the machine.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Presence {
    data_dir: PathBuf,
    /// The network namespace it is in: only there it is in anybody's way.
    network: String,
    #[serde(flatten)]
    place: Place,
}

/// Shows it to other clusters of this machine.
pub(crate) fn show(instance: &Instance, place: &Place) -> Result<(), PlaceError> {
    let presence = Presence {
        data_dir: instance.data_dir.clone(),
        network: own_network(),
        place: place.clone(),
    };
    write(&instance.run_dir().join(PRESENCE), &presence)
}

const PRESENCE: &str = "cluster.json";

/// The ranges that other clusters and the interfaces of this machine have.
pub(crate) fn held_by_others(instance: &Instance) -> Vec<Held> {
    let mut held = Vec::new();
    let own = instance.run_dir();

    let folder = own.parent().map(fs::read_dir);
    for entry in folder.into_iter().flatten().flatten().flatten() {
        if entry.path() == own {
            continue;
        }

        let Ok(bytes) = fs::read(entry.path().join(PRESENCE)) else {
            continue;
        };

        let Ok(other) = serde_json::from_slice::<Presence>(&bytes) else {
            continue;
        };
        if other.network != own_network() || !other.data_dir.exists() {
            continue;
        }

        for range in [other.place.cluster_cidr, other.place.service_cidr] {
            held.push(Held {
                holder: format!("the cluster in {}", other.data_dir.display()),
                range,
            });
        }
    }

    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    held.extend(routes_of(&routes, &instance.bridge()));

    held
}

/// The networks that interfaces lead to, but for everything and for what is behind our own bridge.
fn routes_of(table: &str, own: &str) -> Vec<Held> {
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

        (range.prefix_len() > 0 && interface != own).then(|| Held {
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

fn write(file: &Path, what: &impl Serialize) -> Result<(), PlaceError> {
    let text = serde_json::to_vec_pretty(what).expect("it is plain data");
    let fail = |error| PlaceError::File {
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

/// The address of a range that has this number: Services' first is the API server's, their tenth
/// the DNS's.
pub(crate) fn nth_address(range: &IpNet, number: usize) -> Option<IpAddr> {
    range.hosts().nth(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn held(text: &str) -> Held {
        Held {
            holder: "eth0".to_string(),
            range: range_of(text),
        }
    }

    #[test]
    fn defaults_move_out_of_the_way_of_what_is_there() {
        let check = |taken: &[&str], pods: &str, services: &str| {
            let taken: Vec<Held> = taken.iter().map(|range| held(range)).collect();
            let place = decide(&Wanted::default(), None, &taken).unwrap();
            assert_eq!(
                (place.cluster_cidr, place.service_cidr),
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
    fn many_simulated_nodes_have_a_large_range() {
        let check = |simulated_nodes: u16, service_cidr: Option<&str>, pods: &str| {
            let wanted = Wanted {
                simulated_nodes,
                service_cidr: service_cidr.map(range_of),
                ..Wanted::default()
            };

            assert_eq!(
                decide(&wanted, None, &[]).unwrap().cluster_cidr,
                range_of(pods),
                "{wanted:?}"
            );
        };
        check(256, None, "10.244.0.0/16");

        check(257, None, "10.128.0.0/9");
        check(257, Some("10.200.0.0/16"), "10.244.0.0/16");
        check(0, Some("10.244.0.0/16"), "10.245.0.0/16");
    }

    #[test]
    fn what_was_asked_for_is_had_or_refused_by_name() {
        let wanted = Wanted {
            cluster_cidr: Some(range_of("10.1.0.0/16")),
            ..Wanted::default()
        };
        let place = decide(&wanted, None, &[]).unwrap();
        assert_eq!(place.cluster_cidr, range_of("10.1.0.0/16"));

        assert_eq!(
            decide(&wanted, None, &[held("10.1.2.0/24")])
                .unwrap_err()
                .to_string(),
            "--cluster-cidr 10.1.0.0/16: eth0 has 10.1.2.0/24 already; choose another range"
        );

        let other = Wanted {
            cluster_cidr: Some(range_of("10.2.0.0/16")),
            ..Wanted::default()
        };

        assert_eq!(
            decide(&other, Some(&place), &[]).unwrap_err().to_string(),
            "--cluster-cidr 10.2.0.0/16: this cluster has 10.1.0.0/16 since it was made, and addresses that were \
             given out cannot change"
        );

        // What it had it keeps, whoever has come meanwhile.
        assert_eq!(
            decide(&Wanted::default(), Some(&place), &[held("10.1.0.0/16")]).unwrap(),
            place
        );

        let both = Wanted {
            service_cidr: Some(range_of("10.1.0.0/20")),
            ..wanted
        };

        assert!(matches!(
            decide(&both, None, &[]),
            Err(PlaceError::Overlap { .. })
        ));
    }

    #[test]
    fn the_table_of_routes_is_read() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     eth0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                     cor-1\t0001F50A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

        let found = routes_of(table, "cor-1");
        assert_eq!(
            found,
            vec![Held {
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
