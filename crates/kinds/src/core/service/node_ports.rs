//! Node ports: numbers of one range, each allocated to one Service.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::sync::MutexGuard;

use coracle_api::catalog::BUILTIN;
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::{Value, typed};
use coracle_base::sync::Mutex;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};

use super::intent;
use super::spec::SpecExt;
use crate::ApiError;
use crate::Cluster;
use crate::cluster::Allocation;
use crate::strategy::{Context, SPEC};

/// Which node ports are allocated. Filled from the existing Services on first use.
pub struct NodePorts {
    range: RangeInclusive<u16>,
    taken: Mutex<Option<HashSet<u16>>>,
}

impl NodePorts {
    /// The default range.
    pub const USUAL: RangeInclusive<u16> = 30000..=32767;

    pub fn new(range: RangeInclusive<u16>) -> NodePorts {
        NodePorts {
            range,
            taken: Mutex::default(),
        }
    }
}

/// Why a port cannot be allocated.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("provided port is not in the valid range. The range of valid ports is {0}-{1}")]
    NotInRange(u16, u16),
    #[error("provided port is already allocated")]
    Taken,
    #[error("range is full")]
    Full,
}

impl NodePorts {
    fn taken(&self, cluster: &dyn Cluster) -> MutexGuard<'_, Option<HashSet<u16>>> {
        let mut taken = self.taken.lock();
        taken.get_or_insert_with(|| {
            let services = BUILTIN
                .resource("", "v1", "services")
                .expect("Services are built in");
            let specs = cluster
                .list(services, "")
                .into_iter()
                .filter_map(|tree| spec_of(&tree));
            specs.flat_map(|spec| of(&spec)).collect()
        });
        taken
    }

    /// How many are allocated, and how many are left; `None`: no Service has been written yet.
    pub fn counts(&self) -> Option<(usize, usize)> {
        let taken = self.taken.lock().as_ref()?.len();
        Some((taken, self.range.len().saturating_sub(taken)))
    }

    pub(super) fn release(&self, ports: &[u16]) {
        let mut taken = self.taken.lock();
        if let Some(taken) = taken.as_mut() {
            ports.iter().for_each(|port| {
                taken.remove(port);
            });
        }
    }
}

fn spec_of(tree: &Value) -> Option<ServiceSpec> {
    typed::from_tree::<Service>(tree).ok()?.spec
}

/// The ports that a Service holds.
pub(super) fn of(spec: &ServiceSpec) -> Vec<u16> {
    let health_check = spec
        .health_check_node_port
        .filter(|_| spec.needs_health_check());
    let ports = spec
        .ports()
        .iter()
        .filter_map(|port| port.node_port)
        .chain(health_check);

    ports
        .filter_map(|port| u16::try_from(port).ok())
        .filter(|port| *port != 0)
        .collect()
}

/// Ports that a pending write allocates and releases.
#[derive(Default)]
pub(super) struct PendingPorts {
    taken: BTreeSet<u16>,
    /// Released if the write succeeds.
    to_release: Vec<u16>,
    dry_run: bool,
}

impl PendingPorts {
    pub(super) fn settle(self, happened: bool, ports: &NodePorts) {
        if !self.dry_run {
            let free: Vec<u16> = if happened {
                self.to_release
            } else {
                self.taken.into_iter().collect()
            };
            ports.release(&free);
        }
    }

    fn take(&mut self, port: i32, cx: &Context<'_>) -> Result<(), Refused> {
        let result = self.take_uncounted(port, cx);
        self.count(true, result.is_ok(), cx);
        result
    }

    fn take_any(&mut self, cx: &Context<'_>) -> Result<i32, Refused> {
        let result = self.take_any_uncounted(cx);
        self.count(false, result.is_ok(), cx);
        result
    }

    fn count(&self, chosen: bool, succeeded: bool, cx: &Context<'_>) {
        if !self.dry_run {
            cx.cluster.count_allocation(Allocation {
                range: None,
                chosen,
                succeeded,
            });
        }
    }

    fn take_uncounted(&mut self, port: i32, cx: &Context<'_>) -> Result<(), Refused> {
        let ports = cx.cluster.node_ports();
        let mut taken = ports.taken(cx.cluster);
        let taken = taken.as_mut().expect("filled on first use");

        let number = u16::try_from(port).unwrap_or_default();
        if self.dry_run {
            if taken.contains(&number) || self.taken.contains(&number) {
                return Err(Refused::Taken);
            }
        } else if !ports.range.contains(&number) {
            return Err(Refused::NotInRange(
                *ports.range.start(),
                *ports.range.end(),
            ));
        } else if !taken.insert(number) {
            return Err(Refused::Taken);
        }

        self.taken.insert(number);

        Ok(())
    }

    fn take_any_uncounted(&mut self, cx: &Context<'_>) -> Result<i32, Refused> {
        let ports = cx.cluster.node_ports();
        if self.dry_run {
            // Nothing is allocated: the response has some port, not necessarily the final one.
            let after = ports.range.end().saturating_add(1);
            let any = self
                .taken
                .last()
                .copied()
                .unwrap_or(after)
                .saturating_add(1);
            self.taken.insert(any);

            return Ok(i32::from(any));
        }

        let mut taken = ports.taken(cx.cluster);
        let taken = taken.as_mut().expect("filled on first use");

        let len = u64::from(ports.range.end() - ports.range.start()) + 1;
        let start = cx.cluster.random() % len;
        let place = |step: u64| {
            ports.range.start() + u16::try_from((start + step) % len).expect("within the range")
        };

        let free = (0..len)
            .map(place)
            .find(|port| !taken.contains(port))
            .ok_or(Refused::Full)?;
        taken.insert(free);

        self.taken.insert(free);

        Ok(i32::from(free))
    }
}

