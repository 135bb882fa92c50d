//! Builds a value from the tape: resolves aliases, merges merge keys, converts keys to names.
//!
//! Uses a stack of unfinished collections, no deeper than JSON's; nothing recurses. Aliases can
//! make a small text enormous: the share of work they may cause is limited as upstream limits it,
//! and the text they may copy is limited on top.

use std::collections::HashSet;

use super::resolve::{Resolved, resolve};
use super::tape::{Content, Node, Scalar, Tag};
use super::{Error, message, number};
use crate::codec::json::MAX_TREE_DEPTH;
use crate::fuzz::steps;
use crate::value::{Map, Text, Value};

/// The value of a document, and the errors of strict decoding.
pub(super) struct Decoded {
    pub(super) value: Value,
    pub(super) duplicates: Vec<String>,
}

pub(super) fn decode(tape: &[Node<'_>], strict: bool) -> Result<Decoded, Error> {
    let mut decoder = Decoder {
        tape,
        strict,
        frames: Vec::new(),
        maps: Vec::new(),
        active: HashSet::new(),
        depth: 0,
        budget: Budget {
            nodes: 1,
            ..Budget::default()
        },
        infinite: false,
        unsupported: None,
        duplicates: Vec::new(),
    };

    let value = if tape.is_empty() {
        Value::Null
    } else {
        decoder.run()?
    };

    if let Some(error) = decoder.unsupported {
        return Err(error);
    }

    if decoder.infinite
        && let Some(name) = first_not_in_json(&value)
    {
        return Err(Error::NotInJson(name));
    }

    decoder.duplicates.sort_by_key(|(node, _)| *node);

    Ok(Decoded {
        value,
        duplicates: decoder
            .duplicates
            .into_iter()
            .map(|(_, text)| text)
            .collect(),
    })
}

struct Decoder<'a> {
    tape: &'a [Node<'a>],
    strict: bool,
    frames: Vec<Frame<'a>>,
    /// The members of the open mappings.
    maps: Vec<Vec<Member<'a>>>,
    /// The aliases that are being resolved.
    active: HashSet<usize>,
    /// Open collections.
    depth: usize,
    budget: Budget,
    /// An infinity or NaN was read; it is an error only if it remains in the result.
    infinite: bool,
    unsupported: Option<Error>,
    /// With the number of the decoded node, for sorting.
    duplicates: Vec<(usize, String)>,
}

enum Frame<'a> {
    Sequence {
        next: usize,
        end: usize,
        items: Vec<Value>,
    },
    Mapping(Mapping<'a>),
    /// Mappings to be merged into the one below, in reverse order.
    Merges(Vec<usize>),
    Alias(usize),
}

/// A mapping that is being read.
struct Mapping<'a> {
    /// The node that was entered last.
    at: usize,
    next: usize,
    end: usize,
    /// A key that is waiting for its value.
    key: Option<Resolved<'a>>,
    /// Its members belong to the surrounding mapping.
    merged: bool,
}

struct Member<'a> {
    key: Resolved<'a>,
    value: Value,
    line: usize,
    number: usize,
}

/// The result of a node.
enum Output<'a> {
    Scalar(Resolved<'a>),
    Collection(Value),
    /// A mapping that was merged into the one around it.
    Merged,
}

impl<'a> Decoder<'a> {
    fn run(&mut self) -> Result<Value, Error> {
        let mut made = self.enter(0, false)?;
        loop {
            match (made.take(), self.frames.pop()) {
                (Some(made), None) => return Ok(self.value(made)),
                (Some(done), Some(Frame::Alias(node))) => {
                    self.active.remove(&node);
                    self.budget.alias_depth -= 1;
                    made = Some(done);
                }
                (
                    done,
                    Some(Frame::Sequence {
                        next,
                        end,
                        mut items,
                    }),
                ) => {
                    items.extend(done.map(|done| self.value(done)));
                    made = self.advance_sequence(next, end, items)?;
                }
                (done, Some(Frame::Mapping(mapping))) => {
                    made = self.advance_mapping(mapping, done)?
                }
                (_, Some(Frame::Merges(indices))) => made = self.advance_merges(indices)?,
                (None, Some(Frame::Alias(_)) | None) => unreachable!("an alias leads to something"),
            }
        }
    }

