//! IDs: 64 random hexadecimal digits.

use std::fmt::Write as _;

use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn new() -> String {
    let mut bytes = [0_u8; 32];
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has random bytes");
    hex(&bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}
