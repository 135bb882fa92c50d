//! Authentication and authorization: the flags, and the configuration they make.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use coracle_apiserver::access::{Mode, ServiceAccountConfig, TokenConfig};
use coracle_apiserver::authn::FrontProxyConfig;
use coracle_apiserver::serve;

use super::flags::{value, yes_or_no};
use super::options::Options;
use crate::flags::Flag;
use crate::flags::values::{duration, file, list, switch, text};

/// The parsed flags.
pub(super) struct AccessOptions {
    pub(super) client_ca_file: Option<PathBuf>,
    anonymous_auth: bool,
    authorization_mode: Vec<String>,
    requestheader_client_ca_file: Option<PathBuf>,
    requestheader: FrontProxyConfig,
    token_auth_file: Option<PathBuf>,
    enable_bootstrap_token_auth: bool,
    api_audiences: Vec<String>,
    service_account_issuer: Vec<String>,
    service_account_key_file: Vec<String>,
    service_account_signing_key_file: Option<PathBuf>,
    service_account_jwks_uri: String,
    service_account_max_token_expiration: Duration,
    service_account_extend_token_expiration: bool,
}

impl Default for AccessOptions {
    fn default() -> AccessOptions {
        AccessOptions {
            client_ca_file: None,
            anonymous_auth: true,
            authorization_mode: Vec::new(),
            requestheader_client_ca_file: None,
            requestheader: FrontProxyConfig::default(),
            token_auth_file: None,
            enable_bootstrap_token_auth: false,
            api_audiences: Vec::new(),
            service_account_issuer: Vec::new(),
            service_account_key_file: Vec::new(),
            service_account_signing_key_file: None,
            service_account_jwks_uri: String::new(),
            service_account_max_token_expiration: Duration::ZERO,
            service_account_extend_token_expiration: true,
        }
    }
}

pub(super) const FLAGS: &[Flag<Options>] = &[
    value(
        "authentication",
        "client-ca-file",
        "FILE",
        "",
        "CA of client certificates: the common name is the user, the organizations are the groups. Reloaded when it \
         changes",
        |options, given| file(&mut options.access.client_ca_file, given),
    ),
    yes_or_no(
        "authentication",
        "anonymous-auth",
        "true",
        "Accept requests without credentials, as system:anonymous in the group system:unauthenticated. Off with \
         --authorization-mode=AlwaysAllow",
        |options, given| switch(&mut options.access.anonymous_auth, given),
    ),
    value(
        "authentication",
        "requestheader-client-ca-file",
        "FILE",
        "",
        "CA of client certificates of authenticating proxies, which name the user in headers. Reloaded when it changes",
        |options, given| file(&mut options.access.requestheader_client_ca_file, given),
    ),
    value(
        "authentication",
        "requestheader-allowed-names",
        "NAMES",
        "",
        "Accepted common names of authenticating proxies; empty: any signed by --requestheader-client-ca-file",
        |options, given| list(&mut options.access.requestheader.names, given),
    ),
    value(
        "authentication",
        "requestheader-username-headers",
        "HEADERS",
        "",
        "Headers with the user name; the first non-empty one is used. Usually X-Remote-User",
        |options, given| list(&mut options.access.requestheader.user_headers, given),
    ),
    value(
        "authentication",
        "requestheader-uid-headers",
        "HEADERS",
        "",
        "Headers with the UID of the user. Usually X-Remote-Uid",
        |options, given| list(&mut options.access.requestheader.uid_headers, given),
    ),
    value(
        "authentication",
        "requestheader-group-headers",
        "HEADERS",
        "",
        "Headers with the groups of the user. Usually X-Remote-Group",
        |options, given| list(&mut options.access.requestheader.group_headers, given),
    ),
    value(
        "authentication",
        "requestheader-extra-headers-prefix",
        "PREFIXES",
        "",
        "Prefixes of headers with extra attributes of the user. Usually X-Remote-Extra-",
        |options, given| list(&mut options.access.requestheader.extra_prefixes, given),
    ),
    value(
        "authentication",
        "token-auth-file",
        "FILE",
        "",
        "File of static bearer tokens, one per line: TOKEN,USER,UID,\"GROUP,GROUP\"",
        |options, given| file(&mut options.access.token_auth_file, given),
    ),
    yes_or_no(
        "authentication",
        "enable-bootstrap-token-auth",
        "false",
        "Accept bootstrap tokens (Secrets of type bootstrap.kubernetes.io/token in kube-system)",
        |options, given| switch(&mut options.access.enable_bootstrap_token_auth, given),
    ),
    value(
        "authentication",
        "api-audiences",
        "NAMES",
        "",
        "Audiences of this API in tokens. Default: --service-account-issuer",
        |options, given| list(&mut options.access.api_audiences, given),
    ),
    value(
        "authentication",
        "service-account-issuer",
        "ISSUERS",
        "",
        "Accepted issuers of service account tokens; the first one issues new tokens. An https URL serves the OpenID \
         discovery document",
        |options, given| list(&mut options.access.service_account_issuer, given),
    ),
    value(
        "authentication",
        "service-account-key-file",
        "FILES",
        "",
        "Private or public keys that verify service account tokens, besides --service-account-signing-key-file",
        |options, given| list(&mut options.access.service_account_key_file, given),
    ),
    value(
        "authentication",
        "service-account-signing-key-file",
        "FILE",
        "",
        "Private key that signs service account tokens: RSA, or EC on P-256 or P-384",
        |options, given| file(&mut options.access.service_account_signing_key_file, given),
    ),
    value(
        "authentication",
        "service-account-jwks-uri",
        "ADDRESS",
        "",
        "URL of the JSON Web Key Set in the discovery document. Default: this server's address",
        |options, given| text(&mut options.access.service_account_jwks_uri, given),
    ),
    value(
        "authentication",
        "service-account-max-token-expiration",
        "DURATION",
        "0s",
        "Maximum validity of service account tokens; 0s: no limit",
        |options, given| {
            duration(
                &mut options.access.service_account_max_token_expiration,
                given,
            )
        },
    ),
    yes_or_no(
        "authentication",
        "service-account-extend-token-expiration",
        "true",
        "Extend the validity of pod tokens to one year, for programs that do not reload them",
        |options, given| {
            switch(
                &mut options.access.service_account_extend_token_expiration,
                given,
            )
        },
    ),
    value(
        "authorization",
        "authorization-mode",
        "MODES",
        "AlwaysAllow",
        "Ordered list of authorizers: AlwaysAllow, AlwaysDeny, Node, RBAC",
        |options, given| list(&mut options.access.authorization_mode, given),
    ),
];

