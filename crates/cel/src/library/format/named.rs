//! What the formats are.

use coracle_api::names;
use coracle_api::schema::Format;

use crate::library::urls::request_error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedFormat {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    Datetime,
}

/// Lengths of upstream's patterns.
const UUID_PATTERN: u64 = 70;
const DATE_TIME_PATTERN: u64 = 71;

impl NamedFormat {
    pub(super) fn named(name: &str) -> Option<NamedFormat> {
        Some(match name {
            "dns1123Label" => NamedFormat::Dns1123Label,
            "dns1123Subdomain" => NamedFormat::Dns1123Subdomain,
            "dns1035Label" => NamedFormat::Dns1035Label,
            "qualifiedName" => NamedFormat::QualifiedName,
            "dns1123LabelPrefix" => NamedFormat::Dns1123LabelPrefix,
            "dns1123SubdomainPrefix" => NamedFormat::Dns1123SubdomainPrefix,
            "dns1035LabelPrefix" => NamedFormat::Dns1035LabelPrefix,
            "labelValue" => NamedFormat::LabelValue,
            "uri" => NamedFormat::Uri,
            "uuid" => NamedFormat::Uuid,
            "byte" => NamedFormat::Byte,
            "date" => NamedFormat::Date,
            "datetime" => NamedFormat::Datetime,
            _ => return None,
        })
    }

    /// The size of the pattern that validation costs.
    pub(crate) fn pattern_size(self) -> u64 {
        match self {
            NamedFormat::Dns1123Label
            | NamedFormat::Dns1035Label
            | NamedFormat::Dns1123LabelPrefix
            | NamedFormat::Dns1035LabelPrefix => 30,
            NamedFormat::Dns1123Subdomain
            | NamedFormat::QualifiedName
            | NamedFormat::Dns1123SubdomainPrefix => 60,
            NamedFormat::LabelValue => 40,
            NamedFormat::Uri => 1103,
            NamedFormat::Uuid => UUID_PATTERN,
            NamedFormat::Byte => 84,
            NamedFormat::Date | NamedFormat::Datetime => DATE_TIME_PATTERN,
        }
    }

    /// What is wrong with a text; empty if nothing is.
    pub(super) fn validate(self, text: &str) -> Vec<String> {
        let one = |valid: bool, message: &str| {
            if valid {
                Vec::new()
            } else {
                vec![message.to_owned()]
            }
        };
        let is = |format: &str| Format::named(format).is_some_and(|format| format.matches(text));

        match self {
            NamedFormat::Dns1123Label => all(names::dns1123_label(text)),
            NamedFormat::Dns1123Subdomain => all(names::dns1123_subdomain(text)),
            NamedFormat::Dns1035Label => all(names::dns1035_label(text)),
            NamedFormat::QualifiedName => all(names::qualified_name(text)),
            NamedFormat::LabelValue => all(names::label_value(text)),
            NamedFormat::Dns1123LabelPrefix => {
                all(names::generate_name(text, names::dns1123_label))
            }
            NamedFormat::Dns1123SubdomainPrefix => {
                all(names::generate_name(text, names::dns1123_subdomain))
            }
            NamedFormat::Dns1035LabelPrefix => {
                all(names::generate_name(text, names::dns1035_label))
            }
            NamedFormat::Uri => request_error(text).into_iter().collect(),
            NamedFormat::Uuid => one(is("uuid"), "does not match the UUID format"),
            NamedFormat::Byte => one(is("byte"), "invalid base64"),
            NamedFormat::Date => one(is("date"), "invalid date"),
            NamedFormat::Datetime => one(is("date-time"), "invalid datetime"),
        }
    }
}

fn all(messages: names::Messages) -> Vec<String> {
    messages.into_iter().map(str::to_owned).collect()
}
