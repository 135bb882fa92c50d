//! `coracle decode`: an object in any form, shown in another.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_api::codec::any::{self, AnyError, EncodeError};
use coracle_api::codec::media_type::MediaType;
use coracle_api::codec::{json, protobuf, yaml};

/// Reads Kubernetes objects in JSON, YAML or protobuf (a value copied out of etcd, say) and writes
/// them in another form.
///
/// The form of the input is seen by itself. Unknown and duplicate fields are named on standard
/// error.
#[derive(Args)]
pub(crate) struct Decode {
    /// Form to write
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    /// Files to read; `-` or none: standard input
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Json,
    Yaml,
    Protobuf,
}

impl From<Output> for MediaType {
    fn from(output: Output) -> MediaType {
        match output {
            Output::Json => MediaType::Json,
            Output::Yaml => MediaType::Yaml,
            Output::Protobuf => MediaType::Protobuf,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("{file}: cannot be read: {error}")]
    Read { file: String, error: io::Error },
    #[error("{file}: {error}")]
    Object { file: String, error: AnyError },
    #[error("{file}: {error}")]
    Document {
        file: String,
        error: yaml::DocumentError,
    },
    #[error("{file}: {error}")]
    Encode { file: String, error: EncodeError },
    #[error(
        "protobuf has no way to put several objects into one stream; give one object at a time"
    )]
    SeveralInProtobuf,
    #[error("cannot write: {0}")]
    Write(io::Error),
}

pub(crate) fn run(command: &Decode) -> Result<(), DecodeError> {
    let standard_input = [PathBuf::from("-")];
    let files = if command.files.is_empty() {
        &standard_input[..]
    } else {
        &command.files
    };

    let mut objects = Vec::new();
    for file in files {
        let name = if is_standard_input(file) {
            "standard input".to_string()
        } else {
            file.display().to_string()
        };

        let bytes = read(file).map_err(|error| DecodeError::Read {
            file: name.clone(),
            error,
        })?;
        decode_all(&bytes, &name, &mut objects)?;
    }

    let form = MediaType::from(command.output);
    if form == MediaType::Protobuf && objects.len() > 1 {
        return Err(DecodeError::SeveralInProtobuf);
    }

    let mut out = io::stdout().lock();
    for (place, (file, object)) in objects.iter().enumerate() {
        if place > 0 && form == MediaType::Yaml {
            out.write_all(b"---\n").map_err(DecodeError::Write)?;
        }
        let bytes = any::encode(object, form, &BUILTIN).map_err(|error| DecodeError::Encode {
            file: file.clone(),
            error,
        })?;
        out.write_all(&bytes).map_err(DecodeError::Write)?;
    }

    out.flush().map_err(DecodeError::Write)
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    if !is_standard_input(file) {
        return fs::read(file);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Every object of a file: JSON values one after the other, or the documents of YAML.
fn decode_all(
    bytes: &[u8],
    file: &str,
    objects: &mut Vec<(String, Value)>,
) -> Result<(), DecodeError> {
    let bytes = from_etcd(bytes);
    match any::detect(bytes) {
        MediaType::Protobuf => decode_protobuf(bytes, file, objects),
        MediaType::Json => decode_json(bytes, file, objects),
        MediaType::Yaml => decode_yaml(bytes, file, objects),
    }
}

fn decode_protobuf(
    bytes: &[u8],
    file: &str,
    objects: &mut Vec<(String, Value)>,
) -> Result<(), DecodeError> {
    let decoded = any::decode(bytes, &BUILTIN).or_else(|error| match bytes.strip_suffix(b"\n") {
        // `etcdctl get --print-value-only` ends with a line break that is not the value's.
        Some(shorter) => any::decode(shorter, &BUILTIN).map_err(|_| error),
        None => Err(error),
    });
    add(decoded, file, objects)
}

fn decode_json(
    bytes: &[u8],
    file: &str,
    objects: &mut Vec<(String, Value)>,
) -> Result<(), DecodeError> {
    let mut rest = bytes;
    while let Ok((value, behind)) = json::split_first(rest) {
        add(any::decode(value, &BUILTIN), file, objects)?;
        rest = behind.trim_ascii_start();
        rest = rest.strip_prefix(b"---").unwrap_or(rest).trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
    }

    // Not JSON after all, from here on: what it is, or what is wrong with it, is told for the
    // whole.
    if rest.len() == bytes.len() {
        decode_yaml(bytes, file, objects)
    } else {
        decode_all(rest, file, objects)
    }
}

fn decode_yaml(
    bytes: &[u8],
    file: &str,
    objects: &mut Vec<(String, Value)>,
) -> Result<(), DecodeError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        // Another encoding, or a fault: the decoder knows.
        return add(any::decode(bytes, &BUILTIN), file, objects);
    };

    let before = objects.len();

    for (place, document) in yaml::documents(text).enumerate() {
        let document = document.map_err(|error| DecodeError::Document {
            file: file.to_string(),
            error,
        })?;

        let line = 1 + text[..offset(text, document)].matches('\n').count();
        let name = if place == 0 {
            file.to_string()
        } else {
            format!("{file}: document {} from line {line}", place + 1)
        };

        match any::decode(document.as_bytes(), &BUILTIN) {
            // Between two separators there may be nothing but comments.
            Err(AnyError::Empty) => {}
            decoded => add(decoded, &name, objects)?,
        }
    }

    if objects.len() == before {
        return Err(DecodeError::Object {
            file: file.to_string(),
            error: AnyError::Empty,
        });
    }

    Ok(())
}

/// Where a document begins in the text that it is a part of.
fn offset(text: &str, document: &str) -> usize {
    (document.as_ptr() as usize)
        .saturating_sub(text.as_ptr() as usize)
        .min(text.len())
}

fn add(
    decoded: Result<any::Object, AnyError>,
    file: &str,
    objects: &mut Vec<(String, Value)>,
) -> Result<(), DecodeError> {
    let object = decoded.map_err(|error| DecodeError::Object {
        file: file.to_string(),
        error,
    })?;
    objects.push((file.to_string(), noticed(object, file)));
    Ok(())
}

/// Names what the decoder noticed on standard error.
fn noticed(object: any::Object, file: &str) -> Value {
    if !object.known {
        eprintln!("coracle: {file}: the kind is not one that Kubernetes v1.36 has; shown as it is");
    }
    for complaint in object.strict {
        eprintln!("coracle: {file}: {complaint}");
    }
    object.value
}

/// `etcdctl get KEY` prints the key on a line of its own before the value.
fn from_etcd(bytes: &[u8]) -> &[u8] {
    if !bytes.starts_with(b"/") || bytes.starts_with(b"//") {
        return bytes;
    }

    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end)
            if bytes[end + 1..].starts_with(protobuf::MAGIC)
                || bytes[end + 1..].starts_with(b"{") =>
        {
            &bytes[end + 1..]
        }
        _ => bytes,
    }
}
