//! Decodes JSON text into a tree, driven by the catalogue.
//!
//! One pass: while the text is read, the type decides what is allowed. A value of another type is
//! an error in upstream's words (the first one counts, and a later syntax error takes precedence,
//! because upstream reads the whole text before it checks types). Members that the type does not
//! have are left out of the tree and, like duplicate members, reported beside it: whether that
//! fails the request is up to the caller. Values of raw type keep their text. Nulls, explicit zeros
//! and absent members stay as they are; `codec::canonical` resolves them.

use std::collections::HashSet;

use super::scan::{self, Scanner, SyntaxError, Token};
use super::{go_names, repeated};
use crate::catalog::{Node, RawKind, Shape, Struct};
use crate::codec::scalar;
use crate::go_text::Quoted;
use crate::value::Map;
use crate::{Path, Text, Value};

/// Maximum nesting of a tree. Raw values, which do not become a tree, may be nested deeper.
pub const MAX_TREE_DEPTH: usize = 500;

/// Maximum number of strict decoding errors that are collected.
const MAX_STRICT_ERRORS: usize = 100;

/// Why a text is no object of its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// A value is of the wrong type. The message is upstream's, which omits indices; `path` has
    /// them.
    #[error("{message}")]
    Type { message: String, path: String },
}

/// A decoded tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// `unknown field "spec.foo"`, `duplicate field "spec.foo"`: in the order of the text, each
    /// once.
    pub strict: Vec<String>,
}

/// Decodes a whole text as a value of the given type. Without a type, any JSON is taken as it is.
pub fn decode(text: &[u8], node: Option<Node<'_>>) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder {
        scanner: Scanner::new(text),
        root: node,
        depth: 0,
        lenient: 0,
        type_error: None,
        strict: Vec::new(),
        seen: HashSet::new(),
        members: Vec::with_capacity(64),
        elements: Vec::new(),
    };

    let location = Location {
        path: Path::Root,
        within: None,
    };

    let mut value = Value::Null;
    decoder.value(node, &location, &mut value)?;
    decoder.scanner.finish()?;

    match decoder.type_error {
        Some(error) => Err(error),
        None => Ok(Decoded {
            value,
            strict: decoder.strict,
        }),
    }
}

/// The decoder's location: the path, and its innermost struct, which messages name.
#[derive(Clone, Copy)]
struct Location<'a> {
    path: Path<'a>,
    within: Option<Struct<'a>>,
}

struct Decoder<'t, 'p> {
    scanner: Scanner<'t>,
    /// The type of the whole text.
    root: Option<Node<'p>>,
    depth: usize,
    /// Above zero: inside a value whose type upstream decodes leniently.
    lenient: usize,
    type_error: Option<DecodeError>,
    strict: Vec<String>,
    seen: HashSet<String>,
    /// Members of the objects that are being read, the innermost last; each object takes its own
    /// when it ends, so that its vector is allocated once with the right size.
    members: Vec<(Text, Value)>,
    /// The same for lists.
    elements: Vec<Value>,
}

/// Values are written into `out` instead of being returned: a returned value would be copied in
/// each of several nested calls, which was a third of the whole cost.
impl Decoder<'_, '_> {
    fn value(
        &mut self,
        node: Option<Node<'_>>,
        location: &Location<'_>,
        out: &mut Value,
    ) -> Result<(), SyntaxError> {
        let Some(node) = node else {
            return self.untyped(location, out);
        };
        match node.shape {
            Shape::Raw(RawKind::Any) => self.untyped(location, out)?,
            Shape::Raw(_) => {
                let raw = self.scanner.raw(self.depth)?;
                if raw.as_str() != "null" {
                    *out = Value::Raw(raw);
                }
            }
            Shape::SchemaOrArray(id) | Shape::SchemaOrBool(id) | Shape::SchemaOrStrings(id) => {
                self.lenient += 1;
                self.schema_or(node, node.page.struct_of(id), location, out)?;
                self.lenient -= 1;
            }
            _ => {
                let token = self.scanner.value()?;
                self.typed(token, node, location, out)?;
            }
        }

        Ok(())
    }

