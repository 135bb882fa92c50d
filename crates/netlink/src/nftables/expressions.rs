//! Encodes rules as the expressions that the kernel evaluates.
//!
//! An expression loads a part of the packet into registers, compares registers, looks them up, or
//! does something with the packet. The order of expressions and the choice of registers are those
//! of `nft`, which recognizes its own statements by them.

use ipnet::IpNet;

use super::kernel::{self, data, rule, set};
use super::rule::{Direction, End, Family, Field, Rule, Statement, Test, Verdict};
use super::set::Protocol;
use super::values::{WORD, put_verdict, user_data};
use crate::message::Attributes;
use crate::{Version, octets};

/// A set that belongs to one rule.
pub(super) enum Anonymous<'a> {
    Protocols(&'a [Protocol]),
    Ranges(Version, Vec<IpNet>),
    /// Numbers from zero to chains.
    Chains(&'a [String]),
}

/// The anonymous sets of a rule, in order.
pub(super) fn anonymous(rule: &Rule) -> impl Iterator<Item = Anonymous<'_>> {
    rule.statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Protocols(protocols) if protocols.len() > 1 => {
                Some(Anonymous::Protocols(protocols))
            }
            Statement::Ranges(field, _, ranges) if ranges.len() > 1 => {
                let version = version_of(*field).unwrap_or(Version::V4);
                Some(Anonymous::Ranges(version, IpNet::aggregate(ranges)))
            }
            Statement::Random(chains) => Some(Anonymous::Chains(chains)),
            _ => None,
        })
}

impl Anonymous<'_> {
    /// A pattern: the kernel numbers them.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Anonymous::Protocols(_) | Anonymous::Ranges(..) => SET,
            Anonymous::Chains(_) => MAP,
        }
    }

    /// Its attributes besides table, name and number.
    pub(super) fn describe(&self, out: &mut Attributes<'_>) {
        let (flags, key, length, order, size) = match self {
            Anonymous::Protocols(protocols) => {
                (0, set::PROTOCOL, 1, set::ORDER_HOST, protocols.len())
            }
            Anonymous::Ranges(Version::V4, ranges) => {
                let size = ranges.len() * 2;
                (
                    set::INTERVAL,
                    set::IPV4_ADDRESS,
                    4,
                    set::ORDER_NETWORK,
                    size,
                )
            }
            Anonymous::Ranges(Version::V6, ranges) => {
                let size = ranges.len() * 2;
                (
                    set::INTERVAL,
                    set::IPV6_ADDRESS,
                    16,
                    set::ORDER_NETWORK,
                    size,
                )
            }
            Anonymous::Chains(chains) => (set::MAP, set::INTEGER, 4, set::ORDER_HOST, chains.len()),
        };

        out.number(set::FLAGS, flags | set::ANONYMOUS);
        out.number(set::KEY_TYPE, key);
        out.number(set::KEY_LENGTH, length);
        let mut orders = vec![(set::KEY_ORDER, order)];
        if flags & set::MAP != 0 {
            out.number(set::DATA_TYPE, set::VERDICT);
            out.number(set::DATA_LENGTH, 0);
            orders.push((set::DATA_ORDER, set::ORDER_MIXED));
        }

        out.nested(set::DESCRIPTION, |description| {
            description.number(set::SIZE, u32::try_from(size).unwrap_or(u32::MAX));
        });
        out.put(set::USER_DATA, &user_data(&orders));
    }

    /// Its elements, each put into a list by `put`.
    pub(super) fn elements(&self) -> Vec<super::set::Element> {
        use super::set::{Element, Value};

        let element = |value| Element {
            key: vec![value],
            data: None,
        };
        match self {
            Anonymous::Protocols(protocols) => protocols
                .iter()
                .map(|protocol| element(Value::Protocol(*protocol)))
                .collect(),
            Anonymous::Ranges(_, ranges) => ranges
                .iter()
                .map(|range| element(Value::Range(*range)))
                .collect(),
            Anonymous::Chains(_) => Vec::new(),
        }
    }

    /// The elements of a map from numbers to chains.
    pub(super) fn numbered_chains(&self, list: &mut Attributes<'_>) {
        let Anonymous::Chains(chains) = self else {
            return;
        };
        for (number, chain) in (0_u32..).zip(*chains) {
            list.nested(kernel::LIST_ELEMENT, |entry| {
                entry.nested(kernel::element::KEY, |key| {
                    key.put(data::VALUE, &number.to_ne_bytes());
                });
                entry.nested(kernel::element::DATA, |value| {
                    put_verdict(&Verdict::Goto(chain.clone()), value);
                });
            });
        }
    }
}

