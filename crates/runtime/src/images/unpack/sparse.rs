//! Sparse files, as `tar -S --format=posix` writes them: an ordinary entry with only the data, and
//! records that give the offsets of the data in the file.
//!
//! There are three versions. In 0.0 every piece has records of its own, in 0.1 one record lists all
//! pieces, and in 1.0 the list stands in front of the data. A reader that does not know the records
//! sees a file with another name and content.

use std::io::{self, Read};

use tar::{Entry, EntryType};

/// A sparse file, from its records.
pub(super) struct Sparse {
    /// The real name; that of the entry is made up.
    pub(super) name: Option<Vec<u8>>,
    /// The size of the file, including holes.
    pub(super) size: u64,
    map: Map,
}

enum Map {
    Listed(Vec<Piece>),
    InFront,
}

/// A data segment: offset and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) length: u64,
}

/// Errors of sparse records.
#[derive(Debug, thiserror::Error)]
pub enum SparseError {
    #[error("unsupported sparse format version {0}")]
    Version(String),
    #[error("invalid number {0} in the sparse records")]
    Number(String),
    #[error("sparse entry is not a regular file")]
    Kind,
    #[error("sparse records lack the file size")]
    NoSize,
    #[error("sparse map has an offset without a length")]
    Odd,
    #[error("data ends before the sparse map")]
    Cut,
    #[error("sparse map is too long")]
    Long,
    #[error("sparse map goes backwards or beyond the end of the file at {0}")]
    Order(u64),
    #[error("sparse map lists {listed} bytes of data, found {found}")]
    Data { listed: u64, found: u64 },
    #[error(transparent)]
    Read(#[from] io::Error),
}

const PREFIX: &[u8] = b"GNU.sparse.";
const BLOCK: u64 = 512;
/// The limit of a map in front of the data, as for one in the records.
const LONGEST_MAP: u64 = super::LARGEST_HEADERS;

impl Sparse {
    /// None if the entry is not sparse.
    pub(super) fn of(entry: &mut Entry<'_, impl Read>) -> Result<Option<Self>, SparseError> {
        let kind = entry.header().entry_type();
        let mut records = Records::default();
        for record in entry.pax_extensions()?.into_iter().flatten() {
            let record = record?;
            if let Some(key) = record.key_bytes().strip_prefix(PREFIX) {
                records.add(key, record.value_bytes())?;
            }
        }

        let sparse = records.read()?;
        if sparse.is_some() && !matches!(kind, EntryType::Regular | EntryType::Continuous) {
            return Err(SparseError::Kind);
        }

        Ok(sparse)
    }

    /// The segments of the remaining data in `data`, after the map was read. `stored`: the size of
    /// the entry.
    pub(super) fn pieces(
        self,
        data: &mut impl Read,
        stored: u64,
    ) -> Result<Vec<Piece>, SparseError> {
        let (pieces, map) = match self.map {
            Map::Listed(pieces) => (pieces, 0),
            Map::InFront => read_map(data)?,
        };
        check(&pieces, self.size, stored.saturating_sub(map))?;
        Ok(pieces)
    }
}

/// The records of one entry, in order.
#[derive(Default)]
struct Records {
    any: bool,
    major: Option<u64>,
    minor: Option<u64>,
    name: Option<Vec<u8>>,
    size: Option<u64>,
    numbers: Vec<u64>,
}

impl Records {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), SparseError> {
        self.any = true;

        match key {
            b"major" => self.major = Some(number(value)?),
            b"minor" => self.minor = Some(number(value)?),
            b"name" => self.name = Some(value.to_vec()),
            b"size" | b"realsize" => self.size = Some(number(value)?),
            b"offset" | b"numbytes" => self.numbers.push(number(value)?),
            b"map" if value.is_empty() => {}
            b"map" => {
                let all = value.split(|byte| *byte == b',').map(number);
                self.numbers = all.collect::<Result<_, _>>()?;
            }
            // The number of segments is redundant.
            _ => {}
        }

        Ok(())
    }

    fn read(self) -> Result<Option<Sparse>, SparseError> {
        if !self.any {
            return Ok(None);
        }

        let map = match (self.major, self.minor) {
            (None, None) | (Some(0), Some(0 | 1)) => Map::Listed(pairs(&self.numbers)?),
            (Some(1), Some(0)) => Map::InFront,
            (major, minor) => {
                let part = |part: Option<u64>| part.map_or("?".to_owned(), |part| part.to_string());
                return Err(SparseError::Version(format!(
                    "{}.{}",
                    part(major),
                    part(minor)
                )));
            }
        };

        let size = self.size.ok_or(SparseError::NoSize)?;
        Ok(Some(Sparse {
            name: self.name,
            size,
            map,
        }))
    }
}

/// Reads the map in front of the data, and its length: one number per line, the first being the
/// number of segments, padded to a block.
fn read_map(data: &mut impl Read) -> Result<(Vec<Piece>, u64), SparseError> {
    let (mut numbers, mut line) = (Vec::new(), Vec::new());
    let mut read = 0;
    loop {
        let mut block = [0; 512];
        data.read_exact(&mut block)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => SparseError::Cut,
                _ => error.into(),
            })?;

        read += BLOCK;

        if read > LONGEST_MAP {
            return Err(SparseError::Long);
        }

        for byte in block {
            if byte != b'\n' {
                line.push(byte);
                continue;
            }

            numbers.push(number(&line)?);
            line.clear();
            let wanted = numbers[0].checked_mul(2).ok_or(SparseError::Long)?;
            if numbers.len() as u64 - 1 == wanted {
                return Ok((pairs(&numbers[1..])?, read));
            }
        }
    }
}

fn pairs(numbers: &[u64]) -> Result<Vec<Piece>, SparseError> {
    let (pairs, rest) = numbers.as_chunks::<2>();
    let pieces = pairs
        .iter()
        .map(|[at, length]| Piece {
            at: *at,
            length: *length,
        })
        .collect();

    if rest.is_empty() {
        Ok(pieces)
    } else {
        Err(SparseError::Odd)
    }
}

/// Segments must be ordered, end within the file, and cover all data.
fn check(pieces: &[Piece], size: u64, found: u64) -> Result<(), SparseError> {
    let (mut end, mut listed) = (0, 0);
    for piece in pieces {
        let piece_end = piece
            .at
            .checked_add(piece.length)
            .filter(|piece_end| *piece_end <= size);

        match piece_end {
            Some(piece_end) if piece.at >= end => end = piece_end,
            _ => return Err(SparseError::Order(piece.at)),
        }

        // Segments that do not overlap are together no longer than the file.
        listed += piece.length;
    }

    if listed == found {
        Ok(())
    } else {
        Err(SparseError::Data { listed, found })
    }
}

/// A decimal number.
fn number(text: &[u8]) -> Result<u64, SparseError> {
    let wrong = || {
        let start = &text[..text.len().min(LONGEST_SHOWN)];
        SparseError::Number(format!("{:?}", String::from_utf8_lossy(start)))
    };
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(wrong());
    }
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(wrong)
}

/// The limit of an invalid number in errors.
const LONGEST_SHOWN: usize = 24;
