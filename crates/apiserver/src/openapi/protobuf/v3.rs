//! The messages of version 3: members, field numbers and types.

use super::Field::{Flag, Many, One, Text, Texts, Yamls};
use super::Message;

pub(crate) static INFO: Message = Message::Fields {
    fields: &[("title", 1, Text), ("version", 6, Text)],
    extensions: 7,
};

pub(crate) static SECURITY_SCHEME: Message = Message::OneOf(|_| (1, &SCHEME));

static SCHEME: Message = Message::Fields {
    fields: &[
        ("type", 1, Text),
        ("description", 2, Text),
        ("name", 3, Text),
        ("in", 4, Text),
    ],
    extensions: 9,
};

pub(crate) static PATH_ITEM: Message = Message::Fields {
    fields: &[
        ("get", 4, One(&OPERATION)),
        ("put", 5, One(&OPERATION)),
        ("post", 6, One(&OPERATION)),
        ("delete", 7, One(&OPERATION)),
        ("options", 8, One(&OPERATION)),
        ("head", 9, One(&OPERATION)),
        ("patch", 10, One(&OPERATION)),
        ("parameters", 13, Many(&PARAMETER_OR_REFERENCE)),
    ],
    extensions: 14,
};

static OPERATION: Message = Message::Fields {
    fields: &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("parameters", 6, Many(&PARAMETER_OR_REFERENCE)),
        ("requestBody", 7, One(&REQUEST_BODY_OR_REFERENCE)),
        ("responses", 8, One(&RESPONSES)),
    ],
    extensions: 13,
};

static PARAMETER_OR_REFERENCE: Message = Message::OneOf(|_| (1, &PARAMETER));

static PARAMETER: Message = Message::Fields {
    fields: &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Flag),
        ("schema", 10, One(&SCHEMA_OR_REFERENCE)),
    ],
    extensions: 14,
};

static REQUEST_BODY_OR_REFERENCE: Message = Message::OneOf(|_| (1, &REQUEST_BODY));

static REQUEST_BODY: Message = Message::Fields {
    fields: &[
        ("description", 1, Text),
        ("content", 2, One(&MEDIA_TYPES)),
        ("required", 3, Flag),
    ],
    extensions: 4,
};

static MEDIA_TYPES: Message = Message::Named(1, &MEDIA_TYPE);

static MEDIA_TYPE: Message = Message::Fields {
    fields: &[("schema", 1, One(&SCHEMA_OR_REFERENCE))],
    extensions: 5,
};

/// Codes, under 2.
static RESPONSES: Message = Message::Named(2, &RESPONSE_OR_REFERENCE);

static RESPONSE_OR_REFERENCE: Message = Message::OneOf(|_| (1, &RESPONSE));

static RESPONSE: Message = Message::Fields {
    fields: &[("description", 1, Text), ("content", 3, One(&MEDIA_TYPES))],
    extensions: 5,
};

pub(crate) static SCHEMA_OR_REFERENCE: Message = Message::OneOf(|value| {
    if value.get("$ref").is_some() {
        (2, &REFERENCE)
    } else {
        (1, &SCHEMA)
    }
});

static REFERENCE: Message = Message::Fields {
    fields: &[("$ref", 1, Text)],
    extensions: 0,
};

pub(crate) static SCHEMA: Message = Message::Fields {
    fields: &[
        ("nullable", 1, Flag),
        ("title", 9, Text),
        ("pattern", 17, Text),
        ("uniqueItems", 20, Flag),
        ("required", 23, Texts),
        ("enum", 24, Yamls),
        ("type", 25, Text),
        ("allOf", 26, Many(&SCHEMA_OR_REFERENCE)),
        ("oneOf", 27, Many(&SCHEMA_OR_REFERENCE)),
        ("anyOf", 28, Many(&SCHEMA_OR_REFERENCE)),
        ("items", 30, One(&Message::Single(&SCHEMA_OR_REFERENCE))),
        ("properties", 31, One(&PROPERTIES)),
        ("additionalProperties", 32, One(&ADDITIONAL_PROPERTIES)),
        ("default", 33, One(&Message::Literal)),
        ("description", 34, Text),
        ("format", 35, Text),
    ],
    extensions: 36,
};

static PROPERTIES: Message = Message::Named(1, &SCHEMA_OR_REFERENCE);

static ADDITIONAL_PROPERTIES: Message = Message::OneOf(|_| (1, &SCHEMA_OR_REFERENCE));
