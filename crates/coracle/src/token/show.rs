//! The table of tokens, with kubeadm's columns.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::time::{Time, Timestamp};

const COLUMNS: [&str; 6] = [
    "TOKEN",
    "TTL",
    "EXPIRES",
    "USAGES",
    "DESCRIPTION",
    "EXTRA GROUPS",
];

pub(super) fn table(secrets: &[Value], now: Timestamp) -> String {
    let mut rows: Vec<[String; 6]> = secrets.iter().map(|secret| row(secret, now)).collect();
    rows.sort();
    rows.insert(0, COLUMNS.map(str::to_owned));

    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("   ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

fn row(secret: &Value, now: Timestamp) -> [String; 6] {
    let entry = |name: &str| {
        let text = secret.at(&["data", name]).and_then(Value::as_str);
        let bytes = STANDARD
            .decode(text.unwrap_or_default())
            .unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let shown = |text: String| match text.is_empty() {
        true => "<none>".to_owned(),
        false => text,
    };

    let expires = entry("expiration");
    let (ttl, expires) = match (expires.is_empty(), Time::parse(&expires)) {
        (true, _) => ("<forever>".to_owned(), "<never>".to_owned()),
        (false, Ok(at)) if at.0 > now => (at.0.since(now).human().to_string(), expires),
        (false, Ok(_)) => ("<expired>".to_owned(), expires),
        (false, Err(_)) => ("<invalid>".to_owned(), expires),
    };

    let usages = ["authentication", "signing"];
    let usages = usages
        .into_iter()
        .filter(|usage| entry(&format!("usage-bootstrap-{usage}")) == "true");
    [
        format!("{}.{}", entry("token-id"), entry("token-secret")),
        ttl,
        expires,
        shown(usages.collect::<Vec<_>>().join(",")),
        shown(entry("description")),
        shown(entry("auth-extra-groups")),
    ]
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    #[test]
    fn tokens_are_shown_with_what_is_left_of_their_life() {
        let secret = |expiration: &str| {
            let text = format!(
                "{{data: {{token-id: {}, token-secret: {}, usage-bootstrap-signing: {}, expiration: {}}}}}",
                STANDARD.encode("abcdef"),
                STANDARD.encode("0123456789abcdef"),
                STANDARD.encode("true"),
                STANDARD.encode(expiration),
            );
            yaml::decode(text.as_bytes()).unwrap()
        };
        let check = |expiration: &str, ttl: &str| {
            let now = Time::parse("2026-01-01T00:00:00Z").unwrap().0;
            let table = table(&[secret(expiration)], now);
            let line = table.lines().nth(1).unwrap();
            let cells: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(cells[..2], ["abcdef.0123456789abcdef", ttl], "{line}");
            assert_eq!(cells[3], "signing");
        };

        check("", "<forever>");
        check("2026-01-01T02:00:00Z", "120m");
        check("2025-12-31T00:00:00Z", "<expired>");
        check("soon", "<invalid>");
    }
}
