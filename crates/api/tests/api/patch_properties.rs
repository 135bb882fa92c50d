//! Properties of patches of objects of many kinds.

use std::collections::HashSet;

use coracle_api::catalog::{BUILTIN, Node, Shape, Struct};
use coracle_api::codec::json;
use coracle_api::fuzz::objects::{self, Seeded};
use coracle_api::patch::{merge, strategic};
use coracle_api::{Map, Text, Value};

const SEEDS: u64 = 24;

/// Two objects of one kind, the second a mutation of the first.
struct Pair {
    of: Struct<'static>,
    original: Map,
    modified: Map,
}

/// Whether a property could be checked.
enum Outcome {
    Held,
    /// Some fields cannot be merged: upstream refuses too.
    RefusedByType,
}

fn for_every_pair(check: impl Fn(&Pair) -> Result<Outcome, String>) {
    let (mut held, mut refused) = (0, 0);
    for resource in BUILTIN
        .resources()
        .iter()
        .filter(|resource| resource.storage.is_some())
    {
        let kind = &resource.kind;
        let of = BUILTIN.root(
            BUILTIN
                .kind(&resource.group, &resource.version, kind)
                .unwrap(),
        );

        for seed in 0..SEEDS {
            let random = &mut Seeded::new(seed);
            let (original, other) = (make(of, random), make(of, random));
            let mut modified = original.clone();
            change(&mut modified, &other, random);

            tidy(&mut modified, of.node(), random);
            let pair = Pair {
                of,
                original: map(&original),
                modified: map(&modified),
            };

            match check(&pair) {
                Ok(Outcome::Held) => held += 1,
                Ok(Outcome::RefusedByType) => refused += 1,
                Err(error) => {
                    let (original, modified) =
                        (json::to_string(&original), json::to_string(&modified));
                    panic!("{kind} seed {seed}: {error}\n{original}\n{modified}");
                }
            }
        }
    }

    assert!(
        held > 4 * refused,
        "{held} held, {refused} were refused by type"
    );
}

fn map(value: &Value) -> Map {
    value.as_object().unwrap().clone()
}

fn make(of: Struct<'static>, random: &mut Seeded) -> Value {
    let made = objects::value(of.node(), random);
    let mut made = json::parse(&json::to_vec(&made)).unwrap();
    tidy(&mut made, of.node(), random);
    made
}

/// Removes nulls, and duplicates in lists of type set or map: no server stores such an object.
fn tidy(value: &mut Value, node: Node<'_>, random: &mut Seeded) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());

            for (name, value) in map.iter_mut() {
                let field = node.as_struct().and_then(|of| of.field(name));
                let Some(below) = field.map(|field| field.node()).or_else(|| node.item()) else {
                    continue;
                };
                tidy(value, below, random);

                if let (Some(field), Value::Array(items)) = (field, value) {
                    unique(
                        items,
                        field.extra().patch.merge_key.as_deref(),
                        below,
                        random,
                    );

                    if field.extra().patch.merge && field.extra().patch.merge_key.is_none() {
                        // A set: upstream, and so ours, does not notice when only its order becomes
                        // the sorted one.
                        items.sort_by_key(json::to_string);
                    }
                }
            }
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            let Some(item) = node.item() else { return };
            items.iter_mut().for_each(|value| tidy(value, item, random));
        }
        _ => {}
    }
}

fn unique(items: &mut Vec<Value>, merge_key: Option<&str>, node: Node<'_>, random: &mut Seeded) {
    let mut seen = HashSet::new();
    if let Some(key) = merge_key {
        let of = node.item().and_then(Node::as_struct).unwrap();
        let is_number = matches!(
            of.field(key).unwrap().node().shape,
            Shape::Int32 | Shape::Int64
        );

        for map in items.iter_mut().filter_map(Value::as_object_mut) {
            let number = random.below(6);
            let made = || {
                if is_number {
                    Value::Int(number.cast_signed())
                } else {
                    Value::string(format!("n{number}"))
                }
            };
            map.get_or_insert_with(key, made);
        }

        items.retain(|item| seen.insert(json::to_string(item.get(key).unwrap())));
    } else {
        items.retain(|item| matches!(item, Value::Object(_)) || seen.insert(json::to_string(item)));
    }
}

fn change(value: &mut Value, other: &Value, random: &mut Seeded) {
    match value {
        Value::Object(map) => {
            let names: Vec<Text> = map.keys().map(Text::new).collect();
            for name in names {
                match random.below(6) {
                    0 => drop(map.remove(&name)),
                    1 => drop(
                        other
                            .get(&name)
                            .map(|other| map.insert(name, other.clone())),
                    ),
                    _ => change(
                        map.get_mut(&name).unwrap(),
                        other.get(&name).unwrap_or(&Value::Null),
                        random,
                    ),
                }
            }

            for (name, value) in other.as_object().into_iter().flat_map(Map::iter) {
                if random.one_in(3) {
                    map.get_or_insert_with(name, || value.clone());
                }
            }
        }
        Value::Array(items) => {
            match random.below(4) {
                0 => items.reverse(),
                1 => drop(items.pop()),
                _ => items.extend(other.as_array().into_iter().flatten().cloned()),
            }
            items
                .iter_mut()
                .for_each(|item| change(item, &Value::Null, random));
        }
        _ => {}
    }
}

