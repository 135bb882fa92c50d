//! The HTTPS port of a component, and how its clients are authenticated and authorized.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use coracle_api::Value;
use coracle_base::tls::Limits;
use coracle_settings::{Field, Part, Setting};

/// The HTTPS port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serving {
    pub(crate) bind_address: Option<IpAddr>,
    pub(crate) secure_port: i64,
    pub(crate) cert_dir: Option<PathBuf>,
    pub(crate) tls_cert_file: Option<PathBuf>,
    pub(crate) tls_private_key_file: Option<PathBuf>,
    pub(crate) tls_min_version: String,
    pub(crate) tls_cipher_suites: Vec<String>,
    pub(crate) tls_curve_preferences: Vec<i32>,
    pub(crate) tls_sni_cert_key: NamedPairs,
    pub(crate) disable_http2: bool,
    pub(crate) http2_max_streams: i64,
    pub(crate) permit_port_sharing: bool,
}

impl Serving {
    /// What handshakes may agree to. Adds what is wrong, and warns of what has no effect.
    pub(crate) fn limits(&self, mistakes: &mut Vec<String>) -> Limits {
        let mut limits = Limits::default();
        match self.tls_min_version.as_str() {
            "" | "VersionTLS12" => {}
            "VersionTLS13" => limits.tls13_only = true,
            old @ ("VersionTLS10" | "VersionTLS11") => mistakes.push(format!(
                "--tls-min-version {old:?} is not supported: must be VersionTLS12 or VersionTLS13"
            )),
            other => mistakes.push(format!("--tls-min-version: unknown tls version {other:?}")),
        }
        restrict(
            &mut limits,
            &self.tls_cipher_suites,
            &self.tls_curve_preferences,
            mistakes,
        );
        limits
    }
}

/// Restricts handshakes to cipher suites and key exchanges. Those that do not exist here are left
/// out with a warning: a port is not less secure without them.
pub(crate) fn restrict(
    limits: &mut Limits,
    suites: &[String],
    groups: &[i32],
    mistakes: &mut Vec<String>,
) {
    match limits.only_suites(suites) {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => tracing::warn!(
            ?missing,
            "cipher suites not available; connections do not use them"
        ),
        Err(why) => mistakes.push(format!("--tls-cipher-suites: {why}")),
    }
    match limits.only_groups(groups) {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => tracing::warn!(
            ?missing,
            "key exchanges not available; connections do not use them"
        ),
        Err(why) => mistakes.push(format!("--tls-curve-preferences: {why}")),
    }
}

/// A certificate for some names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// None: those of the certificate.
    pub(crate) names: Vec<String>,
}

/// Certificates for names, one for each flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedPairs(pub(crate) Vec<NamedPair>);

impl NamedPair {
    fn parse(text: &str) -> Result<NamedPair, String> {
        let (files, names) = match text.split_once(':') {
            Some((_, names)) if names.trim().is_empty() => {
                return Err("empty names list is not allowed".to_owned());
            }
            Some((files, names)) => (files, names.split(',').collect()),
            None => (text, Vec::new()),
        };

        let files: Vec<&str> = files.split(',').map(str::trim).collect();
        let [certificate, key] = files[..] else {
            return Err("expected comma separated certificate and key file paths".to_owned());
        };

        let names: Vec<String> = names
            .into_iter()
            .map(|name| name.trim().to_owned())
            .collect();
        if let Some(address) = names.iter().find(|name| name.parse::<IpAddr>().is_ok()) {
            return Err(format!(
                "{address} is an address: certificates are selected by name only"
            ));
        }
        Ok(NamedPair {
            certificate: certificate.into(),
            key: key.into(),
            names,
        })
    }

    fn text(&self) -> String {
        let files = format!("{},{}", self.certificate.display(), self.key.display());
        match self.names.as_slice() {
            [] => files,
            names => format!("{files}:{}", names.join(",")),
        }
    }
}

