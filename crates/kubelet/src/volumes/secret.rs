//! `secret` volumes.

use std::collections::BTreeMap;

use async_trait::async_trait;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{KeyToPath, Secret, Volume};

use super::contents::{Contents, ContentsError, keyed_files};
use super::plugin::{Context, SetUp, SetUpError, VolumePlugin};
use crate::pod::PodView as _;

pub(super) struct SecretPlugin;

#[async_trait]
impl VolumePlugin for SecretPlugin {
    fn can_support(&self, volume: &Volume) -> bool {
        volume.secret.is_some()
    }

    fn directory(&self) -> Option<&'static str> {
        Some("kubernetes.io~secret")
    }

    async fn prepare(&self, volume: &Volume, context: &Context<'_>) -> Result<SetUp, SetUpError> {
        let source = volume.secret.clone().unwrap_or_default();
        let name = source.secret_name.as_deref().unwrap_or_default();
        let items = source.items.as_deref();
        let contents = files(context, name, items, source.default_mode, source.optional).await?;
        Ok(context.write_files(context.memory(), contents))
    }
}

/// The files of a Secret; none if it is optional and missing.
pub(super) async fn files(
    context: &Context<'_>,
    name: &str,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: Option<bool>,
) -> Result<Contents, ContentsError> {
    let optional = optional == Some(true);
    match context
        .references
        .secret(context.pod.namespace(), name)
        .await
    {
        Ok(found) => secret_files(&found, items, mode, optional),
        Err(error) if error.is_not_found() && optional => Ok(Contents::new()),
        Err(error) => Err(error.into()),
    }
}

fn secret_files(
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
    keyed_files(&entries, items, mode, optional, ContentsError::NoSecretKey)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_fails() {
        let items: Vec<KeyToPath> =
            serde_json::from_str(r#"[{"key":"gone","path":"x"},{"key":"a","path":"y"}]"#).unwrap();
        let found = secret_files(&Secret::default(), Some(&items), Some(0o644), false);
        assert_eq!(
            found.unwrap_err().to_string(),
            "references non-existent secret key: gone"
        );
    }
}
