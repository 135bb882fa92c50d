//! Encodes a batch as one datagram, and finds the command that a refusal is about.

use super::batch::{Batch, Command};
use super::expressions::{self, Anonymous, anonymous};
use super::kernel::{self, chain, element, message, rule, set, table};
use super::rule::{Rule, Table};
use super::set::Element;
use super::values::{describe, put_element};
use super::{Generation, fixed};
use crate::message::{Attributes, Header, Messages};

/// A list of elements ends before its length exceeds 16 bits.
const MAX_LIST: usize = 48 * 1024;

pub(super) struct Encoded {
    pub(super) messages: Messages,
    /// Of the beginning, which is a message as well.
    first: u32,
    /// Where each message begins.
    starts: Vec<usize>,
    marks: Vec<Mark>,
}

/// From this byte on it is about this command, or this element of it.
struct Mark {
    position: usize,
    command: usize,
    element: Option<usize>,
}

/// Encodes a batch. The first message has the sequence number `first`. With a generation it fails
/// if the kernel has another one.
pub(super) fn encode(batch: &Batch, first: u32, generation: Option<Generation>) -> Encoded {
    let mut encoder = Encoder {
        out: Encoded {
            messages: Messages::default(),
            first,
            starts: Vec::new(),
            marks: Vec::new(),
        },
        next_set: 1,
    };

    encoder.limit(kernel::BATCH_BEGIN, |out| {
        if let Some(Generation(number)) = generation {
            out.number(kernel::BATCH_GENERATION, number);
        }
    });

    for (number, (table, command)) in batch.commands().iter().enumerate() {
        encoder.command(number, table, command);
    }
    encoder.limit(kernel::BATCH_END, |_| {});

    encoder.out
}

impl Encoded {
    /// How many messages there are.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// The command of the message with this sequence number, with the one element at `offset` in
    /// the message, if the kernel named one. None: it is the beginning or the end.
    pub(super) fn command(
        &self,
        batch: &Batch,
        sequence: u32,
        offset: Option<usize>,
    ) -> Option<(Table, Command)> {
        let message = usize::try_from(sequence.wrapping_sub(self.first)).ok()?;
        let start = *self.starts.get(message)?;
        let position = start + offset.unwrap_or(0);
        let marked = self.marks.partition_point(|mark| mark.position <= position);

        let mark = &self.marks[marked.checked_sub(1)?];
        if mark.position < start {
            return None;
        }

        let (table, command) = &batch.commands()[mark.command];
        let mut command = command.clone();
        if let Command::AddElements { elements, .. } | Command::DeleteElements { elements, .. } =
            &mut command
        {
            match mark.element {
                Some(element) => *elements = vec![elements.swap_remove(element)],
                None => elements.truncate(FEW),
            }
        }

        Some((table.clone(), command))
    }
}

/// So many elements are enough for an error message.
const FEW: usize = 3;

struct Encoder {
    out: Encoded,
    next_set: u32,
}

impl Encoder {
    /// The beginning or the end.
    fn limit(&mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) {
        let header = self.header(kind, 0);
        let subsystem = kernel::SUBSYSTEM.to_be_bytes();
        let fixed = [0, 0, subsystem[0], subsystem[1]];
        self.out.messages.add(header, &fixed, fill);
    }

    fn header(&mut self, kind: u16, flags: i32) -> Header {
        let number = u32::try_from(self.out.starts.len()).expect("a batch fits into a datagram");
        self.out.starts.push(self.out.messages.bytes().len());
        Header {
            kind,
            flags,
            sequence: self.out.first.wrapping_add(number),
        }
    }

