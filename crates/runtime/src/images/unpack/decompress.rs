//! Decompression of layers. The format is detected from the first bytes; the media type that a
//! registry declares is not trusted.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest zstd window: enough for the highest level of common tools.
const LARGEST_WINDOW: u64 = 128 << 20;
const BUFFER: usize = 256 * 1024;

/// Decompresses `source`.
pub(crate) fn decompressed<'a>(
    source: impl Read + Send + 'a,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut source = BufReader::with_capacity(
        BUFFER,
        Whole {
            source,
            held: Vec::new(),
            at: 0,
        },
    );

    // The first read may return fewer than the four magic bytes.
    source.get_mut().hold(ZSTD.len())?;

    let start = source.fill_buf()?;
    Ok(match start {
        start if start.starts_with(&GZIP) => Box::new(MultiGzDecoder::new(source)),
        start if start.starts_with(&ZSTD) || is_skippable(start) => {
            Box::new(Frames::Between(source))
        }
        _ => Box::new(source),
    })
}

/// A reader whose first bytes can be peeked.
struct Whole<R> {
    source: R,
    held: Vec<u8>,
    at: usize,
}

impl<R: Read> Whole<R> {
    fn hold(&mut self, length: usize) -> io::Result<()> {
        let mut start = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match self.source.read(&mut start[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        start.truncate(filled);
        self.held = start;
        Ok(())
    }
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.held.len() {
            return self.source.read(into);
        }
        let read = (&self.held[self.at..]).read(into)?;
        self.at += read;
        Ok(read)
    }
}

/// Skippable frames have one of sixteen magic numbers.
fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// A sequence of zstd frames. Seekable layers have many, with tables of contents in skippable
/// frames.
enum Frames<R: BufRead> {
    Between(R),
    Within(Box<FrameDecoder>, R),
    Failed,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Frames::Failed) {
                Frames::Between(mut source) => {
                    if source.fill_buf()?.is_empty() {
                        *self = Frames::Between(source);
                        return Ok(0);
                    }
                    *self = next_frame(source)?;
                }
                Frames::Within(mut decoder, mut source) => {
                    let read = read_frame(&mut decoder, &mut source, into)?;
                    let ended = read == 0 && !into.is_empty();
                    *self = if ended {
                        Frames::Between(source)
                    } else {
                        Frames::Within(decoder, source)
                    };

                    if !ended {
                        return Ok(read);
                    }
                }
                Frames::Failed => return Err(io::Error::other("corrupt zstd stream")),
            }
        }
    }
}

/// Starts the next frame, or skips one without data.
fn next_frame<R: BufRead>(mut source: R) -> io::Result<Frames<R>> {
    use FrameDecoderError::ReadFrameHeaderError as Header;

    let mut decoder = Box::new(FrameDecoder::new());
    decoder.set_max_window_size(LARGEST_WINDOW);

    match decoder.init(&mut source) {
        Ok(()) => Ok(Frames::Within(decoder, source)),
        Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
            let length = u64::from(length);
            let skipped = io::copy(&mut source.by_ref().take(length), &mut io::sink())?;
            if skipped < length {
                Err(io::ErrorKind::UnexpectedEof.into())
            } else {
                Ok(Frames::Between(source))
            }
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Reads from a frame; nothing at its end.
fn read_frame(
    decoder: &mut FrameDecoder,
    source: &mut impl Read,
    into: &mut [u8],
) -> io::Result<usize> {
    while decoder.can_collect() == 0 && !decoder.is_finished() {
        decoder
            .decode_blocks(&mut *source, BlockDecodingStrategy::UptoBlocks(1))
            .map_err(io::Error::other)?;
    }
    decoder.read(into)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn every_usual_form_is_read() {
        let text = b"what a layer holds ".repeat(1000);
        check(&text, &text);
        check(&gzip(&text), &text);
        check(
            &[gzip(&text), gzip(b"and more")].concat(),
            &[&text[..], b"and more"].concat(),
        );

        let frames = [zstd(&text), skippable(), zstd(b"and more")].concat();
        check(&frames, &[&text[..], b"and more"].concat());
        check(&[skippable(), zstd(&text)].concat(), &text);
        check(b"", b"");
        check(b"x", b"x");
    }

    #[test]
    fn cut_off_streams_are_errors() {
        let text = b"what a layer holds ".repeat(1000);
        for whole in [gzip(&text), zstd(&text)] {
            for length in [5, whole.len() / 2, whole.len() - 1] {
                let read = decompressed(&whole[..length])
                    .and_then(|mut plain| plain.read_to_end(&mut Vec::new()));
                assert!(read.is_err(), "{length} of {}", whole.len());
            }
        }
    }

    fn check(bytes: &[u8], expected: &[u8]) {
        let mut found = Vec::new();
        decompressed(bytes)
            .unwrap()
            .read_to_end(&mut found)
            .unwrap();
        assert_eq!(found, expected);
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn skippable() -> Vec<u8> {
        [&[0x5a, 0x2a, 0x4d, 0x18][..], &3_u32.to_le_bytes(), b"toc"].concat()
    }
}
