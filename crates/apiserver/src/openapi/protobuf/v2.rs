//! The messages of version 2: members, field numbers and types.

use coracle_api::Value;

use super::Field::{Flag, Many, One, Text, Texts, Yaml, Yamls};
use super::Message;

pub(crate) static INFO: Message = Message::Fields {
    fields: &[("title", 1, Text), ("version", 2, Text)],
    extensions: 7,
};

pub(crate) static SECURITY_REQUIREMENT: Message = Message::Named(1, &Message::Texts);

/// The only security definition in documents: an API key in a header.
pub(crate) static SECURITY_DEFINITION: Message = Message::OneOf(|_| (2, &API_KEY));

static API_KEY: Message = Message::Fields {
    fields: &[
        ("type", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("description", 4, Text),
    ],
    extensions: 5,
};

pub(crate) static PATH_ITEM: Message = Message::Fields {
    fields: &[
        ("get", 2, One(&OPERATION)),
        ("put", 3, One(&OPERATION)),
        ("post", 4, One(&OPERATION)),
        ("delete", 5, One(&OPERATION)),
        ("options", 6, One(&OPERATION)),
        ("head", 7, One(&OPERATION)),
        ("patch", 8, One(&OPERATION)),
        ("parameters", 9, Many(&PARAMETER_OR_REFERENCE)),
    ],
    extensions: 10,
};

static OPERATION: Message = Message::Fields {
    fields: &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Many(&PARAMETER_OR_REFERENCE)),
        ("responses", 9, One(&RESPONSES)),
        ("schemes", 10, Texts),
    ],
    extensions: 13,
};

static PARAMETER_OR_REFERENCE: Message = Message::OneOf(|value| {
    if value.get("$ref").is_some() {
        (2, &REFERENCE)
    } else {
        (1, &PARAMETER)
    }
});

static REFERENCE: Message = Message::Fields {
    fields: &[("$ref", 1, Text)],
    extensions: 0,
};

pub(crate) static PARAMETER: Message = Message::OneOf(|value| {
    if is_in(value, "body") {
        (1, &BODY)
    } else {
        (2, &NOT_BODY)
    }
});

static NOT_BODY: Message = Message::OneOf(|value| {
    if is_in(value, "path") {
        (4, &PATH)
    } else {
        (3, &QUERY)
    }
});

static BODY: Message = Message::Fields {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, One(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY: Message = Message::Fields {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 6, Text),
        ("uniqueItems", 20, Flag),
    ],
    extensions: 23,
};

static PATH: Message = Message::Fields {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("uniqueItems", 19, Flag),
    ],
    extensions: 22,
};

static RESPONSES: Message = Message::Named(1, &RESPONSE_VALUE);

static RESPONSE_VALUE: Message = Message::OneOf(|_| (1, &RESPONSE));

static RESPONSE: Message = Message::Fields {
    fields: &[("description", 1, Text), ("schema", 2, One(&SCHEMA_ITEM))],
    extensions: 5,
};

static SCHEMA_ITEM: Message = Message::OneOf(|_| (1, &SCHEMA));

pub(crate) static SCHEMA: Message = Message::Fields {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Yaml),
        ("pattern", 13, Text),
        ("uniqueItems", 16, Flag),
        ("required", 19, Texts),
        ("enum", 20, Yamls),
        ("additionalProperties", 21, One(&SCHEMA_ITEM)),
        ("type", 22, One(&Message::Texts)),
        ("items", 23, One(&Message::Single(&SCHEMA))),
        ("allOf", 24, Many(&SCHEMA)),
        ("properties", 25, One(&PROPERTIES)),
    ],
    extensions: 31,
};

static PROPERTIES: Message = Message::Named(1, &SCHEMA);

fn is_in(parameter: &Value, place: &str) -> bool {
    parameter.get("in").and_then(Value::as_str) == Some(place)
}
