//! Declarations from the nodes of a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::schema::{Checks, Node, NodeId, Schema, Type, Types};
use coracle_api::{Text, Value};
use coracle_cel::escape::escape;

use super::{Declared, LARGEST_REQUEST, Shape};

/// The most bytes that the content of one value of a request can have: all but two brackets or
/// quotes.
const MOST_CONTENT: u64 = LARGEST_REQUEST - 2;

/// `{}`, `[]` and `""`.
const LEAST_BRACKETS: u64 = 2;

/// The JSON of one member beside its name and its value: two quotes, a colon and a comma.
const MEMBER_SIGNS: u64 = 4;

/// The JSON of a member of a map beside its value, with a name of two bytes.
const MAP_MEMBER: u64 = 6;

impl Declared {
    /// What the root of `schema` declares; `None`: expressions cannot see it.
    #[must_use]
    pub fn of_root(schema: &Schema) -> Option<Declared> {
        of_node(schema, schema.root_id(), true)
    }

    /// What a node that is not the root of an object declares.
    #[must_use]
    pub fn of_node(schema: &Schema, node: NodeId) -> Option<Declared> {
        of_node(schema, node, schema.node(node).embedded)
    }
}

/// `resource`: the value is an object with a type and metadata of its own.
fn of_node(schema: &Schema, id: NodeId, resource: bool) -> Option<Declared> {
    let node = schema.node(id);
    match &node.types {
        Types::IntOrString => Some(Declared {
            of: Shape::Dyn,
            largest: max_length(node).map_or(MOST_CONTENT, |length| length.saturating_mul(4)),
            least_json: 1,
        }),
        Types::One(Type::Array) => list(schema, node),
        Types::One(Type::Object) => match node.additional.node() {
            Some(value) => map(schema, node, value),
            None => Some(object(schema, node, resource)),
        },
        Types::One(Type::String) => Some(string(node)),
        Types::One(Type::Boolean) => Some(scalar(Shape::Bool, 4)),
        Types::One(Type::Integer) => Some(scalar(Shape::Int, 1)),
        Types::One(Type::Number) => Some(scalar(Shape::Double, 1)),
        Types::Any | Types::Unknown(_) => None,
    }
}

fn scalar(of: Shape, least_json: u64) -> Declared {
    Declared {
        of,
        largest: 0,
        least_json,
    }
}

fn list(schema: &Schema, node: &Node) -> Option<Declared> {
    let item = Declared::of_node(schema, node.items?)?;
    let stated = limit(node, |checks| checks.max_items);

    Some(Declared {
        largest: stated.unwrap_or(MOST_CONTENT / (item.least_json + 1)),
        least_json: LEAST_BRACKETS,
        of: Shape::List(Arc::new(item)),
    })
}

fn map(schema: &Schema, node: &Node, value: NodeId) -> Option<Declared> {
    let value = Declared::of_node(schema, value)?;
    let stated = limit(node, |checks| checks.max_properties);

    Some(Declared {
        largest: stated.unwrap_or(MOST_CONTENT / (value.least_json + MAP_MEMBER)),
        least_json: LEAST_BRACKETS,
        of: Shape::Map(Arc::new(value)),
    })
}

fn object(schema: &Schema, node: &Node, resource: bool) -> Declared {
    let required: &[Text] = node.checks.as_ref().map_or(&[], |checks| &checks.required);
    let mut least_json = LEAST_BRACKETS;
    let mut fields = BTreeMap::new();

    let add_metadata = resource && !has_type_and_metadata(schema, node);

    for property in node.properties.iter() {
        if add_metadata && TYPE_AND_METADATA.contains(&property.name.as_str()) {
            continue;
        }

        let Some(declared) = Declared::of_node(schema, property.node) else {
            continue;
        };

        let is_required = required.contains(&property.name);
        // Defaults are filled in by the server, so a client need not send them.
        if is_required && schema.node(property.node).default.is_none() {
            least_json += property.name.len() as u64 + declared.least_json + MEMBER_SIGNS;
        }

        if let Some(name) = escape(&property.name) {
            fields.insert(name.into_owned(), Arc::new(declared));
        }
    }

    if add_metadata {
        add_type_and_metadata(&mut fields, required, &mut least_json);
    }

    Declared {
        of: Shape::Object(Arc::new(fields)),
        largest: 0,
        least_json,
    }
}

const TYPE_AND_METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Whether the schema itself declares all that expressions see of every object.
fn has_type_and_metadata(schema: &Schema, node: &Node) -> bool {
    let is = |node: &Node, name: &str, of: Type| {
        let below = node.property(name).map(|below| schema.node(below.node));
        below.is_some_and(|below| below.types == Types::One(of))
    };

    let metadata = node.property("metadata");
    is(node, "kind", Type::String)
        && is(node, "apiVersion", Type::String)
        && is(node, "metadata", Type::Object)
        && metadata.is_some_and(|metadata| {
            let metadata = schema.node(metadata.node);
            ["name", "generateName"]
                .iter()
                .all(|name| is(metadata, name, Type::String))
        })
}

/// What expressions see of every object, whatever its schema says of it.
fn add_type_and_metadata(
    fields: &mut BTreeMap<String, Arc<Declared>>,
    required: &[Text],
    least_json: &mut u64,
) {
    let text = || Arc::new(string(&Node::default()));
    let names = ["name", "generateName"].map(|name| (name.to_owned(), text()));
    let metadata = Declared {
        of: Shape::Object(Arc::new(BTreeMap::from(names))),
        largest: 0,
        least_json: LEAST_BRACKETS,
    };

    for (name, declared) in [
        ("apiVersion", text()),
        ("kind", text()),
        ("metadata", Arc::new(metadata)),
    ] {
        if required.iter().any(|required| required == name) {
            *least_json += name.len() as u64 + declared.least_json + MEMBER_SIGNS;
        }
        fields.insert(name.to_owned(), declared);
    }
}

fn string(node: &Node) -> Declared {
    let format = node
        .checks
        .as_ref()
        .map_or("", |checks| &checks.format_name);

    let stated = max_length(node);
    let (of, largest, least_json) = match format {
        "byte" => (Shape::Bytes, stated.unwrap_or(MOST_CONTENT), LEAST_BRACKETS),
        "duration" => (Shape::Duration, 32, 3),
        "date" => (Shape::Timestamp, 12, 12),
        "date-time" => (Shape::Timestamp, 32, 21),
        // A character has four bytes at most.
        _ => {
            let longest = stated.map(|length| length.saturating_mul(4));
            let longest = longest.or_else(|| longest_of_enumeration(node));
            (
                Shape::String,
                longest.unwrap_or(MOST_CONTENT),
                LEAST_BRACKETS,
            )
        }
    };

    Declared {
        of,
        largest,
        least_json,
    }
}

fn longest_of_enumeration(node: &Node) -> Option<u64> {
    let values = &node.checks.as_ref()?.enumeration;
    if values.is_empty() {
        return None;
    }
    let lengths = values.iter().filter_map(Value::as_str).map(str::len);
    Some(lengths.max().unwrap_or_default() as u64)
}

fn max_length(node: &Node) -> Option<u64> {
    limit(node, |checks| checks.max_length)
}

/// A limit that the schema states; a negative one is none of anything.
fn limit(node: &Node, of: impl Fn(&Checks) -> Option<i64>) -> Option<u64> {
    let stated = of(node.checks.as_ref()?)?;
    Some(u64::try_from(stated).unwrap_or_default())
}
