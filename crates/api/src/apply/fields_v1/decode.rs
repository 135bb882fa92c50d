//! Decodes a field set from its FieldsV1 text.
//!
//! One pass, without a tree in between. Path elements of an unknown kind are skipped: a later
//! version may have written them. A value that is no object, or a path element that cannot be
//! parsed, fails the whole text.

use crate::apply::element::Element;
use crate::apply::set::{Node, Set};
use crate::codec::json::{self, MAX_TREE_DEPTH};
use crate::fuzz::steps;
use crate::go_text;
use crate::{Map, Text, Value};
use std::borrow::Cow;

/// Why a text is no field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    #[error("{expected} expected at byte {at}")]
    Syntax { expected: &'static str, at: usize },
    #[error("nested too deeply")]
    TooDeep,
    #[error("parsing key as path element: {0:?}")]
    Element(String),
}

/// Decodes the field set of a text.
pub fn decode(text: &str) -> Result<Set, FieldsError> {
    let mut reader = Reader { text, at: 0 };
    let (set, _) = reader.set(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.expected("the end"));
    }
    Ok(set)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// The children of a path element, and whether the element is a member: it is marked so, or has
    /// no children.
    fn set(&mut self, depth: usize) -> Result<(Set, bool), FieldsError> {
        if depth > MAX_TREE_DEPTH {
            return Err(FieldsError::TooDeep);
        }

        let mut set = Collected::default();
        let mut itself = false;

        if self.consume("null") {
            return Ok((Set::new(), true));
        }

        self.expect(b'{', "an object")?;
        let mut first = true;
        while let Some(name) = self.name(first)? {
            first = false;

            if name == "." {
                itself = true;
                self.skip_value(depth + 1)?;
                continue;
            }

            match element(&name)? {
                None => self.skip_value(depth + 1)?,
                Some(element) => {
                    let (below, member) = self.set(depth + 1)?;
                    set.add(Node {
                        element,
                        member,
                        below,
                    });
                }
            }
        }

        let set = set.finish();
        let member = itself || set.is_empty();

        Ok((set, member))
    }

    /// The next name of an object with its colon, or its end.
    fn name(&mut self, first: bool) -> Result<Option<Cow<'t, str>>, FieldsError> {
        self.skip_space();

        match self.byte() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => self.at += 1,
            _ if first => {}
            _ => return Err(self.expected("a comma")),
        }

        let name = self.string()?;
        self.expect(b':', "a colon")?;

        Ok(Some(name))
    }

    fn string(&mut self) -> Result<Cow<'t, str>, FieldsError> {
        self.expect(b'"', "a name")?;
        let start = self.at;

        let mut escaped = false;
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(0..0x20) | None => return Err(self.expected("the end of a name")),
                Some(_) => self.at += 1,
            }

            steps::count(1);
        }

        let end = self.at;
        self.at += 1;

        if !escaped {
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }

        match json::parse(&self.text.as_bytes()[start - 1..self.at]) {
            Ok(Value::String(text)) => Ok(Cow::Owned(text.into())),
            _ => Err(FieldsError::Syntax {
                expected: "a name",
                at: start,
            }),
        }
    }

    /// Skips any value.
    fn skip_value(&mut self, depth: usize) -> Result<(), FieldsError> {
        if depth > MAX_TREE_DEPTH {
            return Err(FieldsError::TooDeep);
        }

        self.skip_space();

        match self.byte() {
            Some(b'{') => {
                self.at += 1;
                let mut first = true;
                while self.name(first)?.is_some() {
                    first = false;
                    self.skip_value(depth + 1)?;
                }
                Ok(())
            }
            Some(b'[') => self.skip_list(depth),
            Some(b'"') => self.string().map(drop),
            _ => self.skip_word(),
        }
    }

    fn skip_list(&mut self, depth: usize) -> Result<(), FieldsError> {
        self.at += 1;
        self.skip_space();

        if self.byte() == Some(b']') {
            self.at += 1;
            return Ok(());
        }

        loop {
            self.skip_value(depth + 1)?;
            self.skip_space();

            match self.byte() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.expected("a comma")),
            }
        }
    }

    /// A number, true, false or null.
    fn skip_word(&mut self) -> Result<(), FieldsError> {
        let start = self.at;

        while self
            .byte()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'))
        {
            steps::count(1);
            self.at += 1;
        }

        match json::parse(&self.text.as_bytes()[start..self.at]) {
            Ok(_) => Ok(()),
            Err(_) => Err(FieldsError::Syntax {
                expected: "a value",
                at: start,
            }),
        }
    }

    fn consume(&mut self, word: &str) -> bool {
        self.skip_space();
        let found =
            self.text.as_bytes()[self.at.min(self.text.len())..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), FieldsError> {
        self.skip_space();
        if self.byte() != Some(byte) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            steps::count(1);
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, expected: &'static str) -> FieldsError {
        FieldsError::Syntax {
            expected,
            at: self.at,
        }
    }
}

