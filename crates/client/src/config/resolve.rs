//! Resolves files and environment to one configuration.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::kubeconfig::find;
use super::{
    Config, ConfigError, Credentials, Environment, Impersonate, Kubeconfig, Named, Pem, Token, User,
};

impl Config {
    /// The default configuration of a program: the given file, else the files of the environment,
    /// else, if those are empty, the in-cluster configuration. `server` overrides the file's.
    pub fn load(
        explicit: Option<&Path>,
        server: Option<&str>,
        environment: &Environment,
    ) -> Result<Config, ConfigError> {
        let (files, must_be_there) = environment.files(explicit);
        if let (true, [file]) = (must_be_there, files.as_slice())
            && let Err(source) = std::fs::metadata(file)
        {
            return Err(ConfigError::Read {
                file: file.clone(),
                source,
            });
        }

        let mut merged = Kubeconfig::merged(&files)?;
        if merged.is_empty() && server.is_none() && environment.service.is_some() {
            return Config::in_cluster(environment);
        }
        if let Some(server) = server {
            override_server(&mut merged, server);
        }

        Config::of_context(&merged, None)
    }

    /// Resolves one context; `None`: the current one.
    pub fn of_context(
        kubeconfig: &Kubeconfig,
        context: Option<&str>,
    ) -> Result<Config, ConfigError> {
        let name = context.unwrap_or(&kubeconfig.current_context);
        let context = match find(&kubeconfig.contexts, name) {
            Some(context) => context,
            None if name.is_empty() => return Err(ConfigError::Empty),
            None => return Err(ConfigError::NoContext(name.to_string())),
        };

        let cluster = find(&kubeconfig.clusters, &context.cluster)
            .ok_or_else(|| ConfigError::NoCluster(context.cluster.clone()))?;
        let anonymous = User::default();
        let user = match find(&kubeconfig.users, &context.user) {
            Some(user) => user,
            None if context.user.is_empty() => &anonymous,
            None => return Err(ConfigError::NoUser(context.user.clone())),
        };

        Ok(Config {
            server: cluster.server.clone(),
            server_name: given(&cluster.tls_server_name),
            authorities: pem(
                &cluster.certificate_authority_data,
                &cluster.certificate_authority,
                "certificate-authority-data",
            )?,
            insecure: cluster.insecure_skip_tls_verify,
            proxy: given(&cluster.proxy_url),
            credentials: credentials(user, cluster)?,
            impersonate: impersonate(user),
            namespace: given(&context.namespace),
        })
    }

    /// The credentials of a user, for a server that is configured elsewhere.
    pub fn of_user(user: &User) -> Result<Config, ConfigError> {
        Ok(Config {
            credentials: credentials(user, &super::Cluster::default())?,
            impersonate: impersonate(user),
            ..Config::default()
        })
    }

    /// The in-cluster configuration of a pod.
    pub fn in_cluster(environment: &Environment) -> Result<Config, ConfigError> {
        let (host, port) = environment
            .service
            .as_ref()
            .ok_or(ConfigError::NotInCluster)?;

        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.clone()
        };

        let file = |name: &str| environment.account.join(name);
        let read = |name: &str| {
            std::fs::read_to_string(file(name)).map_err(|source| ConfigError::Read {
                file: file(name),
                source,
            })
        };

        // It must exist now, and is reloaded later.
        read("token")?;

        Ok(Config {
            server: format!("https://{host}:{port}"),
            authorities: Some(Pem::File(file("ca.crt"))),
            credentials: Credentials {
                token: Token::File(file("token")),
                ..Credentials::default()
            },
            namespace: read("namespace").ok().map(|text| text.trim().to_string()),
            ..Config::default()
        })
    }
}

fn impersonate(user: &User) -> Impersonate {
    Impersonate {
        user: given(&user.as_user),
        uid: given(&user.as_uid),
        groups: user.as_groups.clone(),
        extra: user.as_user_extra.clone(),
    }
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

/// Inline data has precedence over a file.
fn pem(data: &str, file: &str, field: &'static str) -> Result<Option<Pem>, ConfigError> {
    if !data.is_empty() {
        let content = STANDARD
            .decode(data.trim())
            .map_err(|_| ConfigError::Base64 { field })?;
        return Ok(Some(Pem::Content(content)));
    }
    Ok(given(file).map(|file| Pem::File(file.into())))
}

fn credentials(user: &User, cluster: &super::Cluster) -> Result<Credentials, ConfigError> {
    if let Some(provider) = &user.auth_provider {
        return Err(ConfigError::AuthProvider(no_longer(&provider.name)));
    }

    let certificate = pem(
        &user.client_certificate_data,
        &user.client_certificate,
        "client-certificate-data",
    )?;

    let key = pem(&user.client_key_data, &user.client_key, "client-key-data")?;
    let token = match (&user.token, &user.token_file, &user.username) {
        // A file is preferred, because it is reloaded when it changes.
        (_, file, _) if !file.is_empty() => Token::File(file.into()),
        (token, _, _) if !token.is_empty() => Token::Fixed(token.clone()),
        (_, _, name) if !name.is_empty() => Token::Basic(name.clone(), user.password.clone()),
        _ => Token::None,
    };

    Ok(Credentials {
        certificate: certificate.zip(key),
        token,
        exec: user.exec.clone().map(|exec| (exec, cluster.clone())),
    })
}

fn no_longer(name: &str) -> String {
    match name {
        "gcp" => "The gcp auth plugin has been removed.\nPlease use the \"gke-gcloud-auth-plugin\" \
                  kubectl/client-go credential plugin instead.\nSee \
                  https://cloud.google.com/blog/products/containers-kubernetes/kubectl-auth-changes-in-gke for \
                  further details"
            .to_string(),
        "azure" => "The azure auth plugin has been removed.\nPlease use the \
                    https://github.com/Azure/kubelogin kubectl/client-go credential plugin instead.\nSee \
                    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins \
                    for further details"
            .to_string(),
        name => format!("no Auth Provider found for name {name:?}"),
    }
}

/// Overrides the server of the current context, creating it if there is none.
fn override_server(kubeconfig: &mut Kubeconfig, server: &str) {
    let current = kubeconfig.current_context.clone();
    let cluster = match find(&kubeconfig.contexts, &current) {
        Some(context) => context.cluster.clone(),
        None => {
            kubeconfig.contexts.push(Named {
                name: current,
                entry: super::Context::default(),
            });
            String::new()
        }
    };

    match kubeconfig
        .clusters
        .iter_mut()
        .find(|entry| entry.name == cluster)
    {
        Some(entry) => entry.entry.server = server.to_string(),
        None => {
            let entry = super::Cluster {
                server: server.to_string(),
                ..super::Cluster::default()
            };
            kubeconfig.clusters.push(Named {
                name: cluster,
                entry,
            });
        }
    }
}
