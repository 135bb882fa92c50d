//! The seccomp filter of a container, as a program for the kernel.
//!
//! The program checks the number of a system call, in few cases its first argument, and allows it
//! or returns EPERM. A call newer than all known ones gets ENOSYS, so that programs fall back to an
//! older one. Numbers differ between ABIs (i386, and x32 with 32-bit pointers): each ABI has its
//! own section. The program is assembled here and loaded by the supervisor, for containers and for
//! exec.

mod calls;

use std::collections::BTreeSet;

use coracle_cri::v1::LinuxContainerSecurityContext;
use coracle_cri::v1::security_profile::ProfileType;

use super::capabilities::has;
use crate::error::Error;
use calls::{
    ALWAYS_ALLOWED, CLONE, CLONE3, Call, NO, OF_X32, PERSONALITY, SOCKET, WITH_CAPABILITY,
};

/// The programs to load; none for a container that is not confined.
pub(super) fn filter(
    security: &LinuxContainerSecurityContext,
    capabilities: u64,
) -> Result<Vec<Vec<u8>>, Error> {
    if security.privileged {
        return Ok(Vec::new());
    }

    match security
        .seccomp
        .as_ref()
        .map_or(ProfileType::Unconfined, |profile| profile.profile_type())
    {
        ProfileType::Unconfined => Ok(Vec::new()),
        ProfileType::RuntimeDefault => Ok(vec![assemble(&runtime_default(capabilities))]),
        ProfileType::Localhost => Err(Error::Unsupported("a localhost seccomp profile")),
    }
}

// Classic BPF opcodes, and the offsets in `seccomp_data`.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER: u16 = 0x25;
const JUMP_IF_NOT_LESS: u16 = 0x35;
const RETURN: u16 = 0x06;
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const FIRST_ARGUMENT_AT: u32 = 16;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL_PROCESS: u32 = 0x8000_0000;

/// The system call numbers below are those of x86_64.
const _: () = assert!(
    cfg!(target_arch = "x86_64"),
    "no filter is known for this architecture"
);

const X86_64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;

/// Numbers from here on are those of the x32 ABI.
const SHORT_POINTERS: u32 = 0x4000_0000;

/// Flags of `clone` that make namespaces.
const NEW_NAMESPACES: u32 = 0x7e02_0000;

/// The allowed personalities.
const PERSONALITIES: [u32; 5] = [0x0, 0x0008, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Refused socket families: AF_ALG and AF_VSOCK.
const REFUSED_SOCKETS: [u32; 2] = [38, 40];

/// The system call ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abi {
    Native,
    ShortPointers,
    Bits32,
}

impl Abi {
    /// The number of a call; none where there is no such call.
    fn number(self, call: Call) -> Option<u32> {
        let (_, native, bits32) = call;
        let number = match self {
            Abi::Native => native,
            Abi::Bits32 => bits32,
            Abi::ShortPointers if native == NO => NO,
            Abi::ShortPointers => {
                let other = OF_X32
                    .iter()
                    .find(|(of, _)| *of == native)
                    .map_or(native, |(_, number)| *number);

                if other == NO {
                    NO
                } else {
                    SHORT_POINTERS + other
                }
            }
        };

        (number != NO).then_some(number)
    }
}

#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

fn runtime_default(capabilities: u64) -> Vec<Instruction> {
    let [native, short_pointers, bits32] =
        [Abi::Native, Abi::ShortPointers, Abi::Bits32].map(|abi| section(abi, capabilities));
    let mut program = vec![
        load(ARCHITECTURE_AT),
        jump(JUMP_IF_EQUAL, X86_64, 0, 1),
        // Over the three instructions that follow, and the section.
        far_jump(bits32.len() + 3),
        jump(JUMP_IF_EQUAL, I386, 1, 0),
        answer(KILL_PROCESS),
        load(NUMBER_AT),
    ];
    program.extend(bits32);

    program.extend([
        load(NUMBER_AT),
        jump(JUMP_IF_NOT_LESS, SHORT_POINTERS, 0, 1),
        far_jump(native.len()),
    ]);

    program.extend(native);
    program.extend(short_pointers);

    program
}

/// The section of one ABI. The system call number is loaded.
fn section(abi: Abi, capabilities: u64) -> Vec<Instruction> {
    let allowed = allowed(abi, capabilities);
    let newest = allowed.last().copied().unwrap_or_default();
    let mut program = vec![
        jump(JUMP_IF_GREATER, newest, 0, 1),
        answer(refusal(libc::ENOSYS)),
    ];

    if !has(capabilities, "SYS_ADMIN") {
        program.extend(clones(abi));
    }

    let mut sockets = vec![load(FIRST_ARGUMENT_AT)];
    for refused in REFUSED_SOCKETS {
        sockets.extend([
            jump(JUMP_IF_EQUAL, refused, 0, 1),
            answer(refusal(libc::EPERM)),
        ]);
    }

    sockets.push(answer(ALLOW));
    program.extend(when(abi, SOCKET, &sockets));
    let mut personality = vec![load(FIRST_ARGUMENT_AT)];
    for known in PERSONALITIES {
        personality.extend([jump(JUMP_IF_EQUAL, known, 0, 1), answer(ALLOW)]);
    }

    personality.push(answer(refusal(libc::EPERM)));
    program.extend(when(abi, PERSONALITY, &personality));
    program.extend(search(&edges(&allowed), false));

    program
}

