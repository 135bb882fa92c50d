//! What the settings of etcd set.

use std::path::PathBuf;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::go_text::Quoted;
use coracle_settings::{Field, Part};

use super::listen_url::ListenUrl;
use crate::settings::Logs;

/// What the settings set. [`complete`](super::complete) validates them.
#[derive(Default)]
pub(super) struct Options {
    pub(super) data_dir: Option<PathBuf>,
    pub(super) name: String,
    pub(super) listen_client_urls: Vec<ListenUrl>,
    pub(super) listen_client_http_urls: Vec<ListenUrl>,
    pub(super) listen_metrics_urls: Vec<ListenUrl>,
    pub(super) advertise_client_urls: Vec<String>,
    pub(super) initial_advertise_peer_urls: Vec<String>,
    pub(super) initial_cluster: Vec<String>,
    pub(super) initial_cluster_state: String,
    pub(super) max_request_bytes: usize,
    pub(super) watch_progress_notify_interval: Duration,
    pub(super) cert_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) trusted_ca_file: Option<PathBuf>,
    pub(super) client_cert_auth: bool,
    pub(super) client_cert_allowed_hostname: Vec<String>,
    pub(super) auto_tls: bool,
    pub(super) tls_min_version: String,
    pub(super) cipher_suites: Vec<String>,
    pub(super) auto_compaction_mode: String,
    pub(super) auto_compaction_retention: String,
    pub(super) unsafe_no_fsync: bool,
    pub(super) log_level: LogLevel,
}

impl Part<Logs> for Options {
    fn part(&mut self) -> &mut Logs {
        &mut self.log_level.0
    }
}

/// etcd's names of log levels.
#[derive(Default)]
pub(super) struct LogLevel(pub(super) Logs);

impl Field for LogLevel {
    fn kind(&self) -> &'static str {
        "level"
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.0.verbosity = match text {
            "debug" => 4,
            "info" => 0,
            "warn" => -1,
            "error" | "dpanic" | "panic" | "fatal" => -2,
            other => return Err(format!("unrecognized level: {}", Quoted(other))),
        };
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        self.set(value.as_str().unwrap_or_default())
    }

    fn value(&self) -> Value {
        Value::from(match self.0.verbosity {
            ..=-2 => "error",
            -1 => "warn",
            0..=3 => "info",
            4.. => "debug",
        })
    }
}
