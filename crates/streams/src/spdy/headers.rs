//! Header blocks: names and values, compressed with one zlib stream per direction that starts with
//! a known dictionary (`dictionary.bin`, from the specification of SPDY/3).

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");

/// The maximum size of a decompressed block, and of the number of headers.
const MAX_BLOCK: usize = 64 << 10;
const MAX_HEADERS: usize = 100;

/// Headers of a stream; names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

/// Why a block is invalid. The zlib stream is unusable afterwards, and so is the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("headers with invalid compression")]
    Compression,
    #[error("headers of more than {MAX_BLOCK} bytes")]
    TooLong,
    #[error("truncated headers")]
    CutOff,
}

impl Headers {
    /// Headers of a stream that we open.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Headers {
        let pair = |(name, value): (&str, &str)| (name.to_ascii_lowercase(), value.to_owned());
        Headers(pairs.into_iter().map(pair).collect())
    }

    /// The value of a name, case-insensitive; empty: none.
    pub fn get(&self, name: &str) -> &str {
        let found = self
            .0
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name));
        // Several values of one name are separated by NUL; the first one is used.
        found
            .and_then(|(_, value)| value.split('\0').next())
            .unwrap_or_default()
    }

    fn encode(&self) -> BytesMut {
        let number = |length: usize| u32::try_from(length).expect("our own headers are short");
        let mut block = BytesMut::new();
        block.put_u32(number(self.0.len()));
        for text in self.0.iter().flat_map(|(name, value)| [name, value]) {
            block.put_u32(number(text.len()));
            block.put_slice(text.as_bytes());
        }
        block
    }

    fn decode(block: &[u8]) -> Result<Headers, HeaderError> {
        let mut rest = block;
        let number = |rest: &mut &[u8]| {
            let (bytes, after) = rest.split_first_chunk::<4>().ok_or(HeaderError::CutOff)?;
            *rest = after;
            usize::try_from(u32::from_be_bytes(*bytes)).map_err(|_| HeaderError::TooLong)
        };

        let count = number(&mut rest)?;
        if count > MAX_HEADERS {
            return Err(HeaderError::TooLong);
        }

        let text = |rest: &mut &[u8]| {
            let length = number(rest)?;
            let (bytes, after) = rest.split_at_checked(length).ok_or(HeaderError::CutOff)?;
            *rest = after;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        };

        let mut pairs = Vec::with_capacity(count);
        for _ in 0..count {
            let name = text(&mut rest)?.to_ascii_lowercase();
            pairs.push((name, text(&mut rest)?));
        }

        Ok(Headers(pairs))
    }
}

/// Compresses the header blocks of one direction.
pub(super) struct Packer(Compress);

impl Packer {
    pub(super) fn new() -> Packer {
        let mut zlib = Compress::new(Compression::new(6), true);
        zlib.set_dictionary(DICTIONARY)
            .expect("nothing has been compressed yet");
        Packer(zlib)
    }

    pub(super) fn pack(&mut self, headers: &Headers) -> Bytes {
        let block = headers.encode();
        let mut packed = Vec::with_capacity(block.len() + 64);

        let begin = self.0.total_in();
        loop {
            let taken = usize::try_from(self.0.total_in() - begin).unwrap_or(block.len());
            packed.reserve(64);
            self.0
                .compress_vec(&block[taken..], &mut packed, FlushCompress::Sync)
                .expect("compression of short texts into memory does not fail");
            let taken = usize::try_from(self.0.total_in() - begin).unwrap_or(block.len());

            // Remaining space means that everything was flushed.
            if taken == block.len() && packed.len() < packed.capacity() {
                return packed.into();
            }
        }
    }
}

/// Decompresses the header blocks of one direction.
pub(super) struct Unpacker(Decompress);

impl Unpacker {
    pub(super) fn new() -> Unpacker {
        Unpacker(Decompress::new(true))
    }