    /// Enters the node at `index`: a scalar is complete at once, a collection is left open.
    fn enter(&mut self, mut index: usize, merged: bool) -> Result<Option<Output<'a>>, Error> {
        let tape = self.tape;
        loop {
            self.budget.node()?;

            match &tape[index].content {
                Content::Alias(name, target) => {
                    if !self.active.insert(index) {
                        return Err(Error::SelfReference((*name).to_owned()));
                    }
                    self.budget.alias_depth += 1;
                    self.frames.push(Frame::Alias(index));
                    index = *target;
                }
                Content::Scalar(scalar) => {
                    self.budget.text(scalar.text.len())?;
                    return resolve(scalar).map(|scalar| Some(Output::Scalar(scalar)));
                }
                Content::Sequence(end) => {
                    self.deepen('[')?;
                    self.frames.push(Frame::Sequence {
                        next: index + 1,
                        end: *end,
                        items: Vec::new(),
                    });
                    return Ok(None);
                }
                Content::Mapping(end) => {
                    if !merged {
                        self.deepen('{')?;
                        self.maps.push(Vec::new());
                    }

                    let mapping = Mapping {
                        at: index,
                        next: index + 1,
                        end: *end,
                        key: None,
                        merged,
                    };
                    self.frames.push(Frame::Mapping(mapping));

                    return Ok(None);
                }
            }
        }
    }

    fn deepen(&mut self, bracket: char) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_TREE_DEPTH {
            Err(Error::TooDeep(bracket))
        } else {
            Ok(())
        }
    }

    fn advance_sequence(
        &mut self,
        next: usize,
        end: usize,
        items: Vec<Value>,
    ) -> Result<Option<Output<'a>>, Error> {
        if next == end {
            self.depth -= 1;
            return Ok(Some(Output::Collection(Value::Array(items))));
        }
        self.frames.push(Frame::Sequence {
            next: self.end_of(next),
            end,
            items,
        });
        self.enter(next, false)
    }

    fn advance_mapping(
        &mut self,
        mut mapping: Mapping<'a>,
        done: Option<Output<'a>>,
    ) -> Result<Option<Output<'a>>, Error> {
        match (mapping.key.take(), done) {
            (None, Some(Output::Scalar(key))) => mapping.key = Some(key),
            (None, Some(Output::Collection(key))) => {
                return Err(Error::CollectionKey(message::value(&key)));
            }
            (Some(key), Some(done)) => self.member(key, done, self.tape[mapping.at].line),
            (_, None | Some(Output::Merged)) => {}
        }

        let index = mapping.next;
        if index == mapping.end {
            return Ok(Some(if mapping.merged {
                Output::Merged
            } else {
                self.finish_mapping()
            }));
        }

        mapping.at = index;
        mapping.next = self.end_of(index);

        if mapping.key.is_none() && self.is_merge(index) {
            let source = mapping.next;
            mapping.next = self.end_of(source);
            self.frames.push(Frame::Mapping(mapping));
            return self.merge(source);
        }

        self.frames.push(Frame::Mapping(mapping));

        self.enter(index, false)
    }

    /// The position after the node at `index` and its content.
    fn end_of(&self, index: usize) -> usize {
        match self.tape[index].content {
            Content::Sequence(end) | Content::Mapping(end) => end,
            Content::Scalar(_) | Content::Alias(..) => index + 1,
        }
    }

    fn value(&mut self, made: Output<'a>) -> Value {
        match made {
            Output::Scalar(scalar) => {
                self.infinite |= matches!(scalar, Resolved::Float(number) if !number.is_finite());
                scalar_value(scalar)
            }
            Output::Collection(value) => value,
            Output::Merged => Value::Null,
        }
    }
}

/// Mappings.
impl<'a> Decoder<'a> {
    fn member(&mut self, key: Resolved<'a>, made: Output<'a>, line: usize) {
        let value = self.value(made);
        if self.unsupported.is_none() {
            self.unsupported = match key {
                Resolved::Null => Some(unsupported("%!s(<nil>)", &key, &value)),
                Resolved::Uint(_) => Some(unsupported("uint64", &key, &value)),
                _ => None,
            };
        }

        let member = Member {
            key,
            value,
            line,
            number: self.budget.nodes,
        };

        self.maps
            .last_mut()
            .expect("a mapping is open")
            .push(member);
    }

    fn finish_mapping(&mut self) -> Output<'a> {
        self.depth -= 1;
        let members = self
            .maps
            .pop()
            .expect("pushed when the mapping was entered");

        if self.strict {
            self.note_duplicates(&members);
        }

        steps::count(members.len() * members.len().checked_ilog2().unwrap_or(0) as usize);

        let members = members
            .into_iter()
            .map(|member| (name(member.key), member.value))
            .collect();

