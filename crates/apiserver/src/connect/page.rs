//! The body of a proxied HTML page: read whole, decompressed, its links rewritten.

use std::io::{self, Read, Write};

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::read::{DeflateDecoder, GzDecoder};
use flate2::write::{DeflateEncoder, GzEncoder};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use hyper::body::Frame;

use super::links::Page;
use crate::answer::{Answer, BrokenOff};

/// The longest page whose links are rewritten, compressed or not. A longer one passes as it is.
const LONGEST: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Plain,
    Gzip,
    Deflate,
}

/// The response with the links of its body rewritten, if it is an HTML page.
pub(super) async fn with_links(answer: Answer, page: Page<'_>) -> Answer {
    let Some(coding) = coding(answer.headers()) else {
        return answer;
    };
    let (mut head, body) = answer.into_parts();

    let mut frames = BodyStream::new(body);
    let mut content = BytesMut::new();
    while content.len() <= LONGEST
        && let Some(frame) = frames.next().await
    {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => content.extend_from_slice(&data),
            Ok(Err(_trailers)) => {}
            Err(broken) => {
                return Answer::from_parts(head, begun(content.freeze(), Some(broken), frames));
            }
        }
    }
    let content = content.freeze();
    if content.len() > LONGEST {
        return Answer::from_parts(head, begun(content, None, frames));
    }

    let rewritten = decode(coding, &content)
        .map(|html| page.rewrite(&html))
        .and_then(|html| encode(coding, &html));
    let content = rewritten.map_or(content, Bytes::from);
    head.headers.remove(header::CONTENT_LENGTH);
    Answer::from_parts(
        head,
        Full::new(content)
            .map_err(|never| match never {})
            .boxed_unsync(),
    )
}

/// A body of which `content` has been read.
fn begun(
    content: Bytes,
    broken: Option<BrokenOff>,
    rest: BodyStream<crate::answer::Body>,
) -> crate::answer::Body {
    let begin = [Some(Ok(Frame::data(content))), broken.map(Err)];
    let begin = stream::iter(begin.into_iter().flatten());
    StreamBody::new(begin.chain(rest)).boxed_unsync()
}

/// How a page is compressed. `None`: it is no page, or its form is unknown.
fn coding(headers: &HeaderMap) -> Option<Coding> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let media_type = text(header::CONTENT_TYPE)?.split(';').next()?.trim();
    if !media_type.eq_ignore_ascii_case("text/html") {
        return None;
    }
    match text(header::CONTENT_ENCODING).unwrap_or_default() {
        "" => Some(Coding::Plain),
        "gzip" => Some(Coding::Gzip),
        "deflate" => Some(Coding::Deflate),
        _ => None,
    }
}

fn decode(coding: Coding, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut html = Vec::new();
    let limit = LONGEST as u64 + 1;
    match coding {
        Coding::Plain => html.extend_from_slice(content),
        Coding::Gzip => drop(GzDecoder::new(content).take(limit).read_to_end(&mut html)?),
        Coding::Deflate => drop(
            DeflateDecoder::new(content)
                .take(limit)
                .read_to_end(&mut html)?,
        ),
    }
    if html.len() > LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the page is too long",
        ));
    }
    Ok(html)
}

fn encode(coding: Coding, html: &[u8]) -> io::Result<Vec<u8>> {
    match coding {
        Coding::Plain => Ok(html.to_vec()),
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(html)?;
            encoder.finish()
        }
        Coding::Deflate => {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(html)?;
            encoder.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::answer;

    const PAGE: Page<'_> = Page {
        prefix: "/proxy",
        backend: "10.0.0.7:80",
        requested: "cluster:6443",
    };

    fn page(content: Vec<u8>, content_type: &'static str, coding: &'static str) -> Answer {
        let mut answer = answer::bytes(http::StatusCode::OK, content_type, content);
        if !coding.is_empty() {
            let coding = HeaderValue::from_static(coding);
            answer
                .headers_mut()
                .insert(header::CONTENT_ENCODING, coding);
        }
        answer
    }

    async fn body(answer: Answer) -> Vec<u8> {
        answer
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .to_vec()
    }

    #[tokio::test]
    async fn pages_are_rewritten_in_whatever_form_they_are_sent() {
        let (html, expected) = (br#"<a href="/x">"#, br#"<a href="/proxy/x">"#);
        for (name, coding) in [
            ("", Coding::Plain),
            ("gzip", Coding::Gzip),
            ("deflate", Coding::Deflate),
        ] {
            let sent = page(
                encode(coding, html).unwrap(),
                "text/html; charset=utf-8",
                name,
            );
            let found = body(with_links(sent, PAGE).await).await;
            assert_eq!(decode(coding, &found).unwrap(), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn pages_of_other_types_are_not_rewritten() {
        let html = br#"<a href="/x">"#.to_vec();
        let long = [html.clone(), vec![b' '; LONGEST]].concat();
        let bomb = encode(Coding::Gzip, &long).unwrap();
        for (content, content_type, coding) in [
            (html.clone(), "text/plain", ""),
            (html.clone(), "text/html", "br"),
            (html, "text/html", "gzip"),
            (long, "text/html", ""),
            (bomb, "text/html", "gzip"),
        ] {
            let length = content.len();
            let sent = page(content.clone(), content_type, coding);
            let found = body(with_links(sent, PAGE).await).await;
            assert!(found == content, "{content_type} {coding}, {length} bytes");
        }
    }
}
