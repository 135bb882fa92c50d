//! The files of a volume, gathered from the objects that it names.

use std::collections::BTreeMap;

use coracle_api::time::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource, KeyToPath,
    Pod, ProjectedVolumeSource, Secret, SecretVolumeSource, ServiceAccountTokenProjection,
    VolumeProjection,
};

use super::ownership;
use super::tokens::{TokenError, Tokens};
use crate::downward::{
    Allocatable, Amounts, DownwardError, field_of_metadata, resource_of_container,
};
use crate::pod::PodView as _;
use crate::references::{ReferenceError, References};

/// Files by their path in the volume.
pub(super) type Contents = BTreeMap<String, FileContent>;

/// A token, and what else only the pod's user may read, where a user or a group is given.
const PRIVATE: u32 = 0o600;

/// One file to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileContent {
    pub(super) data: Vec<u8>,
    pub(super) mode: u32,
    pub(super) owner: Option<u32>,
}

/// Why the files of a volume are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ContentsError {
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Downward(#[from] DownwardError),
    #[error("no defaultMode used, not even the default value for it")]
    NoMode,
    #[error("configmap references non-existent config key: {0}")]
    NoConfigMapKey(String),
    #[error("references non-existent secret key: {0}")]
    NoSecretKey(String),
    #[error("{0} projections are not supported by this node")]
    Unsupported(&'static str),
    #[error("{}", several(.0))]
    Several(Vec<ContentsError>),
}

/// Where the files of a pod's volumes come from.
pub(super) struct Gather<'a> {
    pub(super) references: &'a References,
    pub(super) tokens: &'a Tokens,
    pub(super) pod: &'a Pod,
    /// The size of the node.
    pub(super) node: &'a Amounts,
}

