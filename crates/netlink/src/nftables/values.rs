//! Encodes the types, values and elements of sets.

use std::net::IpAddr;

use ipnet::IpNet;

use super::kernel::{self, data, element, set};
use super::rule::Verdict;
use super::set::{Data, Element, Set, SetKind, Type, Value};
use crate::message::Attributes;
use crate::{Version, octets};

/// The parts of a concatenation are padded to this.
pub(super) const WORD: usize = 4;

/// The attributes of a set besides its table, name and number.
pub(super) fn describe(of: &Set, out: &mut Attributes<'_>) {
    let is_concatenated = of.key.len() > 1;
    let flags = match &of.kind {
        SetKind::Values => 0,
        SetKind::Ranges if is_concatenated => set::INTERVAL | set::CONCATENATED,
        SetKind::Ranges => set::INTERVAL,
        SetKind::Recent(_) => set::TIMED | set::DYNAMIC,
        SetKind::Verdicts | SetKind::Map(_) => set::MAP,
    };

    out.number(set::FLAGS, flags);
    out.number(set::KEY_TYPE, type_number(&of.key));
    out.number(set::KEY_LENGTH, length(&of.key));
    let mut orders = vec![(set::KEY_ORDER, order(&of.key))];

    match &of.kind {
        SetKind::Values => {}
        SetKind::Ranges => {
            if is_concatenated {
                out.nested(set::DESCRIPTION, |description| parts(&of.key, description));
            }
        }
        SetKind::Recent(time) => {
            let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            out.put(set::TIMEOUT, &milliseconds.to_be_bytes());
        }
        SetKind::Verdicts => {
            out.number(set::DATA_TYPE, set::VERDICT);
            out.number(set::DATA_LENGTH, 0);
            orders.push((set::DATA_ORDER, set::ORDER_MIXED));
        }
        SetKind::Map(values) => {
            out.number(set::DATA_TYPE, type_number(values));
            out.number(set::DATA_LENGTH, length(values));
            orders.push((set::DATA_ORDER, order(values)));
        }
    }

    out.put(set::USER_DATA, &user_data(&orders));
}

/// `nft` prints a set by what it finds in here.
pub(super) fn user_data(orders: &[(u8, u32)]) -> Vec<u8> {
    orders
        .iter()
        .flat_map(|(kind, order)| {
            let [a, b, c, d] = order.to_ne_bytes();
            [*kind, 4, a, b, c, d]
        })
        .collect()
}

/// How long the parts of the key are.
fn parts(key: &[Type], out: &mut Attributes<'_>) {
    out.nested(set::PARTS, |list| {
        for part in key {
            list.nested(kernel::LIST_ELEMENT, |field| {
                let length = u32::try_from(size(*part)).expect("a value has a few bytes");
                field.number(set::PART_LENGTH, length);
            });
        }
    });
}

fn type_number(types: &[Type]) -> u32 {
    let number = |of: &Type| match of {
        Type::Address(Version::V4) => set::IPV4_ADDRESS,
        Type::Address(Version::V6) => set::IPV6_ADDRESS,
        Type::Protocol => set::PROTOCOL,
        Type::Port => set::PORT,
    };
    types
        .iter()
        .fold(0, |all, of| all << set::TYPE_BITS | number(of))
}

fn order(types: &[Type]) -> u32 {
    match types {
        [_] => set::ORDER_NETWORK,
        _ => set::ORDER_MIXED,
    }
}

fn length(types: &[Type]) -> u32 {
    let length = match types {
        [one] => size(*one),
        parts => parts
            .iter()
            .map(|part| size(*part).next_multiple_of(WORD))
            .sum(),
    };
    u32::try_from(length).expect("a key has a few values")
}

pub(super) fn size(of: Type) -> usize {
    match of {
        Type::Address(Version::V4) => 4,
        Type::Address(Version::V6) => 16,
        Type::Protocol => 1,
        Type::Port => 2,
    }
}

/// The element: one entry of the list, or two for a range of a set without concatenation.
pub(super) fn put_element(of: &Element, list: &mut Attributes<'_>) {
    if let [Value::Range(range)] = of.key.as_slice() {
        return put_range(*range, list);
    }

    list.nested(kernel::LIST_ELEMENT, |entry| {
        put_key(element::KEY, &of.key, First, entry);
        if of.key.iter().any(|part| matches!(part, Value::Range(_))) {
            put_key(element::KEY_END, &of.key, Last, entry);
        }

        match &of.data {
            None => {}
            Some(Data::Verdict(verdict)) => entry.nested(element::DATA, |data| {
                put_verdict(verdict, data);
            }),
            Some(Data::Values(values)) => put_key(element::DATA, values, First, entry),
        }
    });
}

/// Where the range begins, and the first address behind it, if there is one.
fn put_range(range: IpNet, list: &mut Attributes<'_>) {
    let behind = successor(range.broadcast());
    list.nested(kernel::LIST_ELEMENT, |entry| {
        entry.nested(element::KEY, |key| {
            key.put(data::VALUE, &octets(range.network()));
        });
        if behind.is_none() {
            entry.put(element::USER_DATA, &element::ENDLESS);
        }
    });

    if let Some(behind) = behind {
        list.nested(kernel::LIST_ELEMENT, |entry| {
            entry.number(element::FLAGS, element::RANGE_END);
            entry.nested(element::KEY, |key| key.put(data::VALUE, &octets(behind)));
        });
    }
}

fn successor(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(four) => four
            .to_bits()
            .checked_add(1)
            .map(|bits| IpAddr::V4(bits.into())),
        IpAddr::V6(six) => six
            .to_bits()
            .checked_add(1)
            .map(|bits| IpAddr::V6(bits.into())),
    }
}

/// Which address of a range is meant.
#[derive(Clone, Copy)]
enum Side {
    First,
    Last,
}
use Side::{First, Last};

fn put_key(kind: u16, values: &[Value], side: Side, out: &mut Attributes<'_>) {
    let mut bytes = Vec::with_capacity(64);
    for value in values {
        match value {
            Value::Address(address) => bytes.extend_from_slice(&octets(*address)),
            Value::Range(range) => bytes.extend_from_slice(&octets(match side {
                First => range.network(),
                Last => range.broadcast(),
            })),
            Value::Protocol(protocol) => bytes.push(kernel::protocol(*protocol)),
            Value::Port(port) => bytes.extend_from_slice(&port.to_be_bytes()),
        }

        if values.len() > 1 {
            bytes.resize(bytes.len().next_multiple_of(WORD), 0);
        }
    }
    out.nested(kind, |inner| inner.put(data::VALUE, &bytes));
}

pub(super) fn put_verdict(verdict: &Verdict, out: &mut Attributes<'_>) {
    let (code, chain) = match verdict {
        Verdict::Accept => (data::ACCEPT, None),
        Verdict::Drop => (data::DROP, None),
        Verdict::Jump(chain) => (data::JUMP, Some(chain)),
        Verdict::Goto(chain) => (data::GOTO, Some(chain)),
    };

    out.nested(data::VERDICT, |inner| {
        inner.number(data::VERDICT_CODE, code);
        if let Some(chain) = chain {
            inner.text(data::VERDICT_CHAIN, chain);
        }
    });
}
