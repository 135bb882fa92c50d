//! The environment variables that locate the configuration.

use std::path::{Path, PathBuf};

/// The relevant parts of the environment. A program reads them once and passes them in.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `KUBECONFIG`: a list of files to merge, separated by `:`.
    pub kubeconfig: Option<String>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`.
    pub service: Option<(String, String)>,
    /// The directory of a pod's service account.
    pub account: PathBuf,
}

impl Environment {
    /// Reads the environment; `lookup` is `|name| std::env::var(name).ok()` in most programs.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Environment {
        let given = |name: &str| lookup(name).filter(|text| !text.is_empty());
        Environment {
            kubeconfig: given("KUBECONFIG"),
            home: given("HOME").map(PathBuf::from),
            service: given("KUBERNETES_SERVICE_HOST").zip(given("KUBERNETES_SERVICE_PORT")),
            account: PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount"),
        }
    }

    /// The files to merge, in order, and whether they must all exist.
    pub(super) fn files(&self, explicit: Option<&Path>) -> (Vec<PathBuf>, bool) {
        match (explicit, &self.kubeconfig, &self.home) {
            (Some(file), _, _) => (vec![file.to_path_buf()], true),
            (None, Some(list), _) => {
                let mut files: Vec<PathBuf> = Vec::new();
                for file in list
                    .split(':')
                    .filter(|file| !file.is_empty())
                    .map(PathBuf::from)
                {
                    if !files.contains(&file) {
                        files.push(file);
                    }
                }

                (files, false)
            }
            (None, None, Some(home)) => (vec![home.join(".kube/config")], false),
            (None, None, None) => (Vec::new(), false),
        }
    }
}