impl Gather<'_> {
    pub(super) async fn config_map(
        &self,
        wanted: &ConfigMapVolumeSource,
    ) -> Result<Contents, ContentsError> {
        let mode = wanted.default_mode;
        self.of_config_map(&wanted.name, wanted.items.as_deref(), mode, wanted.optional)
            .await
    }

    pub(super) async fn secret(
        &self,
        wanted: &SecretVolumeSource,
    ) -> Result<Contents, ContentsError> {
        let name = wanted.secret_name.as_deref().unwrap_or_default();
        self.of_secret(
            name,
            wanted.items.as_deref(),
            wanted.default_mode,
            wanted.optional,
        )
        .await
    }

    pub(super) fn downward_api(
        &self,
        wanted: &DownwardAPIVolumeSource,
    ) -> Result<Contents, ContentsError> {
        self.of_fields(
            wanted.items.as_deref().unwrap_or_default(),
            wanted.default_mode,
        )
    }

    /// All parts together, of which a later one hides an earlier one; and when a token in it wants
    /// to be renewed.
    pub(super) async fn projected(
        &self,
        wanted: &ProjectedVolumeSource,
    ) -> Result<(Contents, Option<Timestamp>), ContentsError> {
        let mode = wanted.default_mode;
        let (mut contents, mut renew_at, mut errors) = (Contents::new(), None, Vec::new());
        for part in wanted.sources.iter().flatten() {
            match self.of_part(part, mode).await {
                Ok((files, renew)) => {
                    contents.extend(files);
                    renew_at = super::earlier(renew_at, renew);
                }
                Err(error) => errors.push(error),
            }
        }

        match errors.len() {
            0 => Ok((contents, renew_at)),
            1 => Err(errors.remove(0)),
            _ => Err(ContentsError::Several(errors)),
        }
    }

    async fn of_part(
        &self,
        part: &VolumeProjection,
        mode: Option<i32>,
    ) -> Result<(Contents, Option<Timestamp>), ContentsError> {
        if let Some(wanted) = &part.config_map {
            let files = self
                .of_config_map(&wanted.name, wanted.items.as_deref(), mode, wanted.optional)
                .await?;
            return Ok((files, None));
        }

        if let Some(wanted) = &part.secret {
            let files = self
                .of_secret(&wanted.name, wanted.items.as_deref(), mode, wanted.optional)
                .await?;
            return Ok((files, None));
        }

        if let Some(wanted) = &part.downward_api {
            return Ok((
                self.of_fields(wanted.items.as_deref().unwrap_or_default(), mode)?,
                None,
            ));
        }

        if let Some(wanted) = &part.service_account_token {
            return self.of_token(wanted, mode).await;
        }
        if part.cluster_trust_bundle.is_some() {
            return Err(ContentsError::Unsupported("clusterTrustBundle"));
        }
        if part.pod_certificate.is_some() {
            return Err(ContentsError::Unsupported("podCertificate"));
        }

        Ok((Contents::new(), None))
    }

    async fn of_config_map(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        mode: Option<i32>,
        optional: Option<bool>,
    ) -> Result<Contents, ContentsError> {
        let optional = optional == Some(true);
        match self.references.config_map(self.pod.namespace(), name).await {
            Ok(found) => config_map_files(&found, items, mode, optional),
            Err(error) if error.is_not_found() && optional => Ok(Contents::new()),
            Err(error) => Err(error.into()),
        }
    }

    async fn of_secret(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        mode: Option<i32>,
        optional: Option<bool>,
    ) -> Result<Contents, ContentsError> {
        let optional = optional == Some(true);
        match self.references.secret(self.pod.namespace(), name).await {
            Ok(found) => secret_files(&found, items, mode, optional),
            Err(error) if error.is_not_found() && optional => Ok(Contents::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn of_fields(
        &self,
        items: &[DownwardAPIVolumeFile],
        mode: Option<i32>,
    ) -> Result<Contents, ContentsError> {
        field_files(items, self.pod, self.node, mode)
    }

    async fn of_token(
        &self,
        wanted: &ServiceAccountTokenProjection,
        mode: Option<i32>,
    ) -> Result<(Contents, Option<Timestamp>), ContentsError> {
        let token = self.tokens.get(self.pod, wanted).await?;
        let owner = ownership::only_user(self.pod);
        let belongs = owner.is_some() || ownership::Group::of(self.pod).is_some();

        let mode = if belongs { PRIVATE } else { bits(mode)? };
        let file = FileContent {
            data: token.text.into_bytes(),
            mode,
            owner,
        };

        Ok((
            Contents::from([(wanted.path.clone(), file)]),
            Some(token.renew_at),
        ))
    }
}

/// The files of a ConfigMap: all of it, or the items at their paths.
pub(super) fn config_map_files(
    found: &ConfigMap,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
) -> Result<Contents, ContentsError> {
    let texts = found
        .data
        .iter()
        .flatten()
        .map(|(key, text)| (key.as_str(), text.as_bytes()));

    let binary = found
        .binary_data
        .iter()
        .flatten()
        .map(|(key, data)| (key.as_str(), data.0.as_slice()));

    // A text hides bytes of the same key.
    let entries: BTreeMap<&str, &[u8]> = binary.chain(texts).collect();
    files(
        &entries,
        items,
        mode,
        optional,
        ContentsError::NoConfigMapKey,
    )
}

/// The files of a Secret: all of it, or the items at their paths.
pub(super) fn secret_files(
    found: &Secret,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
) -> Result<Contents, ContentsError> {
    let entry = |(key, data): (&'_ String, &'_ ByteString)| (key.clone(), data.0.clone());
    let entries: BTreeMap<String, Vec<u8>> = found.data.iter().flatten().map(entry).collect();
    let entries = entries
        .iter()
        .map(|(key, data)| (key.as_str(), data.as_slice()))
        .collect();
    files(&entries, items, mode, optional, ContentsError::NoSecretKey)
}

fn files(
    entries: &BTreeMap<&str, &[u8]>,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
    missing: impl Fn(String) -> ContentsError,
) -> Result<Contents, ContentsError> {
    let default = bits(mode)?;
    let file = |data: &[u8], mode| FileContent {
        data: data.to_vec(),
        mode,
        owner: None,
    };

    let items = items.unwrap_or_default();
    if items.is_empty() {
        let all = entries
            .iter()
            .map(|(key, data)| ((*key).to_owned(), file(data, default)));
        return Ok(all.collect());
    }

    let mut contents = Contents::new();
    for item in items {
        match entries.get(item.key.as_str()) {
            Some(data) => {
                let mode = if item.mode.is_some() {
                    bits(item.mode)?
                } else {
                    default
                };
                contents.insert(item.path.clone(), file(data, mode));
            }
            None if optional => {}
            None => return Err(missing(item.key.clone())),
        }
    }

    Ok(contents)
}

/// The files of the downward API.
pub(super) fn field_files(
    items: &[DownwardAPIVolumeFile],
    pod: &Pod,
    node: &Amounts,
    mode: Option<i32>,
) -> Result<Contents, ContentsError> {
    let default = bits(mode)?;
    let (mut contents, mut errors) = (Contents::new(), Vec::new());
    for item in items {
        let value = if let Some(field) = &item.field_ref {
            field_of_metadata(&field.field_path, pod)
        } else if let Some(resource) = &item.resource_field_ref {
            resource_of_container(resource, pod, None, Allocatable::OfNode(node))
        } else {
            Ok(String::new())
        };

        let mode = if item.mode.is_some() {
            bits(item.mode)?
        } else {
            default
        };

        match value {
            Ok(value) => {
                let file = FileContent {
                    data: value.into_bytes(),
                    mode,
                    owner: None,
                };
                contents.insert(item.path.clone(), file);
            }
            Err(error) => errors.push(ContentsError::Downward(error)),
        }
    }

    match errors.len() {
        0 => Ok(contents),
        1 => Err(errors.remove(0)),
        _ => Err(ContentsError::Several(errors)),
    }
}

fn bits(mode: Option<i32>) -> Result<u32, ContentsError> {
    mode.and_then(|mode| u32::try_from(mode).ok())
        .ok_or(ContentsError::NoMode)
}

/// Each text once, in brackets.
fn several(errors: &[ContentsError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(json: &str) -> Vec<KeyToPath> {
        serde_json::from_str(json).unwrap()
    }

    fn config_map() -> ConfigMap {
        serde_json::from_str(
            r#"{"data":{"a":"text","b":"hides"},"binaryData":{"b":"AAE=","c":"AAE="}}"#,
        )
        .unwrap()
    }

    fn listed(
        contents: Result<Contents, ContentsError>,
    ) -> Result<Vec<(String, Vec<u8>, u32)>, String> {
        let listed = contents.map(|files| {
            files
                .into_iter()
                .map(|(path, file)| (path, file.data, file.mode))
                .collect()
        });
        listed.map_err(|error| error.to_string())
    }

    /// Path, content and mode.
    type Expected<'a> = (&'a str, &'a [u8], u32);

    #[track_caller]
    fn check(items: &[KeyToPath], optional: bool, expected: Result<&[Expected<'_>], &str>) {
        let found = listed(config_map_files(
            &config_map(),
            Some(items),
            Some(0o644),
            optional,
        ));

        let expected = expected.map(|files| {
            files
                .iter()
                .map(|(path, data, mode)| ((*path).to_owned(), data.to_vec(), *mode))
                .collect::<Vec<_>>()
        });
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn without_items_every_entry_is_a_file() {
        check(
            &[],
            false,
            Ok(&[
                ("a", b"text", 0o644),
                ("b", b"hides", 0o644),
                ("c", &[0, 1], 0o644),
            ]),
        );
    }

    #[test]
    fn items_say_path_and_mode() {
        let some = items(r#"[{"key":"a","path":"deep/er","mode":256},{"key":"c","path":"c"}]"#);
        check(
            &some,
            false,
            Ok(&[("c", &[0, 1], 0o644), ("deep/er", b"text", 0o400)]),
        );
    }

    #[test]
    fn a_missing_key_fails_unless_it_may_be_missing() {
        let some = items(r#"[{"key":"gone","path":"x"},{"key":"a","path":"y"}]"#);
        check(
            &some,
            false,
            Err("configmap references non-existent config key: gone"),
        );

        check(&some, true, Ok(&[("y", b"text", 0o644)]));
        let secret = listed(secret_files(
            &Secret::default(),
            Some(&some),
            Some(0o644),
            false,
        ));

        assert_eq!(
            secret.unwrap_err(),
            "references non-existent secret key: gone"
        );
    }

    #[test]
    fn a_mode_must_have_been_defaulted() {
        let found = listed(config_map_files(&config_map(), None, None, true));
        assert_eq!(
            found.unwrap_err(),
            "no defaultMode used, not even the default value for it"
        );
    }

    #[test]
    fn fields_become_files_and_all_that_fails_is_told_at_once() {
        let pod: Pod =
            serde_json::from_str(r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[]}}"#)
                .unwrap();
        let wanted: Vec<DownwardAPIVolumeFile> = serde_json::from_str(
            r#"[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]"#,
        )
        .unwrap();

        let found = field_files(&wanted, &pod, &Amounts::new(), Some(0o640));
        assert_eq!(
            listed(found).unwrap(),
            [("labels".to_owned(), b"a=\"b\"".to_vec(), 0o640)]
        );

        let wanted: Vec<DownwardAPIVolumeFile> = serde_json::from_str(
            r#"[{"path":"x","fieldRef":{"fieldPath":"x"}},{"path":"y","resourceFieldRef":{"containerName":"c","resource":"limits.cpu"}}]"#,
        )
        .unwrap();
        let found = field_files(&wanted, &pod, &Amounts::new(), Some(0o640));
        assert_eq!(
            listed(found).unwrap_err(),
            "[unsupported fieldPath: x, container c not found]"
        );
    }
}
