//! Removes an invalid `:authority` from requests. Older gRPC libraries in Go (`etcdctl` 3.4, for
//! example) send a socket path or a whole URL as the HTTP/2 `:authority`, and our HTTP library
//! rejects such requests. The etcd API does not use the host, so it is removed before the library
//! parses it.
//!
//! The HPACK reference to the name `:authority` in a header block is rewritten to `user-agent`.
//! Both are in the static table and have the same length, so that frame sizes and the client's
//! dynamic table stay valid. A regular header must not precede a pseudo-header; Go clients send
//! `:authority` as the last pseudo-header. Connections of clients that do not are passed through
//! unchanged.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// The HTTP/2 client connection preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER: usize = 9;
/// The longest frame that our HTTP library accepts; longer ones are not buffered here either.
const LONGEST_FRAME: usize = 16 << 10;
const HEADERS: u8 = 1;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;
/// A literal header with incremental indexing whose name is `:authority` (static index 1)…
const AUTHORITY: u8 = 0x41;
/// …and one whose name is `user-agent` (static index 58).
const USER_AGENT: u8 = 0x40 | 58;
/// `:method`, `:path`, `:scheme`: in the static table after `:authority`.
const PSEUDO: std::ops::RangeInclusive<u64> = 2..=7;
/// Bytes read from the connection at a time.
const CHUNK: usize = 16 << 10;

/// A connection whose requests carry no `:authority`.
pub(super) struct AuthorityFilter<C> {
    connection: C,
    rewriter: HeaderRewriter,
    chunk: Box<[u8; CHUNK]>,
    /// Rewritten bytes, and how many of them have been read.
    mended: Vec<u8>,
    read: usize,
}

impl<C> AuthorityFilter<C> {
    pub(super) fn new(connection: C) -> Self {
        let (rewriter, chunk, mended) =
            (HeaderRewriter::default(), Box::new([0; CHUNK]), Vec::new());
        AuthorityFilter {
            connection,
            rewriter,
            chunk,
            mended,
            read: 0,
        }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for AuthorityFilter<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.read == this.mended.len() {
            if this.rewriter.is_idle() {
                return Pin::new(&mut this.connection).poll_read(context, buffer);
            }

            let mut chunk = ReadBuf::new(&mut this.chunk[..]);
            ready!(Pin::new(&mut this.connection).poll_read(context, &mut chunk))?;

            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(())); // EOF; a partial frame is dropped
            }

            this.mended.clear();
            this.read = 0;
            this.rewriter.feed(chunk.filled(), &mut this.mended);
        }

        let count = buffer.remaining().min(this.mended.len() - this.read);
        buffer.put_slice(&this.mended[this.read..this.read + count]);
        this.read += count;

        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for AuthorityFilter<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}

/// No service needs the peer's address.
impl<C> Connected for AuthorityFilter<C> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Parses the frames of a connection and rewrites their headers.
#[derive(Default)]
struct HeaderRewriter {
    /// How many bytes of the preface were read.
    preface: usize,
    /// An incomplete frame: its header, and the payload if it is a HEADERS frame.
    frame: Vec<u8>,
    /// Remaining bytes of a frame that is passed through.
    passing: usize,
    client: Client,
}

/// The kind of client, known after its first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Client {
    #[default]
    Unknown,
    /// Sends `:authority` as the last pseudo-header.
    Mended,
    /// Sends it earlier, or does not speak HTTP/2.
    LeftAlone,
}

impl HeaderRewriter {
    /// Whether all further bytes are passed through unchanged.
    fn is_idle(&self) -> bool {
        self.client == Client::LeftAlone && self.frame.is_empty()
    }

    fn feed(&mut self, mut input: &[u8], output: &mut Vec<u8>) {
        let expected = &PREFACE[self.preface..];
        let preface = input.len().min(expected.len());
        if input[..preface] != expected[..preface] {
            self.client = Client::LeftAlone;
        }

        self.preface += preface;
        output.extend_from_slice(&input[..preface]);
        input = &input[preface..];

        while !input.is_empty() {
            if self.is_idle() {
                return output.extend_from_slice(input);
            }

            let taken = if self.passing > 0 {
                self.pass(input, output)
            } else {
                self.gather(input, output)
            };
            input = &input[taken..];
        }
    }

    fn pass(&mut self, input: &[u8], output: &mut Vec<u8>) -> usize {
        let taken = self.passing.min(input.len());
        output.extend_from_slice(&input[..taken]);
        self.passing -= taken;
        taken
    }

    fn gather(&mut self, input: &[u8], output: &mut Vec<u8>) -> usize {
        let wanted = match self.frame.first_chunk::<FRAME_HEADER>() {
            None => FRAME_HEADER,
            Some(header) => FRAME_HEADER + length(header),
        };
        let taken = (wanted - self.frame.len()).min(input.len());
        self.frame.extend_from_slice(&input[..taken]);

        let Some(header) = self.frame.first_chunk::<FRAME_HEADER>().copied() else {
            return taken;
        };
        if header[3] != HEADERS || length(&header) > LONGEST_FRAME {
            self.passing = length(&header);
            output.append(&mut self.frame);
        } else if self.frame.len() == FRAME_HEADER + length(&header) {
            self.rewrite(header[4]);
            output.append(&mut self.frame);
        }

        taken
    }