        Output::Collection(Value::Object(Map::from_members(members)))
    }

    fn note_duplicates(&mut self, members: &[Member<'a>]) {
        let mut seen = HashSet::with_capacity(members.len());
        for member in members {
            if identity(&member.key).is_some_and(|identity| !seen.insert(identity)) {
                let key = message::key(&member.key);
                self.duplicates.push((
                    member.number,
                    format!("line {}: key {key} already set in map", member.line + 1),
                ));
            }
        }
    }

    fn is_merge(&self, index: usize) -> bool {
        matches!(&self.tape[index].content, Content::Scalar(Scalar { text, tag, implicit })
            if text == "<<" && (*implicit || *tag == Tag::Merge))
    }

    fn merge(&mut self, index: usize) -> Result<Option<Output<'a>>, Error> {
        match &self.tape[index].content {
            Content::Sequence(end) => {
                let mut indices = Vec::new();
                let mut item = index + 1;
                while item < *end {
                    indices.push(item);
                    item = self.end_of(item);
                }
                self.advance_merges(indices)
            }
            _ => self.merge_one(index),
        }
    }

    fn advance_merges(&mut self, mut indices: Vec<usize>) -> Result<Option<Output<'a>>, Error> {
        match indices.pop() {
            None => Ok(Some(Output::Merged)),
            Some(index) => {
                self.frames.push(Frame::Merges(indices));
                self.merge_one(index)
            }
        }
    }

    fn merge_one(&mut self, index: usize) -> Result<Option<Output<'a>>, Error> {
        let mapping = match self.tape[index].content {
            Content::Alias(_, target) => matches!(self.tape[target].content, Content::Mapping(_)),
            Content::Mapping(_) => true,
            Content::Scalar(_) | Content::Sequence(_) => false,
        };
        if mapping {
            self.enter(index, true)
        } else {
            Err(Error::Merge)
        }
    }
}

/// The identity of a key, equal for equal keys; NaN has none.
fn identity<'k>(key: &'k Resolved<'_>) -> Option<(u8, u64, &'k str)> {
    Some(match key {
        Resolved::Null => (0, 0, ""),
        Resolved::Bool(flag) => (1, u64::from(*flag), ""),
        Resolved::Int(number) => (2, number.cast_unsigned(), ""),
        Resolved::Uint(number) => (3, *number, ""),
        Resolved::Float(number) if number.is_nan() => return None,
        Resolved::Float(number) => (4, (number + 0.0).to_bits(), ""),
        Resolved::Text(text) => (5, 0, text),
    })
}

fn unsupported(kind: &'static str, key: &Resolved<'_>, value: &Value) -> Error {
    Error::ScalarKey {
        kind,
        key: message::key(key),
        value: message::lone_value(value),
    }
}

/// A key as the name of a member.
fn name(key: Resolved<'_>) -> Text {
    match key {
        Resolved::Text(text) => Text::from(text),
        Resolved::Int(number) => Text::from(number.to_string()),
        Resolved::Uint(number) => Text::from(number.to_string()),
        Resolved::Float(number) => Text::from(number::print_key(number)),
        Resolved::Bool(true) => Text::const_new("true"),
        Resolved::Bool(false) => Text::const_new("false"),
        Resolved::Null => Text::const_new("null"),
    }
}

/// Upstream converts through JSON, where a float without a fraction is an integer.
fn scalar_value(scalar: Resolved<'_>) -> Value {
    match scalar {
        Resolved::Null => Value::Null,
        Resolved::Bool(flag) => Value::Bool(flag),
        Resolved::Int(number) => Value::Int(number),
        #[expect(clippy::cast_precision_loss, reason = "JSON decoding loses the same")]
        Resolved::Uint(number) => Value::Float(number as f64),
        Resolved::Float(number) => number::whole(number).map_or(Value::Float(number), Value::Int),
        Resolved::Text(text) => Value::String(Text::from(text)),
    }
}

/// The first infinity or NaN, in the order of the names.
fn first_not_in_json(value: &Value) -> Option<&'static str> {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Float(number) => {
                if let Some(name) = number::not_in_json(*number) {
                    return Some(name);
                }
            }
            Value::Array(items) => left.extend(items.iter().rev()),
            Value::Object(map) => left.extend(map.iter().rev().map(|(_, value)| value)),
            _ => {}
        }
    }

    None
}

/// The work done, and how much of it aliases caused.
#[derive(Default)]
struct Budget {
    nodes: usize,
    aliased_nodes: usize,
    aliased_text: usize,
    alias_depth: usize,
}

impl Budget {
    fn node(&mut self) -> Result<(), Error> {
        steps::count(1);
        self.nodes += 1;
        self.aliased_nodes += usize::from(self.alias_depth > 0);
        if self.aliased_nodes > 100 && self.nodes > 1000 && self.too_many_aliased() {
            return Err(Error::ExcessiveAliasing);
        }
        Ok(())
    }

    /// Aliases may cause 99 percent of the work in a small document, 10 percent in a large one, and
    /// a decreasing share in between.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn too_many_aliased(&self) -> bool {
        let share = self.aliased_nodes as f64 / self.nodes as f64;
        let large = (self.nodes as f64 - 400_000.0) / (4_000_000.0 - 400_000.0);
        share > 0.99 - 0.89 * large.clamp(0.0, 1.0)
    }

    fn text(&mut self, length: usize) -> Result<(), Error> {
        steps::count(length);
        if self.alias_depth > 0 {
            self.aliased_text += length;
        }
        if self.aliased_text > MAX_ALIASED_TEXT {
            Err(Error::ExcessiveAliasing)
        } else {
            Ok(())
        }
    }
}

/// More than the maximum size of an object. Upstream counts nodes only, so that one long string,
/// aliased often, fills its memory.
const MAX_ALIASED_TEXT: usize = 16 << 20;
