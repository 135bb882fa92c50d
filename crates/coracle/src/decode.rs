//! `coracle decode`: converts objects between JSON, YAML and protobuf.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_api::codec::any::{self, AnyError, EncodeError};
use coracle_api::codec::media_type::MediaType;
use coracle_api::codec::{json, protobuf, yaml};

/// Converts Kubernetes objects between JSON, YAML and protobuf, for example values copied out of
/// etcd. The input format is detected. Unknown and duplicate fields are reported on standard error.
#[derive(Args)]
pub(crate) struct Decode {
    /// Output format
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
    #[error("cannot read {file}: {error}")]
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
    #[error("cannot write several objects as protobuf; pass one object at a time")]
    SeveralInProtobuf,
    #[error("cannot write to standard output: {0}")]
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
    for (index, (file, object)) in objects.iter().enumerate() {
        if index > 0 && form == MediaType::Yaml {
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

/// Decodes every object of a file: concatenated JSON values, or YAML documents.
fn decode_all(
    bytes: &[u8],
    file: &str,
    objects: &mut Vec<(String, Value)>,
) -> Result<(), DecodeError> {
    let bytes = from_etcd(bytes);
    match any::detect(bytes) {
        MediaType::Protobuf => decode_protobuf(bytes, file, objects),
        MediaType::Json => decode_json(bytes, file, objects),
        MediaType::Cbor => add(any::decode(bytes, &BUILTIN), file, objects),
        MediaType::Yaml => decode_yaml(bytes, file, objects),
    }
}

fn decode_protobuf(
    bytes: &[u8],
    file: &str,
    objects: &mut Vec<(String, Value)>,
) -> Result<(), DecodeError> {
    let decoded = any::decode(bytes, &BUILTIN).or_else(|error| match bytes.strip_suffix(b"\n") {
        // `etcdctl get --print-value-only` appends a line break to the value.
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

    // The rest is not JSON: decode it as a whole, or report the error for the whole.
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
        // Not UTF-8: the decoder detects another encoding or reports the error.
        return add(any::decode(bytes, &BUILTIN), file, objects);
    };

    let before = objects.len();

    for (index, document) in yaml::documents(text).enumerate() {
        let document = document.map_err(|error| DecodeError::Document {
            file: file.to_string(),
            error,
        })?;

        let line = 1 + text[..offset(text, document)].matches('\n').count();
        let name = if index == 0 {
            file.to_string()
        } else {
            format!("{file}: document {} from line {line}", index + 1)
        };

        match any::decode(document.as_bytes(), &BUILTIN) {
            // A document may consist of comments only.
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

/// The offset of a document in its text.
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
    objects.push((file.to_string(), print_warnings(object, file)));
    Ok(())
}

/// Prints warnings of the decoder to standard error.
fn print_warnings(object: any::Object, file: &str) -> Value {
    if !object.known {
        eprintln!("coracle: {file}: unknown kind in Kubernetes v1.36; fields are not validated");
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
