//! Node settings for forwarding of pod traffic, besides the bridge and the rules of Services.
//!
//! Enables IP forwarding; passes bridged traffic through nftables (otherwise replies between two
//! pods of one bridge would not be translated back); and accepts pod traffic where another firewall
//! drops forwarded packets, as Docker's does. As in upstream's nftables mode, NodePorts are not
//! reachable on loopback: `route_localnet` is not changed. Masquerading of pods is done by the
//! bridge (`podnet`).

use std::path::Path;
use std::{fs, io};

use coracle_netlink::nftables::{
    Batch, Command, Field, Nftables, NftablesError, Rule, Statement, Test, Verdict,
};
use coracle_netlink::{ForwardingError, enable_forwarding};
use ipnet::IpNet;

use crate::nft::table;
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
    #[error(transparent)]
    Forwarding(#[from] ForwardingError),
    #[error(transparent)]
    Filter(#[from] NftablesError),
}

const BRIDGED: [(Family, &str); 2] = [
    (Family::V4, "/proc/sys/net/bridge/bridge-nf-call-iptables"),
    (Family::V6, "/proc/sys/net/bridge/bridge-nf-call-ip6tables"),
];
/// The table and chain of `iptables-nft`.
const TABLE: &str = "filter";
const CHAIN: &str = "FORWARD";
/// How often others may change nftables between our reading and our writing.
const TRIES: usize = 20;

impl NodeNetwork {
    /// Enables forwarding. Idempotent.
    pub fn prepare(&self) -> Result<(), NodeNetworkError> {
        for family in Family::BOTH {
            if self.has(family) {
                enable_forwarding(family)?;
            }
        }

        for (family, setting) in BRIDGED {
            if self.has(family)
                && let Err(error) = switch_on(setting)
            {
                tracing::warn!(%error, setting, "cannot enable bridge netfilter; pods of one node cannot reach each other through Services; load the kernel module br_netfilter");
            }
        }

        self.replace(|family, batch| self.accept(family, batch))
    }

    /// Removes the rules in tables of others. Kernel settings stay: other software may need them.
    pub fn withdraw(&self) -> Result<(), NodeNetworkError> {
        self.replace(|_, _| {})
    }

    /// Replaces the rules in tables of others. `accept` is called for families whose forwarded
    /// packets another firewall drops.
    fn replace(&self, accept: impl Fn(Family, &mut Batch)) -> Result<(), NodeNetworkError> {
        let mut nftables = match Nftables::open() {
            Err(error) if error.is_unsupported() => return Ok(()),
            opened => opened?,
        };

        // What was read holds only until another process changes it.
        for _ in 0..TRIES {
            match self.try_replace(&mut nftables, &accept) {
                Err(NftablesError::Stale) => {}
                done => return Ok(done?),
            }
        }
        Err(NftablesError::Stale.into())
    }

    fn try_replace(
        &self,
        nftables: &mut Nftables,
        accept: impl Fn(Family, &mut Batch),
    ) -> Result<(), NftablesError> {
        let generation = nftables.generation()?;
        let comment = Some(self.comment());
        let mut batch = Batch::new();

        for family in Family::BOTH {
            let table = table(family, TABLE);
            for rule in nftables.rules(&table, CHAIN)? {
                if rule.comment == comment {
                    let delete = Command::DeleteRule {
                        chain: CHAIN.to_owned(),
                        handle: rule.handle,
                    };
                    batch.push(&table, delete);
                }
            }
            if nftables.drops(&table, CHAIN)? {
                accept(family, &mut batch);
            }
        }

        nftables.apply_at(&batch, generation)
    }

    /// Accepts packets from and to the pods of a family.
    fn accept(&self, family: Family, batch: &mut Batch) {
        let own = self
            .pod_ranges
            .iter()
            .filter(|range| Family::of(range.addr()) == family);

        for range in own {
            for end in [Field::Source(family), Field::Destination(family)] {
                let rule = Rule {
                    statements: vec![
                        Statement::Ranges(end, Test::Is, vec![*range]),
                        Statement::Verdict(Verdict::Accept),
                    ],
                    comment: Some(self.comment()),
                };
                let insert = Command::InsertRule {
                    chain: CHAIN.to_owned(),
                    rule,
                };
                batch.push(&table(family, TABLE), insert);
            }
        }
    }

    fn comment(&self) -> String {
        format!("coracle {}", self.instance)
    }

    fn has(&self, family: Family) -> bool {
        self.pod_ranges
            .iter()
            .any(|range| Family::of(range.addr()) == family)
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
