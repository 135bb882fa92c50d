//! What the server shows to webhooks: the users of a kubeconfig file, chosen by the webhook's
//! address.

use std::path::Path;

use coracle_client::config::{Kubeconfig, User};
use coracle_client::{Config, ConfigError};

/// The users of a kubeconfig file; without one, the server is anonymous.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    kubeconfig: Kubeconfig,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("stat {0}: no such file or directory")]
    Missing(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What webhooks of admission see, from the file of `--admission-control-config-file`.
#[derive(Clone, Debug, Default)]
pub struct AdmissionCredentials {
    pub mutating: Credentials,
    pub validating: Credentials,
}

impl Credentials {
    /// The users of a kubeconfig file.
    pub fn read(file: &Path) -> Result<Credentials, CredentialsError> {
        let kubeconfig = Kubeconfig::read(file)?
            .ok_or_else(|| CredentialsError::Missing(file.display().to_string()))?;
        Ok(Credentials { kubeconfig })
    }

    /// The settings of connections to `host[:port]`.
    pub(super) fn of(&self, authority: &str) -> Result<Config, String> {
        let target = match authority.rsplit_once(':') {
            Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                authority.to_owned()
            }
            _ => format!("{authority}:443"),
        };

        self.user(&target).map_or(Ok(Config::default()), |user| {
            Config::of_user(user).map_err(|error| error.to_string())
        })
    }

    /// Users are named by the host with its port, by it without the port where that is 443, by
    /// `*.` and an end of either, or `*`; else it is the user of the current context.
    fn user(&self, target: &str) -> Option<&User> {
        let (host, port) = target.rsplit_once(':').unwrap_or((target, ""));
        let without_port = (port == "443").then(|| self.by_name(host)).flatten();
        self.by_name(target)
            .or(without_port)
            .or_else(|| self.named("*"))
            .or_else(|| {
                let current = &self.kubeconfig.current_context;
                let mut contexts = self.kubeconfig.contexts.iter();
                let context = contexts.find(|context| context.name == *current)?;
                self.named(&context.entry.user)
            })
    }

    /// Whether a user has this name.
    #[cfg(test)]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    fn by_name(&self, target: &str) -> Option<&User> {
        let ends = target
            .match_indices('.')
            .map(|(at, _)| format!("*{}", &target[at..]));
        self.named(target)
            .or_else(|| ends.into_iter().find_map(|name| self.named(&name)))
    }

    fn named(&self, name: &str) -> Option<&User> {
        let mut users = self.kubeconfig.users.iter();
        users.find(|user| user.name == name).map(|user| &user.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_the_address_of_a_webhook() {
        let text = b"
users:
- {name: 'hook.ns.svc:443', user: {token: exact}}
- {name: 'hook.ns.svc', user: {token: no-port}}
- {name: '*.ns.svc', user: {token: star}}
- {name: '*.svc:8443', user: {token: star-port}}
- {name: current, user: {token: current}}
contexts:
- {name: c, context: {user: current}}
current-context: c
";
        let mut credentials = Credentials {
            kubeconfig: Kubeconfig::parse(text, Path::new("/x")).unwrap(),
        };
        let check = |credentials: &Credentials, authority: &str, expected: &str| {
            let found = credentials.of(authority).unwrap().credentials.token;
            let expected = match expected {
                "" => coracle_client::config::Token::None,
                token => coracle_client::config::Token::Fixed(token.to_owned()),
            };
            assert_eq!(found, expected, "{authority}");
        };

        check(&credentials, "hook.ns.svc:443", "exact");
        check(&credentials, "other.ns.svc:443", "star");
        check(&credentials, "hook.ns.svc:8443", "star-port");
        check(&credentials, "example.com", "current");
        credentials.kubeconfig.users.remove(0);
        check(&credentials, "hook.ns.svc:443", "no-port");
        check(&credentials, "hook.ns.svc:444", "current");
        check(&Credentials::default(), "hook.ns.svc:443", "");
    }
}