/// The calls that are allowed whatever their arguments.
fn allowed(abi: Abi, capabilities: u64) -> BTreeSet<u32> {
    let gated = WITH_CAPABILITY
        .iter()
        .filter(|(capability, _)| has(capabilities, capability));
    let calls = ALWAYS_ALLOWED
        .iter()
        .chain(gated.flat_map(|(_, calls)| calls.iter()));
    calls.filter_map(|call| abi.number(*call)).collect()
}

/// The numbers from which on another answer holds than below them.
fn edges(allowed: &BTreeSet<u32>) -> Vec<u32> {
    let is_edge = |number: &u32| {
        let is_below = number
            .checked_sub(1)
            .is_some_and(|below| allowed.contains(&below));
        allowed.contains(number) != is_below
    };
    let candidates: BTreeSet<u32> = allowed
        .iter()
        .flat_map(|number| [*number, number + 1])
        .collect();
    candidates.into_iter().filter(is_edge).collect()
}

/// A binary search over the numbers instead of a linear one: the kernel evaluates the filter for
/// every number each time it is loaded. `is_allowed`: the result below the first edge.
fn search(edges: &[u32], is_allowed: bool) -> Vec<Instruction> {
    let middle = edges.len() / 2;
    let Some((edge, above)) = edges[middle..].split_first() else {
        return vec![answer(if is_allowed {
            ALLOW
        } else {
            refusal(libc::EPERM)
        })];
    };

    let below = search(&edges[..middle], is_allowed);
    let skip = u8::try_from(below.len()).expect("half of some hundred instructions");
    let mut whole = vec![jump(JUMP_IF_NOT_LESS, *edge, skip, 0)];
    whole.extend(below);

    // Every edge inverts the result.
    whole.extend(search(above, is_allowed == (middle % 2 == 1)));

    whole
}

/// Allows `clone` without new namespaces. A filter cannot inspect the arguments of `clone3`, so it
/// returns ENOSYS and callers fall back to `clone`.
fn clones(abi: Abi) -> Vec<Instruction> {
    let mut program = when(abi, CLONE3, &[answer(refusal(libc::ENOSYS))]);
    let no_namespaces = [
        load(FIRST_ARGUMENT_AT),
        Instruction {
            code: AND,
            if_true: 0,
            if_false: 0,
            value: NEW_NAMESPACES,
        },
        jump(JUMP_IF_EQUAL, 0, 0, 1),
        answer(ALLOW),
        answer(refusal(libc::EPERM)),
    ];
    program.extend(when(abi, CLONE, &no_namespaces));

    program
}

/// Runs `then`, which always returns, for one system call.
fn when(abi: Abi, call: Call, then: &[Instruction]) -> Vec<Instruction> {
    let Some(number) = abi.number(call) else {
        return Vec::new();
    };
    let length = u8::try_from(then.len()).expect("a few instructions");
    let mut whole = vec![jump(JUMP_IF_EQUAL, number, 0, length)];
    whole.extend(then);
    whole
}

fn refusal(errno: i32) -> u32 {
    ERRNO | errno.cast_unsigned()
}

fn load(at: u32) -> Instruction {
    Instruction {
        code: LOAD,
        if_true: 0,
        if_false: 0,
        value: at,
    }
}

fn jump(code: u16, value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction {
        code,
        if_true,
        if_false,
        value,
    }
}

/// Skips `over` instructions, without the limit of conditional jumps.
fn far_jump(over: usize) -> Instruction {
    jump(JUMP, u32::try_from(over).expect("programs are short"), 0, 0)
}

