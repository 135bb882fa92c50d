//! Drops privileges: user, groups, capabilities, seccomp.

use coracle_supervisor::protocol::Process;
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::step::{During as _, StepError};
use crate::sys;

/// The highest possible capability; the running kernel may know fewer.
const MOST_CAPABILITIES: u32 = 63;

/// Sets user, groups, capabilities and seccomp filter of the process.
pub(super) fn apply(process: &Process) -> Result<(), StepError> {
    // Without no_new_privs a filter can only be loaded with CAP_SYS_ADMIN; with it, the later the
    // better.
    if !process.no_new_privileges {
        load_filters(process)?;
    }

    bound(process.capabilities.bounding)?;
    set_keep_capabilities(true).during(|| "keep capabilities".to_owned())?;
    refuse_unchanged(process)?;

    let groups: Vec<Gid> = process
        .groups
        .iter()
        .map(|group| Gid::from_raw(*group))
        .collect();
    set_thread_groups(&groups).during(|| "set supplementary groups".to_owned())?;

    let gid = Gid::from_raw(process.gid);
    set_thread_res_gid(gid, gid, gid).during(|| format!("set gid {}", process.gid))?;
    let uid = Uid::from_raw(process.uid);
    set_thread_res_uid(uid, uid, uid).during(|| format!("set uid {}", process.uid))?;
    set_capabilities(None, capability_sets(process))
        .during(|| "set the capabilities".to_owned())?;
    set_keep_capabilities(false).during(|| "clear keep-capabilities".to_owned())?;

    for capability in bits(process.capabilities.ambient) {
        configure_capability_in_ambient_set(CapabilitySet::from_bits_retain(1 << capability), true)
            .during(|| format!("raise ambient capability {capability}"))?;
    }

    if process.no_new_privileges {
        set_no_new_privs(true).during(|| "set no_new_privs".to_owned())?;
        load_filters(process)?;
    }

    Ok(())
}

/// The kernel takes -1 as "unchanged", which is root here.
fn refuse_unchanged(process: &Process) -> Result<(), StepError> {
    let mut all = process.groups.iter().chain([&process.uid, &process.gid]);
    match all.any(|id| *id == u32::MAX) {
        true => Err(StepError::new("set uid or gid -1", Errno::INVAL)),
        false => Ok(()),
    }
}

fn load_filters(process: &Process) -> Result<(), StepError> {
    process.seccomp.iter().try_for_each(|program| {
        sys::load_seccomp(program).during(|| "load the seccomp filter".to_owned())
    })
}

/// Drops capabilities outside the bounding set. The kernel returns EINVAL beyond the last one it
/// knows.
fn bound(keep: u64) -> Result<(), StepError> {
    for capability in 0..=MOST_CAPABILITIES {
        if keep & (1 << capability) != 0 {
            continue;
        }
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << capability))
        {
            Err(Errno::INVAL) => break,
            other => other.during(|| format!("drop capability {capability}"))?,
        }
    }
    Ok(())
}

fn capability_sets(process: &Process) -> CapabilitySets {
    let capabilities = &process.capabilities;
    CapabilitySets {
        effective: CapabilitySet::from_bits_retain(capabilities.permitted),
        permitted: CapabilitySet::from_bits_retain(capabilities.permitted),
        inheritable: CapabilitySet::from_bits_retain(capabilities.inheritable),
    }
}

fn bits(set: u64) -> impl Iterator<Item = u32> {
    (0..=MOST_CAPABILITIES).filter(move |bit| set & (1 << bit) != 0)
}
