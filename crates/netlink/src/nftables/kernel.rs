//! Numbers of the kernel's headers `nfnetlink.h` and `nf_tables.h`, by what they belong to.

use super::rule::{ChainKind, Family, Point};
use super::set::Protocol;

pub(super) const SUBSYSTEM: u16 = 10;
pub(super) const BATCH_BEGIN: u16 = 16;
pub(super) const BATCH_END: u16 = 17;
pub(super) const BATCH_GENERATION: u16 = 1;
/// The multicast group of changes.
pub(super) const CHANGES: u32 = 1 << 6;
/// The attributes of lists.
pub(super) const LIST_ELEMENT: u16 = 1;

/// Types of messages, without the subsystem.
pub(super) mod message {
    pub(in super::super) const NEW_TABLE: u16 = 0;
    pub(in super::super) const GET_TABLE: u16 = 1;
    pub(in super::super) const DELETE_TABLE: u16 = 2;
    pub(in super::super) const NEW_CHAIN: u16 = 3;
    pub(in super::super) const GET_CHAIN: u16 = 4;
    pub(in super::super) const DELETE_CHAIN: u16 = 5;
    pub(in super::super) const NEW_RULE: u16 = 6;
    pub(in super::super) const GET_RULE: u16 = 7;
    pub(in super::super) const DELETE_RULE: u16 = 8;
    pub(in super::super) const NEW_SET: u16 = 9;
    pub(in super::super) const DELETE_SET: u16 = 11;
    pub(in super::super) const NEW_ELEMENTS: u16 = 12;
    pub(in super::super) const DELETE_ELEMENTS: u16 = 14;
    pub(in super::super) const GET_GENERATION: u16 = 16;
}

pub(super) mod table {
    pub(in super::super) const NAME: u16 = 1;
    pub(in super::super) const FLAGS: u16 = 2;
}

pub(super) mod generation {
    pub(in super::super) const ID: u16 = 1;
}

pub(super) mod chain {
    pub(in super::super) const TABLE: u16 = 1;
    pub(in super::super) const NAME: u16 = 3;
    pub(in super::super) const HOOK: u16 = 4;
    pub(in super::super) const POLICY: u16 = 5;
    pub(in super::super) const KIND: u16 = 7;
    pub(in super::super) const HOOK_POINT: u16 = 1;
    pub(in super::super) const HOOK_PRIORITY: u16 = 2;
}

pub(super) mod rule {
    pub(in super::super) const TABLE: u16 = 1;
    pub(in super::super) const CHAIN: u16 = 2;
    pub(in super::super) const HANDLE: u16 = 3;
    pub(in super::super) const EXPRESSIONS: u16 = 4;
    pub(in super::super) const USER_DATA: u16 = 7;
    pub(in super::super) const EXPRESSION_NAME: u16 = 1;
    pub(in super::super) const EXPRESSION_DATA: u16 = 2;
    /// `nft`'s own: the type of a comment in a rule's user data.
    pub(in super::super) const COMMENT: u8 = 0;
}

pub(super) mod set {
    pub(in super::super) const TABLE: u16 = 1;
    pub(in super::super) const NAME: u16 = 2;
    pub(in super::super) const FLAGS: u16 = 3;
    pub(in super::super) const KEY_TYPE: u16 = 4;
    pub(in super::super) const KEY_LENGTH: u16 = 5;
    pub(in super::super) const DATA_TYPE: u16 = 6;
    pub(in super::super) const DATA_LENGTH: u16 = 7;
    pub(in super::super) const DESCRIPTION: u16 = 9;
    pub(in super::super) const ID: u16 = 10;
    pub(in super::super) const TIMEOUT: u16 = 11;
    pub(in super::super) const USER_DATA: u16 = 13;
    pub(in super::super) const SIZE: u16 = 1;
    pub(in super::super) const PARTS: u16 = 2;
    pub(in super::super) const PART_LENGTH: u16 = 1;

    pub(in super::super) const ANONYMOUS: u32 = 0x1 | 0x2; // and constant
    pub(in super::super) const INTERVAL: u32 = 0x4;
    pub(in super::super) const MAP: u32 = 0x8;
    pub(in super::super) const TIMED: u32 = 0x10;
    pub(in super::super) const DYNAMIC: u32 = 0x20;
    pub(in super::super) const CONCATENATED: u32 = 0x80;

    /// The types of values are `nft`'s own; the kernel only keeps them. Those of a concatenation
    /// are shifted by so many bits each.
    pub(in super::super) const TYPE_BITS: u32 = 6;
    pub(in super::super) const INTEGER: u32 = 4;
    pub(in super::super) const IPV4_ADDRESS: u32 = 7;
    pub(in super::super) const IPV6_ADDRESS: u32 = 8;
    pub(in super::super) const PROTOCOL: u32 = 12;
    pub(in super::super) const PORT: u32 = 13;
    pub(in super::super) const VERDICT: u32 = 0xffff_ff00;

    /// `nft`'s own, in a set's user data: the byte order of keys, and of a map's values.
    pub(in super::super) const KEY_ORDER: u8 = 0;
    pub(in super::super) const DATA_ORDER: u8 = 1;
    pub(in super::super) const ORDER_MIXED: u32 = 0;
    pub(in super::super) const ORDER_HOST: u32 = 1;
    pub(in super::super) const ORDER_NETWORK: u32 = 2;
}

pub(super) mod element {
    pub(in super::super) const TABLE: u16 = 1;
    pub(in super::super) const SET: u16 = 2;
    pub(in super::super) const LIST: u16 = 3;
    pub(in super::super) const SET_ID: u16 = 4;
    pub(in super::super) const KEY: u16 = 1;
    pub(in super::super) const DATA: u16 = 2;
    pub(in super::super) const FLAGS: u16 = 3;
    pub(in super::super) const USER_DATA: u16 = 6;
    pub(in super::super) const KEY_END: u16 = 10;
    /// The element is where a range ends.
    pub(in super::super) const RANGE_END: u32 = 1;
    /// `nft`'s own user data of a range that has no end.
    pub(in super::super) const ENDLESS: [u8; 6] = [1, 4, 1, 0, 0, 0];
}

pub(super) mod data {
    pub(in super::super) const VALUE: u16 = 1;
    pub(in super::super) const VERDICT: u16 = 2;
    pub(in super::super) const VERDICT_CODE: u16 = 1;
    pub(in super::super) const VERDICT_CHAIN: u16 = 2;
    pub(in super::super) const DROP: u32 = 0;
    pub(in super::super) const ACCEPT: u32 = 1;
    pub(in super::super) const JUMP: u32 = u32::MAX - 2; // -3
    pub(in super::super) const GOTO: u32 = u32::MAX - 3; // -4
}

pub(super) fn family(family: Family) -> u8 {
    match family {
        Family::Ip(version) => version.address_family(),
        Family::Inet => 1,
    }
}

pub(super) fn protocol(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

pub(super) fn point(point: Point) -> u32 {
    match point {
        Point::Prerouting => 0,
        Point::Input => 1,
        Point::Forward => 2,
        Point::Output => 3,
        Point::Postrouting => 4,
    }
}

pub(super) fn chain_kind(kind: ChainKind) -> &'static str {
    match kind {
        ChainKind::Filter => "filter",
        ChainKind::Nat => "nat",
    }
}