/// The path elements of one level, which mostly arrive sorted.
#[derive(Default)]
struct Collected {
    nodes: Vec<Node>,
    unsorted: bool,
}

impl Collected {
    fn add(&mut self, node: Node) {
        self.unsorted |= self
            .nodes
            .last()
            .is_some_and(|last| last.element >= node.element);
        self.nodes.push(node);
    }

    /// Of duplicate path elements any makes a member, and the last with children provides them.
    fn finish(mut self) -> Set {
        if self.unsorted {
            self.nodes.sort_by(|a, b| {
                steps::count(1);
                a.element.cmp(&b.element)
            });

            self.nodes.dedup_by(|later, first| {
                let equal = later.element == first.element;
                if equal {
                    first.member |= later.member;
                    if !later.below.is_empty() {
                        first.below = std::mem::take(&mut later.below);
                    }
                }
                equal
            });
        }

        Set { nodes: self.nodes }
    }
}

/// The path element that a name describes; `None`: of an unknown kind.
fn element(name: &str) -> Result<Option<Element>, FieldsError> {
    let unreadable = || FieldsError::Element(name.to_owned());
    let bytes = name.as_bytes();
    if bytes.len() < 2 || bytes[1] != b':' {
        return Err(unreadable());
    }

    let rest = name.get(2..).ok_or_else(unreadable)?;
    steps::count(rest.len());

    let element = match bytes[0] {
        b'f' => Element::Field(Text::new(rest)),
        b'v' => Element::Value(key_value(
            json::parse(rest.as_bytes()).map_err(|_| unreadable())?,
        )),
        b'i' => Element::Index(go_text::parse_int(rest).map_err(|_| unreadable())?),
        b'k' => match plain_key(rest).map_or_else(|| json::parse(rest.as_bytes()), Ok) {
            Ok(Value::Object(fields)) => Element::Key(
                fields
                    .into_iter()
                    .map(|(name, value)| (name, key_value(value)))
                    .collect(),
            ),
            Ok(Value::Null) => Element::Key(Vec::new()),
            _ => return Err(unreadable()),
        },
        _ => return Ok(None),
    };

    Ok(Some(element))
}

/// The common form of a key: one or two fields with plain strings or short numbers as values.
/// Anything else takes the full parser.
fn plain_key(text: &str) -> Option<Value> {
    let mut rest = text.strip_prefix('{')?;
    let mut fields = Vec::with_capacity(2);
    loop {
        let (name, behind) = plain_string(rest)?;
        let behind = behind.strip_prefix(':')?;

        let (value, behind) = match plain_string(behind) {
            Some((value, behind)) => (Value::string(value), behind),
            None => {
                let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
                let number = &behind[..digits];
                let is_plain = matches!(digits, 1..=9) && (digits == 1 || !number.starts_with('0'));
                (
                    Value::Int(number.parse().ok().filter(|_| is_plain)?),
                    &behind[digits..],
                )
            }
        };
        fields.push((Text::new(name), value));

        match behind {
            "}" => return Some(Value::Object(Map::from_members(fields))),
            _ => rest = behind.strip_prefix(',')?,
        }
    }
}

fn plain_string(text: &str) -> Option<(&str, &str)> {
    let (string, behind) = text.strip_prefix('"')?.split_once('"')?;
    let plain = !string.bytes().any(|byte| byte == b'\\' || byte < 0x20);
    plain.then_some((string, behind))
}

/// Upstream reads every number as a float; whole numbers stay exact here as far as floats are.
fn key_value(value: Value) -> Value {
    const EXACT: i64 = 1 << 53;

    match value {
        #[expect(
            clippy::cast_precision_loss,
            reason = "that is what upstream's readers do, and what they write back"
        )]
        Value::Int(number) if !(-EXACT..=EXACT).contains(&number) => Value::Float(number as f64),
        Value::Array(items) => Value::Array(items.into_iter().map(key_value).collect()),
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(name, value)| (name, key_value(value)))
                .collect(),
        ),
        other => other,
    }
}