impl Field for NamedPairs {
    fn kind(&self) -> &'static str {
        "namedCertKey"
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.0.clear();
        self.add(text)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        self.0.push(NamedPair::parse(text)?);
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        let mut texts = Vec::<String>::new();
        texts.read(value)?;
        self.0 = texts
            .iter()
            .map(|text| NamedPair::parse(text))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    fn value(&self) -> Value {
        let texts: Vec<String> = self.0.iter().map(NamedPair::text).collect();
        texts.value()
    }
}

/// The settings of a port. `port_help` says what `--secure-port` means besides the port.
pub(crate) const fn serving<T: Part<Serving>>(
    port: &'static str,
    port_help: &'static str,
    cert_dir: &'static str,
) -> [Setting<T>; 12] {
    [
        Setting::new(
            "bind-address",
            "0.0.0.0",
            "Address to listen on; 0.0.0.0 or :: for all interfaces",
            |options: &mut T| &mut options.part().bind_address,
        ),
        Setting::new("secure-port", port, port_help, |options: &mut T| {
            &mut options.part().secure_port
        }),
        Setting::new(
            "cert-dir",
            cert_dir,
            "Directory of the self-signed certificate that is generated without --tls-cert-file; empty: it is kept in \
             memory",
            |options: &mut T| &mut options.part().cert_dir,
        ),
        Setting::new(
            "tls-cert-file",
            "",
            "Serving certificate, followed by intermediate certificates. Reloaded when it changes",
            |options: &mut T| &mut options.part().tls_cert_file,
        ),
        Setting::new(
            "tls-private-key-file",
            "",
            "Key of --tls-cert-file",
            |options: &mut T| &mut options.part().tls_private_key_file,
        ),
        Setting::new(
            "tls-min-version",
            "",
            "Minimum TLS version: VersionTLS12 or VersionTLS13",
            |options: &mut T| &mut options.part().tls_min_version,
        ),
        Setting::new(
            "tls-cipher-suites",
            "",
            "Cipher suites of TLS 1.2, by their names in Go; those that do not exist here are left out. Default: all",
            |options: &mut T| &mut options.part().tls_cipher_suites,
        ),
        Setting::new(
            "tls-curve-preferences",
            "",
            "Key exchanges, by their numbers in Go, in any order: 23 is P-256, 24 is P-384, 29 is X25519. Default: all",
            |options: &mut T| &mut options.part().tls_curve_preferences,
        ),
        Setting::new(
            "tls-sni-cert-key",
            "",
            "A certificate for clients that ask for certain names, its key, and the names, also with * for the first label: \
             CERT,KEY:NAME,NAME. Without names those of the certificate. May be given several times",
            |options: &mut T| &mut options.part().tls_sni_cert_key,
        ),
        Setting::new(
            "disable-http2-serving",
            "false",
            "Serve HTTP/1.1 only",
            |options: &mut T| &mut options.part().disable_http2,
        ),
        Setting::new(
            "http2-max-streams-per-connection",
            "0",
            "Maximum number of concurrent streams of an HTTP/2 connection; 0: 100",
            |options: &mut T| &mut options.part().http2_max_streams,
        ),
        Setting::new(
            "permit-port-sharing",
            "false",
            "Listen with SO_REUSEPORT, so that several processes can have the port",
            |options: &mut T| &mut options.part().permit_port_sharing,
        ),
    ]
}

/// How a component asks the API server about its own clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delegation {
    pub(crate) authentication_kubeconfig: Option<PathBuf>,
    pub(crate) skip_lookup: bool,
    pub(crate) tolerate_lookup_failure: bool,
    pub(crate) token_cache_ttl: Duration,
    pub(crate) client_ca_file: Option<PathBuf>,
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,
    pub(crate) requestheader_names: Vec<String>,
    pub(crate) requestheader_user_headers: Vec<String>,
    pub(crate) requestheader_uid_headers: Vec<String>,
    pub(crate) requestheader_group_headers: Vec<String>,
    pub(crate) requestheader_extra_prefixes: Vec<String>,
    pub(crate) authorization_kubeconfig: Option<PathBuf>,
    pub(crate) always_allow_paths: Vec<String>,
    pub(crate) allowed_cache_ttl: Duration,
    pub(crate) denied_cache_ttl: Duration,
}

