//! The JSON documents that describe an image: index, manifest, configuration. Only the fields in
//! use are parsed; the documents are stored byte for byte.

use serde::Deserialize;

use super::digest::Digest;

/// Media types, Docker's and the specification's.
pub(crate) const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
pub(crate) const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// Layer media types, and suffixes for the compression, which is detected from the content.
const LAYERS: [&str; 4] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
];
const COMPRESSIONS: [&str; 5] = ["", "+gzip", "+zstd", ".gzip", ".zstd"];

/// The limit of layers, below that of the kernel.
pub(crate) const MOST_LAYERS: usize = 400;

/// Why a document is not an image that can run here.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("cannot read the {what}")]
    Json {
        what: &'static str,
        source: serde_json::Error,
    },
    #[error(
        "manifests of schema version 1 are not supported: push the image again with a current tool"
    )]
    SchemaOne,
    #[error("no manifest for platform {0}")]
    NoPlatform(String),
    #[error("the manifest has {layers} layers, the configuration {diff_ids}")]
    Layers { layers: usize, diff_ids: usize },
    #[error("the image has {0} layers, more than {MOST_LAYERS}")]
    TooManyLayers(usize),
    #[error("media type {0:?} is neither an image manifest nor an image index")]
    MediaType(String),
    #[error("layer {digest} has unsupported media type {media_type:?}: build it as a tar archive")]
    LayerType { digest: Digest, media_type: String },
    #[error("image platform {found} does not match node platform {wanted}")]
    OtherPlatform { found: String, wanted: String },
}

/// An OCI descriptor.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) platform: Option<Platform>,
    #[serde(default)]
    pub(crate) annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Platform {
    pub architecture: String,
    pub os: String,
    #[serde(default)]
    pub variant: String,
}

impl Platform {
    /// The platform of this machine.
    pub fn of_this_machine() -> Self {
        let (architecture, variant) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", ""),
            "aarch64" => ("arm64", "v8"),
            "arm" => ("arm", "v7"),
            other => (other, ""),
        };
        Self {
            architecture: architecture.to_owned(),
            os: "linux".to_owned(),
            variant: variant.to_owned(),
        }
    }

    /// How well an image of another platform fits: higher is better, none is not at all. An
    /// unspecified variant fits; so does a lower one of the same family.
    fn fit(&self, other: &Self) -> Option<u8> {
        let same = self.os == other.os && self.architecture == other.architecture;
        match (
            same,
            self.variant == other.variant,
            other.variant.is_empty(),
        ) {
            (false, ..) => None,
            (_, true, _) => Some(3),
            (_, _, true) => Some(2),
            _ if self.architecture == "arm" && other.variant < self.variant => Some(1),
            _ => None,
        }
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.os, self.architecture)?;
        if self.variant.is_empty() {
            Ok(())
        } else {
            write!(out, "/{}", self.variant)
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Index {
    pub(crate) manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

impl Manifest {
    /// Checks the media types of all layers. An empty one is accepted: unpacking detects what is
    /// not an archive.
    pub(crate) fn check_layers(&self) -> Result<(), DocumentError> {
        let is_layer = |layer: &&Descriptor| {
            let known = LAYERS
                .iter()
                .find_map(|name| layer.media_type.strip_prefix(name));
            layer.media_type.is_empty() || known.is_some_and(|form| COMPRESSIONS.contains(&form))
        };

        match self.layers.iter().find(|layer| !is_layer(layer)) {
            None => Ok(()),
            Some(Descriptor {
                digest, media_type, ..
            }) => Err(DocumentError::LayerType {
                digest: *digest,
                media_type: media_type.clone(),
            }),
        }
    }
}

/// A manifest or an index.
#[derive(Debug)]
pub(crate) enum Document {
    Index(Index),
    Manifest(Manifest),
}

/// Parses a document by its media type; if that is missing or generic, by its fields.
pub(crate) fn read(media_type: &str, bytes: &[u8]) -> Result<Document, DocumentError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Shape {
        #[serde(default)]
        schema_version: u32,
        #[serde(default)]
        media_type: String,
        manifests: Option<serde::de::IgnoredAny>,
    }

    let shape: Shape = json("manifest", bytes)?;
    if shape.schema_version == 1 {
        return Err(DocumentError::SchemaOne);
    }

    let declared = if shape.media_type.is_empty() {
        media_type
    } else {
        &shape.media_type
    };

    let is_index = match declared {
        declared if INDEXES.contains(&declared) => true,
        declared if MANIFESTS.contains(&declared) => false,
        "" | "application/json" | "application/octet-stream" => shape.manifests.is_some(),
        other => return Err(DocumentError::MediaType(other.to_owned())),
    };

    if is_index {
        json("index", bytes).map(Document::Index)
    } else {
        json("manifest", bytes).map(Document::Manifest)
    }
}

impl Index {
    /// The manifest that fits a platform best; the first of equal ones.
    pub(crate) fn choose(&self, platform: &Platform) -> Result<&Descriptor, DocumentError> {
        let mut best: Option<(u8, &Descriptor)> = None;
        for manifest in &self.manifests {
            let fit = match &manifest.platform {
                Some(other) => platform.fit(other),
                // An index with one manifest, as tools for local layouts write it.
                None => (self.manifests.len() == 1).then_some(1),
            };

            if let Some(fit) = fit
                && best.is_none_or(|(best, _)| fit > best)
            {
                best = Some((fit, manifest));
            }
        }

        best.map(|(_, manifest)| manifest)
            .ok_or_else(|| DocumentError::NoPlatform(platform.to_string()))
    }
}

/// An image's configuration, as far as it is used.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Config {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) config: Option<RunConfig>,
    pub(crate) rootfs: RootFs,
}

