//! Parser: turns tokens into nodes.
//!
//! A document becomes a *tape*: its nodes in the order of the text, where a collection stores the
//! end of its content. An alias is the index of its anchor on the tape, so readers can follow it
//! without a tree of pointers. The parser uses a stack of open collections, each with what it
//! expects next; nothing here recurses.

mod block;
mod flow;
mod node;

use std::borrow::Cow;
use std::collections::HashMap;

use super::Error;
use super::scanner::Scanner;
use super::token::Kind;

pub(super) struct Node<'a> {
    /// Line of its beginning, from zero.
    pub(super) line: usize,
    pub(super) content: Content<'a>,
}

pub(super) enum Content<'a> {
    Scalar(Scalar<'a>),
    /// The index of the anchored node.
    Alias(&'a str, usize),
    /// Items up to this index.
    Sequence(usize),
    /// Keys and values in turn, up to this index.
    Mapping(usize),
}

pub(super) struct Scalar<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) tag: Tag,
    /// Plain without a tag, or tagged `!`: the type depends on the text.
    pub(super) implicit: bool,
}

/// The supported tags; all others make a string.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Tag {
    None,
    Other,
    Str,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
    Binary,
    Merge,
}

/// The first document of the text; empty if there is none.
pub(super) fn first_document<'a>(scanner: Scanner<'a>) -> Result<Vec<Node<'a>>, Error> {
    let mut composer = Composer {
        scanner,
        nodes: Vec::new(),
        open: Vec::new(),
        anchors: HashMap::new(),
        handles: HashMap::new(),
    };
    composer.document()?;
    Ok(composer.nodes)
}

struct Composer<'a> {
    scanner: Scanner<'a>,
    nodes: Vec<Node<'a>>,
    open: Vec<Open>,
    anchors: HashMap<&'a str, usize>,
    /// The prefixes of tag handles.
    handles: HashMap<&'a str, Vec<u8>>,
}

/// A collection that is being read.
struct Open {
    expects: Expects,
    node: usize,
    line: usize,
}

#[derive(Clone, Copy)]
enum Expects {
    BlockEntry,
    /// An entry of a sequence that is indented no deeper than the key it belongs to.
    IndentlessEntry,
    BlockKey,
    BlockValue,
    FlowEntry {
        first: bool,
    },
    /// The key of a `key: value` pair that is itself an entry of a flow sequence.
    PairKey,
    PairValue,
    PairEnd,
    FlowKey {
        first: bool,
    },
    FlowValue,
    /// The value of a key without a colon.
    NoFlowValue,
}

#[derive(Clone, Copy, PartialEq)]
enum Context {
    Block,
    BlockOrIndentless,
    Flow,
}

impl<'a> Composer<'a> {
    fn document(&mut self) -> Result<(), Error> {
        match self.scanner.peek()?.kind {
            Kind::StreamEnd => return Ok(()),
            Kind::VersionDirective { .. } | Kind::TagDirective { .. } | Kind::DocumentStart => {
                self.directives()?;
                let token = self.scanner.next()?;
                if !matches!(token.kind, Kind::DocumentStart) {
                    return Err(Error::syntax(
                        "did not find expected <document start>",
                        token.line,
                        0,
                    ));
                }

                let next = self.scanner.peek()?;
                if ends_document(&next.kind) {
                    let line = next.line;
                    self.empty_scalar(line);
                } else {
                    self.node(Context::Block)?;
                }
            }
            _ => {
                self.directives()?;
                self.node(Context::Block)?;
            }
        }

        while let Some(expects) = self.open.last().map(|open| open.expects) {
            self.step(expects)?;
        }

        // The next token does not matter, but it must be valid.
        self.scanner.peek()?;

        Ok(())
    }

    fn directives(&mut self) -> Result<(), Error> {
        let mut version_seen = false;
        loop {
            let token = self.scanner.peek()?;
            let line = token.line;
            match token.kind {
                Kind::VersionDirective { major, minor } => {
                    if version_seen {
                        return Err(Error::syntax("found duplicate %YAML directive", line, 0));
                    }
                    if (major, minor) != (1, 1) {
                        return Err(Error::syntax("found incompatible YAML document", line, 0));
                    }
                    version_seen = true;
                    self.scanner.take();
                }
                Kind::TagDirective { .. } => {
                    let Kind::TagDirective { handle, prefix } = self.scanner.take().kind else {
                        continue;
                    };
                    if self.handles.insert(handle, prefix).is_some() {
                        return Err(Error::syntax("found duplicate %TAG directive", line, 0));
                    }
                }
                _ => break,
            }
        }

        self.handles.entry("!").or_insert_with(|| b"!".to_vec());
        self.handles
            .entry("!!")
            .or_insert_with(|| b"tag:yaml.org,2002:".to_vec());

        Ok(())
    }

    fn step(&mut self, expects: Expects) -> Result<(), Error> {
        match expects {
            Expects::BlockEntry => self.block_entry(),
            Expects::IndentlessEntry => self.indentless_entry(),
            Expects::BlockKey => self.block_key(),
            Expects::BlockValue => self.block_value(),
            Expects::FlowEntry { first } => self.flow_entry(first),
            Expects::PairKey => self.pair_key(),
            Expects::PairValue => self.pair_value(),
            Expects::PairEnd => {
                self.scanner.peek()?;
                self.close();
                Ok(())
            }
            Expects::FlowKey { first } => self.flow_key(first),
            Expects::FlowValue => self.flow_value(),
            Expects::NoFlowValue => {
                let line = self.scanner.peek()?.line;
                self.expect(Expects::FlowKey { first: false });
                self.empty_scalar(line);
                Ok(())
            }
        }
    }

    fn push(&mut self, line: usize, content: Content<'a>) {
        self.nodes.push(Node { line, content });
    }

    fn empty_scalar(&mut self, line: usize) {
        let scalar = Scalar {
            text: Cow::Borrowed(""),
            tag: Tag::None,
            implicit: true,
        };
        self.push(line, Content::Scalar(scalar));
    }

    fn open(&mut self, expects: Expects, line: usize, content: Content<'a>) {
        let node = self.nodes.len();
        self.push(line, content);
        self.open.push(Open {
            expects,
            node,
            line,
        });
    }

    fn close(&mut self) {
        let open = self.open.pop().expect("only an open collection is closed");
        let end = self.nodes.len();
        if let Content::Sequence(index) | Content::Mapping(index) =
            &mut self.nodes[open.node].content
        {
            *index = end;
        }
    }

    /// Sets what the innermost collection expects after the node that follows.
    fn expect(&mut self, expects: Expects) {
        self.open
            .last_mut()
            .expect("a collection is open while its content is read")
            .expects = expects;
    }

    fn error(&self, problem: &'static str, line: usize) -> Error {
        Error::syntax(problem, line, self.open.last().map_or(0, |open| open.line))
    }
}

fn ends_document(kind: &Kind<'_>) -> bool {
    matches!(
        kind,
        Kind::VersionDirective { .. }
            | Kind::TagDirective { .. }
            | Kind::DocumentStart
            | Kind::DocumentEnd
            | Kind::StreamEnd
    )
}
