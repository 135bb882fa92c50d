//! Makes the configuration of the flags, and reports all errors together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, iter};

use coracle_api::time::parse_duration;
use coracle_apiserver::serve::CertificateFiles;
use coracle_base::tls::Limits;
use coracle_settings::Mistakes;
use coracle_store::embedded::Config;
use coracle_store::etcd_server::{
    Admits, ClientRule, Clients, EtcdServerConfig, Listen, ServerTls,
};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

use super::EtcdError;
use super::listen_url::ListenUrl;
use super::options::Options;
use super::program::{ADVERTISED, LISTENED};
use crate::certificates::ensure_self_signed;
use crate::host;

/// Validated options.
pub(super) struct Settings {
    pub(super) data_dir: PathBuf,
    pub(super) config: Config,
    /// Whether writes are durable before they are acknowledged.
    pub(super) syncs: bool,
    pub(super) servers: Vec<EtcdServerConfig>,
}

/// History is kept until a client compacts it.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

pub(super) fn complete(options: &Options) -> Result<Settings, EtcdError> {
    let data_dir = match &options.data_dir {
        Some(folder) => folder.clone(),
        None => PathBuf::from(format!("{}.etcd", options.name)),
    };
    let config = check(options)?;
    let tls = tls(options, &data_dir)?;

    let calls = options.listen_client_urls.iter().map(|url| (url, false));
    let pages = options
        .listen_client_http_urls
        .iter()
        .chain(&options.listen_metrics_urls);
    let pages = pages.map(|url| (url, true));

    let servers = calls
        .chain(pages)
        .map(|(url, pages_only)| server(options, url, pages_only, tls.as_ref()));
    Ok(Settings {
        data_dir,
        config,
        syncs: !options.unsafe_no_fsync,
        servers: servers.collect(),
    })
}

fn server(
    options: &Options,
    url: &ListenUrl,
    pages_only: bool,
    tls: Option<&ServerTls>,
) -> EtcdServerConfig {
    let tls = tls.filter(|_| url.is_secure).cloned();
    if !pages_only && tls.as_ref().is_none_or(|tls| tls.clients.is_none()) {
        warn_if_open(options, url);
    }

    let default = EtcdServerConfig::new(url.listen.clone());
    EtcdServerConfig {
        tls,
        name: options.name.clone(),
        progress_every: match options.watch_progress_notify_interval {
            Duration::ZERO => default.progress_every,
            given => given,
        },
        client_urls: options.advertise_client_urls.clone(),
        peer_urls: options.initial_advertise_peer_urls.clone(),
        pages_only,
        is_open: true,
        ..default
    }
}

fn warn_if_open(options: &Options, url: &ListenUrl) {
    let text = &url.text;
    if !url.is_secure && (options.client_cert_auth || options.cert_file.is_some()) {
        tracing::warn!(
            url = text,
            "scheme is HTTP: TLS and client certificates are not used for this URL"
        );
    }
    match &url.listen {
        Listen::Tcp(address) if !address.ip().is_loopback() => {
            tracing::warn!(
                url = text,
                "everyone who reaches this address can read and write the store; require client certificates with --trusted-ca-file"
            );
        }
        Listen::Tcp(_) | Listen::Unix(_) => {}
    }
}

/// Checks everything but files.
fn check(options: &Options) -> Result<Config, Mistakes> {
    let mut mistakes = Vec::new();
    let urls =
        |urls: &[ListenUrl]| -> Vec<String> { urls.iter().map(|url| url.text.clone()).collect() };
    if options.listen_client_urls.is_empty() {
        mistakes.push("--listen-client-urls must not be empty".to_owned());
    }
    if urls(&options.listen_client_urls) != [LISTENED]
        && options.advertise_client_urls == [ADVERTISED]
    {
        mistakes.push(
            "--advertise-client-urls is required when --listen-client-urls is set explicitly"
                .to_owned(),
        );
    }

    check_cluster(options, &mut mistakes);
    check_tls(options, &mut mistakes);
    let config = Config {
        request_bytes: options.max_request_bytes,
        ..history(options, &mut mistakes)
    };
    match mistakes.is_empty() {
        true => Ok(config),
        false => Err(Mistakes(mistakes)),
    }
}

fn check_cluster(options: &Options, mistakes: &mut Vec<String>) {
    let members = options.initial_cluster.iter();
    let others = members.filter(|member| {
        let name = member.split('=').next().unwrap_or_default();
        name != options.name && name != "default"
    });
    for other in others {
        mistakes.push(format!(
            "--initial-cluster names another member, {other:?}: this program is a cluster of one member"
        ));
    }

    if !matches!(options.initial_cluster_state.as_str(), "new" | "existing") {
        mistakes.push(format!(
            "invalid value {:?} for flag --initial-cluster-state: valid values include \"new\", \"existing\"",
            options.initial_cluster_state
        ));
    }
}

