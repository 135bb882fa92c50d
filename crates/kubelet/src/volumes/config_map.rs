//! `configMap` volumes.

use std::collections::BTreeMap;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{ConfigMap, KeyToPath, Volume};

use super::contents::{Contents, ContentsError, keyed_files};
use super::empty_dir::Medium;
use super::plugin::{Context, SetUp, SetUpError, VolumePlugin};
use crate::pod::PodView as _;

pub(super) struct ConfigMapPlugin;

#[async_trait]
impl VolumePlugin for ConfigMapPlugin {
    fn can_support(&self, volume: &Volume) -> bool {
        volume.config_map.is_some()
    }

    fn directory(&self) -> Option<&'static str> {
        Some("kubernetes.io~configmap")
    }

    async fn prepare(&self, volume: &Volume, context: &Context<'_>) -> Result<SetUp, SetUpError> {
        let source = volume.config_map.clone().unwrap_or_default();
        let items = source.items.as_deref();
        let contents = files(
            context,
            &source.name,
            items,
            source.default_mode,
            source.optional,
        )
        .await?;
        Ok(context.write_files(Medium::Disk, contents))
    }
}

/// The files of a ConfigMap; none if it is optional and missing.
pub(super) async fn files(
    context: &Context<'_>,
    name: &str,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: Option<bool>,
) -> Result<Contents, ContentsError> {
    let optional = optional == Some(true);
    let found = context
        .references
        .config_map(context.pod.namespace(), name)
        .await;
    match found {
        Ok(found) => config_map_files(&found, items, mode, optional),
        Err(error) if error.is_not_found() && optional => Ok(Contents::new()),
        Err(error) => Err(error.into()),
    }
}

fn config_map_files(
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

    // `data` overrides `binaryData`.
    let entries: BTreeMap<&str, &[u8]> = binary.chain(texts).collect();
    keyed_files(
        &entries,
        items,
        mode,
        optional,
        ContentsError::NoConfigMapKey,
    )
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
    fn items_have_a_path_and_a_mode() {
        let some = items(r#"[{"key":"a","path":"deep/er","mode":256},{"key":"c","path":"c"}]"#);
        check(
            &some,
            false,
            Ok(&[("c", &[0, 1], 0o644), ("deep/er", b"text", 0o400)]),
        );
    }

    #[test]
    fn a_missing_key_fails_unless_optional() {
        let some = items(r#"[{"key":"gone","path":"x"},{"key":"a","path":"y"}]"#);
        check(
            &some,
            false,
            Err("configmap references non-existent config key: gone"),
        );

        check(&some, true, Ok(&[("y", b"text", 0o644)]));
    }

    #[test]
    fn the_mode_must_be_set() {
        let found = listed(config_map_files(&config_map(), None, None, true));
        assert_eq!(
            found.unwrap_err(),
            "no defaultMode used, not even the default value for it"
        );
    }
}
