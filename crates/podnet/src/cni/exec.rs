//! Runs a plugin: configuration on stdin, parameters in the environment, result on stdout.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The parameters of a call.
pub(super) struct Call<'a> {
    pub(super) command: &'static str,
    pub(super) sandbox: &'a str,
    pub(super) netns: Option<&'a Path>,
    pub(super) interface: &'a str,
    pub(super) arguments: Vec<(String, String)>,
    pub(super) plugins: &'a [PathBuf],
    pub(super) timeout: Duration,
}

/// Why a plugin failed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("failed to find plugin {kind:?} in path {folders:?}")]
    NotFound { kind: String, folders: Vec<PathBuf> },
    #[error("cannot run plugin {0:?}")]
    Run(PathBuf, #[source] io::Error),
    #[error("plugin {kind:?} timed out after {timeout:?}")]
    Timeout { kind: String, timeout: Duration },
    #[error(
        "plugin type={kind:?} failed ({command}): {message}{}",
        with_details(details)
    )]
    Failed {
        kind: String,
        command: &'static str,
        code: u32,
        message: String,
        details: String,
    },
    #[error("plugin {kind:?} returned an invalid result: {text:?}")]
    InvalidResult { kind: String, text: String },
}

fn with_details(details: &str) -> String {
    if details.is_empty() {
        String::new()
    } else {
        format!("; {details}")
    }
}

impl Call<'_> {
    /// Runs a plugin to completion. Only ADD returns a result.
    pub(super) async fn run(
        &self,
        kind: &str,
        input: &Value,
    ) -> Result<Option<Value>, PluginError> {
        let program = find(kind, self.plugins)?;
        let failed = |source| PluginError::Run(program.clone(), source);

        let mut child = Command::new(&program)
            .env("CNI_COMMAND", self.command)
            .env("CNI_CONTAINERID", self.sandbox)
            .env("CNI_NETNS", self.netns.unwrap_or(Path::new("")))
            .env("CNI_IFNAME", self.interface)
            .env("CNI_ARGS", self.joined_arguments())
            .env(
                "CNI_PATH",
                std::env::join_paths(self.plugins)
                    .map_err(io::Error::other)
                    .map_err(failed)?,
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut stdin = child.stdin.take().expect("stdin was piped");

        let input = input.to_string();
        let run = async {
            // A plugin that exits before reading its input reports the reason.
            drop(stdin.write_all(input.as_bytes()).await);
            drop(stdin);
            child.wait_with_output().await
        };
        let output = tokio::time::timeout(self.timeout, run).await;

        let timed_out = |_| PluginError::Timeout {
            kind: kind.to_owned(),
            timeout: self.timeout,
        };
        let output = output.map_err(timed_out)?.map_err(failed)?;

        self.parse_output(
            kind,
            output.status.success(),
            &output.stdout,
            &output.stderr,
        )
    }

    pub(super) fn parse_output(
        &self,
        kind: &str,
        success: bool,
        stdout: &[u8],
        stderr: &[u8],
    ) -> Result<Option<Value>, PluginError> {
        #[derive(Deserialize)]
        struct ErrorResult {
            #[serde(default)]
            code: u32,
            msg: String,
            #[serde(default)]
            details: String,
        }

        let kind = kind.to_owned();
        if success {
            let is_empty = stdout.iter().all(u8::is_ascii_whitespace);
            let invalid = |_| PluginError::InvalidResult {
                kind,
                text: excerpt(stdout),
            };

            return if is_empty {
                Ok(None)
            } else {
                serde_json::from_slice(stdout).map(Some).map_err(invalid)
            };
        }

        let command = self.command;
        Err(match serde_json::from_slice::<ErrorResult>(stdout) {
            Ok(result) => PluginError::Failed {
                kind,
                command,
                code: result.code,
                message: result.msg,
                details: result.details,
            },
            Err(_) => {
                let text = if stdout.is_empty() {
                    excerpt(stderr)
                } else {
                    excerpt(stdout)
                };

                let message =
                    format!("netplugin failed but error parsing its diagnostic message {text:?}");
                PluginError::Failed {
                    kind,
                    command,
                    code: 0,
                    message,
                    details: String::new(),
                }
            }
        })
    }

    fn joined_arguments(&self) -> String {
        let pairs: Vec<String> = self
            .arguments
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join(";")
    }
}

/// The program of a plugin.
pub(super) fn find(kind: &str, folders: &[PathBuf]) -> Result<PathBuf, PluginError> {
    let found = folders
        .iter()
        .map(|folder| folder.join(kind))
        .find(|path| path.is_file());
    found.ok_or_else(|| PluginError::NotFound {
        kind: kind.to_owned(),
        folders: folders.to_vec(),
    })
}

/// The start of an output, for messages.
fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 1024;
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)])
        .trim()
        .to_owned()
}
