//! `downwardAPI` volumes.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, Pod, Volume};

use super::contents::{Contents, ContentsError, FileContent, combine, mode_bits};
use super::plugin::{Context, SetUp, SetUpError, VolumePlugin};
use crate::downward::{Allocatable, Amounts, field_of_metadata, resource_of_container};

pub(super) struct DownwardApiPlugin;

#[async_trait]
impl VolumePlugin for DownwardApiPlugin {
    fn can_support(&self, volume: &Volume) -> bool {
        volume.downward_api.is_some()
    }

    fn directory(&self) -> Option<&'static str> {
        Some("kubernetes.io~downward-api")
    }

    async fn prepare(&self, volume: &Volume, context: &Context<'_>) -> Result<SetUp, SetUpError> {
        let source = volume.downward_api.clone().unwrap_or_default();
        let items = source.items.as_deref().unwrap_or_default();
        let contents = files(items, context.pod, &context.node, source.default_mode)?;
        Ok(context.write_files(context.memory(), contents))
    }
}

/// The files of the downward API.
pub(super) fn files(
    items: &[DownwardAPIVolumeFile],
    pod: &Pod,
    node: &Amounts,
    mode: Option<i32>,
) -> Result<Contents, ContentsError> {
    let default = mode_bits(mode)?;
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
            mode_bits(item.mode)?
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

    combine(errors).map(|()| contents)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn fields_become_files_and_all_errors_are_reported() {
        let pod: Pod =
            serde_json::from_str(r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[]}}"#)
                .unwrap();
        let wanted: Vec<DownwardAPIVolumeFile> = serde_json::from_str(
            r#"[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]"#,
        )
        .unwrap();

        let found = files(&wanted, &pod, &Amounts::new(), Some(0o640));
        assert_eq!(
            listed(found).unwrap(),
            [("labels".to_owned(), b"a=\"b\"".to_vec(), 0o640)]
        );

        let wanted: Vec<DownwardAPIVolumeFile> = serde_json::from_str(
            r#"[{"path":"x","fieldRef":{"fieldPath":"x"}},{"path":"y","resourceFieldRef":{"containerName":"c","resource":"limits.cpu"}}]"#,
        )
        .unwrap();
        let found = files(&wanted, &pod, &Amounts::new(), Some(0o640));
        assert_eq!(
            listed(found).unwrap_err(),
            "[unsupported fieldPath: x, container c not found]"
        );
    }
}
