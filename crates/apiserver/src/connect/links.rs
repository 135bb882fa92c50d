//! Rewrites the links of a proxied HTML page: a link to a path of the backend becomes one to that
//! path below the proxy's.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

/// Elements and those of their attributes that are URLs. Upstream's list, after HTML 4 and 5.
const URLS: [(&[u8], &[&[u8]]); 25] = [
    (b"a", &[b"href"]),
    (b"applet", &[b"codebase"]),
    (b"area", &[b"href"]),
    (b"audio", &[b"src"]),
    (b"base", &[b"href"]),
    (b"blockquote", &[b"cite"]),
    (b"body", &[b"background"]),
    (b"button", &[b"formaction"]),
    (b"command", &[b"icon"]),
    (b"del", &[b"cite"]),
    (b"embed", &[b"src"]),
    (b"form", &[b"action"]),
    (b"frame", &[b"longdesc", b"src"]),
    (b"head", &[b"profile"]),
    (b"html", &[b"manifest"]),
    (b"iframe", &[b"longdesc", b"src"]),
    (b"img", &[b"longdesc", b"src", b"usemap"]),
    (b"input", &[b"src", b"usemap", b"formaction"]),
    (b"ins", &[b"cite"]),
    (b"link", &[b"href"]),
    (b"object", &[b"classid", b"codebase", b"data", b"usemap"]),
    (b"q", &[b"cite"]),
    (b"script", &[b"src"]),
    (b"source", &[b"src"]),
    (b"video", &[b"poster", b"src"]),
];

/// How a page was reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    /// The proxy's path, without a slash at its end.
    pub(super) prefix: &'a str,
    /// `host:port` of the backend.
    pub(super) backend: &'a str,
    /// The host that the client requested.
    pub(super) requested: &'a str,
}

