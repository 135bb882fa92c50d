//! Resource versions: opaque to clients, a number for us.

use std::fmt;
use std::str::FromStr;

use crate::field_error::FieldError;
use crate::go_text::{Quoted, parse_uint};
use crate::value::Path;

/// A store revision as clients see it. Zero means "any", as in a list that may come from the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

impl FromStr for ResourceVersion {
    type Err = FieldError;

    /// The empty text is zero.
    fn from_str(text: &str) -> Result<ResourceVersion, FieldError> {
        if text.is_empty() {
            return Ok(ResourceVersion(0));
        }
        parse_uint(text).map(ResourceVersion).map_err(|cause| {
            let detail = format!("strconv.ParseUint: parsing {}: {cause}", Quoted(text));
            FieldError::invalid_str(&Path::Root.field("resourceVersion"), text, detail)
        })
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_version_is_a_number_or_nothing() {
        assert_eq!("".parse(), Ok(ResourceVersion(0)));
        assert_eq!("0".parse(), Ok(ResourceVersion(0)));
        assert_eq!(
            "18446744073709551615".parse(),
            Ok(ResourceVersion(u64::MAX))
        );
        assert_eq!(ResourceVersion(42).to_string(), "42");
    }

    #[test]
    fn anything_else_is_refused_in_upstreams_words() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                text.parse::<ResourceVersion>().unwrap_err().to_string(),
                expected
            );
        };

        let abc = r#"resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#;
        check("abc", abc);
        check(
            "-1",
            r#"resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax"#,
        );

        let large = r#"resourceVersion: Invalid value: "18446744073709551616": strconv.ParseUint: parsing "18446744073709551616": value out of range"#;
        check("18446744073709551616", large);
    }
}
