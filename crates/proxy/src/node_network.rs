//! Node settings for forwarding of pod traffic, besides the bridge and the rules of Services.
//!
//! Enables IP forwarding; passes bridged traffic through nftables (otherwise replies between two
//! pods of one bridge would not be translated back); and accepts pod traffic where another firewall
//! drops forwarded packets, as Docker's does. As in upstream's nftables mode, NodePorts are not
//! reachable on loopback: `route_localnet` is not changed. Masquerading of pods is done by the
//! bridge (`podnet`).

use std::path::Path;
use std::{fs, io};

use ipnet::IpNet;

use crate::nft::{self, FilterError};
use crate::rules::Family;

/// The network of one instance on this node.
#[derive(Clone, Debug)]
pub struct NodeNetwork {
    /// Identifies its rules in tables of others.
    pub instance: String,
    /// The pod CIDRs of the cluster.
    pub pod_ranges: Vec<IpNet>,
}

/// Why the node cannot forward.
#[derive(Debug, thiserror::Error)]
pub enum NodeNetworkError {
    #[error("cannot set {setting}, which pod networking needs")]
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
/// The table and chain of `iptables-nft`.
const OTHERS: &str = "filter FORWARD";

impl NodeNetwork {
    /// Enables forwarding. Idempotent.
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
                tracing::warn!(%error, setting, "cannot enable bridge netfilter; pods of one node cannot reach each other through Services; load the kernel module br_netfilter");
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

    /// Removes the rules in tables of others. Kernel settings stay: other software may need them.
    pub fn withdraw(&self) -> Result<(), NodeNetworkError> {
        for family in Family::BOTH {
            let Ok(listed) = nft::run(
                &["-a", "list", "chain", word(family), "filter", "FORWARD"],
                "",
            ) else {
                continue; // The table does not exist.
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

/// If it is enabled already, no permission is needed.
fn switch_on(setting: &str) -> io::Result<()> {
    let now = fs::read_to_string(Path::new(setting))?;
    if now.trim() == "1" {
        Ok(())
    } else {
        fs::write(setting, "1")
    }
}

/// Whether another firewall drops forwarded packets.
fn drops(family: Family) -> bool {
    let listed = nft::run(&["list", "chain", word(family), "filter", "FORWARD"], "");
    listed.is_ok_and(|listed| listed.contains("policy drop"))
}

/// The handles of rules with this comment in the output of `nft -a`.
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
