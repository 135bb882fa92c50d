//! TLS configurations: what a [`client`] trusts and presents, what a [`server`] presents and asks
//! for. All of them use `ring`.

pub mod client;
mod limits;
pub mod named;
pub mod server;
mod signature;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use limits::Limits;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The names of HTTP/1.1 and HTTP/2 in the handshake.
pub const HTTP1: &[u8] = b"http/1.1";
pub const HTTP2: &[u8] = b"h2";

/// The cryptography of all connections.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates of a PEM text, at least one; its other blocks are skipped.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| error.to_string())?;
    match found.is_empty() {
        true => Err("no certificate found".to_owned()),
        false => Ok(found),
    }
}

/// The first private key of a PEM text.
pub fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())
}

/// CAs, each of which must be usable.
pub fn roots(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone())?;
    }
    Ok(roots)
}

/// The names of the HTTP versions that are offered, the preferred one first.
fn alpn(http2: bool) -> Vec<Vec<u8>> {
    match http2 {
        true => vec![HTTP2.to_vec(), HTTP1.to_vec()],
        false => vec![HTTP1.to_vec()],
    }
}
