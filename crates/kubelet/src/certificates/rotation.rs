//! Replaces a certificate before it expires.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_base::error_chain;
use coracle_base::sync::Mutex;
use coracle_base::tls::server::certified_key;
use coracle_client::{Client, World};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::request::{Purpose, request};
use super::{CertificateError, CertificateStore, Facts, new_key};

/// Delays after a request that failed.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LAST_RETRY: Duration = Duration::from_secs(128);
/// How long a request may wait for its approval before another is made, with a key of its own.
const ISSUED_WITHIN: Duration = Duration::from_secs(900);
/// The longest sleep: clocks are set, and machines are suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(600);

/// Keeps one certificate of a node current.
pub struct Rotation {
    pub client: Client,
    pub node: String,
    pub purpose: Purpose,
    pub store: CertificateStore,
    /// What presents the certificate, where it is a serving certificate.
    pub presented: Option<Arc<ServingCertificate>>,
}

impl Rotation {
    /// Requests and replaces the certificate until dropped.
    pub async fn keep(self) {
        let world = self.client.world();
        let mut retry = FIRST_RETRY;
        loop {
            let rest = self.rest(world);
            if !rest.is_zero() {
                tokio::time::sleep(rest.min(LONGEST_SLEEP)).await;
                continue;
            }

            let renewed = tokio::time::timeout(ISSUED_WITHIN, self.renew(world)).await;
            match renewed {
                Ok(Ok(())) => {
                    tracing::info!(purpose = self.what(), "certificate replaced");
                    retry = FIRST_RETRY;
                    continue;
                }
                Ok(Err(error)) => {
                    tracing::warn!(purpose = self.what(), error = %error_chain(&error), "cannot replace certificate; retrying");
                }
                Err(_) => {
                    tracing::warn!(
                        purpose = self.what(),
                        "certificate was not issued; requesting another"
                    );
                }
            }

            tokio::time::sleep(retry.mul_f64(1.0 + 0.1 * world.fraction())).await;
            retry = (retry * 2).min(LAST_RETRY);
        }
    }

    fn what(&self) -> &'static str {
        match self.purpose {
            Purpose::Client => "client",
            Purpose::Serving(_) => "serving",
        }
    }

    /// Time until the certificate is to be replaced.
    fn rest(&self, world: World) -> Duration {
        let Some(facts) = self.store.current().and_then(|pem| Facts::of(&pem)) else {
            return Duration::ZERO;
        };
        if let Purpose::Serving(names) = &self.purpose
            && !facts.names.include(names)
        {
            return Duration::ZERO;
        }
        // The same certificate is always replaced at the same time, also after a restart.
        let rest = replaced_at(&facts, spread(facts.not_after)).since(world.now());
        rest.to_std().unwrap_or_default()
    }

    async fn renew(&self, world: World) -> Result<(), CertificateError> {
        let key = new_key()?;
        let certificate = request(&self.client, &self.node, &key, &self.purpose, false).await?;
        self.store
            .update(&certificate, &key.serialize_pem(), world.now())?;

        if let Some(presented) = &self.presented {
            presented.load(&self.store);
        }
        Ok(())
    }
}

/// A number that is spread over certificates, so that the nodes of a cluster do not all renew at
/// the same time.
fn spread(not_after: Timestamp) -> u8 {
    let digest = ring::digest::digest(
        &ring::digest::SHA256,
        &not_after.unix_seconds().to_le_bytes(),
    );
    digest.as_ref()[0]
}

/// As upstream: between 70 and 90 percent of its life.
fn replaced_at(facts: &Facts, spread: u8) -> Timestamp {
    let life = facts.not_after.unix_seconds() - facts.not_before.unix_seconds();
    let whole = i64::from(u8::MAX) * 10;
    let used = i64::from(u8::MAX) * 7 + i64::from(spread) * 2;
    facts.not_before.plus_seconds(life * used / whole)
}

/// The serving certificate of the kubelet API at present. Until there is one, handshakes fail.
#[derive(Debug, Default)]
pub struct ServingCertificate(Mutex<Option<Arc<CertifiedKey>>>);

impl ServingCertificate {
    /// Presents the current certificate of a store from now on; keeps the last one if there is none.
    pub fn load(&self, store: &CertificateStore) {
        let Some(pem) = store.current() else {
            return;
        };
        match certified_key(&pem, &pem) {
            Ok(key) => *self.0.lock() = Some(Arc::new(key)),
            Err(error) => tracing::warn!(%error, "serving certificate is not usable"),
        }
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::Names;

    #[test]
    fn a_certificate_is_replaced_in_the_last_third_of_its_life() {
        let facts = Facts {
            common_name: String::new(),
            subject: Vec::new(),
            issuer: Vec::new(),
            not_before: Timestamp::from_unix(1000, 0),
            not_after: Timestamp::from_unix(2000, 0),
            names: Names::default(),
        };
        assert_eq!(replaced_at(&facts, 0), Timestamp::from_unix(1700, 0));
        assert_eq!(replaced_at(&facts, 255), Timestamp::from_unix(1900, 0));
    }
}
