//! Credential plugins (`exec`): a program that returns credentials.

use std::io;
use std::process::Stdio;

use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use tokio::process::Command;

use super::{Cluster, Exec};

/// The supported API versions of plugins.
const VERSIONS: [&str; 2] = [
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
];

/// Why a plugin returned no credentials.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The plugin's API version is not supported.
    #[error("exec plugin: invalid apiVersion {0:?}")]
    Version(String),
    /// The program could not be started.
    #[error("exec: executable {command} cannot be run{hint}")]
    Start {
        /// The program.
        command: String,
        /// The kubeconfig's install hint.
        hint: String,
        /// The cause.
        source: io::Error,
    },
    /// The program failed.
    #[error("exec: executable {command} failed with exit code {code}: {text}")]
    Failed {
        /// The program.
        command: String,
        /// Its exit code.
        code: i32,
        /// Its error output.
        text: String,
    },
    /// The program's output is invalid.
    #[error("exec plugin didn't return {0}")]
    Answer(&'static str),
}

/// The credentials of a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PluginCredentials {
    pub(super) token: Option<String>,
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
    expires: Option<Timestamp>,
}

impl PluginCredentials {
    pub(super) fn holds_at(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

/// Runs the plugin.
pub(super) async fn run(exec: &Exec, cluster: &Cluster) -> Result<PluginCredentials, ExecError> {
    if !VERSIONS.contains(&exec.api_version.as_str()) {
        return Err(ExecError::Version(exec.api_version.clone()));
    }

    let mut command = Command::new(&exec.command);
    command
        .args(&exec.args)
        .stdin(Stdio::null())
        .kill_on_drop(true);

    command.envs(
        exec.env
            .iter()
            .map(|variable| (&variable.name, &variable.value)),
    );

    command.env(
        "KUBERNETES_EXEC_INFO",
        json::to_string(&info(exec, cluster)),
    );

    let output = command.output().await.map_err(|source| {
        let hint = exec.install_hint.trim();
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!("\n\n{hint}\n")
        };

        ExecError::Start {
            command: exec.command.clone(),
            hint,
            source,
        }
    })?;

    if !output.status.success() {
        return Err(ExecError::Failed {
            command: exec.command.clone(),
            code: output.status.code().unwrap_or(-1),
            text: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        });
    }

    read(&output.stdout, &exec.api_version)
}

fn info(exec: &Exec, cluster: &Cluster) -> Value {
    let mut spec = Map::new();
    spec.insert("interactive", false);

    if exec.provide_cluster_info {
        let mut about = Map::new();
        about.insert("server", cluster.server.as_str());
        about.insert("tls-server-name", cluster.tls_server_name.as_str());
        about.insert("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify);
        about.insert(
            "certificate-authority-data",
            cluster.certificate_authority_data.as_str(),
        );

        spec.insert("cluster", about);
    }

    let mut info = Map::new();
    info.insert("apiVersion", exec.api_version.as_str());
    info.insert("kind", "ExecCredential");
    info.insert("spec", spec);

    Value::Object(info)
}

fn read(output: &[u8], version: &str) -> Result<PluginCredentials, ExecError> {
    let answer = json::parse(output).map_err(|_| ExecError::Answer("an ExecCredential in JSON"))?;
    if answer.get("apiVersion").and_then(Value::as_str) != Some(version) {
        return Err(ExecError::Answer("the apiVersion that was asked for"));
    }

    let status = answer
        .get("status")
        .and_then(Value::as_object)
        .ok_or(ExecError::Answer("a status field"))?;

    let text = |name: &str| {
        status
            .str(name)
            .filter(|text| !text.is_empty())
            .map(str::to_string)
    };

    let identity = match (text("clientCertificateData"), text("clientKeyData")) {
        (Some(certificate), Some(key)) => Some((certificate.into_bytes(), key.into_bytes())),
        (None, None) => None,
        _ => return Err(ExecError::Answer("a certificate together with its key")),
    };

    let token = text("token");
    if token.is_none() && identity.is_none() {
        return Err(ExecError::Answer("a token or cert/key pair"));
    }

    let expires = text("expirationTimestamp")
        .and_then(|text| Time::parse(&text).ok())
        .map(|time| time.0);

    Ok(PluginCredentials {
        token,
        identity,
        expires,
    })
}
