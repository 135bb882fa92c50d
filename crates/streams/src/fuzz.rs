//! Properties that hold for any bytes of a peer: one function per target of `fuzz/`, which panics on a violation.

use bytes::Bytes;

use crate::spdy;
use crate::websocket;

/// What a SPDY peer sends. The first byte says how the rest is split.
pub fn spdy(data: &[u8]) {
    if let Some((split, data)) = data.split_first() {
        spdy::fuzz::frames(data, usize::from(*split) + 1);
        spdy::fuzz::header_blocks(data);
        in_connection(|| spdy::fuzz::connection(Bytes::copy_from_slice(data)));
    }
}

/// What a WebSocket peer sends. The first byte selects the role and coding, the second says how the rest is split.
pub fn websocket(data: &[u8]) {
    if let [settings, split, data @ ..] = data {
        in_connection(|| websocket::fuzz::frames(data, *settings, usize::from(*split) + 1));
        in_connection(|| websocket::fuzz::connection(Bytes::copy_from_slice(data), *settings));
    }
}

/// Runs a conversation in memory. The clock stands still unless all tasks wait: a deadline that is reached is a
/// conversation that hangs.
fn in_connection<F: Future<Output = ()>>(conversation: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime without I/O can be built");
    runtime.block_on(conversation());
}

#[cfg(test)]
mod tests {
    use crate::fuzz_corpus;

    #[test]
    fn any_bytes_of_a_spdy_peer_keep_every_property() {
        fuzz_corpus::run("spdy", super::spdy, 2000);
    }

    #[test]
    fn any_bytes_of_a_websocket_peer_keep_every_property() {
        fuzz_corpus::run("websocket", super::websocket, 2000);
    }
}
