//! BPF programs for devices: their instructions, and the two system calls that load and attach
//! them.
#![expect(unsafe_code, reason = "bpf(2) has no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// One instruction, in the kernel's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

impl Instruction {
    const JUMP_UNLESS_EQUAL: u8 = 0x55; // BPF_JMP | BPF_JNE | BPF_K

    /// `to = the word at from + offset`
    pub(crate) fn load(to: u8, from: u8, offset: i16) -> Self {
        Self {
            code: 0x61,
            registers: to | from << 4,
            offset,
            value: 0,
        }
    }

    pub(crate) fn copy(to: u8, from: u8) -> Self {
        Self {
            code: 0xbf,
            registers: to | from << 4,
            offset: 0,
            value: 0,
        }
    }

    pub(crate) fn set(register: u8, value: i32) -> Self {
        Self {
            code: 0xb7,
            registers: register,
            offset: 0,
            value,
        }
    }

    pub(crate) fn and(register: u8, value: i32) -> Self {
        Self {
            code: 0x54,
            registers: register,
            offset: 0,
            value,
        }
    }

    pub(crate) fn shift_right(register: u8, bits: i32) -> Self {
        Self {
            code: 0x74,
            registers: register,
            offset: 0,
            value: bits,
        }
    }

    /// Skips the rest of the rule; [`Instruction::landing`] sets the offset.
    pub(crate) fn jump_unless_equal(register: u8, value: i32) -> Self {
        Self {
            code: Self::JUMP_UNLESS_EQUAL,
            registers: register,
            offset: 0,
            value,
        }
    }

    pub(crate) fn exit() -> Self {
        Self {
            code: 0x95,
            registers: 0,
            offset: 0,
            value: 0,
        }
    }

    /// Sets the offset of a jump; other instructions are unchanged.
    pub(crate) fn landing(mut self, ahead: usize) -> Self {
        if self.code == Self::JUMP_UNLESS_EQUAL {
            self.offset = i16::try_from(ahead).expect("rules have a dozen instructions");
        }
        self
    }
}

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_ATTACH: libc::c_int = 8;
const BPF_PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const BPF_CGROUP_DEVICE: u32 = 6;
const BPF_F_ALLOW_MULTI: u32 = 2;

#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    // The kernel accepts a structure that ends here; the rest, for logs and types, is zero.
    log: [u64; 14],
}

#[repr(C)]
struct AttachAttributes {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

pub(crate) fn load_device_program(program: &[Instruction]) -> io::Result<OwnedFd> {
    let attributes = LoadAttributes {
        kind: BPF_PROG_TYPE_CGROUP_DEVICE,
        count: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        ..LoadAttributes::default()
    };

    // SAFETY: the attributes, and the instructions and the text that they point to, outlive the
    // call; the kernel verifies the program.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const attributes,
            size_of::<LoadAttributes>(),
        )
    };

    match i32::try_from(descriptor) {
        // SAFETY: the descriptor is new and owned by no one else.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Attaches a program to the group whose directory is open.
pub(crate) fn attach_device_program(group: BorrowedFd<'_>, program: &OwnedFd) -> io::Result<()> {
    let attributes = AttachAttributes {
        target: group.as_raw_fd().cast_unsigned(),
        program: program.as_raw_fd().cast_unsigned(),
        kind: BPF_CGROUP_DEVICE,
        flags: BPF_F_ALLOW_MULTI,
    };

    // SAFETY: the attributes outlive the call, and both descriptors are open.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_ATTACH,
            &raw const attributes,
            size_of::<AttachAttributes>(),
        )
    };

    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
