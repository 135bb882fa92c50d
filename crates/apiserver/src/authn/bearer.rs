//! Bearer tokens. Nobody issues any yet, so that every token is a wrong one: it is refused, and its sender is never
//! taken for somebody who said nothing.

use async_trait::async_trait;
use http::{HeaderMap, header};

use super::{Authenticator, Opinion, Presented};

pub struct BearerTokens;

#[async_trait]
impl Authenticator for BearerTokens {
    async fn authenticate(&self, presented: &Presented<'_>) -> Opinion {
        match token(presented.headers) {
            None => Opinion::Unknown,
            Some(_) => Opinion::Wrong("invalid bearer token".to_string()),
        }
    }
}

/// The token of a request. Other schemes (Basic) are not ours to judge, and an empty token is none.
fn token(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = text.splitn(3, ' ');
    let scheme = parts.next()?;
    parts.next().filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(text: &'static str, expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
        assert_eq!(token(&headers), expected, "{text:?}");
    }

    #[test]
    fn tokens_are_found_as_upstream_finds_them() {
        check("Bearer abc", Some("abc"));
        check(" bEARER abc ", Some("abc"));
        check("Bearer abc def", Some("abc"));
        check("Bearer", None);
        check("Bearer  abc", None);
        check("Basic abc", None);
        assert_eq!(token(&HeaderMap::new()), None);
    }
}
