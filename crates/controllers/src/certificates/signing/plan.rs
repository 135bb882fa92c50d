//! Which requests are signed, and for how long. Pure.

use coracle_api::Value;
use coracle_api::time::Timestamp;

use super::super::has;
use super::super::request::{Request, RequestError, usages};

/// Certificates are valid from a little before now, for clocks that are behind.
const BACKDATE: i64 = 5 * 60;
/// Certificates shorter than this are not shortened by the backdating.
const SHORT: i64 = 8 * 3600;
/// The shortest validity.
const LEAST: i64 = 10 * 60;

/// A signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signer {
    /// Serving certificates of kubelets.
    KubeletServing,
    /// Client certificates of kubelets.
    KubeletClient,
    /// Client certificates of the API server.
    ApiServerClient,
    /// The legacy signer without restrictions.
    LegacyUnknown,
}

impl Signer {
    /// All of them.
    pub const ALL: [Signer; 4] = [
        Signer::KubeletServing,
        Signer::KubeletClient,
        Signer::ApiServerClient,
        Signer::LegacyUnknown,
    ];

    /// Its name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Signer::KubeletServing => "kubernetes.io/kubelet-serving",
            Signer::KubeletClient => "kubernetes.io/kube-apiserver-client-kubelet",
            Signer::ApiServerClient => "kubernetes.io/kube-apiserver-client",
            Signer::LegacyUnknown => "kubernetes.io/legacy-unknown",
        }
    }
}

/// What to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Mark it as failed, with this message.
    Fail(String),
    /// Sign it.
    Sign(Signer, Box<Request>),
}

/// Decides about a request.
///
/// # Errors
/// It is malformed.
pub fn plan(object: &Value) -> Result<Plan, RequestError> {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default();
    let is_wanted = has(object, "Approved") && !has(object, "Denied") && !has(object, "Failed");
    if !is_wanted || !text(&["status", "certificate"]).is_empty() {
        return Ok(Plan::Keep);
    }

    let name = text(&["spec", "signerName"]);
    let Some(signer) = Signer::ALL.into_iter().find(|signer| signer.name() == name) else {
        return Ok(Plan::Keep);
    };

    let (request, usages) = (Request::of(object)?, usages(object));
    let wrong = match signer {
        Signer::KubeletServing => request.why_not_kubelet_server(&usages),
        Signer::KubeletClient => request.why_not_kubelet_client(&usages),
        Signer::ApiServerClient => why_not_client(usages.iter().copied()),
        Signer::LegacyUnknown => None,
    };

    Ok(wrong.map_or_else(|| Plan::Sign(signer, Box::new(request)), Plan::Fail))
}

fn why_not_client<'a>(usages: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut is_client = false;
    for usage in usages {
        match usage {
            "digital signature" | "key encipherment" => {}
            "client auth" => is_client = true,
            other => return Some(format!("invalid usage for client certificate: {other}")),
        }
    }
    (!is_client).then(|| "missing required usage for client certificate: client auth".to_string())
}

/// The validity of a certificate that is requested for `asked` seconds and allowed for at most
/// `most`.
pub fn validity(asked: Option<i64>, most: i64, now: Timestamp) -> (Timestamp, Timestamp) {
    let lasts = asked.map_or(
        most,
        |asked| if asked > most { most } else { asked.max(LEAST) },
    );
    let end = if lasts < SHORT {
        lasts
    } else {
        lasts - BACKDATE
    };
    (now.plus_seconds(-BACKDATE), now.plus_seconds(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_valid_as_long_as_requested_and_allowed() {
        let now = Timestamp::from_unix(1_000_000, 0);
        let check = |asked, most, expected| {
            let (from, until) = validity(asked, most, now);
            assert_eq!(
                (from.since(now).as_secs(), until.since(now).as_secs()),
                (-300, expected),
                "{asked:?}"
            );
        };

        let year = 365 * 24 * 3600;
        check(None, year, year - 300);
        check(Some(3600), year, 3600);
        check(Some(60), year, 600);
        check(Some(9 * 3600), year, 9 * 3600 - 300);
        check(Some(2 * year), year, year - 300);

        // The allowed maximum wins over the minimum.
        check(Some(3600), 1800, 1800);
    }

    #[test]
    fn client_requests_need_client_usages() {
        let check = |usages: &[&str], expected: Option<&str>| {
            assert_eq!(why_not_client(usages.iter().copied()).as_deref(), expected);
        };
        check(&["client auth"], None);
        check(
            &["client auth", "digital signature", "key encipherment"],
            None,
        );

        check(
            &["digital signature"],
            Some("missing required usage for client certificate: client auth"),
        );

        check(
            &["client auth", "server auth"],
            Some("invalid usage for client certificate: server auth"),
        );
    }
}
