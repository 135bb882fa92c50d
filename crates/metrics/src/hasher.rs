//! The hash of a family's keys. Keys are few and made by the program, not by its clients, so the
//! hash need not withstand chosen keys, and may be quick.

use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type QuickHash = BuildHasherDefault<QuickHasher>;

/// Multiplies and rotates, a word at a time.
#[derive(Default)]
pub(crate) struct QuickHasher(u64);

/// An odd number with as many ones as zeros.
const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

impl QuickHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            let word = word.try_into().expect("eight bytes");
            self.add(u64::from_le_bytes(word));
        }
        for byte in words.remainder() {
            self.add(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        // The map uses the upper bits too, and the last multiplication leaves the lower ones poor.
        self.0 ^ (self.0 >> 32)
    }
}
