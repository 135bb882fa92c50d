//! String formats, such as `format: ipv4`. The set of formats, and what each accepts, is
//! upstream's.

mod code;
mod email;
mod host;
mod moment;
mod uri;

use super::node::{Type, Types};
use crate::names;

/// A format of strings that upstream validates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

/// Names without their dashes, which upstream ignores.
const NAMES: [(&str, Format); 26] = [
    ("bsonobjectid", Format::BsonObjectId),
    ("byte", Format::Byte),
    ("cidr", Format::Cidr),
    ("creditcard", Format::CreditCard),
    ("date", Format::Date),
    ("datetime", Format::DateTime),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("hexcolor", Format::HexColor),
    ("hostname", Format::Hostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("isbn", Format::Isbn),
    ("isbn10", Format::Isbn10),
    ("isbn13", Format::Isbn13),
    ("k8slongname", Format::LongName),
    ("k8sshortname", Format::ShortName),
    ("mac", Format::Mac),
    ("password", Format::Password),
    ("rgbcolor", Format::RgbColor),
    ("ssn", Format::Ssn),
    ("uri", Format::Uri),
    ("uuid", Format::Uuid),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
];

impl Format {
    /// The format of that name, ignoring dashes.
    pub fn named(name: &str) -> Option<Format> {
        let plain = name.replace('-', "");
        NAMES
            .iter()
            .find(|(known, _)| *known == plain)
            .map(|(_, format)| *format)
    }

    /// Whether a format applies to values of these types. Others are ignored.
    pub fn is_supported(name: &str, types: &Types) -> bool {
        match types {
            Types::Any | Types::IntOrString | Types::One(Type::String) => {
                Format::named(name).is_some()
            }
            Types::One(Type::Integer) => matches!(name, "int32" | "int64"),
            Types::One(Type::Number) => matches!(name, "float" | "double"),
            _ => false,
        }
    }

    /// Whether a text is of this format.
    pub fn matches(self, text: &str) -> bool {
        match self {
            Format::BsonObjectId => {
                text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Format::Byte => code::is_base64(text),
            Format::Cidr => host::is_cidr(text),
            Format::CreditCard => code::is_credit_card(text),
            Format::Date => moment::is_date(text),
            Format::DateTime => moment::is_date_time(text),
            Format::Duration => moment::is_duration(text),
            Format::Email => email::is_email(text),
            Format::HexColor => code::is_hex_color(text),
            Format::Hostname => host::is_hostname(text),
            Format::Ipv4 => host::is_ipv4(text),
            Format::Ipv6 => host::is_ipv6(text),
            Format::Isbn => code::is_isbn10(text) || code::is_isbn13(text),
            Format::Isbn10 => code::is_isbn10(text),
            Format::Isbn13 => code::is_isbn13(text),
            Format::LongName => names::dns1123_subdomain(text).is_empty(),
            Format::Mac => host::is_mac(text),
            Format::Password => true,
            Format::RgbColor => code::is_rgb_color(text),
            Format::ShortName => names::dns1123_label(text).is_empty(),
            Format::Ssn => code::is_ssn(text),
            Format::Uri => uri::is_request_uri(text),
            Format::Uuid => code::is_uuid(text, None, false),
            Format::Uuid3 => code::is_uuid(text, Some(b'3'), false),
            Format::Uuid4 => code::is_uuid(text, Some(b'4'), true),
            Format::Uuid5 => code::is_uuid(text, Some(b'5'), true),
        }
    }
}
