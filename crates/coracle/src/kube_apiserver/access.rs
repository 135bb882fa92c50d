//! Authentication and authorization: the options, and the configuration they make.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use coracle_apiserver::access::{Mode, ServiceAccountConfig, TokenConfig};
use coracle_apiserver::authn::FrontProxyConfig;
use coracle_base::tls::certificates;
use coracle_settings::Each;

/// What the settings set.
#[derive(Default)]
pub(super) struct AccessOptions {
    pub(super) client_ca_file: Option<PathBuf>,
    pub(super) anonymous_auth: bool,
    pub(super) authorization_mode: Vec<String>,
    pub(super) requestheader_client_ca_file: Option<PathBuf>,
    pub(super) requestheader: FrontProxyConfig,
    pub(super) token_auth_file: Option<PathBuf>,
    pub(super) enable_bootstrap_token_auth: bool,
    pub(super) api_audiences: Vec<String>,
    pub(super) service_account_issuer: Each,
    pub(super) service_account_key_file: Each,
    pub(super) service_account_signing_key_file: Option<PathBuf>,
    pub(super) service_account_jwks_uri: String,
    pub(super) service_account_max_token_expiration: Duration,
    pub(super) service_account_extend_token_expiration: bool,
}

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
    let issuers = &options.service_account_issuer.0;
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
        &options.service_account_issuer.0,
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
            .0
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
            .and_then(|bytes| certificates(&bytes).ok())
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
