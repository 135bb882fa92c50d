//! URLs as Go's `net/url` parses them, with its texts.

use std::collections::BTreeMap;

use coracle_api::go_text::Quoted;

/// A parsed URL.
#[derive(Clone, Debug, Default)]
pub struct Url {
    pub(super) scheme: String,
    pub(super) host: String,
    user: Option<String>,
    opaque: String,
    /// Unescaped.
    path: Vec<u8>,
    /// As written, where that is not what escaping would make of it.
    raw_path: String,
    raw_query: Option<String>,
    fragment: Option<String>,
}

/// What Go's `ParseRequestURI` says against a text; none if it is valid.
pub(in crate::library) fn request_error(text: &str) -> Option<String> {
    parse(text, true).err().map(|why| refused(text, &why))
}

fn refused(text: &str, why: &str) -> String {
    format!("parse {}: {why}", Quoted(text))
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, String> {
        if let Some(why) = request_error(text) {
            return Err(why);
        }
        let (before, fragment) = match text.split_once('#') {
            Some((before, fragment)) => (before, Some(fragment)),
            None => (text, None),
        };
        let mut url = parse(before, false).map_err(|why| refused(before, &why))?;
        if let Some(fragment) = fragment.filter(|fragment| !fragment.is_empty()) {
            unescape(fragment, Part::Path).map_err(|why| refused(text, &why))?;
            url.fragment = Some(fragment.to_owned());
        }
        Ok(url)
    }

    pub(super) fn hostname(&self) -> &str {
        self.split_host().0
    }

    pub(super) fn port(&self) -> &str {
        self.split_host().1
    }

    fn split_host(&self) -> (&str, &str) {
        let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match self.host.rsplit_once(':') {
            Some((host, port)) if digits(port) => (host, port),
            _ => (self.host.as_str(), ""),
        };
        let inside = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (inside.unwrap_or(host), port)
    }

    pub(super) fn escaped_path(&self) -> String {
        let valid = !self.raw_path.is_empty()
            && self.raw_path.bytes().all(is_path_byte)
            && unescape(&self.raw_path, Part::Path).is_ok_and(|path| path == self.path);
        if valid {
            return self.raw_path.clone();
        }
        if self.path == b"*" {
            return "*".to_owned();
        }
        escape_path(&self.path)
    }

    /// The query's parameters; what is malformed is left out.
    pub(super) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for part in self.raw_query.as_deref().unwrap_or("").split('&') {
            if part.is_empty() || part.contains(';') {
                continue;
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let text = |part: &str| {
                let bytes = unescape(part, Part::Query).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            };
            if let (Some(name), Some(value)) = (text(name), text(value)) {
                parameters.entry(name).or_default().push(value);
            }
        }
        parameters
    }

    /// The URL's text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            let authority = !self.host.is_empty() || self.user.is_some();
            if authority || (!self.scheme.is_empty() && self.path.starts_with(b"//")) {
                out.push_str("//");
            }
            if let Some(user) = &self.user {
                out.push_str(user);
                out.push('@');
            }
            escape_host(&self.host, &mut out);
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            out.push_str(&path);
        } else {
            out.push_str(&self.opaque);
        }
        if let Some(query) = &self.raw_query {
            out.push('?');
            out.push_str(query);
        }
        if let Some(fragment) = &self.fragment {
            out.push('#');
            out.push_str(fragment);
        }
        out
    }
}

fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }

    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let rest = match rest.split_once('?') {
        Some((before, query)) => {
            url.raw_query = Some(query.to_owned());
            before
        }
        None => rest,
    };
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        let first = rest.split('/').next().unwrap_or("");
        if first.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }

    let mut path = rest;
    let has_authority = !url.scheme.is_empty() || !request && !rest.starts_with("///");
    if has_authority && let Some(behind) = rest.strip_prefix("//") {
        let (authority, behind) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
        parse_authority(&mut url, authority)?;
        path = behind;
    }
    url.path = unescape(path, Part::Path)?;
    if escape_path(&url.path) != path {
        url.raw_path = path.to_owned();
    }
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(url: &mut Url, text: &str) -> Result<(), String> {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    url.host = parse_host(host, &url.scheme)?;
    let Some(user) = user else { return Ok(()) };
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    for part in user.splitn(2, ':') {
        unescape(part, Part::Path)?;
    }
    url.user = Some(user.to_owned());
    Ok(())
}

fn parse_host(host: &str, scheme: &str) -> Result<String, String> {
    let open = host.rfind('[');
    match open {
        Some(0) => {
            let Some(end) = host.rfind(']') else {
                return Err("missing ']' in host".to_owned());
            };
            check_port(&host[end + 1..])?;
            let inside = &host[1..end];
            let (address, zone) = match inside.split_once("%25") {
                Some((address, zone)) => (address, Some(zone)),
                None => (inside, None),
            };
            let unescaped = unescape_text(address, Part::Host)?;
            if let Some(zone) = zone {
                unescape(zone, Part::Zone)?;
            }
            if unescaped.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!(
                    "invalid host: ParseAddr({}): unable to parse IP",
                    Quoted(&unescaped)
                ));
            }
            unescape_text(host, Part::Zone)
        }
        Some(_) => Err("invalid IP-literal".to_owned()),
        None => {
            let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
            let colon = if web { host.find(':') } else { host.rfind(':') };
            if let Some(at) = colon {
                check_port(&host[at..])?;
            }
            unescape_text(host, Part::Host)
        }
    }
}

fn check_port(port: &str) -> Result<(), String> {
    let good = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    if good {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", Quoted(port)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Query,
    Host,
    Zone,
}

fn unescape_text(text: &str, part: Part) -> Result<String, String> {
    unescape(text, part).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let digits = bytes.get(at + 1..at + 3);
                let value = digits
                    .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(value) = value else {
                    let wrong = String::from_utf8_lossy(&bytes[at..(at + 3).min(bytes.len())]);
                    return Err(format!("invalid URL escape {}", Quoted(&wrong)));
                };
                if part == Part::Host && value < 0x80 && &bytes[at..at + 3] != b"%25" {
                    return Err(format!("invalid URL escape {}", Quoted(&text[at..at + 3])));
                }
                out.push(value);
                at += 3;
            }
            b'+' if part == Part::Query => {
                out.push(b' ');
                at += 1;
            }
            byte => {
                let host = matches!(part, Part::Host | Part::Zone);
                if host && byte < 0x80 && !is_host_byte(byte) {
                    return Err(format!(
                        "invalid character {} in host name",
                        Quoted(&char::from(byte).to_string())
                    ));
                }
                out.push(byte);
                at += 1;
            }
        }
    }
    Ok(out)
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@/[]%".contains(&byte)
}

/// In the text of a URL, a host has only what hosts have unescaped.
fn escape_host(host: &str, out: &mut String) {
    for byte in host.bytes() {
        if is_host_byte(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

fn escape_path(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path {
        let plain = byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
        if plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
