//! `projected` volumes: files of several sources.

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::{ServiceAccountTokenProjection, Volume, VolumeProjection};

use super::contents::{Contents, ContentsError, FileContent, combine, mode_bits};
use super::plugin::{Context, SetUp, SetUpError, VolumePlugin};
use super::{config_map, downward_api, ownership, secret};

/// Mode of a token if the pod has a user or a group.
const PRIVATE: u32 = 0o600;

pub(super) struct ProjectedPlugin;

#[async_trait]
impl VolumePlugin for ProjectedPlugin {
    fn can_support(&self, volume: &Volume) -> bool {
        volume.projected.is_some()
    }

    fn directory(&self) -> Option<&'static str> {
        Some("kubernetes.io~projected")
    }

    async fn prepare(&self, volume: &Volume, context: &Context<'_>) -> Result<SetUp, SetUpError> {
        let source = volume.projected.clone().unwrap_or_default();
        let mode = source.default_mode;
        let (mut contents, mut renew_at, mut errors) = (Contents::new(), None, Vec::new());

        // Files of a later source override those of an earlier one.
        for part in source.sources.iter().flatten() {
            match files(context, part, mode).await {
                Ok((files, renew)) => {
                    contents.extend(files);
                    renew_at = super::earlier(renew_at, renew);
                }
                Err(error) => errors.push(error),
            }
        }
        combine(errors)?;

        Ok(SetUp {
            renew_at,
            ..context.write_files(context.memory(), contents)
        })
    }
}

/// The files of one source, and when its token must be renewed.
async fn files(
    context: &Context<'_>,
    part: &VolumeProjection,
    mode: Option<i32>,
) -> Result<(Contents, Option<Timestamp>), ContentsError> {
    if let Some(source) = &part.config_map {
        let items = source.items.as_deref();
        let files = config_map::files(context, &source.name, items, mode, source.optional).await?;
        return Ok((files, None));
    }

    if let Some(source) = &part.secret {
        let items = source.items.as_deref();
        let files = secret::files(context, &source.name, items, mode, source.optional).await?;
        return Ok((files, None));
    }

    if let Some(source) = &part.downward_api {
        let items = source.items.as_deref().unwrap_or_default();
        let files = downward_api::files(items, context.pod, &context.node, mode)?;
        return Ok((files, None));
    }

    if let Some(source) = &part.service_account_token {
        return token_file(context, source, mode).await;
    }
    if part.cluster_trust_bundle.is_some() {
        return Err(ContentsError::Unsupported("clusterTrustBundle"));
    }
    if part.pod_certificate.is_some() {
        return Err(ContentsError::Unsupported("podCertificate"));
    }

    Ok((Contents::new(), None))
}

async fn token_file(
    context: &Context<'_>,
    source: &ServiceAccountTokenProjection,
    mode: Option<i32>,
) -> Result<(Contents, Option<Timestamp>), ContentsError> {
    let token = context.tokens.get(context.pod, source).await?;
    let owner = ownership::only_user(context.pod);
    let is_private = owner.is_some() || ownership::Group::of(context.pod).is_some();

    let mode = if is_private {
        PRIVATE
    } else {
        mode_bits(mode)?
    };
    let file = FileContent {
        data: token.text.into_bytes(),
        mode,
        owner,
    };

    Ok((
        Contents::from([(source.path.clone(), file)]),
        Some(token.renew_at),
    ))
}
