//! Makes the kernel equal to a plan.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path as FilePath, PathBuf};

use coracle_netlink::nftables::{self, Nftables, NftablesError};
use coracle_netlink::route::{Connection, Route};
use coracle_netlink::{NetlinkError, Version};

use crate::difference::{DeviceStep, Step, difference};
use crate::masquerade;
use crate::observe::{self, PROTOCOL};
use crate::plan::{Machine, Masquerade, Plan, Way};
use crate::record::{Record, RecordError};
use crate::run::Names;

/// Why the kernel could not be made equal to a plan.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error("cannot apply the rules for masquerading")]
    Nftables(#[from] NftablesError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("interface {0} was deleted by another process")]
    DeviceGone(String),
}

/// The kernel's configuration of one network namespace.
pub struct Kernel {
    host: Connection,
    names: Names,
    file: PathBuf,
    record: Record,
    /// What the packet filter has, as far as is known.
    masquerade: Option<Masquerade>,
    /// The VXLAN interfaces that exist.
    devices: BTreeMap<Version, u32>,
}

impl Kernel {
    /// That of this thread's namespace.
    pub fn open(names: &Names, file: &FilePath) -> Result<Kernel, KernelError> {
        Ok(Kernel {
            host: Connection::open()?,
            names: names.clone(),
            file: file.to_owned(),
            record: Record::load(file)?,
            masquerade: None,
            devices: BTreeMap::new(),
        })
    }

    /// Whether this is the index of one of our interfaces.
    pub(crate) fn is_own(&self, index: u32) -> bool {
        self.devices.values().any(|known| *known == index)
    }

    /// How packets get to these addresses, and what the machine has besides.
    pub fn machine(
        &mut self,
        targets: impl Iterator<Item = IpAddr>,
    ) -> Result<Machine, KernelError> {
        Ok(observe::machine(&mut self.host, &self.names, targets)?)
    }

    /// Makes the kernel equal to a plan; returns how many changes that took.
    pub fn apply(&mut self, plan: &Plan) -> Result<usize, KernelError> {
        let mut record = self.record.clone();
        record.routes.extend(plan.routes.keys());
        record.pod_mtu = Some(plan.pod_mtu);
        self.save(record)?;

        let changes = self.make_equal(plan);
        let rules = self.replace_rules(&plan.masquerade)?;
        let changes = changes?;

        let mut record = self.record.clone();
        record
            .routes
            .retain(|range| plan.routes.contains_key(range));
        self.save(record)?;

        Ok(changes + usize::from(rules))
    }

    /// Returns how many changes that took. One that fails keeps no other from being made: the way to
    /// one node may be broken, and that to others not.
    fn make_equal(&mut self, plan: &Plan) -> Result<usize, KernelError> {
        let found = observe::found(&mut self.host, &self.names)?;
        let steps = difference(&found, plan, &self.record.routes);
        self.devices = found
            .devices
            .iter()
            .map(|(version, device)| (*version, device.link.index))
            .collect();

        let mut first_error = None;
        for step in &steps {
            let taken = self.take(step);
            first_error = first_error.or(taken.err());
        }
        first_error.map_or(Ok(steps.len()), Err)
    }

    /// The rules were deleted by another process.
    pub fn forget_rules(&mut self) {
        self.masquerade = None;
    }

    /// Removes everything that this instance made. Rules that cannot be removed keep nothing else
    /// from being removed.
    pub fn remove(&mut self) -> Result<(), KernelError> {
        let nothing = Plan::default();
        let rules = self.replace_rules(&nothing.masquerade);
        self.make_equal(&nothing)?;
        rules?;
        Ok(Record::delete(&self.file)?)
    }

    fn save(&mut self, record: Record) -> Result<(), KernelError> {
        if record != self.record {
            record.save(&self.file)?;
            self.record = record;
        }
        Ok(())
    }

    fn index(&self, version: Version) -> Result<u32, KernelError> {
        let known = self.devices.get(&version).copied();
        known.ok_or_else(|| KernelError::DeviceGone(self.names.device(version).to_owned()))
    }

    fn take(&mut self, step: &Step) -> Result<(), KernelError> {
        match step {
            Step::DeleteRoute(range) => self.host.delete_route(*range, PROTOCOL)?,
            Step::ReplaceRoute(range, way) => {
                let (gateway, interface) = match way {
                    Way::Direct { gateway, interface } => (*gateway, *interface),
                    Way::Encapsulated { version, gateway } => (*gateway, self.index(*version)?),
                };
                let route = Route {
                    range: *range,
                    gateway,
                    interface,
                };
                self.host.replace_route(&route, PROTOCOL)?;
            }
            Step::DeleteDevice(version) => {
                self.host.delete_link(self.names.device(*version))?;
                self.devices.remove(version);
            }
            Step::AddDevice(version, vxlan, mtu) => {
                let name = self.names.device(*version);
                self.host.add_vxlan(name, *version, *mtu, vxlan)?;
                if let Some(index) = self.host.link(name)? {
                    self.devices.insert(*version, index);
                }
            }
            Step::Change(version, change) => {
                let index = self.index(*version)?;
                self.change(index, change)?;
            }
        }

        Ok(())
    }

    fn change(&mut self, index: u32, change: &DeviceStep) -> Result<(), NetlinkError> {
        match change {
            DeviceStep::SetMtu(mtu) => self.host.set_mtu(index, *mtu),
            DeviceStep::AddAddress(address) => self.host.add_address(index, *address),
            DeviceStep::RemoveAddress(address) => self.host.remove_address(index, *address),
            DeviceStep::SetUp => self.host.set_up(index),
            DeviceStep::SetTunnel(tunnel) => self.host.set_tunnel(index, tunnel),
            DeviceStep::DeleteTunnel(tunnel) => self.host.delete_tunnel(index, tunnel),
            DeviceStep::SetNeighbour(neighbour) => self.host.set_neighbour(index, neighbour),
            DeviceStep::DeleteNeighbour(address) => self.host.delete_neighbour(index, *address),
        }
    }

    /// Returns whether the rules were replaced.
    fn replace_rules(&mut self, wanted: &Masquerade) -> Result<bool, KernelError> {
        if self.masquerade.as_ref() == Some(wanted) {
            return Ok(false);
        }

        let table = masquerade::table(&self.names.table);
        match wanted.from.is_empty() {
            true => nftables::remove(&table)?,
            false => {
                let batch = masquerade::compile(&self.names.table, &self.names.bridge, wanted);
                Nftables::open()?.apply(&batch)?;
            }
        }
        self.masquerade = Some(wanted.clone());

        Ok(true)
    }
}