/// The configuration of authentication and authorization.
pub(super) struct Settings {
    pub(super) anonymous: bool,
    pub(super) authorization: Vec<Mode>,
    pub(super) front_proxy: Option<FrontProxyConfig>,
    pub(super) tokens: TokenConfig,
}

/// Validates the flags. `address` is the advertised address of this server.
pub(super) fn complete(
    options: &AccessOptions,
    address: SocketAddr,
    mistakes: &mut Vec<String>,
) -> Settings {
    let authorization = modes(&options.authorization_mode, mistakes);
    Settings {
        // As upstream: no anonymous requests with AlwaysAllow.
        anonymous: options.anonymous_auth && !authorization.contains(&Mode::AlwaysAllow),
        authorization,
        front_proxy: front_proxy(options, mistakes),
        tokens: tokens(options, address, mistakes),
    }
}

fn tokens(options: &AccessOptions, address: SocketAddr, mistakes: &mut Vec<String>) -> TokenConfig {
    let issuers = &options.service_account_issuer;
    let audiences = if options.api_audiences.is_empty() {
        issuers
    } else {
        &options.api_audiences
    };

    TokenConfig {
        static_file: options.token_auth_file.clone(),
        bootstrap: options.enable_bootstrap_token_auth,
        audiences: audiences.clone(),
        service_accounts: service_accounts(options, address, mistakes),
    }
}