fn answer(value: u32) -> Instruction {
    Instruction {
        code: RETURN,
        if_true: 0,
        if_false: 0,
        value,
    }
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

    /// Interprets the program.
    fn play(program: &[Instruction], architecture: u32, call: u32, argument: u32) -> u32 {
        let (mut at, mut word) = (0, 0);
        loop {
            let one = program[at];
            at += 1;

            let jump = |yes: bool| usize::from(if yes { one.if_true } else { one.if_false });
            match one.code {
                LOAD if one.value == ARCHITECTURE_AT => word = architecture,
                LOAD if one.value == NUMBER_AT => word = call,
                LOAD => word = argument,
                AND => word &= one.value,
                JUMP => at += one.value as usize,
                JUMP_IF_EQUAL => at += jump(word == one.value),
                JUMP_IF_GREATER => at += jump(word > one.value),
                JUMP_IF_NOT_LESS => at += jump(word >= one.value),
                _ => return one.value,
            }
        }
    }

    const EPERM: u32 = ERRNO | libc::EPERM.cast_unsigned();
    const ENOSYS: u32 = ERRNO | libc::ENOSYS.cast_unsigned();
    const ADMIN: u64 = 1 << 21;

    fn check(capabilities: u64, architecture: u32, call: u32, argument: u32, expected: u32) {
        let answer = play(&runtime_default(capabilities), architecture, call, argument);
        assert_eq!(
            answer, expected,
            "call {call} of {architecture:#x} with {argument:#x}"
        );
    }

    #[test]
    fn the_default_filter_allows_common_system_calls_and_refuses_dangerous_ones() {
        let check = |capabilities, call: i64, argument, expected| {
            check(
                capabilities,
                X86_64,
                u32::try_from(call).unwrap(),
                argument,
                expected,
            );
        };

        check(0, libc::SYS_read, 0, ALLOW);
        check(0, libc::SYS_mount, 0, EPERM);
        check(ADMIN, libc::SYS_mount, 0, ALLOW);
        check(0, libc::SYS_clone, 0x11, ALLOW);
        check(0, libc::SYS_clone, 0x1000_0000, EPERM);
        check(ADMIN, libc::SYS_clone, 0x1000_0000, ALLOW);
        check(0, libc::SYS_clone3, 0, ENOSYS);
        check(0, libc::SYS_socket, 2, ALLOW);

        check(0, libc::SYS_socket, 38, EPERM);
        check(0, libc::SYS_socket, 39, ALLOW);
        check(0, libc::SYS_socket, 40, EPERM);
        check(0, libc::SYS_personality, 0x2_0008, ALLOW);
        check(0, libc::SYS_personality, 0x4_0000, EPERM);
        check(0, libc::SYS_keyctl, 0, EPERM);
    }

    #[test]
    fn system_calls_newer_than_the_filter_return_enosys() {
        check(0, X86_64, 466, 0, ALLOW);
        check(0, X86_64, 467, 0, ENOSYS);
        check(0, X86_64, 0x3fff_ffff, 0, ENOSYS);
        check(0, I386, 467, 0, ENOSYS);
        check(0, I386, u32::MAX, 0, ENOSYS);
        check(0, X86_64, SHORT_POINTERS + 548, 0, ENOSYS);
        check(0, X86_64, u32::MAX, 0, ENOSYS);
    }

    #[test]
    fn programs_of_32_bits_are_confined_by_their_own_numbers() {
        // read, write and mmap2; mount; clone with namespaces; socket of a refused family;
        // socketcall.
        check(0, I386, 3, 0, ALLOW);
        check(0, I386, 4, 0, ALLOW);
        check(0, I386, 192, 0, ALLOW);
        check(0, I386, 21, 0, EPERM);
        check(ADMIN, I386, 21, 0, ALLOW);

        check(0, I386, 120, 0x1000_0000, EPERM);
        check(0, I386, 120, 0x11, ALLOW);
        check(0, I386, 359, 40, EPERM);
        check(0, I386, 102, 0, ALLOW);
        check(0, I386, 435, 0, ENOSYS);

        // With short pointers: read, ioctl by its own number and not by the other's, mount.
        check(0, X86_64, SHORT_POINTERS, 0, ALLOW);
        check(0, X86_64, SHORT_POINTERS + 514, 0, ALLOW);
        check(0, X86_64, SHORT_POINTERS + 16, 0, EPERM);
        check(0, X86_64, SHORT_POINTERS + 165, 0, EPERM);
        check(0, 0xc000_00b7, 0, 0, KILL_PROCESS);
    }

    #[test]
    fn the_search_finds_the_result_of_every_number() {
        let by_arguments = [CLONE, CLONE3, SOCKET, PERSONALITY];
        for capabilities in [0, ADMIN, u64::MAX] {
            let program = runtime_default(capabilities);
            let kinds = [(Abi::Native, X86_64, 0), (Abi::Bits32, I386, 0)];
            for (abi, architecture, from) in
                kinds
                    .into_iter()
                    .chain([(Abi::ShortPointers, X86_64, SHORT_POINTERS)])
            {
                let allowed = allowed(abi, capabilities);
                let newest = *allowed.last().unwrap();
                let special: Vec<u32> = by_arguments
                    .iter()
                    .filter_map(|call| abi.number(*call))
                    .collect();

                for call in (from..from + 1000).filter(|call| !special.contains(call)) {
                    let expected = match call {
                        call if allowed.contains(&call) => ALLOW,
                        call if call > newest => ENOSYS,
                        _ => EPERM,
                    };

                    assert_eq!(
                        play(&program, architecture, call, 0),
                        expected,
                        "call {call} of {abi:?}"
                    );
                }
            }

            assert!(program.len() < 1200, "{} instructions", program.len());
        }
    }
}
