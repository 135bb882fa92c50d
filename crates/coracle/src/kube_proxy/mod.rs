//! `coracle kube-proxy`: the proxy as a process of its own, over HTTPS, with upstream's flags and
//! its KubeProxyConfiguration.

mod options;
mod program;
#[cfg(test)]
mod tests;

use std::fs;

use coracle_base::error_chain;
use coracle_client::Client;
use coracle_proxy::{Config, DetectLocal, RunError, SysctlError};
use coracle_serving::{Flag, Settings};
use coracle_settings::Mistakes;

use crate::component_port::component_metrics;
use crate::host;
use crate::process::{self, ProcessError};
use crate::settings::{self, Arguments};
use crate::world::WORLD;
use options::Options;
use program::PROGRAM;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error(transparent)]
    Settings(#[from] Mistakes),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot configure the API client")]
    Client(#[from] coracle_client::ConfigError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Filter(#[from] coracle_netlink::nftables::NftablesError),
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    #[error(transparent)]
    WriteConfig(#[from] settings::WriteConfigError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), ProxyError> {
    let Some(mut options) = settings::read(&PROGRAM, arguments)? else {
        return Ok(());
    };
    options.feature_gates.set()?;
    if let Some(file) = options.write_config_to.clone() {
        return Ok(settings::write_configuration(
            &PROGRAM,
            &mut options,
            &file,
        )?);
    }

    let config = Config {
        version: coracle_apiserver::VERSION,
        settings: shown(&mut options),
        ..options.complete()?
    };
    if options.cleanup {
        return Ok(coracle_proxy::clean(&config.table)?);
    }

    let tracked = options.conntrack.complete().apply(host::processors());
    if options.init_only {
        return Ok(tracked?);
    }
    // In a container these settings may belong to the host.
    if let Err(error) = tracked {
        tracing::warn!(error = %error_chain(&error), "cannot set up connection tracking; continuing with the kernel's settings");
    }

    // As upstream: the proxy runs without it, too.
    if let Err(error) = fs::write(OOM_SCORE, options.oom_score_adj.to_string()) {
        tracing::warn!(%error, score = options.oom_score_adj, "cannot set the OOM score");
    }

    process::block_on(lead(&options, config))?
}

fn shown(options: &mut Options) -> Settings {
    settings::shown(&PROGRAM, options, "kubeproxy.config.k8s.io")
}

/// What a proxy shows of its settings, in a process with these flags.
pub(crate) fn shown_in(flags: &[Flag], config: &Config) -> Settings {
    let mut options = PROGRAM.defaults();
    options.hostname_override.clone_from(&config.node);
    options.min_sync_period = config.min_sync_period;
    if let DetectLocal::ClusterRanges(ranges) = &config.detect_local {
        options.cluster_cidrs.clone_from(ranges);
    }
    Settings {
        flags: Some(flags.to_vec()),
        ..shown(&mut options)
    }
}

const OOM_SCORE: &str = "/proc/self/oom_score_adj";

async fn lead(options: &Options, config: Config) -> Result<(), ProxyError> {
    let client = Client::connect(options.api.access()?, WORLD)
        .await?
        .measured(&component_metrics());
    let client = options.api.limit(client.named("kube-proxy"));

    let ready = || process::announce("kube-proxy is ready\n");
    let work = |mut stop: tokio::sync::watch::Receiver<bool>| async move {
        tokio::select! {
            biased;
            result = coracle_proxy::run(config, client, ready) => result,
            _ = stop.wait_for(|stop| *stop) => Ok(()),
        }
    };

    Ok(process::until_signalled(work).await??)
}
