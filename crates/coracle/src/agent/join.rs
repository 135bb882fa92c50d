//! How a node joins: it checks the CA of the cluster by the hash in its token, learns the settings
//! of the cluster, and gets a client certificate of its own.

use coracle_api::Value;
use coracle_api::codec::yaml;
use coracle_base::error_chain;
use coracle_client::config::{Credentials, Pem, Token};
use coracle_client::{Access, Client, Config, ConfigError, Error, Resource};
use coracle_kubelet::certificates::{self, CertificateStore};
use http::Uri;

use super::known::{self, Known, KnownError};
use crate::instance::Instance;
use crate::server::join::server_in;
use crate::token::{BadToken, JoinToken, authority_hash};
use crate::world::WORLD;

/// The name that is in the certificates of all servers of a cluster.
pub(super) const SERVER_NAME: &str = "kubernetes";

/// Why a node cannot join.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("--server {0:?}: must be https://HOST[:PORT]")]
    Server(String),
    #[error(transparent)]
    Token(#[from] BadToken),
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
    #[error("cannot reach the cluster at {server}")]
    Unreachable { server: String, source: Error },
    #[error("the server does not describe its cluster: {0}")]
    Incomplete(String),
    #[error(
        "the CA of the server is not that of the token (its hash is {found}): --server is another cluster, or somebody \
         answers in its place"
    )]
    OtherAuthority { found: String },
    #[error(
        "the server does not accept the token: it is wrong, has expired or was deleted; make one with `coracle token create`"
    )]
    Refused,
    #[error("the token may not be used to join: {0}")]
    NotPermitted(String),
    #[error(
        "the cluster has a node named {0}; use another --node-name, or remove that node with `coracle node remove {0}`"
    )]
    Exists(String),
    #[error(transparent)]
    Certificate(#[from] certificates::CertificateError),
    #[error(transparent)]
    Known(#[from] KnownError),
}

/// Joins the cluster of a server. What is learnt and the certificate are in the data directory
/// afterwards.
pub(super) async fn join(
    instance: &Instance,
    server: &str,
    token: &JoinToken,
    node: &str,
) -> Result<Known, JoinError> {
    let address = address(server)?;
    let authority = authority(server, token).await?;
    let client = Client::connect(
        Config {
            server: server.to_owned(),
            server_name: Some(SERVER_NAME.to_owned()),
            authorities: Some(Pem::Content(authority.clone())),
            credentials: Credentials {
                token: Token::Fixed(token.bearer()),
                ..Credentials::default()
            },
            ..Config::default()
        },
        WORLD,
    )
    .await?
    .named("coracle-agent");

    let known = learn(&client, server, address, node).await?;
    known::write(&known::authority(instance), &authority)?;
    let store = CertificateStore::client(&known::pki(instance));
    certificates::bootstrap::first(&client, node, &store).await?;
    known.write(instance)?;
    Ok(known)
}

/// Host and port of a server's URL.
fn address(server: &str) -> Result<(String, u16), JoinError> {
    let wrong = || JoinError::Server(server.to_owned());
    let uri: Uri = server.parse().map_err(|_| wrong())?;
    let is_plain = uri.scheme_str() == Some("https") && matches!(uri.path(), "" | "/");
    let host = uri.host().filter(|_| is_plain).ok_or_else(wrong)?;
    let host = host.trim_matches(|bracket| matches!(bracket, '[' | ']'));
    Ok((host.to_owned(), uri.port_u16().unwrap_or(443)))
}

/// The CA of the cluster. Who answers is not known yet; the hash in the token decides whether the CA
/// is the right one, and every further connection is verified with it.
async fn authority(server: &str, token: &JoinToken) -> Result<Vec<u8>, JoinError> {
    let anyone = Client::connect(
        Config {
            server: server.to_owned(),
            insecure: true,
            ..Config::default()
        },
        WORLD,
    )
    .await?;
    let access = config_maps(&anyone, "kube-public");
    let info = access
        .get("cluster-info")
        .await
        .map_err(|source| JoinError::Unreachable {
            server: server.to_owned(),
            source,
        })?;

    let cluster = server_in(&info).map_err(JoinError::Incomplete)?;
    let pem = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        &cluster.certificate_authority_data,
    );
    let pem = pem.map_err(|error| JoinError::Incomplete(error.to_string()))?;
    let found = authority_hash(&pem).map_err(JoinError::Incomplete)?;
    match found == token.authority {
        // Further certificates beside the one that was checked would be trusted, too.
        true => first_certificate(&pem).map_err(JoinError::Incomplete),
        false => Err(JoinError::OtherAuthority { found }),
    }
}

