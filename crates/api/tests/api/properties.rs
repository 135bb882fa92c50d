//! Properties of objects of every kind.

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Kind, Node, Shape};
use coracle_api::codec::{canonical, json, protobuf, yaml};
use coracle_api::fuzz::objects::{self, Seeded};

const SEEDS: u64 = 12;

/// Runs `check` on generated objects of every kind; a failure reports kind and seed.
fn for_every_kind(check: impl Fn(Node<'static>, &Value) -> Result<(), String>) {
    for kind in BUILTIN.kinds() {
        for seed in 0..SEEDS {
            let object = object(kind, seed);
            let of = BUILTIN.root(kind);
            if let Err(error) = check(of.node(), &object) {
                panic!(
                    "{} {} seed {seed}: {error}\n{}",
                    kind.api_version(),
                    kind.name,
                    json::to_string(&object)
                );
            }
        }
    }
}

fn object(kind: &Kind, seed: u64) -> Value {
    let mut object = objects::value(BUILTIN.root(kind).node(), &mut Seeded::new(seed));
    let fields = object.as_object_mut().unwrap();
    fields.insert("apiVersion", kind.api_version());
    fields.insert("kind", kind.name.clone());
    object
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{what}\n found {}\n wanted {}",
        json::to_string(found),
        json::to_string(expected)
    ))
}

#[test]
fn json_round_trips() {
    for_every_kind(|node, object| {
        let decoded =
            json::decode(&json::to_vec(object), Some(node)).map_err(|error| error.to_string())?;
        if !decoded.strict.is_empty() {
            return Err(format!("{:?}", decoded.strict));
        }
        same("json", &decoded.value, object)
    });
}

#[test]
fn yaml_round_trips() {
    for_every_kind(|node, object| {
        let value =
            yaml::decode(yaml::print(object).as_bytes()).map_err(|error| error.to_string())?;
        let decoded =
            json::decode(&json::to_vec(&value), Some(node)).map_err(|error| error.to_string())?;

        // In YAML, members of a raw value have no order and its numbers lose their notation:
        // compare as text.
        let (found, wanted) = (yaml::print(&decoded.value), yaml::print(object));
        if found == wanted {
            Ok(())
        } else {
            Err(format!("yaml\n{found}\n{wanted}"))
        }
    });
}

#[test]
fn the_canonical_form_is_stable() {
    for_every_kind(|node, object| {
        let mut once = object.clone();
        canonical::canonicalize(&mut once, node);
        let mut twice = once.clone();
        canonical::canonicalize(&mut twice, node);
        same("canonical", &twice, &once)
    });
}

#[test]
fn protobuf_round_trips_the_canonical_form() {
    for_every_kind(|node, object| {
        let of = node.as_struct().unwrap();
        if of.declared.json_only {
            return Ok(());
        }

        let mut canonical = object.clone();
        canonical::canonicalize(&mut canonical, node);
        let bytes = protobuf::encode(&canonical, of).map_err(|error| error.to_string())?;
        let envelope = protobuf::open(&bytes).map_err(|error| error.to_string())?;
        let decoded = protobuf::decode_opened(&envelope, of).map_err(|error| error.to_string())?;

        let again = protobuf::encode(&decoded, of).map_err(|error| error.to_string())?;
        if again != bytes {
            return Err("the same object has other bytes".to_string());
        }

        same(
            "protobuf",
            &decoded,
            &as_protobuf_keeps_it(canonical, node, true),
        )
    });
}

/// Protobuf cannot distinguish an empty list or map from an absent one, and has no apiVersion and
/// kind below the top.
fn as_protobuf_keeps_it(mut value: Value, node: Node<'static>, top: bool) -> Value {
    match (&mut value, node.as_struct()) {
        (Value::Object(map), Some(of)) => {
            map.retain(|name, _| {
                top || !matches!(name, "apiVersion" | "kind") || !of.tag(name).is_empty()
            });

            for (name, found) in map.iter_mut() {
                let shape = of.field(name).unwrap().node();
                let kept = as_protobuf_keeps_it(found.take(), shape, false);
                *found = match kept {
                    Value::Array(items) if items.is_empty() && shape.shape != Shape::Strings => {
                        Value::Null
                    }
                    Value::Object(map)
                        if map.is_empty() && matches!(shape.shape, Shape::Map(_)) =>
                    {
                        Value::Null
                    }
                    kept => kept,
                };
            }
        }
        (Value::Object(map), None) if matches!(node.shape, Shape::Map(_)) => {
            for found in map.values_mut() {
                *found = as_protobuf_keeps_it(found.take(), node.item().unwrap(), false);
            }
        }
        (Value::Array(items), None) => {
            let Some(item) = node.item() else {
                return value;
            };
            for found in items {
                *found = as_protobuf_keeps_it(found.take(), item, false);
            }
        }
        _ => {}
    }

    value
}
