//! Objects as upstream encodes them, in every form: each decodes to the same tree and encodes to
//! the same bytes.

use crate::recorded;

use std::path::Path;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::{canonical, json, protobuf};

/// Kinds that no v1.36 server serves have no catalogue page; every other kind in the folder must be
/// known.
fn root(file: &Path) -> Option<Struct<'static>> {
    let name = file.file_name().unwrap().to_str().unwrap();
    let name = name
        .trim_end_matches(".json")
        .trim_end_matches(".empty")
        .trim_end_matches(".zeros");
    let (group_version, kind) = name.rsplit_once('.').unwrap();
    let (group, version) = group_version.rsplit_once('.').unwrap();
    let group = if group == "core" { "" } else { group };

    // No kind of its own: its envelope has two empty strings.
    if kind == "WatchEvent" {
        return BUILTIN.type_named("meta.v1.WatchEvent");
    }

    BUILTIN
        .kind(group, version, kind)
        .map(|kind| BUILTIN.root(kind))
}

fn decode_json(text: &[u8], of: Struct<'static>) -> Result<Value, String> {
    let decoded = json::decode(text, Some(of.node())).map_err(|error| error.to_string())?;
    if !decoded.strict.is_empty() {
        return Err(format!("{:?}", decoded.strict));
    }
    let mut value = decoded.value;
    canonical::canonicalize(&mut value, of.node());
    Ok(value)
}

fn same_json(value: &Value, original: &[u8]) -> Result<(), String> {
    let ours: serde_json::Value = serde_json::from_slice(&json::to_vec(value)).unwrap();
    let theirs: serde_json::Value = serde_json::from_slice(original).unwrap();
    if ours == theirs {
        Ok(())
    } else {
        Err(format!("\n   ours {ours}\n theirs {theirs}"))
    }
}

fn check(file: &Path, of: Struct<'static>) -> Result<(), String> {
    let text = std::fs::read(file).unwrap();
    let bytes = std::fs::read(file.with_extension("pb")).unwrap();
    let from_json = decode_json(&text, of).map_err(|error| format!("json: {error}"))?;
    let envelope = protobuf::open(&bytes).map_err(|error| format!("envelope: {error}"))?;
    let from_bytes =
        protobuf::decode_opened(&envelope, of).map_err(|error| format!("protobuf: {error}"))?;
    same_json(&from_json, &text).map_err(|error| format!("json to json: {error}"))?;
    same_json(&from_bytes, &text).map_err(|error| format!("protobuf to json: {error}"))?;

    for (form, value) in [("json", &from_json), ("protobuf", &from_bytes)] {
        let encoded =
            protobuf::encode(value, of).map_err(|error| format!("{form} to protobuf: {error}"))?;
        if encoded != bytes {
            let at = encoded.iter().zip(&bytes).position(|(a, b)| a != b);
            return Err(format!(
                "{form} to protobuf: differs at {at:?}, {} against {}",
                encoded.len(),
                bytes.len()
            ));
        }
    }

    Ok(())
}

fn check_folder(folder: &str, expected: usize) {
    let folder = recorded::path(folder);
    let (mut passed, mut failed, mut not_served) = (0, Vec::new(), 0);
    for file in recorded::files(&folder, ".json") {
        let Some(of) = root(&file) else {
            not_served += 1;
            continue;
        };
        match check(&file, of) {
            Ok(()) => passed += 1,
            Err(error) => failed.push(format!("{}: {error}", file.file_name().unwrap().display())),
        }
    }

    eprintln!(
        "{passed} passed, {} failed, {not_served} of kinds that nothing serves",
        failed.len()
    );

    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(passed, expected, "files of served and wire-only kinds");
}

#[test]
fn full_objects_are_the_same_in_every_form() {
    check_folder("facts/roundtrip", 120);
}

#[test]
fn sparse_objects_are_the_same_in_every_form() {
    check_folder("facts/roundtrip-sparse", 148);
}