    pub(super) fn unpack(&mut self, packed: &[u8]) -> Result<Headers, HeaderError> {
        let (mut block, mut rest) = (Vec::with_capacity(1024), packed);
        loop {
            if block.len() >= MAX_BLOCK {
                return Err(HeaderError::TooLong);
            }

            block.reserve(1024);
            let before = (self.0.total_in(), block.len());
            let status = match self
                .0
                .decompress_vec(rest, &mut block, FlushDecompress::Sync)
            {
                Ok(status) => status,
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0
                        .set_dictionary(DICTIONARY)
                        .map_err(|_| HeaderError::Compression)?;
                    Status::Ok
                }
                Err(_) => return Err(HeaderError::Compression),
            };

            let taken = usize::try_from(self.0.total_in() - before.0)
                .map_err(|_| HeaderError::Compression)?;
            rest = rest.get(taken..).ok_or(HeaderError::Compression)?;

            let stands_still = taken == 0 && block.len() == before.1;
            match status {
                Status::Ok if rest.is_empty() && block.len() < block.capacity() => {
                    return Headers::decode(&block);
                }
                Status::BufError if rest.is_empty() => return Headers::decode(&block),
                Status::Ok if !stands_still || block.is_empty() && !rest.is_empty() => {}
                _ => return Err(HeaderError::Compression),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_survive_and_later_blocks_depend_on_earlier_ones() {
        let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
        let mut lengths = Vec::new();
        for port in ["80", "8080", "80"] {
            let headers =
                Headers::new([("streamType", "data"), ("port", port), ("requestID", "17")]);
            let packed = packer.pack(&headers);
            lengths.push(packed.len());
            let found = unpacker.unpack(&packed).unwrap();
            assert_eq!(found, headers);
            assert_eq!((found.get("StreamType"), found.get("none")), ("data", ""));
        }

        assert!(lengths[2] < lengths[0], "{lengths:?}");
    }

    #[test]
    fn long_headers_survive() {
        let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
        let mut random = fastrand::Rng::with_seed(7);
        let value: String = std::iter::repeat_with(|| random.alphanumeric())
            .take(20_000)
            .collect();
        let headers = Headers::new([("a", value.as_str())]);
        assert_eq!(unpacker.unpack(&packer.pack(&headers)).unwrap(), headers);
    }

    #[test]
    fn what_a_go_client_sends_is_read() {
        // One block of Go's `compress/zlib` with the dictionary: `streamtype: error`.
        let mut zlib = Compress::new(Compression::best(), true);
        zlib.set_dictionary(DICTIONARY).unwrap();
        let headers = Headers::new([("streamtype", "error")]);
        let mut packed = Vec::with_capacity(1024);
        zlib.compress_vec(&headers.encode(), &mut packed, FlushCompress::Sync)
            .unwrap();
        assert_eq!(Unpacker::new().unpack(&packed).unwrap(), headers);
    }

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let mut zlib = Compress::new(Compression::best(), true);
        zlib.set_dictionary(DICTIONARY).unwrap();
        let mut packed = Vec::with_capacity(1 << 20);
        zlib.compress_vec(&vec![0; 16 << 20], &mut packed, FlushCompress::Sync)
            .unwrap();
        assert!(packed.len() < 64 << 10);
        assert_eq!(Unpacker::new().unpack(&packed), Err(HeaderError::TooLong));
    }

    #[test]
    fn blocks_with_wrong_lengths_are_rejected() {
        let check =
            |block: &[u8], expected| assert_eq!(Headers::decode(block), Err(expected), "{block:?}");
        check(&[], HeaderError::CutOff);
        check(&[0, 0, 0, 1], HeaderError::CutOff);
        check(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff], HeaderError::CutOff);
        check(&[0xff, 0xff, 0xff, 0xff], HeaderError::TooLong);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            drop(Unpacker::new().unpack(&bytes));
            drop(Headers::decode(&bytes));
            // Damage after a valid start.
            let mut packed = Packer::new().pack(&Headers::new([("streamtype", "data"), ("port", "80")])).to_vec();
            for (at, byte) in bytes.iter().enumerate().take(8) {
                let place = usize::from(*byte) % packed.len();
                packed[place] ^= u8::try_from(at + 1).unwrap();
            }
            drop(Unpacker::new().unpack(&packed));
        }
    }
}