/// The first certificate of a PEM text, as a text of its own.
fn first_certificate(pem: &[u8]) -> Result<Vec<u8>, String> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = str::from_utf8(pem).map_err(|error| error.to_string())?;
    let begin = text.find("-----BEGIN CERTIFICATE-----");
    let end = text.find(END).map(|end| end + END.len());
    match (begin, end) {
        (Some(begin), Some(end)) if begin < end => Ok(format!("{}\n", &text[begin..end]).into()),
        _ => Err("no certificate".to_owned()),
    }
}

fn config_maps(client: &Client, namespace: &str) -> Access {
    client
        .resource(&Resource::builtin("", "v1", "configmaps"))
        .namespace(namespace)
}

/// The settings of the cluster, as nodes read them; and whether the name of the node is free.
async fn learn(
    client: &Client,
    server: &str,
    address: (String, u16),
    node: &str,
) -> Result<Known, JoinError> {
    let failed = |error: Error| match error.status().map(|status| status.code) {
        Some(401) => JoinError::Refused,
        Some(403) => JoinError::NotPermitted(error_chain(&error)),
        _ => JoinError::Unreachable {
            server: server.to_owned(),
            source: error,
        },
    };
    let read = async |name: &str, entry: &str| {
        let found = config_maps(client, "kube-system").get(name).await;
        let found = found.map_err(failed)?;
        let text = found.at(&["data", entry]).and_then(Value::as_str);
        yaml::decode(text.unwrap_or_default().as_bytes())
            .map_err(|error| JoinError::Incomplete(format!("{name}: {error}")))
    };

    let cluster = read("kubeadm-config", "ClusterConfiguration").await?;
    let kubelet = read("kubelet-config", "kubelet").await?;
    let nodes = client.resource(&Resource::builtin("", "v1", "nodes"));
    if nodes.find(node).await.map_err(failed)?.is_some() {
        return Err(JoinError::Exists(node.to_owned()));
    }

    let range = |name: &str| {
        let text = cluster.at(&["networking", name]).and_then(Value::as_str);
        let parsed = text.and_then(|text| text.parse().ok());
        parsed.ok_or_else(|| JoinError::Incomplete(format!("kubeadm-config has no {name}")))
    };
    let dns = kubelet.get("clusterDNS").and_then(Value::as_array);
    let domain = cluster.at(&["networking", "dnsDomain"]);
    Ok(Known {
        node_name: node.to_owned(),
        servers: vec![address],
        cluster_cidr: range("podSubnet")?,
        service_cidr: range("serviceSubnet")?,
        cluster_domain: domain
            .and_then(Value::as_str)
            .unwrap_or("cluster.local")
            .to_owned(),
        cluster_dns: dns
            .into_iter()
            .flatten()
            .filter_map(|address| address.as_str()?.parse().ok())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_an_address_and_a_port() {
        let check = |text: &str, expected: Option<(&str, u16)>| {
            let found = address(text).ok();
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(found, expected, "{text}");
        };
        check("https://192.0.2.1:6443", Some(("192.0.2.1", 6443)));
        check("https://a.example/", Some(("a.example", 443)));
        check("https://[fd00::1]:6443", Some(("fd00::1", 6443)));
        check("http://192.0.2.1:6443", None);
        check("192.0.2.1:6443", None);
        check("https://192.0.2.1:6443/path", None);
    }

    #[test]
    fn only_the_certificate_that_was_checked_is_trusted() {
        let one = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
        let two = format!("{one}-----BEGIN CERTIFICATE-----\nYg==\n-----END CERTIFICATE-----\n");
        assert_eq!(first_certificate(two.as_bytes()).unwrap(), one.as_bytes());
        assert!(first_certificate(b"text").is_err());
    }
}
