//! Validation of names, keys and label values, with upstream's messages.
//!
//! Every rule takes the text and returns a list of messages, empty for a valid name. Callers put
//! each message after `Invalid value: "…"`. `dns` has the names of objects and hosts, `keys`
//! labels, ports, variables and the like, `path` everything with slashes; `generate` generates
//! names.

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

/// Validation messages. Empty: valid.
pub type Messages = Vec<&'static str>;

/// A rule for a whole name.
pub type Rule = fn(&str) -> Messages;

/// Validates a `generateName`: the suffix is not known yet, so it may end in a dash.
pub fn generate_name(prefix: &str, rule: Rule) -> Messages {
    let Some(rest) = prefix.strip_suffix('-').filter(|rest| !rest.is_empty()) else {
        return rule(prefix);
    };
    // Upstream masks the dash together with the byte before it. Part of a multi-byte character
    // stays invalid.
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