fn service_accounts(
    options: &AccessOptions,
    address: SocketAddr,
    mistakes: &mut Vec<String>,
) -> Option<ServiceAccountConfig> {
    let (issuers, key) = (
        &options.service_account_issuer,
        &options.service_account_signing_key_file,
    );

    if issuers.is_empty() && key.is_none() {
        return None;
    }

    if issuers.is_empty() {
        mistakes.push(
            "--service-account-issuer is a required flag with --service-account-signing-key-file"
                .to_string(),
        );
    }

    for issuer in issuers
        .iter()
        .filter(|issuer| issuer.contains(':') && !issuer.contains("://"))
    {
        mistakes.push(format!(
            "service-account-issuer {issuer:?} contained a ':' but was not a valid URL"
        ));
    }

    let Some(signing_key_file) = key.clone() else {
        mistakes.push(
            "--service-account-signing-key-file and --service-account-issuer are required flags"
                .to_string(),
        );
        return None;
    };

    let most =
        i64::try_from(options.service_account_max_token_expiration.as_secs()).unwrap_or(i64::MAX);
    if most > 0 && !(3600..=1 << 32).contains(&most) {
        mistakes.push(
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
                .to_string(),
        );
    }

    let jwks_uri = match options.service_account_jwks_uri.as_str() {
        "" => format!("https://{address}/openid/v1/jwks"),
        given => given.to_string(),
    };

    Some(ServiceAccountConfig {
        issuers: issuers.clone(),
        signing_key_file,
        key_files: options
            .service_account_key_file
            .iter()
            .map(PathBuf::from)
            .collect(),
        jwks_uri,
        extends: options.service_account_extend_token_expiration,
        max_seconds: (most > 0).then_some(most),
    })
}

fn modes(given: &[String], mistakes: &mut Vec<String>) -> Vec<Mode> {
    let mut modes = Vec::new();
    for (index, mode) in given.iter().enumerate() {
        if given[..index].contains(mode) {
            mistakes.push(format!(
                "authorization-mode {mode:?} has mode specified more than once"
            ));
        }

        match mode.as_str() {
            "AlwaysAllow" => modes.push(Mode::AlwaysAllow),
            "AlwaysDeny" => modes.push(Mode::AlwaysDeny),
            "RBAC" => modes.push(Mode::Rbac),
            "Node" => modes.push(Mode::Node),
            "ABAC" | "Webhook" => mistakes.push(format!(
                "authorization-mode {mode:?} is not supported yet; supported: AlwaysAllow, AlwaysDeny, Node, RBAC"
            )),
            _ => mistakes.push(format!("authorization-mode {mode:?} is not a valid mode")),
        }
    }

    if given.is_empty() {
        vec![Mode::AlwaysAllow]
    } else {
        modes
    }
}

fn front_proxy(options: &AccessOptions, mistakes: &mut Vec<String>) -> Option<FrontProxyConfig> {
    let authorities = options.requestheader_client_ca_file.clone()?;
    if let Some(clients) = &options.client_ca_file
        && options.requestheader.names.is_empty()
        && overlap(clients, &authorities)
    {
        mistakes.push(
            "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; \
             --requestheader-allowed-names must be specified to ensure regular client certificates cannot set \
             authenticating proxy headers for arbitrary users"
                .to_string(),
        );
    }

    Some(FrontProxyConfig {
        authorities,
        ..options.requestheader.clone()
    })
}

/// Whether two files have a certificate in common. Unreadable files are reported elsewhere.
fn overlap(one: &PathBuf, other: &PathBuf) -> bool {
    let read = |file| {
        fs::read(file)
            .ok()
            .and_then(|bytes| serve::certificates(&bytes).ok())
            .unwrap_or_default()
    };
    let others = read(other);
    read(one)
        .iter()
        .any(|certificate| others.contains(certificate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expected: &[Mode], complaints: &[&str]) {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        let mut mistakes = Vec::new();
        assert_eq!(modes(&given, &mut mistakes), expected);
        assert_eq!(mistakes, complaints);
    }

    #[test]
    fn modes_are_upstreams_in_the_order_given() {
        check(&[], &[Mode::AlwaysAllow], &[]);
        check(&["Node", "RBAC"], &[Mode::Node, Mode::Rbac], &[]);
        check(
            &["RBAC", "RBAC"],
            &[Mode::Rbac, Mode::Rbac],
            &[r#"authorization-mode "RBAC" has mode specified more than once"#],
        );

        check(
            &["Nobody"],
            &[],
            &[r#"authorization-mode "Nobody" is not a valid mode"#],
        );

        check(
            &["Webhook"],
            &[],
            &[
                "authorization-mode \"Webhook\" is not supported yet; supported: AlwaysAllow, AlwaysDeny, Node, RBAC",
            ],
        );
    }
}
