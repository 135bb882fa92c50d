//! System calls under the default seccomp filter: each is made by a minimal ELF program that exits
//! with the errno.

use std::fs;
use std::path::Path;
use std::process::Command;

use coracle_cri::Runtime;
use coracle_cri::v1::*;

use crate::common::program;
use crate::{container, start};

/// The system call ABI.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryPoint {
    /// 64-bit; numbers from 0x4000_0000 on are x32.
    Native,
    /// 32-bit.
    Bits32,
}

/// Name, ABI and number of a system call, and the expected errno.
const CALLS: [(&str, EntryPoint, u32, i32); 9] = [
    ("getuid", EntryPoint::Native, 102, 0),
    ("keyctl", EntryPoint::Native, 250, libc::EPERM),
    ("clone3", EntryPoint::Native, 435, libc::ENOSYS),
    (
        "newer than the filter",
        EntryPoint::Native,
        1000,
        libc::ENOSYS,
    ),
    (
        "keyctl with short pointers",
        EntryPoint::Native,
        0x4000_0000 + 250,
        libc::EPERM,
    ),
    (
        "newer than the filter with short pointers",
        EntryPoint::Native,
        0x4000_0000 + 1000,
        libc::ENOSYS,
    ),
    ("getuid of 32 bits", EntryPoint::Bits32, 24, 0),
    ("keyctl of 32 bits", EntryPoint::Bits32, 288, libc::EPERM),
    (
        "newer than the filter of 32 bits",
        EntryPoint::Bits32,
        1000,
        libc::ENOSYS,
    ),
];

/// The exit code of the 32-bit program.
const SEVEN: i32 = 7;

/// Checks the results of system calls under the default filter, also of 32-bit programs.
pub(crate) async fn answered(
    runtime: &dyn Runtime,
    sandbox: &str,
    pod: &PodSandboxConfig,
    image: &str,
) {
    let folder = Path::new(&pod.log_directory).join("calls");
    fs::create_dir_all(&folder).unwrap();

    for (index, (_, entry, number, _)) in CALLS.iter().enumerate() {
        program::write(
            &folder.join(index.to_string()),
            program_of_64_bits(&code(*entry, *number)),
        );
    }

    let exit_with_seven = [0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80];
    program::write(&folder.join("bits32"), program_of_32_bits(&exit_with_seven));

    // Some kernels do not support 32-bit programs.
    let has_32_bits = Command::new(folder.join("bits32"))
        .status()
        .is_ok_and(|status| status.code() == Some(SEVEN));
    let mount = Mount {
        container_path: "/calls".to_owned(),
        host_path: folder.to_string_lossy().into_owned(),
        readonly: true,
        ..Default::default()
    };

    let config = ContainerConfig {
        mounts: vec![mount],
        ..container("calls", "sleep 1000", image)
    };

    let id = start(runtime, sandbox, pod, config).await;
    let run = async |program: &str| {
        runtime
            .exec_sync(&id, vec![format!("/calls/{program}")], None)
            .await
            .unwrap()
            .exit_code
    };

    for (index, (name, entry, _, expected)) in CALLS.iter().enumerate() {
        if has_32_bits || *entry == EntryPoint::Native {
            assert_eq!(run(&index.to_string()).await, *expected, "{name}");
        }
    }

    if has_32_bits {
        assert_eq!(run("bits32").await, SEVEN, "a program of 32 bits");
    }

    runtime.remove_container(&id).await.unwrap();
}

/// Makes the system call with zero arguments, and exits with the errno.
fn code(entry: EntryPoint, number: u32) -> Vec<u8> {
    let [a, b, c, d] = number.to_le_bytes();
    let enter: [u8; 2] = if entry == EntryPoint::Native {
        [0x0f, 0x05]
    } else {
        [0xcd, 0x80]
    };

    let mut code = vec![0xb8, a, b, c, d];

    // All arguments are 0: edi, ebx, ecx, edx, esi.
    code.extend([0x31, 0xff, 0x31, 0xdb, 0x31, 0xc9, 0x31, 0xd2, 0x31, 0xf6]);
    code.extend(enter);

    // exit_group(-eax)
    code.extend([0xf7, 0xd8, 0x89, 0xc7, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05]);

    code
}

/// One segment with headers and code, at its usual address.
fn program_of_64_bits(code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u16 = 64 + 56;

    let length = u64::from(HEADERS) + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);

    for half in [2_u16, 62, 1, 0] {
        file.extend(half.to_le_bytes());
    }

    for long in [BASE + u64::from(HEADERS), 64, 0] {
        file.extend(long.to_le_bytes());
    }

    for half in [0_u16, 0, 64, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }

    for word in [1_u32, 5] {
        file.extend(word.to_le_bytes());
    }

    for long in [0, BASE, BASE, length, length, 0x1000] {
        file.extend(long.to_le_bytes());
    }

    file.extend(code);

    file
}

/// The same for 32 bits.
fn program_of_32_bits(code: &[u8]) -> Vec<u8> {
    const BASE: u32 = 0x804_8000;
    const HEADERS: u32 = 52 + 32;

    let length = HEADERS + u32::try_from(code.len()).unwrap();
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);

    for half in [2_u16, 3, 1, 0] {
        file.extend(half.to_le_bytes());
    }

    for word in [BASE + HEADERS, 52, 0, 0] {
        file.extend(word.to_le_bytes());
    }

    for half in [52_u16, 32, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }

    for word in [1, 0, BASE, BASE, length, length, 5, 0x1000] {
        file.extend(word.to_le_bytes());
    }

    file.extend(code);

    file
}
