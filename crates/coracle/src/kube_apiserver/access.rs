//! Who comes in and what they may do: the flags, and what follows from them.

use std::fs;
use std::path::PathBuf;

use coracle_apiserver::access::Mode;
use coracle_apiserver::authn::FrontProxyConfig;
use coracle_apiserver::serve;

use super::flags::{value, yes_or_no};
use super::options::Options;
use crate::flags::Flag;
use crate::flags::values::{file, list, switch};

/// The flags as they were given.
pub(super) struct AccessOptions {
    pub(super) client_ca_file: Option<PathBuf>,
    anonymous_auth: bool,
    authorization_mode: Vec<String>,
    requestheader_client_ca_file: Option<PathBuf>,
    requestheader: FrontProxyConfig,
}

impl Default for AccessOptions {
    fn default() -> AccessOptions {
        AccessOptions {
            client_ca_file: None,
            anonymous_auth: true,
            authorization_mode: Vec::new(),
            requestheader_client_ca_file: None,
            requestheader: FrontProxyConfig::default(),
        }
    }
}

pub(super) const FLAGS: &[Flag<Options>] = &[
    value(
        "authentication",
        "client-ca-file",
        "FILE",
        "",
        "Authorities of client certificates: the common name of one is the user, its organizations are the groups. Read \
         again when it changes",
        |options, given| file(&mut options.access.client_ca_file, given),
    ),
    yes_or_no(
        "authentication",
        "anonymous-auth",
        "true",
        "Let requests without credentials in, as system:anonymous of the group system:unauthenticated. Never done while \
         everything is allowed (--authorization-mode=AlwaysAllow)",
        |options, given| switch(&mut options.access.anonymous_auth, given),
    ),
    value(
        "authentication",
        "requestheader-client-ca-file",
        "FILE",
        "",
        "Authorities of the certificates of proxies that say in headers whom a request is for. Read again when it changes",
        |options, given| file(&mut options.access.requestheader_client_ca_file, given),
    ),
    value(
        "authentication",
        "requestheader-allowed-names",
        "NAMES",
        "",
        "Common names of the certificates of such proxies; empty: any that --requestheader-client-ca-file has signed",
        |options, given| list(&mut options.access.requestheader.names, given),
    ),
    value(
        "authentication",
        "requestheader-username-headers",
        "HEADERS",
        "",
        "Headers in which proxies name the user; the first that says something counts. Usually X-Remote-User",
        |options, given| list(&mut options.access.requestheader.user_headers, given),
    ),
    value(
        "authentication",
        "requestheader-uid-headers",
        "HEADERS",
        "",
        "Headers in which proxies tell the user's UID. Usually X-Remote-Uid",
        |options, given| list(&mut options.access.requestheader.uid_headers, given),
    ),
    value(
        "authentication",
        "requestheader-group-headers",
        "HEADERS",
        "",
        "Headers in which proxies tell the user's groups. Usually X-Remote-Group",
        |options, given| list(&mut options.access.requestheader.group_headers, given),
    ),
    value(
        "authentication",
        "requestheader-extra-headers-prefix",
        "PREFIXES",
        "",
        "How headers begin in which proxies tell more of the user. Usually X-Remote-Extra-",
        |options, given| list(&mut options.access.requestheader.extra_prefixes, given),
    ),
    value(
        "authorization",
        "authorization-mode",
        "MODES",
        "AlwaysAllow",
        "Who decides what a user may do, in their order: AlwaysAllow, AlwaysDeny, RBAC",
        |options, given| list(&mut options.access.authorization_mode, given),
    ),
];

/// Access as it is configured.
pub(super) struct Settings {
    pub(super) anonymous: bool,
    pub(super) authorization: Vec<Mode>,
    pub(super) front_proxy: Option<FrontProxyConfig>,
}

pub(super) fn complete(options: &AccessOptions, mistakes: &mut Vec<String>) -> Settings {
    let authorization = modes(&options.authorization_mode, mistakes);
    Settings {
        // Where everything is allowed nobody is let in without saying who: upstream's rule.
        anonymous: options.anonymous_auth && !authorization.contains(&Mode::AlwaysAllow),
        authorization,
        front_proxy: front_proxy(options, mistakes),
    }
}

fn modes(given: &[String], mistakes: &mut Vec<String>) -> Vec<Mode> {
    let mut modes = Vec::new();
    for (place, mode) in given.iter().enumerate() {
        if given[..place].contains(mode) {
            mistakes.push(format!("authorization-mode {mode:?} has mode specified more than once"));
        }
        match mode.as_str() {
            "AlwaysAllow" => modes.push(Mode::AlwaysAllow),
            "AlwaysDeny" => modes.push(Mode::AlwaysDeny),
            "RBAC" => modes.push(Mode::Rbac),
            "ABAC" | "Webhook" | "Node" => mistakes.push(format!(
                "authorization-mode {mode:?} is not supported yet: this server has AlwaysAllow, AlwaysDeny and RBAC"
            )),
            _ => mistakes.push(format!("authorization-mode {mode:?} is not a valid mode")),
        }
    }
    if given.is_empty() { vec![Mode::AlwaysAllow] } else { modes }
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
    Some(FrontProxyConfig { authorities, ..options.requestheader.clone() })
}

/// Whether two files have an authority in common. Files that cannot be read are complained about elsewhere.
fn overlap(one: &PathBuf, other: &PathBuf) -> bool {
    let read =
        |file| fs::read(file).ok().and_then(|bytes| serve::certificates(&bytes).ok()).unwrap_or_default();
    let others = read(other);
    read(one).iter().any(|certificate| others.contains(certificate))
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
        check(&["AlwaysDeny", "RBAC"], &[Mode::AlwaysDeny, Mode::Rbac], &[]);
        check(
            &["RBAC", "RBAC"],
            &[Mode::Rbac, Mode::Rbac],
            &[r#"authorization-mode "RBAC" has mode specified more than once"#],
        );
        check(&["Nobody"], &[], &[r#"authorization-mode "Nobody" is not a valid mode"#]);
        check(
            &["Webhook"],
            &[],
            &[
                "authorization-mode \"Webhook\" is not supported yet: this server has AlwaysAllow, AlwaysDeny and RBAC",
            ],
        );
    }
}
