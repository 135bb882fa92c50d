//! The seccomp filter of a container, as a program for the kernel.
//!
//! The program looks at the number of a call, in few cases at its first argument, and says yes, or EPERM. It is assembled
//! here and loaded by the supervisor, for containers and for what is executed in them.

mod calls;

use std::collections::BTreeSet;

use coracle_cri::v1::LinuxContainerSecurityContext;
use coracle_cri::v1::security_profile::ProfileType;

use super::capabilities::has;
use crate::error::Error;
use calls::{EVERYBODY, WITH_CAPABILITY};

/// The programs to load; none for a container that is not confined.
pub(super) fn filter(
    security: &LinuxContainerSecurityContext,
    capabilities: u64,
) -> Result<Vec<Vec<u8>>, Error> {
    if security.privileged {
        return Ok(Vec::new());
    }
    match security.seccomp.as_ref().map_or(ProfileType::Unconfined, |profile| profile.profile_type()) {
        ProfileType::Unconfined => Ok(Vec::new()),
        ProfileType::RuntimeDefault => Ok(vec![assemble(&runtime_default(capabilities))]),
        ProfileType::Localhost => Err(Error::Unsupported("a seccomp profile from a file")),
    }
}

// Classic BPF: load a word, jump, return; and what seccomp puts where.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_NOT_LESS: u16 = 0x35;
const RETURN: u16 = 0x06;
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const FIRST_ARGUMENT_AT: u32 = 16;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL_PROCESS: u32 = 0x8000_0000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;

/// From here on numbers are those of a second way to call, which we do not know.
const FOREIGN_NUMBERS: u32 = 0x4000_0000;

/// Flags of `clone` that make namespaces.
const NEW_NAMESPACES: u32 = 0x7e02_0000;

/// Personalities that change nothing that matters.
const PERSONALITIES: [u32; 5] = [0x0, 0x0008, 0x2_0000, 0x2_0008, 0xffff_ffff];

const VSOCK: u32 = 40;

#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

fn runtime_default(capabilities: u64) -> Vec<Instruction> {
    let mut program = vec![
        load(ARCHITECTURE_AT),
        jump(JUMP_IF_EQUAL, ARCHITECTURE, 1, 0),
        answer(KILL_PROCESS),
        load(NUMBER_AT),
        jump(JUMP_IF_NOT_LESS, FOREIGN_NUMBERS, 0, 1),
        answer(refusal(libc::EPERM)),
    ];
    if !has(capabilities, "SYS_ADMIN") {
        program.extend(clones());
    }
    let no_vsock = [
        load(FIRST_ARGUMENT_AT),
        jump(JUMP_IF_EQUAL, VSOCK, 1, 0),
        answer(ALLOW),
        answer(refusal(libc::EPERM)),
    ];
    program.extend(when(libc::SYS_socket, &no_vsock));
    let mut personality = vec![load(FIRST_ARGUMENT_AT)];
    for known in PERSONALITIES {
        personality.extend([jump(JUMP_IF_EQUAL, known, 0, 1), answer(ALLOW)]);
    }
    personality.push(answer(refusal(libc::EPERM)));
    program.extend(when(libc::SYS_personality, &personality));
    program.extend(search(&edges(&allowed(capabilities)), false));
    program
}

/// The calls that are allowed whatever their arguments.
fn allowed(capabilities: u64) -> BTreeSet<u32> {
    let gated = WITH_CAPABILITY.iter().filter(|(capability, _)| has(capabilities, capability));
    let calls = EVERYBODY.iter().chain(gated.flat_map(|(_, calls)| calls.iter()));
    calls.map(|call| number(*call)).collect()
}

/// The numbers from which on another answer holds than below them.
fn edges(allowed: &BTreeSet<u32>) -> Vec<u32> {
    let is_edge = |number: &u32| {
        let is_below = number.checked_sub(1).is_some_and(|below| allowed.contains(&below));
        allowed.contains(number) != is_below
    };
    let candidates: BTreeSet<u32> = allowed.iter().flat_map(|number| [*number, number + 1]).collect();
    candidates.into_iter().filter(is_edge).collect()
}

/// Halves the numbers until the answer is known, instead of comparing with one after the other: the kernel asks for the
/// answer to every number each time that the filter is loaded. `is_allowed`: what holds below the first edge.
fn search(edges: &[u32], is_allowed: bool) -> Vec<Instruction> {
    let middle = edges.len() / 2;
    let Some((edge, above)) = edges[middle..].split_first() else {
        return vec![answer(if is_allowed { ALLOW } else { refusal(libc::EPERM) })];
    };
    let below = search(&edges[..middle], is_allowed);
    let skip = u8::try_from(below.len()).expect("half of some hundred instructions");
    let mut whole = vec![jump(JUMP_IF_NOT_LESS, *edge, skip, 0)];
    whole.extend(below);
    // Every edge turns the answer around.
    whole.extend(search(above, is_allowed == (middle % 2 == 1)));
    whole
}