fn is_refused_by_type(error: &strategic::Error) -> bool {
    use strategic::Error::{ListOfListsDeclared, NotAList, NotAStruct, UnknownField};
    matches!(
        error,
        UnknownField { .. } | NotAStruct(_) | NotAList | ListOfListsDeclared
    )
}

fn same(what: &str, found: &Map, wanted: &Map) -> Result<Outcome, String> {
    if found == wanted {
        return Ok(Outcome::Held);
    }
    Err(format!(
        "{what}: found {}",
        json::to_string(&Value::Object(found.clone()))
    ))
}

#[test]
fn applying_a_computed_patch_yields_the_target() {
    for_every_pair(
        |Pair {
             of,
             original,
             modified,
         }| {
            let patch = match strategic::between(original, modified, *of, &[]) {
                Err(error) if is_refused_by_type(&error) => return Ok(Outcome::RefusedByType),
                patch => patch.map_err(|error| error.to_string())?,
            };
            let patched = strategic::apply(original.clone(), patch, *of)
                .map_err(|error| error.to_string())?;
            same("patched", &patched, modified)
        },
    );
}

#[test]
fn without_local_changes_a_three_way_patch_yields_the_new_configuration() {
    for_every_pair(
        |Pair {
             of,
             original,
             modified,
         }| {
            for overwrite in [strategic::Overwrite::Yes, strategic::Overwrite::No] {
                let patch =
                    match strategic::three_way(original, modified, original, *of, overwrite, &[]) {
                        Err(error) if is_refused_by_type(&error) => {
                            return Ok(Outcome::RefusedByType);
                        }
                        // Upstream treats a struct that is replaced as a whole as changed, even
                        // when it is not.
                        Err(strategic::Error::Conflict { .. }) if replaces(of.node(), 3) => {
                            continue;
                        }
                        patch => patch.map_err(|error| error.to_string())?,
                    };

                let patched = strategic::apply(original.clone(), patch, *of)
                    .map_err(|error| error.to_string())?;
                same("patched", &patched, modified)?;
            }

            let patch = merge::three_way(original, modified, original, &[])
                .map_err(|error| error.to_string())?;
            same(
                "merged",
                &map(&merge::apply(
                    Value::Object(original.clone()),
                    Value::Object(patch),
                )),
                modified,
            )
        },
    );
}

/// Whether some field, up to that many levels down, is patched by replacing it.
fn replaces(node: Node<'_>, levels: u8) -> bool {
    let fields = node.as_struct().into_iter().flat_map(|of| of.iter());
    fields.into_iter().any(|field| {
        field.extra().patch.replace || levels > 0 && replaces(field.node(), levels - 1)
    })
}

#[test]
fn a_three_way_patch_keeps_what_only_others_have() {
    for_every_pair(
        |Pair {
             of,
             original,
             modified,
         }| {
            let theirs = |map: &Map| {
                let mut map = map.clone();
                let labels = map.object_mut("metadata").object_mut("labels");
                labels.insert("theirs", "x");
                map
            };

            let patch = strategic::three_way(
                original,
                modified,
                &theirs(original),
                *of,
                strategic::Overwrite::Yes,
                &[],
            );

            let patch = match patch {
                Err(error) if is_refused_by_type(&error) => return Ok(Outcome::RefusedByType),
                patch => patch.map_err(|error| error.to_string())?,
            };

            let patched = strategic::apply(theirs(original), patch, *of)
                .map_err(|error| error.to_string())?;
            let kept = Value::Object(patched);
            let metadata_dropped = modified
                .get("metadata")
                .and_then(|metadata| metadata.get("labels"))
                .is_none();

            match kept.at(&["metadata", "labels", "theirs"]) {
                Some(_) => Ok(Outcome::Held),
                // We had labels and want none: all of them are removed.
                None if metadata_dropped => Ok(Outcome::Held),
                None => Err("a label of others is gone".to_string()),
            }
        },
    );
}

#[test]
fn a_merge_patch_turns_one_object_into_the_other() {
    for_every_pair(
        |Pair {
             original, modified, ..
         }| {
            let patch = merge::between(original, modified);
            let patched = merge::apply(Value::Object(original.clone()), Value::Object(patch));
            same("merged", &map(&patched), modified)
        },
    );
}

#[test]
fn equal_objects_have_an_empty_difference() {
    for_every_pair(|Pair { of, original, .. }| {
        let patch =
            strategic::between(original, original, *of, &[]).map_err(|error| error.to_string())?;
        let patched =
            strategic::apply(original.clone(), patch, *of).map_err(|error| error.to_string())?;
        same("patched", &patched, original)?;

        same(
            "merge patch",
            &merge::between(original, original),
            &Map::new(),
        )
    });
}