fn check_tls(options: &Options, mistakes: &mut Vec<String>) {
    let has_certificate = match (&options.cert_file, &options.key_file) {
        (Some(_), Some(_)) => true,
        (None, None) => options.auto_tls,
        _ => {
            mistakes.push("--cert-file and --key-file must be specified together".to_owned());
            true
        }
    };
    let urls = [
        &options.listen_client_urls,
        &options.listen_client_http_urls,
        &options.listen_metrics_urls,
    ];
    let secure = urls.into_iter().flatten().filter(|url| url.is_secure);
    for url in secure.filter(|_| !has_certificate) {
        mistakes.push(format!(
            "cannot listen on TLS for {}: KeyFile and CertFile are not presented",
            url.text
        ));
    }

    if options.client_cert_auth && options.trusted_ca_file.is_none() {
        mistakes.push("--client-cert-auth requires --trusted-ca-file".to_owned());
    }
    if !options.client_cert_allowed_hostname.is_empty() && options.trusted_ca_file.is_none() {
        mistakes.push("--client-cert-allowed-hostname requires --trusted-ca-file".to_owned());
    }
    if !matches!(options.tls_min_version.as_str(), "" | "TLS1.2" | "TLS1.3") {
        mistakes.push(format!(
            "unexpected TLS version {:?} in --tls-min-version (must be one of: TLS1.2, TLS1.3)",
            options.tls_min_version
        ));
    }
}

/// How much history is kept besides what clients compact.
fn history(options: &Options, mistakes: &mut Vec<String>) -> Config {
    let mut config = Config {
        retention: NEVER,
        ..Config::default()
    };
    let text = options.auto_compaction_retention.as_str();
    let number: Option<u64> = text.parse().ok();
    match (options.auto_compaction_mode.as_str(), number) {
        (_, Some(0)) => {}
        ("periodic", Some(hours)) => {
            config.retention = Duration::from_secs(hours.saturating_mul(60 * 60)).min(NEVER);
        }
        ("revision", Some(revisions)) => {
            config.retention = Duration::ZERO;
            config.retained_revisions = revisions;
        }
        ("periodic", None) => match parse_duration(text).map(|duration| duration.to_std()) {
            Ok(Some(Duration::ZERO)) => {}
            Ok(Some(retention)) => config.retention = retention.min(NEVER),
            Ok(None) | Err(_) => mistakes.push(format!(
                "invalid value {text:?} for flag --auto-compaction-retention: hours, or a duration such as 5m"
            )),
        },
        ("revision", None) => mistakes.push(format!(
            "invalid value {text:?} for flag --auto-compaction-retention: a number of revisions"
        )),
        (mode, _) => mistakes.push(format!(
            "unknown auto-compaction-mode {mode:?}: periodic or revision"
        )),
    }
    config
}

/// What handshakes may agree to.
fn limits(options: &Options) -> Result<Limits, Mistakes> {
    let (mut limits, mut mistakes) = (Limits::default(), Vec::new());
    limits.tls13_only = options.tls_min_version == "TLS1.3";
    match limits.only_suites(&options.cipher_suites) {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => tracing::warn!(
            ?missing,
            "cipher suites not available; connections do not use them"
        ),
        Err(why) => mistakes.push(format!("--cipher-suites: {why}")),
    }
    match mistakes.is_empty() {
        true => Ok(limits),
        false => Err(Mistakes(mistakes)),
    }
}

/// TLS for the URLs that have it.
fn tls(options: &Options, data_dir: &Path) -> Result<Option<ServerTls>, EtcdError> {
    let files = match (&options.cert_file, &options.key_file) {
        (Some(certificate), Some(key)) => CertificateFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        },
        _ if options.auto_tls => own_certificate(options, data_dir)?,
        _ => return Ok(None),
    };

    let clients = match &options.trusted_ca_file {
        None => None,
        Some(authority) => Some(Clients {
            authority: read(authority)?,
            rule: match options.client_cert_allowed_hostname.as_slice() {
                [] => ClientRule::Any,
                names => ClientRule::Only(only_hosts(names)),
            },
        }),
    };
    Ok(Some(ServerTls {
        certificate: read(&files.certificate)?,
        key: read(&files.key)?,
        clients,
        limits: limits(options)?,
    }))
}

/// The certificate of `--auto-tls`, generated on the first start.
fn own_certificate(options: &Options, data_dir: &Path) -> Result<CertificateFiles, EtcdError> {
    let folder = data_dir.join("fixtures/client");
    let files = CertificateFiles {
        certificate: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    };
    let listened = options.listen_client_urls.iter();
    let addresses = listened.filter_map(|url| match url.listen {
        Listen::Tcp(address) => Some(address.ip()),
        Listen::Unix(_) => None,
    });
    let names: Vec<String> = iter::once("localhost".to_owned())
        .chain([host::name()])
        .collect();
    ensure_self_signed(&files, &addresses.collect::<Vec<_>>(), &names)?;
    Ok(files)
}

/// Accepts certificates that are valid for one of these host names or addresses.
fn only_hosts(names: &[String]) -> Admits {
    let names = names.to_vec();
    Arc::new(move |certificate: &[u8]| {
        let certificate = CertificateDer::from(certificate);
        let parsed = ParsedCertificate::try_from(&certificate).map_err(|why| why.to_string())?;
        let is_valid_for = |name: &String| {
            ServerName::try_from(name.as_str())
                .is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
        };
        match names.iter().any(is_valid_for) {
            true => Ok(()),
            false => {
                Err("the certificate is for none of --client-cert-allowed-hostname".to_owned())
            }
        }
    })
}

fn read(file: &Path) -> Result<Vec<u8>, EtcdError> {
    fs::read(file).map_err(|error| EtcdError::File {
        file: file.to_path_buf(),
        error,
    })
}
