//! Container image names: `registry.example:5000/team/app:1.2@sha256:…`.
//!
//! Parsed with the reference grammar of the distribution project, after the normalization that
//! runtimes do: a name without a registry belongs to the default registry, and there without a
//! folder to `library/`.

/// The tag and digest of an image name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageName<'a> {
    /// The host that has it, with its port.
    pub registry: &'a str,
    pub tag: Option<&'a str>,
    /// `sha256:…`.
    pub digest: Option<&'a str>,
}

/// Maximum length of a repository, without its registry.
const LONGEST_PATH: usize = 255;
const LONGEST_TAG: usize = 128;
/// The registry of names that have none.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Prefix of names that have neither a registry nor a folder.
const LIBRARY: &str = "library/";

impl<'a> ImageName<'a> {
    /// `None`: the text is no image name.
    pub fn parse(text: &'a str) -> Option<ImageName<'a>> {
        // Sixty-four hexadecimal digits are an image ID, not a name.
        if text.len() == 64 && text.bytes().all(is_lower_hex) {
            return None;
        }

        let (domain, rest) = split_domain(text);
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };

        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };

        let completed = if domain.is_none_or(is_default) && !path.contains('/') {
            LIBRARY.len()
        } else {
            0
        };

        // What looks like a host but is none may still be a folder: `a_b.c/app`.
        let valid = domain.is_none_or(|domain| is_domain(domain) || is_path_component(domain))
            && path.split('/').all(is_path_component)
            && path.len() + completed <= LONGEST_PATH
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);

        let registry = domain
            .filter(|domain| !is_default(domain))
            .unwrap_or(DEFAULT_REGISTRY);

        valid.then_some(ImageName {
            registry,
            tag,
            digest,
        })
    }

    /// Whether it refers to the tag `latest`, explicitly or by default.
    pub fn is_latest(self) -> bool {
        match self.tag {
            Some(tag) => tag == "latest",
            None => self.digest.is_none(),
        }
    }
}

fn is_default(domain: &str) -> bool {
    matches!(domain, "docker.io" | "index.docker.io")
}

/// The registry is the part before the first slash, if it looks like a host.
fn split_domain(text: &str) -> (Option<&str>, &str) {
    match text.split_once('/') {
        Some((first, rest))
            if first == "localhost"
                || first.contains(['.', ':'])
                || first.contains(char::is_uppercase) =>
        {
            (Some(first), rest)
        }
        _ => (None, text),
    }
}

/// A host name, an IPv4 address or an IPv6 address in brackets, and perhaps a port.
fn is_domain(text: &str) -> bool {
    let (host, port) = match text
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'))
    {
        Some((address, rest)) => {
            let well_formed = !address.is_empty()
                && address
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b':');
            if !well_formed || !(rest.is_empty() || rest.starts_with(':')) {
                return false;
            }
            (None, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(text), None),
        },
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host.is_none_or(|host| host.split('.').all(is_host_component)) && port.is_none_or(is_port)
}

fn is_host_component(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    ends(text.as_bytes().first())
        && ends(text.as_bytes().last())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Lower-case letters and digits, separated by one dot, one or two underscores, or any number of
/// dashes.
fn is_path_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut separators = text.split(|letter: char| letter.is_ascii() && is_word(letter as u8));
    let (first, last) = (text.bytes().next(), text.bytes().last());
    first.is_some_and(is_word)
        && last.is_some_and(is_word)
        && separators.all(|between| {
            matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= LONGEST_TAG
        && text.bytes().next().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// One of the three algorithms, and as many digits as it yields.
fn is_digest(text: &str) -> bool {
    let Some((algorithm, digits)) = text.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    digits.len() == length && digits.bytes().all(is_lower_hex)
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn check(names: &[&str], expected: Option<bool>) {
        for name in names {
            assert_eq!(
                ImageName::parse(name).map(ImageName::is_latest),
                expected,
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_name_with_the_tag_latest_or_without_a_tag_is_latest() {
        check(
            &[
                "app",
                "team/app",
                "localhost/app",
                "reg.example:5000/a/b",
                "[::1]:5000/a",
                "UPPER/a",
            ],
            Some(true),
        );

        check(
            &[
                "app:latest",
                "reg.example/app:latest",
                "a__b/c--d.e_f",
                "a_b.c/app",
                "Reg.Example/app",
            ],
            Some(true),
        );

        check(&[&format!("app:latest@{DIGEST}")], Some(true));
    }

    #[test]
    fn a_name_with_another_tag_or_a_digest_is_not() {
        check(
            &[
                "app:1",
                "reg.example:5000/a:v1.2-rc_3",
                "app:Latest",
                "app:_",
            ],
            Some(false),
        );

        check(
            &[&format!("app@{DIGEST}"), &format!("app:1@{DIGEST}")],
            Some(false),
        );
    }

    #[test]
    fn names_outside_the_grammar_are_refused() {
        check(
            &[
                "",
                " app",
                "app ",
                "App",
                "team/App:1",
                "a//b",
                "a/",
                "/a",
                "-a",
                "a-",
                "a..b",
                "a___b",
            ],
            None,
        );

        check(
            &[
                "app:",
                "app:-1",
                "app:a:b",
                "reg.example:x/a",
                "-.example/a",
                "[::1/a",
                "[]/a",
                "é",
            ],
            None,
        );

        check(
            &[
                "app@",
                "app@sha256:00",
                "app@md5:00000000000000000000000000000000",
                "app@sha256",
            ],
            None,
        );

        check(
            &[
                &DIGEST[7..],
                &DIGEST.to_uppercase(),
                &"a".repeat(256),
                &format!("a:{}", "b".repeat(129)),
            ],
            None,
        );

        check(&[&format!("app@{}", DIGEST.replace('0', "A"))], None);
        check(
            &[
                "a".repeat(248).as_str(),
                &format!("reg.example/{}", "a".repeat(256)),
            ],
            None,
        );

        check(
            &[
                "a".repeat(247).as_str(),
                &format!("reg.example/{}", "a".repeat(255)),
            ],
            Some(true),
        );
    }
}
