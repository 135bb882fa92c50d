//! A PKCS#10 request, and what the Kubernetes signers require of it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::certificate_subject::CertificateSubject;
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

/// A parsed certificate request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The subject, DER-encoded as it will be in the certificate.
    pub subject: Vec<u8>,
    /// The public key, DER-encoded as it will be in the certificate.
    pub key: Vec<u8>,
    /// The subject's common name: the user.
    pub common_name: String,
    /// The subject's organizations: the user's groups.
    pub organizations: Vec<String>,
    /// The subject alternative names.
    pub names: Names,
}

/// Subject alternative names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// DNS names.
    pub dns: Vec<String>,
    /// Email addresses.
    pub emails: Vec<String>,
    /// IP addresses.
    pub addresses: Vec<IpAddr>,
    /// URIs.
    pub uris: Vec<String>,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is not PEM of the expected type.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Pem,
    /// It is not a valid PKCS#10 request.
    #[error("not a certificate request")]
    Malformed,
}

impl Request {
    /// Parses the request of a CertificateSigningRequest.
    ///
    /// # Errors
    /// It is malformed.
    pub fn of(object: &Value) -> Result<Request, RequestError> {
        let text = object
            .at(&["spec", "request"])
            .and_then(Value::as_str)
            .unwrap_or_default();
        let pem = STANDARD.decode(text).map_err(|_| RequestError::Pem)?;
        let der =
            CertificateSigningRequestDer::from_pem_slice(&pem).map_err(|_| RequestError::Pem)?;

        let (_, read) =
            X509CertificationRequest::from_der(&der).map_err(|_| RequestError::Malformed)?;
        let info = &read.certification_request_info;
        let subject = CertificateSubject::from_der(info.subject.as_raw())
            .map_err(|_| RequestError::Malformed)?;

        let mut names = Names::default();
        for extension in read.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(others) = extension {
                others.general_names.iter().for_each(|name| names.add(name));
            }
        }

        Ok(Request {
            subject: info.subject.as_raw().to_vec(),
            key: info.subject_pki.raw.to_vec(),
            common_name: subject.common_name,
            organizations: subject.organizations,
            names,
        })
    }

    /// Why this is not a request for a kubelet client certificate; `None` if it is.
    pub fn why_not_kubelet_client(&self, usages: &BTreeSet<&str>) -> Option<String> {
        let Names {
            dns,
            emails,
            addresses,
            uris,
        } = &self.names;

        if self.organizations != ["system:nodes"] {
            return Some("subject organization is not system:nodes".to_string());
        }

        let unwanted = [
            (!dns.is_empty(), "DNS subjectAltNames are not allowed"),
            (!emails.is_empty(), "Email subjectAltNames are not allowed"),
            (!addresses.is_empty(), "IP subjectAltNames are not allowed"),
            (!uris.is_empty(), "URI subjectAltNames are not allowed"),
            (
                !self.is_node(),
                "subject common name does not begin with system:node:",
            ),
        ];

        let unwanted = unwanted
            .into_iter()
            .find(|(is_so, _)| *is_so)
            .map(|(_, why)| why.to_string());

        unwanted.or_else(|| usage_mismatch(usages, "client auth"))
    }

    /// Why this is not a request for a kubelet serving certificate; `None` if it is.
    pub fn why_not_kubelet_server(&self, usages: &BTreeSet<&str>) -> Option<String> {
        let Names {
            dns,
            emails,
            addresses,
            uris,
        } = &self.names;

        if self.organizations != ["system:nodes"] {
            return Some("subject organization is not system:nodes".to_string());
        }

        let unwanted = [
            (
                dns.is_empty() && addresses.is_empty(),
                "DNS or IP subjectAltName is required",
            ),
            (!emails.is_empty(), "Email subjectAltNames are not allowed"),
            (!uris.is_empty(), "URI subjectAltNames are not allowed"),
        ];

        let unwanted = unwanted
            .into_iter()
            .find(|(is_so, _)| *is_so)
            .map(|(_, why)| why.to_string());

        let unnamed = (!self.is_node())
            .then(|| "subject common name does not begin with system:node:".to_string());

        unwanted
            .or_else(|| usage_mismatch(usages, "server auth"))
            .or(unnamed)
    }

    fn is_node(&self) -> bool {
        self.common_name.starts_with("system:node:")
    }
}

impl Names {
    /// Adds a name; kinds of names that certificates here do not have are ignored.
    fn add(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns.push((*name).to_string()),
            GeneralName::RFC822Name(name) => self.emails.push((*name).to_string()),
            GeneralName::URI(name) => self.uris.push((*name).to_string()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                self.addresses.extend(address.ok());
            }
            _ => {}
        }
    }
}

/// The usages that a request asks for.
pub fn usages(object: &Value) -> BTreeSet<&str> {
    let usages = object
        .at(&["spec", "usages"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    usages.iter().filter_map(Value::as_str).collect()
}

/// Keys that only sign do not need key encipherment.
fn usage_mismatch(usages: &BTreeSet<&str>, purpose: &str) -> Option<String> {
    let all = BTreeSet::from(["digital signature", "key encipherment", purpose]);
    let less = BTreeSet::from(["digital signature", purpose]);
    let sorted: Vec<&str> = all.iter().copied().collect();
    (*usages != all && *usages != less)
        .then(|| format!("usages did not match [{}]", sorted.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Request {
        Request {
            common_name: "system:node:n".to_string(),
            organizations: vec!["system:nodes".to_string()],
            ..Request::default()
        }
    }

    #[test]
    fn kubelet_requests_match_exactly() {
        let usages = |more: &[&'static str]| more.iter().copied().collect::<BTreeSet<&str>>();
        let client = usages(&["digital signature", "client auth"]);

        let check = |request: &Request, usages: &BTreeSet<&str>, expected: Option<&str>| {
            assert_eq!(request.why_not_kubelet_client(usages).as_deref(), expected);
        };
        check(&node(), &client, None);
        check(
            &node(),
            &usages(&["digital signature", "key encipherment", "client auth"]),
            None,
        );

        let wrong = "usages did not match [client auth digital signature key encipherment]";
        check(
            &node(),
            &usages(&["digital signature", "server auth"]),
            Some(wrong),
        );

        let master = Request {
            organizations: vec!["system:nodes".into(), "system:masters".into()],
            ..node()
        };

        check(
            &master,
            &client,
            Some("subject organization is not system:nodes"),
        );

        let user = Request {
            common_name: "jane".into(),
            ..node()
        };

        check(
            &user,
            &client,
            Some("subject common name does not begin with system:node:"),
        );

        let host = Request {
            names: Names {
                dns: vec!["h".into()],
                ..Names::default()
            },
            ..node()
        };
        check(&host, &client, Some("DNS subjectAltNames are not allowed"));

        let server = usages(&["digital signature", "server auth"]);
        assert_eq!(host.why_not_kubelet_server(&server), None);

        let nameless = Some("DNS or IP subjectAltName is required".to_string());
        assert_eq!(node().why_not_kubelet_server(&server), nameless);

        let wrong = Some(
            "usages did not match [digital signature key encipherment server auth]".to_string(),
        );
        assert_eq!(host.why_not_kubelet_server(&client), wrong);
    }
}