/// Reserves the node ports that a Service needs and lacks, and notes those that it gives up.
pub(super) fn reserve(
    new: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    name: &str,
    cx: &Context<'_>,
) -> Result<PendingPorts, ApiError> {
    let mut held = PendingPorts {
        dry_run: cx.dry_run,
        ..PendingPorts::default()
    };

    let result = reserve_all(new, old, name, cx, &mut held);
    if let Err(refused) = result {
        held.settle(false, cx.cluster.node_ports());
        return Err(refused);
    }

    if let Some(old) = old {
        // Another type may have none, though the fields are still set.
        let mut kept = new.clone();
        intent::drop_what_the_type_has_not(&mut kept, old);
        let kept: BTreeSet<u16> = of(&kept).into_iter().collect();
        held.to_release = of(old)
            .into_iter()
            .filter(|port| !kept.contains(port))
            .collect();
    }

    Ok(held)
}

fn reserve_all(
    new: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    name: &str,
    cx: &Context<'_>,
    held: &mut PendingPorts,
) -> Result<(), ApiError> {
    if new.needs_node_ports() {
        match old {
            None => for_new(new, name, cx, held)?,
            Some(old) => for_changed(new, old, name, cx, held)?,
        }
    }
    let had = old.is_some_and(SpecExt::needs_health_check);
    if new.needs_health_check() && !had {
        for_health_check(new, cx, held)?;
    }
    Ok(())
}

/// Whether ports that the client did not choose are allocated.
fn allocates(spec: &ServiceSpec) -> bool {
    spec.is("NodePort") || spec.allocate_load_balancer_node_ports.unwrap_or_default()
}

fn refused(place: usize, port: i32, why: &Refused, name: &str, cx: &Context<'_>) -> ApiError {
    let at = SPEC.field("ports");
    let error = FieldError::invalid(
        &at.index(place).field("nodePort"),
        port.to_string(),
        why.to_string(),
    );
    ApiError::invalid(cx.kind, name, &FieldErrors::from(error))
}

fn exhausted(why: &Refused) -> ApiError {
    ApiError::internal(format!("failed to allocate a nodePort: {why}"))
}

/// Protocols that share a port number share its node port.
fn for_new(
    spec: &mut ServiceSpec,
    name: &str,
    cx: &Context<'_>,
    held: &mut PendingPorts,
) -> Result<(), ApiError> {
    let allocates = allocates(spec);

    // Of several node ports of one number the first counts.
    let asked = spec
        .ports()
        .iter()
        .rev()
        .map(|port| (port.port, port.node_port.unwrap_or_default()));
    let named: BTreeMap<i32, i32> = asked.filter(|(_, asked)| *asked != 0).collect();

    let mut shared: BTreeMap<i32, i32> = BTreeMap::new();
    for (place, port) in spec.ports.iter_mut().flatten().enumerate() {
        let own = port.node_port.unwrap_or_default();
        if own == 0 && !allocates {
            continue;
        }

        match shared.get(&port.port) {
            None => {
                let taken = match named.get(&port.port) {
                    Some(asked) => {
                        held.take(*asked, cx)
                            .map_err(|why| refused(place, *asked, &why, name, cx))?;
                        *asked
                    }
                    None => held.take_any(cx).map_err(|why| exhausted(&why))?,
                };
                port.node_port = Some(taken);

                shared.insert(port.port, taken);
            }
            Some(taken) if own == 0 => port.node_port = Some(*taken),
            Some(taken) if own != *taken => {
                held.take(own, cx)
                    .map_err(|why| refused(place, own, &why, name, cx))?;
            }
            Some(_) => {}
        }
    }

    Ok(())
}

fn for_changed(
    spec: &mut ServiceSpec,
    old: &ServiceSpec,
    name: &str,
    cx: &Context<'_>,
    held: &mut PendingPorts,
) -> Result<(), ApiError> {
    let allocates = allocates(spec);
    let had: BTreeSet<i32> = old
        .ports()
        .iter()
        .filter_map(|port| port.node_port)
        .filter(|port| *port != 0)
        .collect();

    let mut taken: BTreeSet<i32> = BTreeSet::new();
    let mut seen: BTreeSet<(Option<String>, i32)> = BTreeSet::new();
    for (place, port) in spec.ports.iter_mut().flatten().enumerate() {
        let own = port.node_port.unwrap_or_default();
        if own == 0 && !allocates {
            continue;
        }

        if own == 0 {
            port.node_port = Some(held.take_any(cx).map_err(|why| exhausted(&why))?);
        } else if !had.contains(&own) && !taken.contains(&own) {
            held.take(own, cx)
                .map_err(|why| refused(place, own, &why, name, cx))?;
            taken.insert(own);
        }

        let pair = (port.protocol.clone(), port.node_port.unwrap_or_default());
        if seen.contains(&pair) {
            let protocol = pair.0.unwrap_or_default();
            return Err(ApiError::unexplained(format!(
                "duplicate nodePort: {{{protocol} {}}}",
                pair.1
            )));
        }

        seen.insert(pair);
    }

    Ok(())
}

fn for_health_check(
    spec: &mut ServiceSpec,
    cx: &Context<'_>,
    held: &mut PendingPorts,
) -> Result<(), ApiError> {
    match spec.health_check_node_port.filter(|port| *port != 0) {
        Some(asked) => held.take(asked, cx).map_err(|why| {
            ApiError::internal(format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {why}"
            ))
        }),
        None => {
            let taken = held.take_any(cx).map_err(|why| {
                ApiError::internal(format!(
                    "failed to allocate a HealthCheck NodePort 0: {why}"
                ))
            })?;
            spec.health_check_node_port = Some(taken);
            Ok(())
        }
    }
}
