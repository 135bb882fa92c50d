//! SHA-256 digests, which identify blobs, configurations, layers and stacks of layers (chain IDs).

use std::fmt;
use std::str::FromStr;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A SHA-256 digest. Other algorithms are allowed by the specification; no registry uses them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The error for an invalid digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a sha256 digest")]
pub struct InvalidDigest(String);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The 64 digits without the algorithm, as used in file names.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses 64 digits.
    pub fn from_hex(hex: &str) -> Result<Self, InvalidDigest> {
        let refused = || InvalidDigest(hex.to_owned());
        if hex.len() != 64
            || !hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(refused());
        }

        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).map_err(|_| refused())?;
        }

        Ok(Self(bytes))
    }
}

/// The chain IDs of layers, from the lowest on: each is the digest of the chain ID below and the
/// layer's diff ID. A layer is stored under its chain ID, because its meaning depends on the layers
/// below.
pub(super) fn chain(layers: &[Digest]) -> Vec<Digest> {
    let mut names: Vec<Digest> = Vec::with_capacity(layers.len());
    for layer in layers {
        let name = match names.last() {
            None => *layer,
            Some(below) => Digest::of(format!("{below} {layer}").as_bytes()),
        };
        names.push(name);
    }
    names
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let refused = || InvalidDigest(text.to_owned());
        Self::from_hex(text.strip_prefix("sha256:").ok_or_else(refused)?).map_err(|_| refused())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// An incremental SHA-256.
#[derive(Clone)]
pub(crate) struct Hasher(Context);

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(
            self.0
                .finish()
                .as_ref()
                .try_into()
                .expect("SHA-256 has 32 bytes"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chain_ids_match_upstream() {
        let check = |layers: &[&str], expected: &[&str]| {
            let parse = |texts: &[&str]| {
                texts
                    .iter()
                    .map(|hex| Digest::from_hex(hex).unwrap())
                    .collect::<Vec<_>>()
            };
            assert_eq!(chain(&parse(layers)), parse(expected));
        };

        check(
            &[
                "777b2c648970480f50f5b4d0af8f9a8ea798eea43dbcf40ce4a8c7118736bdcf",
                "019dd39b82bba02007b940007ee0662015ff0a11ddd55fb7b4a4f6f1e3f694f2",
                "ead19f98b65e2cb338cab0470d7ddadc8a23c32ccd34ab6511a35393c7b7335d",
                "bcbfcc5b87d4afa5cf8981569a2dcebfd01643a7ddbe82f191062cf677d024b2",
            ],
            &[
                "777b2c648970480f50f5b4d0af8f9a8ea798eea43dbcf40ce4a8c7118736bdcf",
                "02aca22ece6a3cd150e7df6e3a651c1386983a9cd525250e804957e5c8629a05",
                "4d4eb19da25f4f4649cf74c7028acd317962959e4b9b55aec27b4cfc3b867b93",
                "d8546a51a3203d6ac8eb7b5b0f23a97e77aa706e0ee2136e8747c000538926bd",
            ],
        );

        // The same layer twice in one image is two layers.
        let (one, other) = (
            "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
            "41ff149e94f22c52b8f36c59cafe7538b70ea771e62d9fc6922dedac25392fdf",
        );

        check(
            &[one, other, one],
            &[
                one,
                "7897c392c5f451552cd2eb20fdeadd1d557c6be8a3cd20d0355fb45c1f151738",
                "666604249ff52593858b7716232097daa6d721b7b4825aac8bf8a3f45dfba1ce",
            ],
        );
    }

    #[test]
    fn only_whole_lower_case_digests_are_read() {
        let hex = Digest::of(b"x").hex();
        assert_eq!(
            format!("sha256:{hex}").parse::<Digest>().unwrap(),
            Digest::of(b"x")
        );

        for text in [
            hex.clone(),
            format!("sha512:{hex}"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{hex}0"),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