    /// A message of a command.
    fn message(
        &mut self,
        command: usize,
        table: &Table,
        (kind, flags): (u16, i32),
        fill: impl FnOnce(&mut Attributes<'_>),
    ) {
        let header = self.header(kernel::SUBSYSTEM << 8 | kind, flags);
        self.out.marks.push(Mark {
            position: self.out.messages.bytes().len(),
            command,
            element: None,
        });
        self.out.messages.add(header, &fixed(table.family), fill);
    }

    fn command(&mut self, number: usize, of: &Table, command: &Command) {
        let table = of.name.as_str();
        match command {
            Command::AddTable => self.message(number, of, (message::NEW_TABLE, CREATE), |out| {
                out.text(table::NAME, table);
                out.number(table::FLAGS, 0);
            }),
            Command::DeleteTable => {
                self.message(number, of, (message::DELETE_TABLE, 0), |out| {
                    out.text(table::NAME, table);
                });
            }
            Command::AddChain { name, hook } => {
                self.message(number, of, (message::NEW_CHAIN, CREATE), |out| {
                    out.text(chain::TABLE, table);
                    out.text(chain::NAME, name);
                    if let Some(hook) = hook {
                        out.text(chain::KIND, kernel::chain_kind(hook.kind));
                        out.number(chain::POLICY, kernel::data::ACCEPT);
                        out.nested(chain::HOOK, |inner| {
                            inner.number(chain::HOOK_POINT, kernel::point(hook.point));
                            inner.put(chain::HOOK_PRIORITY, &hook.priority.to_be_bytes());
                        });
                    }
                });
            }
            Command::FlushChain { name } => {
                self.message(number, of, (message::DELETE_RULE, 0), |out| {
                    out.text(rule::TABLE, table);
                    out.text(rule::CHAIN, name);
                });
            }
            Command::DeleteChain { name } => {
                self.message(number, of, (message::DELETE_CHAIN, 0), |out| {
                    out.text(chain::TABLE, table);
                    out.text(chain::NAME, name);
                });
            }
            Command::AddRule { chain, rule } => {
                self.rule(number, of, chain, rule, CREATE | libc::NLM_F_APPEND);
            }
            Command::InsertRule { chain, rule } => self.rule(number, of, chain, rule, CREATE),
            Command::DeleteRule { chain, handle } => {
                self.message(number, of, (message::DELETE_RULE, 0), |out| {
                    out.text(rule::TABLE, table);
                    out.text(rule::CHAIN, chain);
                    out.put(rule::HANDLE, &handle.to_be_bytes());
                });
            }
            Command::AddSet(set) => {
                let id = self.set_number();
                self.message(number, of, (message::NEW_SET, CREATE), |out| {
                    out.text(set::TABLE, table);
                    out.text(set::NAME, &set.name);
                    out.number(set::ID, id);
                    describe(set, out);
                });
            }
            Command::DeleteSet { name } => {
                self.message(number, of, (message::DELETE_SET, 0), |out| {
                    out.text(set::TABLE, table);
                    out.text(set::NAME, name);
                });
            }
            Command::AddElements { set, elements } => {
                self.elements(number, of, (message::NEW_ELEMENTS, CREATE), set, elements);
            }
            Command::DeleteElements { set, elements } => {
                self.elements(number, of, (message::DELETE_ELEMENTS, 0), set, elements);
            }
        }
    }

    fn set_number(&mut self) -> u32 {
        let number = self.next_set;
        self.next_set += 1;
        number
    }

    /// A rule, after the sets that belong to it.
    fn rule(&mut self, number: usize, of: &Table, chain: &str, rule: &Rule, flags: i32) {
        let mut numbers = Vec::new();
        for set in anonymous(rule) {
            numbers.push(self.anonymous(number, of, &set));
        }

        self.message(number, of, (message::NEW_RULE, flags), |out| {
            out.text(rule::TABLE, &of.name);
            out.text(rule::CHAIN, chain);
            expressions::put(rule, of.family, &mut numbers.into_iter(), out);
        });
    }

    fn anonymous(&mut self, number: usize, of: &Table, wanted: &Anonymous<'_>) -> u32 {
        let id = self.set_number();
        self.message(number, of, (message::NEW_SET, CREATE), |out| {
            out.text(set::TABLE, &of.name);
            out.text(set::NAME, wanted.name());
            out.number(set::ID, id);
            wanted.describe(out);
        });

        self.message(number, of, (message::NEW_ELEMENTS, CREATE), |out| {
            out.text(element::TABLE, &of.name);
            out.text(element::SET, wanted.name());
            out.number(element::SET_ID, id);
            out.nested(element::LIST, |list| {
                wanted.numbered_chains(list);
                wanted
                    .elements()
                    .iter()
                    .for_each(|element| put_element(element, list));
            });
        });

        id
    }

    /// As many messages as the lists need.
    fn elements(
        &mut self,
        number: usize,
        of: &Table,
        kind: (u16, i32),
        set: &str,
        elements: &[Element],
    ) {
        let mut done = 0;
        while done < elements.len() {
            let mut marks = Vec::new();
            self.message(number, of, kind, |out| {
                out.text(element::TABLE, &of.name);
                out.text(element::SET, set);
                out.nested(element::LIST, |list| {
                    let start = list.position();
                    while done < elements.len() && list.position() - start < MAX_LIST {
                        marks.push(Mark {
                            position: list.position(),
                            command: number,
                            element: Some(done),
                        });
                        put_element(&elements[done], list);
                        done += 1;
                    }
                });
            });
            self.out.marks.append(&mut marks);
        }
    }
}

const CREATE: i32 = libc::NLM_F_CREATE;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use crate::message::answers;
    use crate::nftables::{Family, Protocol, Value};

    /// Far more elements than one message has room for.
    #[test]
    fn long_lists_are_cut_and_each_element_is_found_by_its_place() {
        let table = Table {
            family: Family::Ip(Version::V4),
            name: "t".to_owned(),
        };
        let element = |port: u16| Element {
            key: vec![Value::Protocol(Protocol::Tcp), Value::Port(port)],
            data: None,
        };
        let mut batch = Batch::new();
        batch.push(&table, Command::AddTable);
        let elements: Vec<Element> = (0..5000).map(element).collect();
        batch.push(
            &table,
            Command::AddElements {
                set: "s".to_owned(),
                elements,
            },
        );

        let encoded = encode(&batch, 100, None);
        assert_eq!(answers(encoded.messages.bytes()).count(), encoded.count());
        assert!(encoded.count() > 4);
        assert!(encoded.command(&batch, 100, None).is_none(), "the begin");

        let found = |sequence, offset| encoded.command(&batch, sequence, offset).unwrap().1;
        assert_eq!(found(101, None), Command::AddTable);
        for mark in encoded.marks.iter().filter(|mark| mark.element.is_some()) {
            let message = encoded
                .starts
                .partition_point(|start| *start <= mark.position)
                - 1;
            let sequence = 100 + u32::try_from(message).unwrap();
            let offset = mark.position - encoded.starts[message];
            let Command::AddElements { elements, .. } = found(sequence, Some(offset)) else {
                panic!("an element is of another command");
            };
            let port = u16::try_from(mark.element.unwrap()).unwrap();
            assert_eq!(elements, [element(port)]);
        }
    }
}
