//! How commands reach a cluster as its administrator.

use std::path::PathBuf;

use clap::Args;
use coracle_client::{Client, Config, ConfigError};

use crate::instance::DEFAULT_DATA_DIR;
use crate::process;
use crate::world::WORLD;

/// The cluster that a command is about.
#[derive(Args)]
pub(crate) struct Administrator {
    /// Kubeconfig of the cluster [default: admin.kubeconfig of the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Data directory of the cluster
    #[arg(long, global = true, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,
}

impl Administrator {
    /// The server, its CA and the credentials.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        let own = self.data_dir.join("admin.kubeconfig");
        let file = self.kubeconfig.as_ref().unwrap_or(&own);
        Config::load(Some(file), None, &process::environment())
    }

    pub(crate) async fn client(&self) -> Result<Client, ConfigError> {
        Client::connect(self.config()?, WORLD).await
    }
}
