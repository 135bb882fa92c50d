//! When a request is deleted. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::time::{Time, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::super::conditions;

/// Decided requests are deleted after an hour.
const DECIDED_TTL: i64 = 3600;
/// Requests that were not decided, or not signed, are deleted after a day.
const PENDING_TTL: i64 = 24 * 3600;

/// When a request can be deleted; `None`: not by age.
pub fn delete_at(object: &Value) -> Option<Timestamp> {
    let certificate = object
        .at(&["status", "certificate"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    if conditions(object).next().is_none() {
        return object
            .meta()
            .creation_timestamp()
            .map(|made| made.plus_seconds(PENDING_TTL));
    }

    let moments = conditions(object).flat_map(|condition| {
        let written = Time::parse(condition.text("lastUpdateTime"))
            .ok()
            .map(|time| time.0);

        let after = |seconds: i64| written.map(|at| at.plus_seconds(seconds));
        match condition.text("type") {
            "Denied" | "Failed" => [after(DECIDED_TTL), None],
            "Approved" if certificate.is_empty() => [after(PENDING_TTL), None],
            "Approved" => [after(DECIDED_TTL), ends_at(certificate)],
            _ => [None, None],
        }
    });

    moments.flatten().min()
}

/// When a certificate expires.
fn ends_at(certificate: &str) -> Option<Timestamp> {
    let pem = STANDARD.decode(certificate).ok()?;
    let der = CertificateDer::from_pem_slice(&pem).ok()?;
    let (_, read) = X509Certificate::from_der(&der).ok()?;
    Some(Timestamp::from_unix(
        read.validity().not_after.timestamp(),
        0,
    ))
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn requests_are_deleted_when_no_longer_needed() {
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2026, 1, 1);
        let short = params
            .self_signed(&KeyPair::generate().unwrap())
            .unwrap()
            .pem();

        let check = |status: &str, expected: Option<&str>| {
            let text = format!(
                "{{metadata: {{creationTimestamp: '2026-01-01T00:00:00Z'}}, status: {status}}}"
            );

            let found = delete_at(&yaml::decode(text.as_bytes()).unwrap());
            assert_eq!(
                found.map(|at| Time(at).text().to_string()).as_deref(),
                expected,
                "{status}"
            );
        };

        let condition = |kind: &str| {
            format!("conditions: [{{type: {kind}, lastUpdateTime: '2026-01-01T06:00:00Z'}}]")
        };
        check("{}", Some("2026-01-02T00:00:00Z"));
        check(
            &format!("{{{}}}", condition("Denied")),
            Some("2026-01-01T07:00:00Z"),
        );

        check(
            &format!("{{{}}}", condition("Failed")),
            Some("2026-01-01T07:00:00Z"),
        );

        check(
            &format!("{{{}}}", condition("Approved")),
            Some("2026-01-02T06:00:00Z"),
        );

        check(
            &format!("{{{}, certificate: YQ==}}", condition("Approved")),
            Some("2026-01-01T07:00:00Z"),
        );

        let ended = format!(
            "{{{}, certificate: {}}}",
            condition("Approved"),
            STANDARD.encode(short)
        );
        check(&ended, Some("2026-01-01T00:00:00Z"));

        check(&format!("{{{}}}", condition("Own")), None);
    }
}