/// The run configuration. Fields may be absent or null.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct RunConfig {
    pub(crate) user: Option<String>,
    pub(crate) env: Option<Vec<String>>,
    pub(crate) entrypoint: Option<Vec<String>>,
    pub(crate) cmd: Option<Vec<String>>,
    pub(crate) working_dir: Option<String>,
    pub(crate) stop_signal: Option<String>,
    pub(crate) volumes: Option<std::collections::BTreeMap<String, serde::de::IgnoredAny>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RootFs {
    pub(crate) diff_ids: Vec<Digest>,
}

impl Config {
    /// Parses a configuration, which must have this number of layers and this platform.
    pub(crate) fn read(
        bytes: &[u8],
        layers: usize,
        platform: &Platform,
    ) -> Result<Self, DocumentError> {
        let config: Self = json("image's configuration", bytes)?;
        let diff_ids = config.rootfs.diff_ids.len();
        if diff_ids != layers {
            return Err(DocumentError::Layers { layers, diff_ids });
        }
        if layers > MOST_LAYERS {
            return Err(DocumentError::TooManyLayers(layers));
        }

        // The variant is not compared: many arm64 images do not have one.
        let fits = |found: &str, wanted: &str| found.is_empty() || found == wanted;
        if !fits(&config.os, &platform.os) || !fits(&config.architecture, &platform.architecture) {
            let found = format!("{}/{}", config.os, config.architecture);
            return Err(DocumentError::OtherPlatform {
                found,
                wanted: platform.to_string(),
            });
        }

        Ok(config)
    }
}

pub(crate) fn json<'a, T: Deserialize<'a>>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<T, DocumentError> {
    serde_json::from_slice(bytes).map_err(|source| DocumentError::Json { what, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_that_fits_best_is_chosen() {
        let check = |here: (&str, &str), offered: &[(&str, &str)], expected: Option<usize>| {
            let platform = |(architecture, variant): (&str, &str)| Platform {
                architecture: architecture.to_owned(),
                os: "linux".to_owned(),
                variant: variant.to_owned(),
            };

            let descriptor = |(number, of): (usize, &(&str, &str))| Descriptor {
                media_type: String::new(),
                digest: Digest::of(&[u8::try_from(number).unwrap()]),
                size: 1,
                platform: Some(platform(*of)),
                annotations: [].into(),
            };

            let index = Index {
                manifests: offered.iter().enumerate().map(descriptor).collect(),
            };
            let chosen = index
                .choose(&platform(here))
                .ok()
                .map(|chosen| chosen.digest);

            assert_eq!(
                chosen,
                expected.map(|at| index.manifests[at].digest),
                "{here:?} of {offered:?}"
            );
        };

        check(("amd64", ""), &[("arm64", "v8"), ("amd64", "")], Some(1));
        check(("arm64", "v8"), &[("arm64", ""), ("arm64", "v8")], Some(1));
        check(("arm64", "v8"), &[("amd64", ""), ("arm64", "")], Some(1));
        check(("arm", "v7"), &[("arm", "v5"), ("arm", "v7")], Some(1));
        check(("arm", "v6"), &[("arm", "v7")], None);
        check(("amd64", ""), &[("unknown", ""), ("s390x", "")], None);
    }

    #[test]
    fn layers_of_unknown_media_type_are_refused() {
        let check = |media_type: &str, expected: bool| {
            let digest = Digest::of(b"");
            let text = format!(
                r#"{{"config": {{"digest": "{digest}", "size": 0}}, "layers": [
                    {{"mediaType": "{media_type}", "digest": "{digest}", "size": 0}}]}}"#
            );
            let manifest: Manifest = json("manifest", text.as_bytes()).unwrap();
            let checked = manifest.check_layers().map_err(|error| error.to_string());
            assert_eq!(checked.is_ok(), expected, "{media_type}: {checked:?}");

            checked.unwrap_or_else(|text| assert!(text.contains(media_type), "{text}"));
        };

        check("application/vnd.oci.image.layer.v1.tar", true);
        check("application/vnd.oci.image.layer.v1.tar+gzip", true);
        check("application/vnd.oci.image.layer.v1.tar+zstd", true);
        check(
            "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
            true,
        );

        check("application/vnd.docker.image.rootfs.diff.tar.gzip", true);
        check("application/vnd.docker.image.rootfs.diff.tar", true);
        check(
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            true,
        );

        check("", true);
        check(
            "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
            false,
        );

        check("application/vnd.cncf.helm.chart.content.v1.tar+gzip", false);
        check("application/vnd.oci.image.layer.v1.squashfs", false);
        check("text/html", false);
    }

    #[test]
    fn a_document_is_what_it_says_it_is() {
        let check = |declared: &str, text: &str, expected: &str| {
            let found = match read(declared, text.as_bytes()) {
                Ok(Document::Index(_)) => "index".to_owned(),
                Ok(Document::Manifest(_)) => "manifest".to_owned(),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{declared} {text}");
        };

        check(INDEXES[0], r#"{"manifests":[]}"#, "index");
        check("", r#"{"manifests":[]}"#, "index");
        check(
            MANIFESTS[1],
            r#"{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#,
            "index",
        );

        check(
            MANIFESTS[1],
            r#"{"schemaVersion":1,"fsLayers":[]}"#,
            &DocumentError::SchemaOne.to_string(),
        );

        check(
            "text/html",
            "{}",
            r#"media type "text/html" is neither an image manifest nor an image index"#,
        );

        check("", "<html>", "cannot read the manifest");
    }
}