const SET: &str = "__set%d";
const MAP: &str = "__map%d";

/// The expressions of a rule. `sets` are the numbers of its anonymous sets.
pub(super) fn put(
    rule: &Rule,
    family: Family,
    sets: &mut dyn Iterator<Item = u32>,
    out: &mut Attributes<'_>,
) {
    out.nested(rule::EXPRESSIONS, |list| {
        let mut writer = Writer {
            list,
            known: match family {
                Family::Ip(version) => Some(version),
                Family::Inet => None,
            },
            sets,
        };
        rule.statements
            .iter()
            .for_each(|statement| writer.statement(statement));
    });

    if let Some(comment) = &rule.comment {
        out.put(rule::USER_DATA, &comment_data(comment));
    }
}

/// A comment in a rule's user data: type, length, zero-terminated text. Longer ones are cut.
fn comment_data(comment: &str) -> Vec<u8> {
    let text: Vec<u8> = comment.bytes().take(MAX_COMMENT).chain([0]).collect();
    let length = u8::try_from(text.len()).expect("it was cut");
    [&[rule::COMMENT, length], text.as_slice()].concat()
}

/// `nft`'s limit.
const MAX_COMMENT: usize = 127;

fn version_of(field: Field) -> Option<Version> {
    match field {
        Field::Source(version) | Field::Destination(version) => Some(version),
        Field::Protocol | Field::DestinationPort => None,
    }
}

struct Writer<'a, 'b> {
    list: &'a mut Attributes<'b>,
    /// The IP version of packets that come so far.
    known: Option<Version>,
    sets: &'a mut dyn Iterator<Item = u32>,
}

/// Keys of what the kernel knows of a packet besides its bytes.
#[derive(Clone, Copy)]
enum Meta {
    Mark = 3,
    InputName = 6,
    OutputName = 7,
    Version = 15,
    Protocol = 16,
}

const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const VERDICT_REGISTER: u32 = 0;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const NEW: u32 = 1 << 3;
const DESTINATION_TRANSLATED: u32 = 1 << 5;
const CONNECTION_STATE: u32 = 0;
const CONNECTION_STATUS: u32 = 2;
const LOCAL: u32 = 2;
const INTERFACE_NAME: usize = 16;
const WITH_PORT: u32 = 1 << 1;
const RANDOM_PORT: u32 = 1 << 4;

/// The number of the register at this word: those of 16 bytes have names of their own.
fn register(word: usize) -> u32 {
    let word = u32::try_from(word).expect("there are 16 registers of a word");
    if word.is_multiple_of(4) {
        1 + word / 4
    } else {
        8 + word
    }
}

