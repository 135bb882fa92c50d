//! The settings of the programs, and what several of them declare in the same way.
//!
//! Each program declares its settings in its own folder, as a `coracle_settings::Program`. Flags
//! that upstream's components share are declared here, for a part of the options each.

mod api_client;
#[cfg(test)]
pub(crate) mod declared;
mod election;
mod feature_gates;
mod logs;
mod node;
mod omissions;
mod runtime_config;
mod serving;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use coracle_api::codec::{json, yaml};
use coracle_serving::Settings;
use coracle_settings::{Mistakes, Part, Program, Request};

pub(crate) use api_client::{ApiClient, burst, kubeconfig, master, qps};
pub(crate) use election::{ElectionOptions, election};
pub(crate) use feature_gates::{Gates, feature_gates};
pub(crate) use logs::{LogFormat, Logs, logs};
pub(crate) use node::{
    CniFlags, ImageFlags, NodeOptions, TaintText, check_addresses, check_labels, images, node,
    subdomain,
};
pub(crate) use omissions::{HIDDEN_METRICS, LOGGING, METRICS, PROFILING, SERVING, VERSIONS};
pub(crate) use runtime_config::runtime_config;
pub(crate) use serving::{Delegation, Serving, authentication, authorization, serving};

use crate::process;

/// What a component shows of its settings: the flags, and the configuration under `name`.
pub(crate) fn shown<T: Default>(
    program: &Program<T>,
    options: &mut T,
    name: &'static str,
) -> Settings {
    let config = json::to_vec(&program.configuration(options));
    let config = String::from_utf8(config).expect("JSON is UTF-8");
    Settings {
        config: Some((name, config)),
        flags: Some(program.flags(options)),
    }
}

/// Why the configuration could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the configuration to {}: {error}", file.display())]
pub(crate) struct WriteConfigError {
    file: PathBuf,
    error: io::Error,
}

/// Writes the configuration that leads to `options` to a file, which `--config` can read.
pub(crate) fn write_configuration<T: Default>(
    program: &Program<T>,
    options: &mut T,
    file: &Path,
) -> Result<(), WriteConfigError> {
    let text = yaml::print(&program.configuration(options));
    let written = fs::write(file, text);
    written.map_err(|error| WriteConfigError {
        file: file.to_path_buf(),
        error,
    })
}

/// The arguments of a program with settings of its own.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Flags; `--help` lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    arguments: Vec<String>,
}

impl Arguments {
    pub(crate) fn given(&self) -> &[String] {
        &self.arguments
    }
}

/// Reads the settings of a program and starts its log. `None`: help or the version was requested,
/// and is printed.
pub(crate) fn read<T: Default + Part<Logs>>(
    program: &Program<T>,
    arguments: &Arguments,
) -> Result<Option<T>, Mistakes> {
    let version = format!("Kubernetes {}", coracle_apiserver::VERSION);
    read_as(program, arguments.given(), &version)
}

/// The same for a program with a version of its own.
pub(crate) fn read_as<T: Default + Part<Logs>>(
    program: &Program<T>,
    arguments: &[String],
    version: &str,
) -> Result<Option<T>, Mistakes> {
    match program.read(arguments, |file| fs::read(file))? {
        Request::Help => process::print(program.help()),
        Request::Version => process::print_line(version),
        Request::Run {
            mut options,
            warnings,
        } => {
            process::log(options.part());
            for warning in warnings {
                tracing::warn!("{warning}");
            }
            return Ok(Some(options));
        }
    }

    Ok(None)
}
