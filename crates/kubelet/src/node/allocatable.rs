//! Node allocatable: what pods may use, each and together. The rest is reserved for the system and
//! our own processes.

use coracle_cgroup::Limits;

use super::machine::Machine;

/// Memory that pods must leave free: upstream's eviction threshold (`memory.available<100Mi`).
const EVICTION_MEMORY: i64 = 100 << 20;
/// Percentage of the disk that pods must leave free (`nodefs.available<10%`).
const EVICTION_DISK_PERCENT: i64 = 10;
/// A tenth of all PIDs is reserved for the system, within these bounds.
const SYSTEM_PIDS_SHARE: i64 = 10;
const FEWEST_SYSTEM_PIDS: i64 = 256;
const MOST_SYSTEM_PIDS: i64 = 4096;
/// Divisor of the default PID limit per pod: one pod cannot exhaust all PIDs.
const PID_TAKERS: i64 = 4;

/// Memory for pods in bytes, without huge pages.
pub(crate) fn memory(machine: &Machine) -> i64 {
    let huge_pages: i64 = machine.huge_pages.iter().map(|(_, bytes)| bytes).sum();
    (machine.memory - EVICTION_MEMORY - huge_pages).max(0)
}

/// Disk space for pods in bytes.
pub(crate) fn disk(machine: &Machine) -> i64 {
    machine.disk - machine.disk / 100 * EVICTION_DISK_PERCENT
}

/// PIDs for all pods together; at least half of a small machine's.
pub(crate) fn pids(machine: &Machine) -> i64 {
    let kept = (machine.pids / SYSTEM_PIDS_SHARE).clamp(FEWEST_SYSTEM_PIDS, MOST_SYSTEM_PIDS);
    (machine.pids - kept).max(machine.pids / 2).max(1)
}

/// Default PID limit of one pod.
pub(crate) fn pids_of_one_pod(machine: &Machine) -> i64 {
    (pids(machine) / PID_TAKERS).max(1)
}

/// The limits of the cgroup of all pods. Upstream limits memory to capacity less reservations and
/// evicts pods before they reach that; here the eviction threshold is part of the limit, as there
/// is no eviction.
pub(crate) fn limits(machine: &Machine) -> Limits {
    Limits {
        cpu_shares: u64::try_from(machine.processors)
            .ok()
            .map(|processors| processors.saturating_mul(1024)),
        memory: Some(memory(machine)).filter(|bytes| *bytes > 0),
        pids: Some(pids(machine)),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_pids_are_reserved_for_the_system() {
        let check = |there: i64, together: i64, alone: i64| {
            let machine = Machine {
                pids: there,
                ..Machine::default()
            };

            assert_eq!(
                (pids(&machine), pids_of_one_pod(&machine)),
                (together, alone),
                "{there}"
            );
        };

        check(4_194_304, 4_190_208, 1_047_552);
        check(32_768, 29_492, 7_373);
        check(1_000, 744, 186);
        check(300, 150, 37);
        check(1, 1, 1);
    }

    #[test]
    fn some_memory_is_reserved_for_the_system() {
        let machine = Machine {
            memory: 8 << 30,
            processors: 2,
            huge_pages: vec![(2 << 20, 1 << 30)],
            ..Machine::default()
        };
        assert_eq!(memory(&machine), (7 << 30) - (100 << 20));

        assert_eq!(limits(&machine).memory, Some((7 << 30) - (100 << 20)));
        assert_eq!(limits(&machine).cpu_shares, Some(2048));

        // A limit of zero would kill every pod.
        assert_eq!(
            limits(&Machine {
                memory: 50 << 20,
                ..Machine::default()
            })
            .memory,
            None
        );
    }
}