    /// A value whose type is neither raw nor one of the schema's alternatives.
    fn typed(
        &mut self,
        token: Token<'_>,
        node: Node<'_>,
        location: &Location<'_>,
        out: &mut Value,
    ) -> Result<(), SyntaxError> {
        match (node.shape, token) {
            (_, Token::Null) => {}
            (Shape::String, Token::String(text)) => *out = Value::String(Text::new(text)),
            (Shape::Struct(id), Token::Open(b'{')) => {
                self.fields(node.page.struct_of(id), location, out)?
            }
            (Shape::Map(_), Token::Open(b'{')) => self.members(node.item(), location, out)?,
            (Shape::List(_) | Shape::Strings, Token::Open(b'[')) => {
                self.elements(node.item(), location, out)?
            }
            (Shape::Quantity, Token::Open(bracket)) => {
                self.skip_container(bracket)?;
                self.type_error_with(scalar::NOT_A_QUANTITY.to_string(), location);
            }
            (_, Token::Open(bracket)) => {
                self.skip_container(bracket)?;
                self.type_error(
                    if bracket == b'{' { "object" } else { "array" },
                    node,
                    location,
                );
            }
            (_, Token::String(text)) => match scalar::check_text(&text, node.shape) {
                Some(Ok(())) => *out = Value::String(Text::new(text)),
                Some(Err(refusal)) => self.type_error_with(refusal, location),
                None => self.type_error("string", node, location),
            },
            (_, Token::Bool(flag)) => match scalar::from_bool(flag, node.shape) {
                Some(result) => self.store_scalar(result, node, location, out),
                None => self.type_error("bool", node, location),
            },
            (_, Token::Number(literal)) => match scalar::from_number(literal, node.shape) {
                Some(result) => self.store_scalar(result, node, location, out),
                None => self.type_error("number", node, location),
            },
        }

        Ok(())
    }

    fn store_scalar(
        &mut self,
        result: Result<Value, scalar::Refusal>,
        node: Node<'_>,
        location: &Location<'_>,
        out: &mut Value,
    ) {
        match result {
            Ok(value) => *out = value,
            Err(scalar::Refusal::Text(text)) => self.type_error_with(text, location),
            Err(scalar::Refusal::Type(found)) => self.type_error(&found, node, location),
        }
    }

    fn schema_or(
        &mut self,
        node: Node<'_>,
        schema: Struct<'_>,
        location: &Location<'_>,
        out: &mut Value,
    ) -> Result<(), SyntaxError> {
        match (node.shape, self.scanner.value()?) {
            (_, Token::Open(b'{')) => self.fields(schema, location, out)?,
            (Shape::SchemaOrArray(_), Token::Open(_)) => {
                self.elements(Some(schema.node()), location, out)?
            }
            (Shape::SchemaOrStrings(_), Token::Open(_)) => {
                self.elements(
                    Some(Node {
                        page: node.page,
                        shape: Shape::String,
                    }),
                    location,
                    out,
                )?;
            }
            (Shape::SchemaOrBool(_), Token::Bool(flag)) => *out = Value::Bool(flag),
            (Shape::SchemaOrBool(_), Token::Null) => {}
            (Shape::SchemaOrBool(_), token) => {
                if let Token::Open(bracket) = token {
                    self.skip_container(bracket)?;
                }
                self.type_error_with("boolean or JSON schema expected".to_string(), location);
            }
            // Upstream ignores anything else.
            _ => {}
        }

        Ok(())
    }

    /// The members of a struct; the opening bracket has been read.
    fn fields(
        &mut self,
        of: Struct<'_>,
        location: &Location<'_>,
        out: &mut Value,
    ) -> Result<(), SyntaxError> {
        self.descend(b'{')?;
        let base = self.members.len();
        let mut given = FieldsRead::default();
        let mut others: HashSet<Text> = HashSet::new();
        let mut expected = 0;

        let mut first = true;
        while let Some(name) = self.scanner.next_name(first)? {
            first = false;
            let Some(position) = of.position_near(&name, expected) else {
                if of.declared.open {
                    if !others.insert(Text::new(&name)) {
                        self.strict_error("duplicate", location, &name);
                    }
                    self.undeclared_member(&name, location)?;
                    continue;
                }

                self.strict_error("unknown", location, &name);
                self.scanner.skip(self.depth, None)?;
                continue;
            };
            expected = position + 1;

            let field = of.at(position);

            let is_repeated = !given.add(position);
            if is_repeated {
                self.strict_error("duplicate", location, &name);
            }

            let below = Location {
                path: location.path.field(field.name()),
                within: Some(of),
            };

            let mut value = Value::Null;
            self.value(Some(field.node()), &below, &mut value)?;
            let before = match is_repeated {
                true => &mut self.members[base..],
                false => &mut [],
            };
            let before = before
                .iter_mut()
                .rfind(|(known, _)| *known == field.field.name);
            match before {
                Some((_, first)) => repeated::merge(first, value, field),
                None => self.members.push((field.field.name.clone(), value)),
            }
        }

        self.depth -= 1;
        *out = self.object(base);

        Ok(())
    }

    /// A member that an open struct does not declare.
    fn undeclared_member(
        &mut self,
        name: &str,
        location: &Location<'_>,
    ) -> Result<(), SyntaxError> {
        let below = Location {
            path: location.path.field(name),
            within: location.within,
        };
        let mut value = Value::Null;
        self.untyped(&below, &mut value)?;
        self.members.push((Text::new(name), value));
        Ok(())
    }

