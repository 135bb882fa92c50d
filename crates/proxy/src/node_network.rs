//! What a node needs so that pods' packets are forwarded at all, beside the bridge and the rules of
//! Services.
//!
//! The kernel forwards; what crosses a bridge passes the rules too (an answer between two pods of
//! one bridge would otherwise not come from the Service that was asked); and where somebody else's
//! firewall drops what is forwarded, as Docker's does, pods are let through. Upstream's proxy in
//! this mode does not lead ports of the node from the loopback, and neither does this one:
//! `route_localnet` stays as it is. The masquerade of pods that leave the cluster is the bridge's
//! (`podnet`).

use std::path::Path;
use std::{fs, io};

use ipnet::IpNet;

use crate::nft::{self, FilterError};
use crate::rules::Family;

/// The network of one instance on this node.
#[derive(Clone, Debug)]
pub struct NodeNetwork {
    /// By this name its rules in other tables are found again.
    pub instance: String,
    /// The addresses of all pods.
    pub pod_ranges: Vec<IpNet>,
}

/// Why the node does not forward.
#[derive(Debug, thiserror::Error)]
pub enum NodeNetworkError {
    #[error("cannot set {setting}, without which pods are not reached")]
    Setting {
        setting: &'static str,
        source: io::Error,
    },
    #[error(transparent)]
    Filter(#[from] FilterError),
}

const FORWARD: [(Family, &str); 2] = [
    (Family::V4, "/proc/sys/net/ipv4/ip_forward"),
    (Family::V6, "/proc/sys/net/ipv6/conf/all/forwarding"),
];
const BRIDGED: [(Family, &str); 2] = [
    (Family::V4, "/proc/sys/net/bridge/bridge-nf-call-iptables"),
    (Family::V6, "/proc/sys/net/bridge/bridge-nf-call-ip6tables"),
];
/// The table and chain in which `iptables` of our days keeps what others forbid.
const OTHERS: &str = "filter FORWARD";

impl NodeNetwork {
    /// Makes the node forward. Doing it again changes nothing.
    pub fn prepare(&self) -> Result<(), NodeNetworkError> {
        for (family, setting) in FORWARD {
            if self.has(family) {
                switch_on(setting)
                    .map_err(|source| NodeNetworkError::Setting { setting, source })?;
            }
        }

        for (family, setting) in BRIDGED {
            if self.has(family)
                && let Err(error) = switch_on(setting)
            {
                tracing::warn!(%error, setting, "pods of one node do not reach each other through Services (is the module br_netfilter loaded?)");
            }
        }

        self.withdraw()?;
        let script: String = self
            .families()
            .filter(|family| drops(*family))
            .map(|family| self.accepts(family))
            .collect();

        if !script.is_empty() {
            nft::apply(&script)?;
        }

        Ok(())
    }

    /// Takes back what was put into others' tables. Settings of the kernel stay: others may need
    /// them by now.
    pub fn withdraw(&self) -> Result<(), NodeNetworkError> {
        for family in Family::BOTH {
            let Ok(listed) = nft::run(
                &["-a", "list", "chain", word(family), "filter", "FORWARD"],
                "",
            ) else {
                continue; // There is no such table.
            };

            let delete =
                |handle: &str| format!("delete rule {} {OTHERS} handle {handle}\n", word(family));
            let script: String = handles(&listed, &self.comment()).map(delete).collect();
            if !script.is_empty() {
                nft::apply(&script)?;
            }
        }

        Ok(())
    }

    fn accepts(&self, family: Family) -> String {
        let (word, comment) = (word(family), self.comment());
        let own = self
            .pod_ranges
            .iter()
            .filter(|range| Family::of(range.addr()) == family);

        let accept = |range: &IpNet| {
            let towards = |direction| {
                format!(
                    "insert rule {word} {OTHERS} {word} {direction} {range} accept comment \"{comment}\"\n"
                )
            };
            towards("saddr") + &towards("daddr")
        };

        own.map(accept).collect()
    }

    fn comment(&self) -> String {
        format!("coracle {}", self.instance)
    }

    fn has(&self, family: Family) -> bool {
        self.pod_ranges
            .iter()
            .any(|range| Family::of(range.addr()) == family)
    }

    fn families(&self) -> impl Iterator<Item = Family> {
        Family::BOTH.into_iter().filter(|family| self.has(*family))
    }
}

/// Where it is on already, the right to switch it on is not needed.
fn switch_on(setting: &str) -> io::Result<()> {
    let now = fs::read_to_string(Path::new(setting))?;
    if now.trim() == "1" {
        Ok(())
    } else {
        fs::write(setting, "1")
    }
}

/// Whether somebody else drops what is forwarded.
fn drops(family: Family) -> bool {
    let listed = nft::run(&["list", "chain", word(family), "filter", "FORWARD"], "");
    listed.is_ok_and(|listed| listed.contains("policy drop"))
}

/// The handles of the rules with a comment, in what `nft -a` lists.
fn handles<'a>(listed: &'a str, comment: &str) -> impl Iterator<Item = &'a str> {
    let marked = format!("comment \"{comment}\"");
    listed
        .lines()
        .filter(move |line| line.contains(&marked))
        .filter_map(|line| line.rsplit_once("# handle "))
        .map(|(_, handle)| handle)
}

fn word(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}