impl Writer<'_, '_> {
    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Version(version) => self.version(*version),
            Statement::Protocols(protocols) => match protocols.as_slice() {
                [one] => self.protocol(*one),
                _ => {
                    self.meta(Meta::Protocol, 0);
                    self.lookup(SET, Test::Is, None, true);
                }
            },
            Statement::Port(protocol, port) => {
                self.protocol(*protocol);
                self.load(Field::DestinationPort, 0);
                self.compare(Test::Is, &port.to_be_bytes());
            }
            Statement::Ranges(field, test, ranges) => self.ranges(*field, *test, ranges),
            Statement::InSet(key, test, set) => {
                self.key(key);
                self.lookup(set, *test, None, false);
            }
            Statement::Interface(direction, test, name) => {
                let mut padded = name.as_bytes().to_vec();
                padded.resize(INTERFACE_NAME, 0);
                self.interface(*direction, *test, &padded);
            }
            Statement::InterfacePrefix(direction, test, prefix) => {
                self.interface(*direction, *test, prefix.as_bytes());
            }
            Statement::NewConnection => self.connection(CONNECTION_STATE, NEW),
            Statement::Redirected => {
                self.connection(CONNECTION_STATUS, DESTINATION_TRANSLATED);
            }
            Statement::Local(end) => self.local(*end),
            Statement::AnyMark(bits) => {
                self.meta(Meta::Mark, 0);
                self.bitwise(&bits.to_ne_bytes(), &[0; 4]);
                self.compare(Test::IsNot, &[0; 4]);
            }
            Statement::AllMarks(bits) => {
                self.meta(Meta::Mark, 0);
                self.bitwise(&bits.to_ne_bytes(), &[0; 4]);
                self.compare(Test::Is, &bits.to_ne_bytes());
            }
            action => self.action(action),
        }
    }

    fn action(&mut self, action: &Statement) {
        match action {
            Statement::SetMark(bits) => self.set_mark(!bits, *bits),
            Statement::ToggleMark(bits) => self.set_mark(u32::MAX, *bits),
            Statement::Remember { set, field } => {
                self.load(*field, 0);
                self.expression("dynset", |data| {
                    data.number(4, register(0));
                    data.number(3, 1); // update
                    data.text(1, set);
                });
            }
            Statement::Lookup(key, map) => {
                self.key(key);
                self.lookup(map, Test::Is, Some(VERDICT_REGISTER), false);
            }
            Statement::Random(chains) => {
                let count = u32::try_from(chains.len()).unwrap_or(u32::MAX);
                self.expression("numgen", |data| {
                    data.number(1, register(0));
                    data.number(2, count);
                    data.number(3, 1); // random
                    data.number(4, 0);
                });
                self.lookup(MAP, Test::Is, Some(VERDICT_REGISTER), true);
            }
            Statement::Redirect(to) => {
                self.immediate(register(0), &octets(to.ip()));
                self.immediate(register(4), &to.port().to_be_bytes());
                let version = Version::of(to.ip());
                self.redirect(version, register(4), Some(WITH_PORT));
            }
            Statement::RedirectBy { version, key, map } => {
                self.key(key);
                self.lookup(map, Test::Is, Some(register(0)), false);
                let port = match version {
                    Version::V4 => 1,
                    Version::V6 => 4,
                };
                self.redirect(*version, register(port), None);
            }
            Statement::Masquerade { random_port } => self.expression("masq", |data| {
                if *random_port {
                    data.number(1, RANDOM_PORT);
                }
            }),
            Statement::Reject => {
                // Port unreachable, by the version's number; both: the kernel's own.
                let (kind, code) = match self.known {
                    Some(Version::V4) => (0, 3),
                    Some(Version::V6) => (0, 4),
                    None => (2, 1),
                };
                self.reject(kind, code);
            }
            Statement::Reset => self.reject(1, 0),
            Statement::Verdict(verdict) => self.expression("immediate", |data| {
                data.number(1, VERDICT_REGISTER);
                data.nested(2, |value| put_verdict(verdict, value));
            }),
            _ => unreachable!("`statement` handles the others"),
        }
    }

    fn expression(&mut self, name: &str, fill: impl FnOnce(&mut Attributes<'_>)) {
        self.list.nested(kernel::LIST_ELEMENT, |expression| {
            expression.text(rule::EXPRESSION_NAME, name);
            expression.nested(rule::EXPRESSION_DATA, fill);
        });
    }

    /// Tables of both versions check it before they look into an IP header.
    fn version(&mut self, version: Version) {
        if self.known == Some(version) {
            return;
        }
        self.known = Some(version);
        self.meta(Meta::Version, 0);
        self.compare(Test::Is, &[version.address_family()]);
    }

    fn protocol(&mut self, protocol: Protocol) {
        self.meta(Meta::Protocol, 0);
        self.compare(Test::Is, &[kernel::protocol(protocol)]);
    }

    /// Loads the parts of a key, one behind the other.
    fn key(&mut self, key: &[Field]) {
        let mut word = 0;
        for field in key {
            word += self.load(*field, word);
        }
    }

    /// Loads a part of the packet to a word of the registers; returns how many words it takes.
    fn load(&mut self, field: Field, word: usize) -> usize {
        if let Some(version) = version_of(field) {
            self.version(version);
        }
        if matches!(field, Field::Protocol) {
            self.meta(Meta::Protocol, word);
            return 1;
        }

        let (base, offset, length) = place(field);
        self.payload(base, offset, length, word);
        length.div_ceil(WORD)
    }

    fn payload(&mut self, base: u32, offset: u32, length: usize, word: usize) {
        self.expression("payload", |data| {
            data.number(1, register(word));
            data.number(2, base);
            data.number(3, offset);
            data.number(4, number(length));
        });
    }

    fn meta(&mut self, key: Meta, word: usize) {
        self.expression("meta", |data| {
            data.number(2, key as u32);
            data.number(1, register(word));
        });
    }

    fn compare(&mut self, test: Test, value: &[u8]) {
        self.expression("cmp", |data| {
            data.number(1, register(0));
            data.number(
                2,
                match test {
                    Test::Is => EQUAL,
                    Test::IsNot => NOT_EQUAL,
                },
            );
            data.nested(3, |inner| inner.put(data::VALUE, value));
        });
    }

    fn bitwise(&mut self, and: &[u8], xor: &[u8]) {
        self.expression("bitwise", |data| {
            data.number(1, register(0));
            data.number(2, register(0));
            data.number(3, number(and.len()));
            data.nested(4, |inner| inner.put(data::VALUE, and));
            data.nested(5, |inner| inner.put(data::VALUE, xor));
        });
    }

    /// Looks registers up in a set, or in a map, whose value goes to a register.
    fn lookup(&mut self, name: &str, test: Test, to: Option<u32>, is_anonymous: bool) {
        let id = is_anonymous.then(|| {
            self.sets
                .next()
                .expect("`anonymous` found a set for each of these statements")
        });

        self.expression("lookup", |data| {
            data.number(2, register(0));
            if let Some(to) = to {
                data.number(3, to);
            }
            data.text(1, name);
            if let Some(id) = id {
                data.number(4, id);
            }
            if test == Test::IsNot {
                data.number(5, 1);
            }
        });
    }

    /// A range that ends at a byte is compared with that many bytes.
    fn ranges(&mut self, field: Field, test: Test, ranges: &[IpNet]) {
        let [range] = ranges else {
            self.load(field, 0);
            return self.lookup(SET, test, None, true);
        };
        if let Some(version) = version_of(field) {
            self.version(version);
        }

        let (base, offset, length) = place(field);
        let network = octets(range.network());
        let prefix = usize::from(range.prefix_len());
        if prefix > 0 && prefix.is_multiple_of(8) {
            self.payload(base, offset, prefix / 8, 0);
            self.compare(test, &network[..prefix / 8]);
        } else {
            self.payload(base, offset, length, 0);
            self.bitwise(&octets(range.netmask()), &vec![0; length]);
            self.compare(test, &network);
        }
    }

    fn interface(&mut self, direction: Direction, test: Test, name: &[u8]) {
        let key = match direction {
            Direction::In => Meta::InputName,
            Direction::Out => Meta::OutputName,
        };
        self.meta(key, 0);
        self.compare(test, name);
    }

    fn connection(&mut self, key: u32, bits: u32) {
        self.expression("ct", |data| {
            data.number(2, key);
            data.number(1, register(0));
        });
        self.bitwise(&bits.to_ne_bytes(), &[0; 4]);
        self.compare(Test::IsNot, &[0; 4]);
    }

    fn local(&mut self, end: End) {
        let flags = match end {
            End::Source => 1,
            End::Destination => 2,
        };
        self.expression("fib", |data| {
            data.number(3, flags);
            data.number(2, 3); // the type of address
            data.number(1, register(0));
        });
        self.compare(Test::Is, &LOCAL.to_ne_bytes());
    }

    fn set_mark(&mut self, and: u32, xor: u32) {
        self.meta(Meta::Mark, 0);
        self.bitwise(&and.to_ne_bytes(), &xor.to_ne_bytes());
        self.expression("meta", |data| {
            data.number(2, Meta::Mark as u32);
            data.number(3, register(0));
        });
    }

    fn immediate(&mut self, to: u32, value: &[u8]) {
        self.expression("immediate", |data| {
            data.number(1, to);
            data.nested(2, |inner| inner.put(data::VALUE, value));
        });
    }

    fn redirect(&mut self, version: Version, port: u32, flags: Option<u32>) {
        self.expression("nat", |data| {
            data.number(1, 1); // the destination
            data.number(2, u32::from(version.address_family()));
            data.number(3, register(0));
            data.number(5, port);
            if let Some(flags) = flags {
                data.number(7, flags);
            }
        });
    }

    fn reject(&mut self, kind: u32, code: u8) {
        self.expression("reject", |data| {
            data.number(1, kind);
            data.put(2, &[code]);
        });
    }
}

/// Where a field is: header, offset and length.
fn place(field: Field) -> (u32, u32, usize) {
    match field {
        Field::Source(Version::V4) => (NETWORK_HEADER, 12, 4),
        Field::Destination(Version::V4) => (NETWORK_HEADER, 16, 4),
        Field::Source(Version::V6) => (NETWORK_HEADER, 8, 16),
        Field::Destination(Version::V6) => (NETWORK_HEADER, 24, 16),
        Field::DestinationPort => (TRANSPORT_HEADER, 2, 2),
        Field::Protocol => (NETWORK_HEADER, 9, 1),
    }
}

fn number(length: usize) -> u32 {
    u32::try_from(length).expect("a value has a few bytes")
}
