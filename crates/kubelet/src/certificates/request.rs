//! CertificateSigningRequests of a node: made, sent, and waited for.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use coracle_api::{Map, Value};
use coracle_base::tls::server::certified_key;
use coracle_client::{Client, Informer, Informers, Resource, Selection, Tasks, Whole};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _, SanType};
use ring::digest::{Context, SHA512_256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use super::CertificateError;

/// The names of a serving certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub dns: Vec<String>,
    pub addresses: Vec<IpAddr>,
}

impl Names {
    /// Those of a certificate.
    pub(super) fn of(certificate: &X509Certificate<'_>) -> Names {
        let mut names = Names::default();
        let extension = certificate.subject_alternative_name().ok().flatten();
        let all = extension.map(|extension| &extension.value.general_names);

        for name in all.into_iter().flatten() {
            match name {
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => {
                    let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                    let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                    names.addresses.extend(address.ok());
                }
                _ => {}
            }
        }
        names
    }

    /// Whether all of `others` are among these.
    pub fn include(&self, others: &Names) -> bool {
        others.dns.iter().all(|name| self.dns.contains(name))
            && others
                .addresses
                .iter()
                .all(|address| self.addresses.contains(address))
    }
}

/// What a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To go to the API server.
    Client,
    /// To serve the kubelet API under these names.
    Serving(Names),
}

impl Purpose {
    fn signer(&self) -> &'static str {
        match self {
            Purpose::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Purpose::Serving(_) => "kubernetes.io/kubelet-serving",
        }
    }

    fn usages(&self) -> [&'static str; 2] {
        match self {
            Purpose::Client => ["digital signature", "client auth"],
            Purpose::Serving(_) => ["digital signature", "server auth"],
        }
    }
}

/// The name of the first request of a node, which is the same however often the kubelet is
/// restarted: upstream's digest of the key, the subject and the usages.
fn digested_name(node: &str, key: &KeyPair) -> String {
    let mut digest = Context::new(&SHA512_256);
    let mut write = |bytes: &[u8]| {
        digest.update(URL_SAFE_NO_PAD.encode(bytes).as_bytes());
        digest.update(b"|");
    };

    write(&key.subject_public_key_info());
    write(common_name(node).as_bytes());
    write(ORGANIZATION.as_bytes());
    for usage in Purpose::Client.usages() {
        write(usage.as_bytes());
    }

    format!("node-csr-{}", URL_SAFE_NO_PAD.encode(digest.finish()))
}

const ORGANIZATION: &str = "system:nodes";

/// The user of a node.
pub fn common_name(node: &str) -> String {
    format!("system:node:{node}")
}

/// Requests a certificate and waits until it is issued: forever, if nobody approves it. With
/// `is_first` the request has the same name for the same key, and one that exists is used.
///
/// # Errors
/// The request is refused, denied or deleted.
pub async fn request(
    client: &Client,
    node: &str,
    key: &KeyPair,
    purpose: &Purpose,
    is_first: bool,
) -> Result<String, CertificateError> {
    let name = if is_first {
        digested_name(node, key)
    } else {
        String::new()
    };
    let object = object(&name, &pem(node, key, purpose)?, purpose);
    let access = client.resource(&Resource::of::<CertificateSigningRequest>());
    let api = |name: &str, source| CertificateError::Api {
        name: name.to_owned(),
        source,
    };

    let created = match access.create(&object).await {
        Err(error) if error.is_already_exists() => {
            access.get(&name).await.map_err(|error| api(&name, error))?
        }
        other => other.map_err(|error| api(&name, error))?,
    };
    let name = created.meta().name().to_owned();
    let signer = created.at(&["spec", "signerName"]).and_then(Value::as_str);
    if signer != Some(purpose.signer()) {
        return Err(CertificateError::Foreign(name));
    }

    tracing::info!(request = name, signer, "waiting for the certificate");
    let certificate = issued(client, &name, created.meta().uid()).await?;
    certified_key(certificate.as_bytes(), key.serialize_pem().as_bytes())
        .map_err(|why| CertificateError::Unusable { name, why })?;
    Ok(certificate)
}

/// The PKCS#10 request.
fn pem(node: &str, key: &KeyPair, purpose: &Purpose) -> Result<String, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, ORGANIZATION);
    params
        .distinguished_name
        .push(DnType::CommonName, common_name(node));

    if let Purpose::Serving(names) = purpose {
        for name in &names.dns {
            let name = SanType::DnsName(name.as_str().try_into()?);
            params.subject_alt_names.push(name);
        }
        let addresses = names.addresses.iter().copied().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);
    }

    Ok(params.serialize_request(key)?.pem()?)
}

