//! What browsers are told: origins, and that HTTPS is required.

use coracle_apiserver::Browsers;
use http::HeaderValue;
use regex::Regex;

use super::options::Options;

pub(super) fn complete(options: &Options, mistakes: &mut Vec<String>) -> Browsers {
    let given = options.cors_allowed_origins.iter();
    let origins = given.filter_map(|text| {
        origin(text)
            .map_err(|why| mistakes.push(format!("--cors-allowed-origins: {why}: {text:?}")))
            .ok()
    });
    let origins = origins.collect();

    let directives = &options.transport_directives;
    if !directives.iter().all(|directive| is_directive(directive)) {
        mistakes.push(
            "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, \
             preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
                .to_owned(),
        );
    }
    let transport = match directives.is_empty() {
        true => None,
        false => HeaderValue::from_str(&directives.join("; ")).ok(),
    };

    Browsers { origins, transport }
}

/// A pattern of origins, which must not be found in the middle of a host.
fn origin(text: &str) -> Result<Regex, String> {
    let pattern = Regex::new(text).map_err(|error| error.to_string())?;
    let starts = text.contains('^') || text.contains("//");
    let ends = text.contains('$') || text.contains(':');
    match starts && ends {
        true => Ok(pattern),
        false => Err(
            "regular expression does not pin to start/end of host in the origin header".to_owned(),
        ),
    }
}

fn is_directive(text: &str) -> bool {
    let age = text.strip_prefix("max-age=");
    matches!(text, "includeSubDomains" | "preload") || age.is_some_and(|age| !age.contains('='))
}
