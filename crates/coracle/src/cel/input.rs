//! Objects from files.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use coracle_api::Value;
use coracle_api::codec::any;
use coracle_api::codec::media_type::MediaType;
use coracle_api::codec::{json, yaml};

#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("cannot read {file}: {error}")]
    Read { file: String, error: io::Error },
    #[error("{file}: {error}")]
    Yaml { file: String, error: yaml::Error },
    #[error("{file}: {error}")]
    Json {
        file: String,
        error: json::SyntaxError,
    },
    #[error("{file}: {error}")]
    Separator {
        file: String,
        error: yaml::DocumentError,
    },
    #[error("{file}: protobuf and CBOR are not read here; pass it through `coracle decode` first")]
    Binary { file: String },
    #[error("{file}: several objects; an expression sees one")]
    Several { file: String },
}

/// The only value of a file, as JSON or YAML.
pub(super) fn read(path: &Path) -> Result<Value, InputError> {
    let (bytes, file) = contents(path)?;
    value(&bytes, file)
}

/// All values of a file; those of a `List` one by one.
pub(super) fn read_all(path: &Path) -> Result<Vec<Value>, InputError> {
    let (bytes, file) = contents(path)?;
    let documents = match any::detect(&bytes) {
        MediaType::Yaml => {
            let text = String::from_utf8_lossy(&bytes);
            let found: Result<Vec<Value>, _> = yaml::documents(&text)
                .filter(|document| document.as_ref().map_or(true, |text| has_content(text)))
                .map(|document| match document {
                    Ok(text) => value(text.as_bytes(), file.clone()),
                    Err(error) => Err(InputError::Separator {
                        file: file.clone(),
                        error,
                    }),
                })
                .collect();
            found?
        }
        _ => vec![value(&bytes, file)?],
    };

    let objects = documents.into_iter().flat_map(|document| {
        let is_list = document.get("kind").and_then(Value::as_str) == Some("List");
        let items = document.get("items").and_then(Value::as_array);
        match items.filter(|_| is_list) {
            Some(items) => items.to_vec(),
            None => vec![document],
        }
    });
    Ok(objects.collect())
}

/// What a file contains, and how errors call it.
fn contents(path: &Path) -> Result<(Vec<u8>, String), InputError> {
    let is_standard_input = path.as_os_str() == "-";
    let file = match is_standard_input {
        true => "standard input".to_string(),
        false => path.display().to_string(),
    };

    let mut bytes = Vec::new();
    let found = match is_standard_input {
        true => io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        false => fs::read(path),
    };
    match found {
        Ok(bytes) => Ok((bytes, file)),
        Err(error) => Err(InputError::Read { file, error }),
    }
}

pub(super) fn read_optional(path: Option<&Path>) -> Result<Option<Value>, InputError> {
    path.map(read).transpose()
}

fn value(bytes: &[u8], file: String) -> Result<Value, InputError> {
    match any::detect(bytes) {
        MediaType::Json => json::parse(bytes).map_err(|error| InputError::Json { file, error }),
        MediaType::Protobuf | MediaType::Cbor => Err(InputError::Binary { file }),
        MediaType::Yaml if documents(bytes) > 1 => Err(InputError::Several { file }),
        MediaType::Yaml => yaml::decode(bytes).map_err(|error| InputError::Yaml { file, error }),
    }
}

/// How many documents have content.
fn documents(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    yaml::documents(&text)
        .filter(|document| document.as_ref().is_ok_and(|text| has_content(text)))
        .count()
}

fn has_content(document: &str) -> bool {
    document.lines().any(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && line != "---"
    })
}
