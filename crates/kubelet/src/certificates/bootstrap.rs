//! TLS bootstrap: the first client certificate of a node, requested with other credentials, and the
//! kubeconfig that names it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::go_text::Quoted;
use coracle_api::time::Timestamp;
use coracle_base::error_chain;
use coracle_base::tls::certificates;
use coracle_client::config::Pem;
use coracle_client::{Client, Config, ConfigError, Environment, World};
use coracle_files::private;
use rcgen::KeyPair;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::request::{Purpose, request};
use super::{CertificateError, CertificateStore, new_key};

/// Delay between attempts: the API server may be down, or not know the credentials yet.
const PAUSE: Duration = Duration::from_secs(2);
/// The key that waits for its certificate: a restarted kubelet makes the same request.
const UNFINISHED_KEY: &str = "kubelet-client.key.tmp";

/// Why a node has no credentials.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    #[error("unable to load bootstrap kubeconfig")]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Ensures that `kubeconfig` names a valid client certificate of the node. If not, one is requested
/// with the credentials of `bootstrap`; waits until it is issued.
///
/// # Errors
/// A file cannot be read or written, or the request was denied.
pub async fn bootstrap(
    kubeconfig: &Path,
    bootstrap: &Path,
    folder: &Path,
    node: &str,
    world: World,
) -> Result<(), BootstrapError> {
    if is_valid(kubeconfig, world.now()) {
        return Ok(());
    }

    let config = Config::load(Some(bootstrap), None, &Environment::default())?;
    let client = Client::connect(config.clone(), world)
        .await?
        .named("kubelet");
    let store = CertificateStore::client(folder);
    first(&client, node, &store).await?;

    let text = kubeconfig_text(&config, &store.current_path());
    let fail = |source| CertificateError::File {
        file: kubeconfig.to_owned(),
        source,
    };
    Ok(private::write(kubeconfig, text.as_bytes()).map_err(fail)?)
}

/// Requests the first client certificate of a node, with a key that survives restarts of the
/// kubelet, and stores it. Retries while the API server cannot be reached or refuses the request.
///
/// # Errors
/// A file cannot be written, or the request was denied.
pub async fn first(
    client: &Client,
    node: &str,
    store: &CertificateStore,
) -> Result<(), CertificateError> {
    let folder = store.current_path();
    let folder = folder.parent().unwrap_or(Path::new("."));
    let unfinished = folder.join(UNFINISHED_KEY);
    let fail = |source| CertificateError::File {
        file: unfinished.clone(),
        source,
    };
    let key = match known_key(&unfinished) {
        Some(key) => key,
        None => {
            let key = new_key()?;
            private::folder(folder).map_err(fail)?;
            private::write(&unfinished, key.serialize_pem().as_bytes()).map_err(fail)?;
            key
        }
    };

    let world = client.world();
    let certificate = loop {
        match request(client, node, &key, &Purpose::Client, true).await {
            Err(error @ CertificateError::Api { .. }) => {
                tracing::warn!(error = %error_chain(&error), "cannot request the client certificate of the node; retrying");
                tokio::time::sleep(PAUSE.mul_f64(1.0 + 0.2 * world.fraction())).await;
            }
            other => break other?,
        }
    };

    store.update(&certificate, &key.serialize_pem(), world.now())?;
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(fail(error)),
        _ => Ok(()),
    }
}

fn known_key(file: &Path) -> Option<KeyPair> {
    KeyPair::from_pem(&fs::read_to_string(file).ok()?).ok()
}

/// Whether a kubeconfig has a client certificate of which nothing has expired.
fn is_valid(kubeconfig: &Path, now: Timestamp) -> bool {
    if !kubeconfig.exists() {
        return false;
    }

    let config = match Config::load(Some(kubeconfig), None, &Environment::default()) {
        Ok(config) => config,
        Err(error) => {
            tracing::warn!(error = %error_chain(&error), "cannot read kubeconfig; requesting a certificate");
            return false;
        }
    };
    let pem = match config.credentials.certificate {
        Some((Pem::Content(pem), _)) => Some(pem),
        Some((Pem::File(file), _)) => fs::read(file).ok(),
        None => None,
    };

    let holds = pem.is_some_and(|pem| all_hold(&pem, now));
    if !holds {
        tracing::warn!(kubeconfig = %kubeconfig.display(), "kubeconfig has no valid client certificate; requesting one");
    }
    holds
}

/// Whether there are certificates, and none has expired.
pub fn all_hold(pem: &[u8], now: Timestamp) -> bool {
    let holds = |der: &[u8]| {
        X509Certificate::from_der(der).is_ok_and(|(_, certificate)| {
            now.unix_seconds() <= certificate.validity().not_after.timestamp()
        })
    };
    certificates(pem).is_ok_and(|chain| chain.iter().all(|der| holds(der.as_ref())))
}

/// The kubeconfig that upstream's bootstrap writes.
fn kubeconfig_text(config: &Config, certificate: &Path) -> String {
    let authority = match &config.authorities {
        None => String::new(),
        Some(Pem::File(file)) => {
            let file = file.display().to_string();
            format!("    certificate-authority: {}\n", Quoted(&file))
        }
        Some(Pem::Content(pem)) => {
            format!("    certificate-authority-data: {}\n", STANDARD.encode(pem))
        }
    };
    let insecure = match config.insecure {
        true => "    insecure-skip-tls-verify: true\n",
        false => "",
    };
    let certificate = certificate.display().to_string();
    let (server, certificate) = (Quoted(&config.server), Quoted(&certificate));

    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: default-cluster\n  cluster:\n{authority}{insecure}    server: \
         {server}\nusers:\n- name: default-auth\n  user:\n    client-certificate: {certificate}\n    client-key: \
         {certificate}\ncontexts:\n- name: default-context\n  context:\n    cluster: default-cluster\n    namespace: \
         default\n    user: default-auth\ncurrent-context: default-context\npreferences: {{}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_names_server_authority_and_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubelet.conf");
        let config = Config {
            server: "https://192.0.2.1:6443".to_owned(),
            authorities: Some(Pem::Content(b"ca".to_vec())),
            ..Config::default()
        };
        let certificate = folder.path().join("pki/kubelet-client-current.pem");
        fs::write(&file, kubeconfig_text(&config, &certificate)).unwrap();

        let read = Config::load(Some(&file), None, &Environment::default()).unwrap();
        let pem = Pem::File(certificate);
        assert_eq!(read.server, config.server);
        assert_eq!(read.authorities, config.authorities);
        assert_eq!(read.credentials.certificate, Some((pem.clone(), pem)));
        assert!(!is_valid(&file, Timestamp::from_unix(0, 0)));
    }
}