    /// The members of a map, or of an object without a type.
    fn members(
        &mut self,
        item: Option<Node<'_>>,
        location: &Location<'_>,
        out: &mut Value,
    ) -> Result<(), SyntaxError> {
        self.descend(b'{')?;
        let base = self.members.len();
        let mut names: HashSet<Text> = HashSet::new();

        let mut first = true;
        while let Some(name) = self.scanner.next_name(first)? {
            first = false;

            // Members mostly arrive sorted; then a name cannot be a duplicate.
            let before = &self.members[base..];
            let in_order =
                names.is_empty() && before.last().is_none_or(|(last, _)| last.as_str() < &*name);
            if !in_order {
                if names.is_empty() {
                    names.extend(before.iter().map(|(name, _)| name.clone()));
                }
                if !names.insert(Text::new(&name)) {
                    self.strict_error("duplicate", location, &name);
                }
            }

            let below = Location {
                path: location.path.key(&name),
                within: location.within,
            };

            let mut value = Value::Null;
            self.value(item, &below, &mut value)?;
            self.members.push((Text::new(name), value));
        }

        self.depth -= 1;
        *out = self.object(base);

        Ok(())
    }

    /// The object of the members collected since `base`.
    fn object(&mut self, base: usize) -> Value {
        Value::Object(Map::from_members(self.members.drain(base..).collect()))
    }

    fn elements(
        &mut self,
        item: Option<Node<'_>>,
        location: &Location<'_>,
        out: &mut Value,
    ) -> Result<(), SyntaxError> {
        self.descend(b'[')?;
        let base = self.elements.len();
        while self.scanner.next_element(self.elements.len() == base)? {
            let below = Location {
                path: location.path.index(self.elements.len() - base),
                within: location.within,
            };
            let mut value = Value::Null;
            self.value(item, &below, &mut value)?;
            self.elements.push(value);
        }

        self.depth -= 1;
        *out = Value::Array(self.elements.drain(base..).collect());

        Ok(())
    }

    fn untyped(&mut self, location: &Location<'_>, out: &mut Value) -> Result<(), SyntaxError> {
        match self.scanner.value()? {
            Token::Null => {}
            Token::Bool(flag) => *out = Value::Bool(flag),
            Token::Number(literal) => match scalar::untyped_number(literal) {
                Some(number) => *out = number,
                None => {
                    let message = format!(
                        "json: cannot unmarshal number {literal} into Go value of type float64"
                    );
                    self.type_error_with(message, location);
                }
            },
            Token::String(text) => *out = Value::String(Text::new(text)),
            Token::Open(b'{') => self.members(None, location, out)?,
            Token::Open(_) => self.elements(None, location, out)?,
        }

        Ok(())
    }

    fn descend(&mut self, bracket: u8) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_TREE_DEPTH {
            Err(scan::invalid(bracket, "exceeded max depth"))
        } else {
            Ok(())
        }
    }

    /// Skips the rest of a container whose opening bracket has been read.
    fn skip_container(&mut self, bracket: u8) -> Result<(), SyntaxError> {
        let mut first = true;
        while match bracket {
            b'{' => self.scanner.next_name(first)?.is_some(),
            _ => self.scanner.next_element(first)?,
        } {
            first = false;
            self.scanner.skip(self.depth + 1, None)?;
        }
        Ok(())
    }

    /// Records a type error: `found` instead of `node`.
    fn type_error(&mut self, found: &str, node: Node<'_>, location: &Location<'_>) {
        let wanted = go_names::type_at(node, &location.path, location.within);
        let into = match location.within {
            Some(of) => {
                format!(
                    "struct field {}.{}",
                    of.short_name(),
                    go_names::fields_on(&location.path, self.root)
                )
            }
            None => "value".to_string(),
        };

        self.type_error_with(
            format!("json: cannot unmarshal {found} into Go {into} of type {wanted}"),
            location,
        );
    }

    fn type_error_with(&mut self, message: String, location: &Location<'_>) {
        if self.type_error.is_none() {
            self.type_error = Some(DecodeError::Type {
                message,
                path: location.path.to_string(),
            });
        }
    }

    fn strict_error(&mut self, what: &str, location: &Location<'_>, name: &str) {
        if self.lenient > 0 || self.strict.len() >= MAX_STRICT_ERRORS {
            return;
        }
        let text = format!(
            "{what} field {}",
            Quoted(&strict_path(&location.path, name))
        );
        if self.seen.insert(text.clone()) {
            self.strict.push(text);
        }
    }
}

/// The fields of a struct that have been read.
#[derive(Default)]
struct FieldsRead(u64, Vec<usize>);

impl FieldsRead {
    /// False if it was there already.
    fn add(&mut self, position: usize) -> bool {
        if position < 64 {
            let bit = 1 << position;
            let new = self.0 & bit == 0;
            self.0 |= bit;
            return new;
        }
        let new = !self.1.contains(&position);
        self.1.push(position);
        new
    }
}

/// A member's path as the strict messages print it: map keys are joined by dots too.
fn strict_path(path: &Path<'_>, name: &str) -> String {
    let text = path.field(name).with_dots().to_string();
    text.strip_prefix('.')
        .map_or_else(|| text.clone(), str::to_owned)
}
