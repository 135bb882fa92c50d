//! Ids: 64 hexadecimal digits, by chance.

use std::fmt::Write as _;

use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn new() -> String {
    let mut bytes = [0_u8; 32];
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has chance to give");
    hex(&bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}
