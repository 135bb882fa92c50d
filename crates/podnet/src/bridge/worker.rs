//! The state and operations of the bridge's thread: allocates addresses, records them, connects
//! pods.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::IpAddr;

use coracle_netlink::nftables::{self, Nftables};
use coracle_netlink::route::{Connection, is_name};
use ipnet::IpNet;

use super::BridgeConfig;
use super::wiring::{self, Wire};
use crate::host_ports::{self, PortTable};
use crate::ledger::Ledger;
use crate::pool::Pool;
use crate::{Attachment, Error, Pod, PortMapping};

pub(super) struct Worker {
    config: BridgeConfig,
    host: Connection,
    ledger: Ledger,
    network: Option<Network>,
}

/// Exists once the ranges are known.
struct Network {
    bridge: u32,
    mtu: u32,
    pools: Vec<Pool>,
}

impl Worker {
    pub(super) fn open(config: BridgeConfig) -> Result<Self, Error> {
        is_name(&config.name).map_err(|error| Error::Name(config.name.clone(), error))?;
        let ledger = Ledger::open(&config.state)?;
        let host = Connection::open()?;

        let ranges = config.ranges.clone();
        let mut worker = Self {
            config,
            host,
            ledger,
            network: None,
        };

        if !ranges.is_empty() {
            worker.set_ranges(&ranges)?;
        }

        Ok(worker)
    }

    pub(super) fn set_ranges(&mut self, ranges: &[IpNet]) -> Result<(), Error> {
        let mut pools = ranges
            .iter()
            .map(|range| Pool::new(*range).ok_or(Error::RangeTooSmall(*range)))
            .collect::<Result<Vec<_>, _>>()?;

        let mut records: Vec<_> = self.ledger.iter().map(|(_, record)| record).collect();
        records.sort_by_key(|record| record.number);
        let held: Vec<IpAddr> = records
            .iter()
            .flat_map(|record| record.addresses.clone())
            .collect();

        for pool in &mut pools {
            held.iter().for_each(|address| pool.reserve(*address));
        }

        let (bridge, mtu) = wiring::reconcile_bridge(&mut self.host, &self.config, &pools, &held)?;
        self.config.ranges = ranges.to_vec();
        self.network = Some(Network { bridge, mtu, pools });

        if self.has_rules() {
            self.apply_rules(&[])?;
        }

        Ok(())
    }

    /// Sets the MTU of the bridge and of all pods. A pod that has just ended is skipped.
    pub(super) fn set_mtu(&mut self, mtu: u32) -> Result<(), Error> {
        self.config.mtu = Some(mtu);
        let Some(network) = self.network.as_mut().filter(|network| network.mtu != mtu) else {
            return Ok(());
        };
        network.mtu = mtu;
        self.host.set_mtu(network.bridge, mtu)?;

        for (sandbox, record) in self.ledger.iter() {
            let port = wiring::name_of_port(sandbox);
            if let Err(error) = wiring::set_mtu(&mut self.host, &port, &record.netns, mtu) {
                tracing::warn!(sandbox, %error, "cannot set the MTU of a pod");
            }
        }

        Ok(())
    }

    /// Attaches each of these pods. The rules are replaced once for all of them; if that fails,
    /// each is attached alone, so that the ports of one pod do not affect another.
    pub(super) fn attach_all(&mut self, pods: &[&Pod]) -> Vec<Result<Attachment, Error>> {
        let attached: Vec<_> = pods.iter().map(|pod| self.attach(pod)).collect();
        let with_ports = || {
            pods.iter()
                .zip(&attached)
                .filter(|(pod, done)| done.is_ok() && !pod.ports.is_empty())
        };

        if with_ports().next().is_none() {
            return attached;
        }

        let Err(error) = self.apply_rules(&[]) else {
            return attached;
        };
        with_ports().for_each(|(pod, _)| self.undo(&pod.sandbox));

        if let [_] = pods {
            return vec![Err(error)];
        }

        let alone = |(pod, done): (&&Pod, _)| match done {
            Ok(_) if !pod.ports.is_empty() => self.attach_all(&[*pod]).remove(0),
            done => done,
        };

        pods.iter().zip(attached).map(alone).collect()
    }

    /// Without the rules.
    fn attach(&mut self, pod: &Pod) -> Result<Attachment, Error> {
        // Remains of an incomplete attempt: start over.
        self.detach(&pod.sandbox)?;
        self.check_ports(&pod.ports)?;
        let addresses = self.take_addresses()?;
        if let Err(error) = self.connect(pod, &addresses) {
            self.undo(&pod.sandbox);
            self.release(&addresses);
            return Err(error);
        }
        Ok(Attachment { addresses })
    }

    /// The original failure is reported; what cannot be undone now is cleaned up by the next
    /// attempt or by reclaim.
    fn undo(&mut self, sandbox: &str) {
        if let Err(left) = self.detach(sandbox) {
            tracing::warn!(sandbox, error = %left, "cannot undo failed pod attachment");
        }
    }

    fn connect(&mut self, pod: &Pod, addresses: &[IpAddr]) -> Result<(), Error> {
        self.ledger.put(
            &pod.sandbox,
            addresses.to_vec(),
            pod.ports.clone(),
            &pod.netns,
        )?;
        let network = self.network.as_ref().ok_or(Error::NotConfigured)?;

        let namespace =
            File::open(&pod.netns).map_err(|source| Error::Namespace(pod.netns.clone(), source))?;
        let wire = Wire {
            bridge: network.bridge,
            mtu: network.mtu,
            pools: &network.pools,
            addresses,
        };

        wire.connect(
            &mut self.host,
            &wiring::name_of_port(&pod.sandbox),
            &namespace,
        )
    }

