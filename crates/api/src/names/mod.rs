//! What may be called what: the rules for names, keys and label values, with upstream's words for
//! breaking them.
//!
//! Every rule takes the text and returns what is wrong with it: a list of messages, empty for a
//! good name. Callers put each message behind `Invalid value: "…"`. `dns` has the names of objects
//! and hosts, `keys` labels, ports, variables and the like, `path` everything with slashes,
//! `generate` makes names.

mod dns;
mod generate;
mod keys;
mod path;
#[cfg(test)]
mod tests;

pub use dns::{
    dns1035_label, dns1123_label, dns1123_subdomain, dns1123_subdomain_with_underscore,
    fully_qualified_domain_name, fully_qualified_name, wildcard_dns1123_subdomain,
};
pub use generate::generate;
pub use keys::{
    c_identifier, config_map_key, decimal_integer, env_var_name, http_header_name, label_value,
    percent, port_name, port_number, qualified_name, relaxed_env_var_name,
};
pub use path::{
    absolute_path, domain_prefixed_path, path_segment_name, path_segment_prefix,
    path_without_backsteps, relative_path,
};

/// What is wrong with a text. Empty: nothing.
pub type Messages = Vec<&'static str>;

/// A rule that a whole name must keep.
pub type Rule = fn(&str) -> Messages;

/// Checks a `generateName`: what follows it is not known yet, so a dash may stand at its end.
pub fn generate_name(prefix: &str, rule: Rule) -> Messages {
    let Some(rest) = prefix.strip_suffix('-').filter(|rest| !rest.is_empty()) else {
        return rule(prefix);
    };
    // Upstream masks the dash together with the byte before it. A part of a longer character stays
    // what it was: bad.
    match rest.get(..rest.len() - 1) {
        Some(rest) => rule(&format!("{rest}a")),
        None => rule(rest),
    }
}

/// The messages of those conditions that do not hold.
fn unless(conditions: impl IntoIterator<Item = (bool, &'static str)>) -> Messages {
    conditions
        .into_iter()
        .filter(|(holds, _)| !holds)
        .map(|(_, message)| message)
        .collect()
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}