impl Page<'_> {
    /// The page with its links rewritten. Everything but the tags of these links stays as it is.
    pub(super) fn rewrite(&self, html: &[u8]) -> Vec<u8> {
        let mut emitter = DefaultEmitter::<usize>::new_with_span();
        emitter.naively_switch_states(true);
        let mut out = Vec::with_capacity(html.len() + html.len() / 8);
        let mut done = 0;
        for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
            let Token::StartTag(mut tag) = token else {
                continue;
            };
            let (start, end) = (tag.span.start, tag.span.end);
            if !self.rewrite_tag(&mut tag) || start < done {
                continue;
            }
            out.extend_from_slice(&html[done..start]);
            write_tag(&tag, &mut out);
            done = end;
        }
        out.extend_from_slice(&html[done..]);
        out
    }

    /// Whether the tag had a link to rewrite.
    fn rewrite_tag(&self, tag: &mut StartTag<usize>) -> bool {
        let Some((_, names)) = URLS
            .iter()
            .find(|(element, _)| *element == tag.name.as_slice())
        else {
            return false;
        };

        let mut changed = false;
        for (name, value) in &mut tag.attributes {
            if !names.iter().any(|known| *known == name.as_slice()) {
                continue;
            }
            let link = std::str::from_utf8(value)
                .ok()
                .and_then(|url| self.link(url));
            if let Some(link) = link {
                value.value = link.into_bytes().into();
                changed = true;
            }
        }
        changed
    }

    /// A link as the client reaches it; `None`: it stays as it is.
    fn link(&self, url: &str) -> Option<String> {
        let (scheme, rest) = match url.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
            _ => ("", url),
        };
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
            None if scheme.is_empty() => ("", rest),
            None => return None,
        };

        let is_elsewhere = !host.is_empty() && host != self.backend && host != self.requested;
        if is_elsewhere || !path.starts_with('/') {
            return None;
        }

        // A link to the host by which the client came leads there still.
        let origin = match (host, scheme) {
            (host, _) if host.is_empty() || host != self.requested => String::new(),
            (host, "") => format!("//{host}"),
            (host, scheme) => format!("{scheme}://{host}"),
        };
        let prefix = if path.starts_with(self.prefix) {
            ""
        } else {
            self.prefix
        };
        Some(format!("{origin}{prefix}{path}"))
    }
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn write_tag(tag: &StartTag<usize>, out: &mut Vec<u8>) {
    out.push(b'<');
    out.extend_from_slice(&tag.name);
    for (name, value) in &tag.attributes {
        out.push(b' ');
        out.extend_from_slice(name);
        out.extend_from_slice(b"=\"");
        for byte in value.iter() {
            match byte {
                b'&' => out.extend_from_slice(b"&amp;"),
                b'"' => out.extend_from_slice(b"&#34;"),
                b'<' => out.extend_from_slice(b"&lt;"),
                b'>' => out.extend_from_slice(b"&gt;"),
                byte => out.push(*byte),
            }
        }
        out.push(b'"');
    }
    out.extend_from_slice(if tag.self_closing { b"/>" } else { b">" });
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page<'_> = Page {
        prefix: "/api/v1/namespaces/a/pods/b/proxy",
        backend: "10.0.0.7:8080",
        requested: "cluster:6443",
    };

    #[test]
    fn links_to_the_backend_lead_through_the_proxy() {
        let check = |url: &str, expected: Option<&str>| {
            let expected = expected.map(|rest| rest.replace('~', PAGE.prefix));
            assert_eq!(PAGE.link(url), expected, "{url}");
        };

        check("/x?q=1#f", Some("~/x?q=1#f"));
        check("http://10.0.0.7:8080/x/", Some("~/x/"));
        check("//10.0.0.7:8080/x", Some("~/x"));
        check("https://cluster:6443/x", Some("https://cluster:6443~/x"));
        check("/api/v1/namespaces/a/pods/b/proxy/x", Some("~/x"));
        check("https://elsewhere.example/x", None);
        check("//elsewhere.example/x", None);
        check("relative/x", None);
        check("?q=/x", None);
        check("mailto:/x", None);
        check("", None);
    }

    #[test]
    fn only_tags_with_such_links_change() {
        let check = |html: &str, expected: &str| {
            let found = PAGE.rewrite(html.as_bytes());
            let expected = expected.replace('~', PAGE.prefix);
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{html}");
        };

        check(r#"<a href="/x">t</a>"#, r#"<a href="~/x">t</a>"#);
        check(
            "<A class=c HREF='/x?a&amp;b'>t</A>",
            r#"<a class="c" href="~/x?a&amp;b">t</A>"#,
        );
        check("<img src=/i.png/><br/>", r#"<img src="~/i.png/"><br/>"#);
        check("<img src='/i.png'/>é", r#"<img src="~/i.png"/>é"#);
        check("é<a href=/x>é</a>", r#"é<a href="~/x">é</a>"#);

        for unchanged in [
            "<!-- <a href='/x'> --> <p title='/x'>&lt;a href=\"/x\"&gt;</p>",
            "<script>if (a<b) w('<a href=\"/x\">')</script>",
            "<style>a { b: url(/x) }</style><a href='y'>",
            "<a href='/x",
            "a < b <",
            "",
        ] {
            check(unchanged, unchanged);
        }
    }

    #[test]
    fn whatever_the_page_a_rewritten_one_does_not_change_again() {
        let mut seed = 7_u64;
        for _ in 0..2_000 {
            let mut html = Vec::new();
            for _ in 0..40 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let pieces: [&[u8]; 12] = [
                    b"<a ", b"href", b"=", b"\"", b"'", b"/x", b">", b"<!--", b"-->", b"\xff",
                    b"<script", b" ",
                ];
                html.extend_from_slice(pieces[usize::try_from(seed >> 33).unwrap() % pieces.len()]);
            }
            let once = PAGE.rewrite(&html);
            assert_eq!(
                PAGE.rewrite(&once),
                once,
                "{}",
                String::from_utf8_lossy(&html)
            );
        }
    }
}