/// The object of a request; without a name the server chooses one.
fn object(name: &str, pem: &str, purpose: &Purpose) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion", "certificates.k8s.io/v1");
    object.insert("kind", "CertificateSigningRequest");

    let metadata = object.object_mut("metadata");
    match name {
        "" => metadata.insert("generateName", "csr-"),
        name => metadata.insert("name", name),
    };

    let spec = object.object_mut("spec");
    spec.insert("request", STANDARD.encode(pem));
    spec.insert("signerName", purpose.signer());
    let usages: Vec<Value> = purpose.usages().into_iter().map(Value::from).collect();
    spec.insert("usages", usages);
    Value::Object(object)
}

/// Waits until a request is issued, and returns the certificate.
async fn issued(client: &Client, name: &str, uid: &str) -> Result<String, CertificateError> {
    let tasks = Tasks::new();
    let resource = Resource::of::<CertificateSigningRequest>();
    let own = Selection::all(&resource).fields(&format!("metadata.name={name}"));
    let requests: Informer<Whole> = Informers::new(client.clone(), tasks.clone()).of(own);
    let mut changes = requests.subscribe();
    requests.synced().await;

    let result = loop {
        let key = coracle_client::ObjectKey::cluster(name);
        let found = requests.get(&key).filter(|found| &*found.uid == uid);
        let Some(found) = found else {
            break Err(CertificateError::Deleted(name.to_owned()));
        };
        if let Some(outcome) = outcome(name, &found.object) {
            break outcome;
        }
        changes.next().await;
    };

    tasks.stop().await;
    result
}

/// What became of a request; `None`: nothing yet.
fn outcome(name: &str, object: &Value) -> Option<Result<String, CertificateError>> {
    let conditions = object.at(&["status", "conditions"]);
    let conditions = conditions.and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        let text = |field: &str| {
            let text = condition.get(field).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (name, reason, message) = (name.to_owned(), text("reason"), text("message"));
        match text("type").as_str() {
            "Denied" => {
                return Some(Err(CertificateError::Denied {
                    name,
                    reason,
                    message,
                }));
            }
            "Failed" => {
                return Some(Err(CertificateError::Failed {
                    name,
                    reason,
                    message,
                }));
            }
            _ => {}
        }
    }

    let certificate = object.at(&["status", "certificate"])?.as_str()?;
    let unusable = |why: String| CertificateError::Unusable {
        name: name.to_owned(),
        why,
    };
    let bytes = STANDARD.decode(certificate);
    let bytes = bytes.map_err(|error| unusable(error.to_string()));
    Some(
        bytes.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|error| unusable(error.to_string()))
        }),
    )
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    #[test]
    fn the_name_of_a_request_depends_on_key_and_node() {
        let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let name = digested_name("a", &one);
        assert_eq!(name, digested_name("a", &one));
        assert_ne!(name, digested_name("b", &one));
        assert_ne!(name, digested_name("a", &other));
        assert_eq!(name.len(), "node-csr-".len() + 43);
    }

    /// A key and the name that upstream's digest gives its request, computed with Go's library.
    #[test]
    fn the_name_of_a_request_is_upstreams() {
        let key = KeyPair::from_pem(include_str!("testdata/key.pem")).unwrap();
        let expected = include_str!("testdata/name.txt").trim();
        assert_eq!(digested_name("node-1", &key), expected);
    }

    #[test]
    fn a_request_is_pending_issued_or_refused() {
        let check = |status: &str, expected: Option<Result<&str, &str>>| {
            let object = yaml::decode(format!("status: {status}").as_bytes()).unwrap();
            let found = outcome("r", &object).map(|found| found.map_err(|why| why.to_string()));
            let expected =
                expected.map(|expected| expected.map(str::to_owned).map_err(str::to_owned));
            assert_eq!(found, expected, "{status}");
        };

        check("{}", None);
        check("{conditions: [{type: Approved}]}", None);
        check("{certificate: Y2VydA==}", Some(Ok("cert")));
        check(
            "{conditions: [{type: Denied, reason: R, message: M}]}",
            Some(Err(
                "certificate signing request r is denied, reason: R, message: M",
            )),
        );
        check(
            "{conditions: [{type: Approved}, {type: Failed, reason: R, message: M}]}",
            Some(Err(
                "certificate signing request r failed, reason: R, message: M",
            )),
        );
    }
}
