//! What a port agrees to in a handshake: versions, cipher suites and key exchanges. They are named as
//! upstream's flags do, which have the names and numbers of Go's library.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{NamedGroup, ProtocolVersion};

use super::provider;

/// The limits of the handshakes of a port.
#[derive(Clone, Debug)]
pub struct Limits {
    /// TLS 1.2 is refused.
    pub tls13_only: bool,
    provider: Arc<CryptoProvider>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            tls13_only: false,
            provider: provider(),
        }
    }
}

impl Limits {
    pub(super) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.provider)
    }

    /// Accepts only these cipher suites, and all of TLS 1.3, which cannot be selected. Returns those
    /// that no connection here can have.
    ///
    /// # Errors
    /// There is no such cipher suite.
    pub fn only_suites<'a>(&mut self, names: &'a [String]) -> Result<Vec<&'a str>, String> {
        if let Some(unknown) = names.iter().find(|name| !is_suite(name)) {
            return Err(format!(
                "Cipher suite {unknown} not supported or doesn't exist"
            ));
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }

        let mut provider = CryptoProvider::clone(&self.provider);
        let is_new = |name: &str| !name.contains("_WITH_");
        let has = |name: &str| {
            let mut ours = provider.cipher_suites.iter();
            ours.any(|suite| suite.suite().as_str() == Some(full_name(name)))
        };
        let missing = names.iter().map(String::as_str);
        let missing = missing.filter(|name| !is_new(name) && !has(name)).collect();

        provider.cipher_suites.retain(|suite| {
            let name = suite.suite().as_str();
            suite.version().version == ProtocolVersion::TLSv1_3
                || names.iter().any(|given| name == Some(full_name(given)))
        });
        self.provider = Arc::new(provider);
        Ok(missing)
    }

    /// Accepts only these key exchanges, by the numbers that Go and the handshake have for them.
    /// Returns those that no connection here can have.
    ///
    /// # Errors
    /// A number is none, appears twice, or nothing is left.
    pub fn only_groups(&mut self, numbers: &[i32]) -> Result<Vec<i32>, String> {
        for (index, number) in numbers.iter().enumerate() {
            if !(1..=i32::from(u16::MAX)).contains(number) {
                return Err(format!(
                    "curve preference {number} is out of range (must be 1-65535)"
                ));
            }
            if numbers[..index].contains(number) {
                return Err(format!("duplicate curve preference {number}"));
            }
            if !GROUPS.contains(number) {
                return Err(format!("curve preference {number} is not supported"));
            }
        }
        if numbers.is_empty() {
            return Ok(Vec::new());
        }

        let number = |group: NamedGroup| i32::from(u16::from(group));
        let mut provider = CryptoProvider::clone(&self.provider);
        provider
            .kx_groups
            .retain(|group| numbers.contains(&number(group.name())));
        if provider.kx_groups.is_empty() {
            return Err("none of the curve preferences is available".to_owned());
        }

        let has = |given: &i32| {
            let mut ours = provider.kx_groups.iter();
            ours.any(|group| number(group.name()) == *given)
        };
        let missing = numbers.iter().copied().filter(|given| !has(given));
        let missing = missing.collect();
        self.provider = Arc::new(provider);
        Ok(missing)
    }
}

/// Key exchanges that Go has: P-256, P-384, P-521, X25519, and those with ML-KEM.
const GROUPS: [i32; 7] = [23, 24, 25, 29, 4587, 4588, 4589];

/// The name in the standard of one that Go has under a shorter name too.
fn full_name(name: &str) -> &str {
    match name {
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        full => full,
    }
}

/// Whether Go has a cipher suite, the insecure ones included.
fn is_suite(name: &str) -> bool {
    let Some(rest) = full_name(name).strip_prefix("TLS_") else {
        return false;
    };
    let Some((exchange, cipher)) = rest.split_once("_WITH_") else {
        return matches!(
            rest,
            "AES_128_GCM_SHA256" | "AES_256_GCM_SHA384" | "CHACHA20_POLY1305_SHA256"
        );
    };
    matches!(
        (exchange, cipher),
        (
            "RSA" | "ECDHE_RSA" | "ECDHE_ECDSA",
            "RC4_128_SHA"
                | "AES_128_CBC_SHA"
                | "AES_256_CBC_SHA"
                | "AES_128_CBC_SHA256"
                | "AES_128_GCM_SHA256"
                | "AES_256_GCM_SHA384",
        ) | ("RSA" | "ECDHE_RSA", "3DES_EDE_CBC_SHA")
            | ("ECDHE_RSA" | "ECDHE_ECDSA", "CHACHA20_POLY1305_SHA256")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cipher_suites_are_selected_by_name() {
        let check = |given: &[&str], left: &[&str], missing: &[&str]| {
            let (given, mut limits) = (names(given), Limits::default());
            assert_eq!(limits.only_suites(&given).unwrap(), missing, "{given:?}");
            let suites = limits.provider.cipher_suites.iter();
            let old = suites.filter(|suite| suite.tls13().is_none());
            let old: Vec<_> = old.map(|suite| suite.suite().as_str().unwrap()).collect();
            assert_eq!(old, left, "{given:?}");
            let new = limits.provider.cipher_suites.len() - old.len();
            assert_eq!(new, 3, "{given:?}");
        };

        check(
            &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            &[],
        );
        check(
            &[
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
                "TLS_RSA_WITH_AES_256_GCM_SHA384",
            ],
            &["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"],
            &["TLS_RSA_WITH_AES_256_GCM_SHA384"],
        );
        check(&["TLS_AES_128_GCM_SHA256"], &[], &[]);

        let unknown = names(&["TLS_NONE"]);
        assert_eq!(
            Limits::default().only_suites(&unknown).unwrap_err(),
            "Cipher suite TLS_NONE not supported or doesn't exist"
        );
    }

    #[test]
    fn key_exchanges_are_selected_by_number() {
        let check = |given: &[i32], left: &[u16], missing: &[i32]| {
            let mut limits = Limits::default();
            assert_eq!(limits.only_groups(given).unwrap(), missing, "{given:?}");
            let groups = limits.provider.kx_groups.iter();
            let groups: Vec<u16> = groups.map(|group| group.name().into()).collect();
            assert_eq!(groups, left, "{given:?}");
        };
        check(&[23], &[23], &[]);
        check(&[25, 29], &[29], &[25]);

        let refused = |given: &[i32]| Limits::default().only_groups(given).unwrap_err();
        assert_eq!(
            refused(&[0]),
            "curve preference 0 is out of range (must be 1-65535)"
        );
        assert_eq!(refused(&[29, 29]), "duplicate curve preference 29");
        assert_eq!(refused(&[7]), "curve preference 7 is not supported");
        assert_eq!(refused(&[25]), "none of the curve preferences is available");
    }
}
