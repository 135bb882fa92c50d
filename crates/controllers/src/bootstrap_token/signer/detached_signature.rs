//! A JSON Web Signature (HS256) without the signed text, as RFC 7515 describes in its appendix F.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use crate::bootstrap_token::secret::Token;

/// The signature of a text with a token.
pub(super) fn sign(text: &str, token: &Token) -> String {
    // An ID has only letters and digits, so that nothing in it needs an escape.
    let header = format!(r#"{{"alg":"HS256","kid":"{}"}}"#, token.id);
    let header = URL_SAFE_NO_PAD.encode(header);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));

    let key = hmac::Key::new(hmac::HMAC_SHA256, token.secret.as_bytes());
    let signature = hmac::sign(&key, signed.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_upstreams() {
        let text = "Hello from the other side. I must have called a thousand times.";
        let check = |text: &str, secret: &str, expected: &str| {
            let token = Token {
                id: "joshua".to_owned(),
                secret: secret.to_owned(),
            };
            let header = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9";
            assert_eq!(sign(text, &token), format!("{header}..{expected}"));
        };

        check(
            text,
            "my voice is my passcode",
            "VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8",
        );
        check(
            "",
            "my voice is my passcode",
            "7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk",
        );
    }
}