/// The settings of authentication. `tolerate` is whether the component starts if the configuration
/// in the cluster cannot be read.
pub(crate) const fn authentication<T: Part<Delegation>>(
    tolerate: &'static str,
) -> [Setting<T>; 11] {
    [
        Setting::new(
            "authentication-kubeconfig",
            "",
            "Kubeconfig of the API server that reviews tokens of clients. Default: that of the component",
            |options: &mut T| &mut options.part().authentication_kubeconfig,
        ),
        Setting::new(
            "authentication-skip-lookup",
            "false",
            "Do not read missing settings of authentication from the cluster",
            |options: &mut T| &mut options.part().skip_lookup,
        ),
        Setting::new(
            "authentication-tolerate-lookup-failure",
            tolerate,
            "Start although missing settings of authentication cannot be read from the cluster; all requests may then \
             be anonymous",
            |options: &mut T| &mut options.part().tolerate_lookup_failure,
        ),
        Setting::new(
            "authentication-token-webhook-cache-ttl",
            "10s",
            "How long answers about tokens are cached",
            |options: &mut T| &mut options.part().token_cache_ttl,
        ),
        Setting::new(
            "client-ca-file",
            "",
            "CA of client certificates: the common name is the user, the organizations are the groups",
            |options: &mut T| &mut options.part().client_ca_file,
        ),
        Setting::new(
            "requestheader-client-ca-file",
            "",
            "CA of client certificates of authenticating proxies, which name the user in headers",
            |options: &mut T| &mut options.part().requestheader_client_ca_file,
        ),
        Setting::new(
            "requestheader-allowed-names",
            "",
            "Accepted common names of authenticating proxies; empty: any signed by --requestheader-client-ca-file",
            |options: &mut T| &mut options.part().requestheader_names,
        ),
        Setting::new(
            "requestheader-username-headers",
            "x-remote-user",
            "Headers with the user name",
            |options: &mut T| &mut options.part().requestheader_user_headers,
        ),
        Setting::new(
            "requestheader-uid-headers",
            "",
            "Headers with the UID of the user",
            |options: &mut T| &mut options.part().requestheader_uid_headers,
        ),
        Setting::new(
            "requestheader-group-headers",
            "x-remote-group",
            "Headers with the groups of the user",
            |options: &mut T| &mut options.part().requestheader_group_headers,
        ),
        Setting::new(
            "requestheader-extra-headers-prefix",
            "x-remote-extra-",
            "Prefixes of headers with extra attributes of the user",
            |options: &mut T| &mut options.part().requestheader_extra_prefixes,
        ),
    ]
}

/// The settings of authorization.
pub(crate) const fn authorization<T: Part<Delegation>>() -> [Setting<T>; 4] {
    [
        Setting::new(
            "authorization-kubeconfig",
            "",
            "Kubeconfig of the API server that authorizes clients. Default: that of the component",
            |options: &mut T| &mut options.part().authorization_kubeconfig,
        ),
        Setting::new(
            "authorization-always-allow-paths",
            "/healthz,/readyz,/livez",
            "Paths that are served without authorization",
            |options: &mut T| &mut options.part().always_allow_paths,
        ),
        Setting::new(
            "authorization-webhook-cache-authorized-ttl",
            "10s",
            "How long allowing answers are cached",
            |options: &mut T| &mut options.part().allowed_cache_ttl,
        ),
        Setting::new(
            "authorization-webhook-cache-unauthorized-ttl",
            "10s",
            "How long denying answers are cached",
            |options: &mut T| &mut options.part().denied_cache_ttl,
        ),
    ]
}