    fn rewrite(&mut self, flags: u8) {
        let skipped = usize::from(flags & PADDED != 0) + if flags & PRIORITY != 0 { 5 } else { 0 };
        let start = (FRAME_HEADER + skipped).min(self.frame.len());
        let block = &mut self.frame[start..];

        let found = authority(block);
        if self.client == Client::Unknown {
            self.client = if found.is_some() {
                Client::Mended
            } else {
                Client::LeftAlone
            };
        }

        if let (Client::Mended, Some(position)) = (self.client, found) {
            block[position] = USER_AGENT;
        }
    }
}

fn length(header: &[u8; FRAME_HEADER]) -> usize {
    usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2])
}

/// The offset of `:authority` in a header block, if it is the last pseudo-header.
fn authority(block: &[u8]) -> Option<usize> {
    let mut found = None;
    let mut rest = block;
    while let Some(first) = rest.first().copied() {
        let position = block.len() - rest.len();
        if first == AUTHORITY {
            found = Some(position);
        }

        let (bits, is_indexed, is_field) = match first {
            0x80.. => (7, true, true),
            0x40.. => (6, false, true),
            0x20.. => (5, true, false), // dynamic table size update
            _ => (4, false, true),
        };

        let Some(index) = integer(&mut rest, bits) else {
            break;
        };
        if is_field && PSEUDO.contains(&index) {
            found = None;
        }

        // The block may continue in the next frame; the offset found so far is valid.
        if !is_indexed && (index == 0 && string(&mut rest).is_none() || string(&mut rest).is_none())
        {
            break;
        }
    }

    found
}

/// Reads an HPACK integer with a prefix of `bits` bits.
fn integer(rest: &mut &[u8], bits: u32) -> Option<u64> {
    let (first, mut tail) = rest.split_first()?;
    let most = (1_u64 << bits) - 1;

    let mut value = u64::from(*first) & most;
    if value == most {
        for shift in (0..28).step_by(7) {
            let (next, after) = tail.split_first()?;
            tail = after;
            value += u64::from(next & 0x7f) << shift;
            if next & 0x80 == 0 {
                *rest = tail;
                return Some(value);
            }
        }

        return None;
    }

    *rest = tail;

    Some(value)
}

/// Skips a string literal.
fn string(rest: &mut &[u8]) -> Option<()> {
    let length = usize::try_from(integer(rest, 7)?).ok()?;
    *rest = rest.get(length..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `:method POST`, `:scheme http`, `:path /a`, `:authority x/y`, `content-type g`, in the order
    /// of Go clients.
    const GO: &[u8] = b"\x83\x86\x44\x02/a\x41\x03x/y\x5f\x01g";
    /// The same with `:path` last, as our own HTTP library sends them.
    const OURS: &[u8] = b"\x83\x86\x41\x03x/y\x44\x02/a\x5f\x01g";

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, 1][..], payload].concat()
    }

    fn connection(frames: &[Vec<u8>]) -> Vec<u8> {
        [PREFACE, &frames.concat()].concat()
    }

    fn check(frames: &[Vec<u8>], expected: &[Vec<u8>]) {
        check_bytes(&connection(frames), &connection(expected));
    }

    fn check_bytes(input: &[u8], expected: &[u8]) {
        for step in [1, 2, 7, 1000] {
            let (mut rewriter, mut output) = (HeaderRewriter::default(), Vec::new());
            input
                .chunks(step)
                .for_each(|chunk| rewriter.feed(chunk, &mut output));
            assert_eq!(output, expected, "{step} bytes at a time");
        }
    }

    #[test]
    fn headers_are_rewritten_for_clients_that_send_authority_last() {
        let mended = GO.iter().map(|byte| {
            if *byte == AUTHORITY {
                USER_AGENT
            } else {
                *byte
            }
        });
        let mended: Vec<u8> = mended.collect();

        let (settings, data) = (
            frame(4, 0, b"\x41\x41\x41\x41\x41\x41"),
            frame(0, 1, b"\x41data\x41"),
        );

        check(
            &[
                settings.clone(),
                frame(HEADERS, 4, GO),
                data.clone(),
                frame(HEADERS, 4, b"\x83\x86\xbe\xbf"),
            ],
            &[
                settings,
                frame(HEADERS, 4, &mended),
                data,
                frame(HEADERS, 4, b"\x83\x86\xbe\xbf"),
            ],
        );

        let padded = |block: &[u8]| {
            frame(
                HEADERS,
                4 | PADDED | PRIORITY,
                &[b"\x01\0\0\0\0\0", block, b"\0"].concat(),
            )
        };
        check(&[padded(GO)], &[padded(&mended)]);
    }

    #[test]
    fn headers_of_other_clients_are_unchanged() {
        let frames = [
            frame(HEADERS, 4, OURS),
            frame(HEADERS, 4, GO),
            frame(0, 1, b"\x41"),
        ];
        check(&frames, &frames);
    }

    #[test]
    fn http_1_connections_are_unchanged() {
        // After the length of the HTTP/2 preface, these bytes look like a long HEADERS frame.
        let request = [
            &b"GET /health HTTP/1.1\r\nA: "[..],
            b"\0\x20\0\x01\x04\0\0\0\x01",
            GO,
            b"\r\n\r\n",
        ]
        .concat();
        check_bytes(&request, &request);
    }

    #[test]
    fn a_frame_longer_than_allowed_is_not_buffered() {
        let start = [PREFACE, &[0xff, 0xff, 0xff, HEADERS, 4, 0, 0, 0, 1], GO].concat();
        check_bytes(&start, &start);
    }

    #[test]
    fn invalid_header_blocks_are_unchanged() {
        let frames = [
            frame(HEADERS, 4, b"\x7f\xff\xff\xff\xff\xff"),
            frame(HEADERS, 4, b"\x40"),
        ];
        check(&frames, &frames);
    }
}
