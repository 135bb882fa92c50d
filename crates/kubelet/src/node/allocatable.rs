//! What the pods of a machine may use of it, alone and together. The rest is kept for the system
//! and for our own processes, so that no pod can starve what watches over it.

use coracle_cgroup::Limits;

use super::machine::Machine;

/// Bytes that pods must leave: upstream evicts pods when less is available
/// (`memory.available<100Mi`).
const EVICTION_MEMORY: i64 = 100 << 20;
/// Percent of the disk that pods must leave (`nodefs.available<10%`).
const EVICTION_DISK_PERCENT: i64 = 10;
/// One process id of so many is not for pods, between the least and the most.
const SYSTEM_PIDS_SHARE: i64 = 10;
const FEWEST_SYSTEM_PIDS: i64 = 256;
const MOST_SYSTEM_PIDS: i64 = 4096;
/// One pod of so many that take all they can get: the others still start processes.
const PID_TAKERS: i64 = 4;

/// Bytes of memory for pods. Huge pages are taken out: nothing else can use them.
pub(crate) fn memory(machine: &Machine) -> i64 {
    let huge_pages: i64 = machine.huge_pages.iter().map(|(_, bytes)| bytes).sum();
    (machine.memory - EVICTION_MEMORY - huge_pages).max(0)
}

/// Bytes of the disk for pods.
pub(crate) fn disk(machine: &Machine) -> i64 {
    machine.disk - machine.disk / 100 * EVICTION_DISK_PERCENT
}

/// Processes and threads of all pods together. On a machine with few, pods get half.
pub(crate) fn pids(machine: &Machine) -> i64 {
    let kept = (machine.pids / SYSTEM_PIDS_SHARE).clamp(FEWEST_SYSTEM_PIDS, MOST_SYSTEM_PIDS);
    (machine.pids - kept).max(machine.pids / 2).max(1)
}

/// Processes and threads of one pod, where no setting says how many.
pub(crate) fn pids_of_one_pod(machine: &Machine) -> i64 {
    (pids(machine) / PID_TAKERS).max(1)
}

/// The limits of the group that all pods are in. Upstream limits memory to what the node has less
/// its reservations, and evicts pods before they reach that; the threshold of eviction is part of
/// this limit, as nothing is evicted here.
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
    fn pods_leave_process_ids_to_the_system() {
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
    fn pods_leave_memory_to_the_system() {
        let machine = Machine {
            memory: 8 << 30,
            processors: 2,
            huge_pages: vec![(2 << 20, 1 << 30)],
            ..Machine::default()
        };
        assert_eq!(memory(&machine), (7 << 30) - (100 << 20));

        assert_eq!(limits(&machine).memory, Some((7 << 30) - (100 << 20)));
        assert_eq!(limits(&machine).cpu_shares, Some(2048));

        // A limit of nothing would end every pod.
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