    /// Detaches each of these. The rules are replaced once for all of them; if that fails, each is
    /// detached alone.
    pub(super) fn detach_all(&mut self, sandboxes: &[&str]) -> Vec<Result<(), Error>> {
        let has_ports = |sandbox: &&str| {
            self.ledger
                .get(sandbox)
                .is_some_and(|record| !record.ports.is_empty())
        };

        if sandboxes.iter().any(has_ports)
            && let Err(error) = self.apply_rules(sandboxes)
        {
            return match sandboxes {
                [_] => vec![Err(error)],
                all => all.iter().map(|sandbox| self.detach(sandbox)).collect(),
            };
        }

        sandboxes
            .iter()
            .map(|sandbox| self.disconnect(sandbox))
            .collect()
    }

    fn detach(&mut self, sandbox: &str) -> Result<(), Error> {
        self.detach_all(&[sandbox]).remove(0)
    }

    /// Undoes the steps of attaching in reverse order, after the rules; the record is removed last.
    fn disconnect(&mut self, sandbox: &str) -> Result<(), Error> {
        let Some(record) = self.ledger.get(sandbox).cloned() else {
            return Ok(());
        };
        self.host.delete_link(&wiring::name_of_port(sandbox))?;
        self.ledger.remove(sandbox)?;
        self.release(&record.addresses);
        Ok(())
    }

    pub(super) fn reclaim(&mut self, live: &BTreeSet<String>) -> Result<(), Error> {
        let known: Vec<String> = self
            .ledger
            .iter()
            .map(|(sandbox, _)| sandbox.clone())
            .collect();
        let gone: Vec<&str> = known
            .iter()
            .filter(|sandbox| !live.contains(*sandbox))
            .map(String::as_str)
            .collect();
        self.detach_all(&gone).into_iter().collect()
    }

    pub(super) fn tear_down(&mut self) -> Result<(), Error> {
        self.reclaim(&BTreeSet::new())?;
        // Rules that cannot be removed keep nothing else from being removed.
        let rules = nftables::remove(&host_ports::table(&self.config.table));
        self.host.delete_link(&self.config.name)?;
        self.network = None;
        Ok(rules?)
    }

    /// Takes one address of each range, or none.
    fn take_addresses(&mut self) -> Result<Vec<IpAddr>, Error> {
        let network = self.network.as_mut().ok_or(Error::NotConfigured)?;
        let mut taken = Vec::new();
        for pool in &mut network.pools {
            match pool.take() {
                Some(address) => taken.push(address),
                None => {
                    let full = pool.range();
                    self.release(&taken);
                    return Err(Error::Exhausted(full));
                }
            }
        }

        Ok(taken)
    }

    fn release(&mut self, addresses: &[IpAddr]) {
        for pool in self
            .network
            .iter_mut()
            .flat_map(|network| &mut network.pools)
        {
            addresses.iter().for_each(|address| pool.release(*address));
        }
    }

    fn check_ports(&self, table: &[PortMapping]) -> Result<(), Error> {
        for (holder, record) in self.ledger.iter() {
            for port in table {
                if record
                    .ports
                    .iter()
                    .any(|held| host_ports::collide(held, port))
                {
                    return Err(Error::PortTaken {
                        port: port.host_port,
                        holder: holder.clone(),
                    });
                }
            }
        }

        Ok(())
    }

    /// Another process may have deleted the rules.
    pub(super) fn restore_rules(&self) -> Result<(), Error> {
        let table = host_ports::table(&self.config.table);
        if self.network.is_none() || !self.has_rules() || Nftables::open()?.has_table(&table)? {
            return Ok(());
        }
        tracing::warn!(
            table = self.config.table,
            "nftables table was deleted by another process; restoring it"
        );
        self.apply_rules(&[])
    }

    fn has_rules(&self) -> bool {
        !self.config.masquerade_outside.is_empty()
            || self
                .ledger
                .iter()
                .any(|(_, record)| !record.ports.is_empty())
    }

    /// Replaces the rules by those of all records, except `without`.
    fn apply_rules(&self, without: &[&str]) -> Result<(), Error> {
        let pods = self
            .ledger
            .iter()
            .filter(|(sandbox, _)| !without.contains(&sandbox.as_str()));

        let table = PortTable {
            table: &self.config.table,
            bridge: &self.config.name,
            ranges: &self.config.ranges,
            masquerade_outside: &self.config.masquerade_outside,
            pods: pods
                .map(|(_, record)| (record.addresses.as_slice(), record.ports.as_slice()))
                .collect(),
        };

        if table.pods.iter().any(|(_, ports)| !ports.is_empty()) {
            // Makes host ports reachable at 127.0.0.1 from the host; the table blocks other
            // sources.
            let setting = format!(
                "/proc/sys/net/ipv4/conf/{}/route_localnet",
                self.config.name
            );

            if let Err(error) = fs::write(&setting, "1") {
                tracing::warn!(%error, setting, "cannot enable route_localnet; host ports are not reachable at 127.0.0.1");
            }
        }

        Ok(Nftables::open()?.apply(&host_ports::compile(&table))?)
    }
}
