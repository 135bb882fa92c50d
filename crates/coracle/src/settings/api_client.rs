//! How a component reaches the API server.

use std::path::PathBuf;

use coracle_client::{Client, Config, ConfigError};
use coracle_settings::{Part, Setting};

use crate::process;

#[derive(Clone, Debug, Default)]
pub(crate) struct ApiClient {
    pub(crate) kubeconfig: Option<PathBuf>,
    master: String,
    qps: f64,
    burst: i32,
}

impl ApiClient {
    /// The address and the credentials of the API server.
    pub(crate) fn access(&self) -> Result<Config, ConfigError> {
        let environment = process::environment();
        let server = Some(self.master.as_str()).filter(|server| !server.is_empty());
        match (&self.kubeconfig, server) {
            (None, None) => Config::in_cluster(&environment),
            (file, server) => Config::load(file.as_deref(), server, &environment),
        }
    }

    /// The client with the rate limit of the settings.
    pub(crate) fn limit(&self, client: Client) -> Client {
        client.limited(self.qps, u32::try_from(self.burst).unwrap_or(1))
    }
}

pub(crate) const fn kubeconfig<T: Part<ApiClient>>() -> Setting<T> {
    Setting::new(
        "kubeconfig",
        "",
        "Kubeconfig with the API server and the credentials. Default: the service account of the pod",
        |options: &mut T| &mut options.part().kubeconfig,
    )
    .key("clientConnection.kubeconfig")
}

pub(crate) const fn master<T: Part<ApiClient>>() -> Setting<T> {
    Setting::new(
        "master",
        "",
        "URL of the API server; overrides the kubeconfig",
        |options: &mut T| &mut options.part().master,
    )
}

pub(crate) const fn qps<T: Part<ApiClient>>(default: &'static str) -> Setting<T> {
    Setting::new(
        "kube-api-qps",
        default,
        "Maximum rate of API requests per second; 0 or less: no limit",
        |options: &mut T| &mut options.part().qps,
    )
    .key("clientConnection.qps")
    .zero_is_default()
}

pub(crate) const fn burst<T: Part<ApiClient>>(default: &'static str) -> Setting<T> {
    Setting::new(
        "kube-api-burst",
        default,
        "Burst of API requests above --kube-api-qps",
        |options: &mut T| &mut options.part().burst,
    )
    .key("clientConnection.burst")
    .zero_is_default()
}
