//! The settings of `coracle agent`. Their names are also the keys of its configuration file.

use coracle_settings::{Format, Mistakes, Program, Section, Setting};

use super::Agent;
use crate::instance::DEFAULT_DATA_DIR;
use crate::settings::{feature_gates, images, logs, node};

pub(super) const PROGRAM: Program<Agent> = Program {
    name: "agent",
    about: "Runs a node of a cluster on this machine: runtime, pod network, kubelet and service proxy. The first start needs \
            --server and --token (`coracle token create` prints both); later ones need neither. Pods keep running when the \
            agent stops: `coracle stop` stops them, `coracle reset` removes the node's files.",
    sections: &[
        section("general", GENERAL),
        section("node and pods", &node()),
        section("node and pods", &images()),
        section("logs", &logs()),
        section("feature gates", &feature_gates()),
    ],
    omissions: &[],
    format: Format::Names,
};

type S = Setting<Agent>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Agent> {
    Section { name, settings }
}

const GENERAL: &[S] = &[
    S::new(
        "config",
        "",
        "Configuration file in YAML; its keys are these flags without the dashes",
        |options| &mut options.config,
    ),
    S::new(
        "data-dir",
        DEFAULT_DATA_DIR,
        "Data directory; its path names the node on this machine",
        |options| &mut options.data_dir,
    ),
    S::new(
        "disable",
        "",
        "Components that are not started: network, proxy",
        |options| &mut options.disable,
    ),
    S::new("kubelet-port", "10250", "Port of the kubelet", |options| {
        &mut options.node.kubelet_port
    }),
    S::new(
        "server",
        "",
        "URL of a server of the cluster: https://HOST[:PORT]. Others are found by the node itself, and all are remembered",
        |options| &mut options.server,
    ),
    S::new(
        "token",
        "",
        "Token with which the node joins, with the hash of the cluster's CA",
        |options| &mut options.token,
    ),
    S::new("token-file", "", "File with the token", |options| {
        &mut options.token_file
    }),
];

impl Agent {
    /// Checks what the types of the settings do not; reports all errors together.
    pub(super) fn check(&self) -> Result<(), Mistakes> {
        let mut mistakes = Vec::new();
        self.node.check(&mut mistakes);
        if self.token.is_some() && self.token_file.is_some() {
            mistakes.push(String::from("--token cannot be used with --token-file"));
        }

        let components = ["network", "proxy"];
        for name in &self.disable {
            if !components.contains(&name.as_str()) {
                mistakes.push(format!("--disable: {name:?} is not network or proxy"));
            }
        }

        match mistakes.is_empty() {
            true => Ok(()),
            false => Err(Mistakes(mistakes)),
        }
    }
}