/// Processes may be made, namespaces may not. Into the arguments of `clone3` no filter can look: who calls it is told that
/// it does not exist, and falls back to `clone`.
fn clones() -> Vec<Instruction> {
    let mut program =
        vec![jump(JUMP_IF_EQUAL, number(libc::SYS_clone3), 0, 1), answer(refusal(libc::ENOSYS))];
    let no_namespaces = [
        load(FIRST_ARGUMENT_AT),
        Instruction { code: AND, if_true: 0, if_false: 0, value: NEW_NAMESPACES },
        jump(JUMP_IF_EQUAL, 0, 0, 1),
        answer(ALLOW),
        answer(refusal(libc::EPERM)),
    ];
    program.extend(when(libc::SYS_clone, &no_namespaces));
    program
}

/// These instructions, which answer in any case, for one call alone.
fn when(call: i64, then: &[Instruction]) -> Vec<Instruction> {
    let length = u8::try_from(then.len()).expect("a few instructions");
    let mut whole = vec![jump(JUMP_IF_EQUAL, number(call), 0, length)];
    whole.extend(then);
    whole
}

fn number(call: i64) -> u32 {
    u32::try_from(call).expect("numbers of calls are small")
}

fn refusal(errno: i32) -> u32 {
    ERRNO | errno.cast_unsigned()
}

fn load(at: u32) -> Instruction {
    Instruction { code: LOAD, if_true: 0, if_false: 0, value: at }
}

fn jump(code: u16, value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code, if_true, if_false, value }
}

fn answer(value: u32) -> Instruction {
    Instruction { code: RETURN, if_true: 0, if_false: 0, value }
}

fn assemble(program: &[Instruction]) -> Vec<u8> {
    let bytes = |one: &Instruction| {
        let [c0, c1] = one.code.to_ne_bytes();
        let [v0, v1, v2, v3] = one.value.to_ne_bytes();
        [c0, c1, one.if_true, one.if_false, v0, v1, v2, v3]
    };
    program.iter().flat_map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program answers, played by hand.
    fn play(program: &[Instruction], call: i64, argument: u32) -> u32 {
        let (mut at, mut word) = (0, 0);
        loop {
            let one = program[at];
            at += 1;
            let jump = |yes: bool| usize::from(if yes { one.if_true } else { one.if_false });
            match one.code {
                LOAD if one.value == ARCHITECTURE_AT => word = ARCHITECTURE,
                LOAD if one.value == NUMBER_AT => word = number(call),
                LOAD => word = argument,
                AND => word &= one.value,
                JUMP_IF_EQUAL => at += jump(word == one.value),
                JUMP_IF_NOT_LESS => at += jump(word >= one.value),
                _ => return one.value,
            }
        }
    }

    fn check(capabilities: u64, call: i64, argument: u32, expected: u32) {
        assert_eq!(
            play(&runtime_default(capabilities), call, argument),
            expected,
            "call {call} with {argument:#x}"
        );
    }

    #[test]
    fn the_default_lets_programs_work_and_keeps_them_from_the_kernel() {
        let admin = 1 << 21;
        check(0, libc::SYS_read, 0, ALLOW);
        check(0, libc::SYS_mount, 0, refusal(libc::EPERM));
        check(admin, libc::SYS_mount, 0, ALLOW);
        check(0, libc::SYS_clone, 0x11, ALLOW);
        check(0, libc::SYS_clone, 0x1000_0000, refusal(libc::EPERM));
        check(admin, libc::SYS_clone, 0x1000_0000, ALLOW);
        check(0, libc::SYS_clone3, 0, refusal(libc::ENOSYS));
        check(0, libc::SYS_socket, 2, ALLOW);
        check(0, libc::SYS_socket, VSOCK, refusal(libc::EPERM));
        check(0, libc::SYS_personality, 0x2_0008, ALLOW);
        check(0, libc::SYS_personality, 0x4_0000, refusal(libc::EPERM));
        check(0, libc::SYS_keyctl, 0, refusal(libc::EPERM));
        check(0, i64::from(FOREIGN_NUMBERS), 0, refusal(libc::EPERM));
    }

    #[test]
    fn every_number_is_found_among_those_that_are_allowed_or_not() {
        let by_arguments = [libc::SYS_clone, libc::SYS_clone3, libc::SYS_socket, libc::SYS_personality];
        for capabilities in [0, 1 << 21, u64::MAX] {
            let (program, allowed) = (runtime_default(capabilities), allowed(capabilities));
            for call in (0..1000).filter(|call| !by_arguments.contains(call)) {
                let expected = if allowed.contains(&number(call)) { ALLOW } else { refusal(libc::EPERM) };
                assert_eq!(play(&program, call, 0), expected, "call {call}");
            }
            assert!(program.len() < 400, "{} instructions", program.len());
        }
    }
}
