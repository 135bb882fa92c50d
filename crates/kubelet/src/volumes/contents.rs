//! The files of a volume that the kubelet writes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::KeyToPath;

use super::tokens::TokenError;
use crate::downward::DownwardError;
use crate::references::ReferenceError;

/// Files by path in the volume.
pub(super) type Contents = BTreeMap<String, FileContent>;

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileContent {
    pub(super) data: Vec<u8>,
    pub(super) mode: u32,
    pub(super) owner: Option<u32>,
}

/// Why the contents of a volume are not available. The texts are upstream's.
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

/// The files of a ConfigMap or Secret: all entries, or `items` at their paths.
pub(super) fn keyed_files(
    entries: &BTreeMap<&str, &[u8]>,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
    missing: impl Fn(String) -> ContentsError,
) -> Result<Contents, ContentsError> {
    let default = mode_bits(mode)?;
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
                    mode_bits(item.mode)?
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

/// The file mode. The API server sets a default.
pub(super) fn mode_bits(mode: Option<i32>) -> Result<u32, ContentsError> {
    mode.and_then(|mode| u32::try_from(mode).ok())
        .ok_or(ContentsError::NoMode)
}

/// One error, or all of them as one.
pub(super) fn combine(mut errors: Vec<ContentsError>) -> Result<(), ContentsError> {
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(ContentsError::Several(errors)),
    }
}

/// The distinct texts, in brackets if there are several.
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
