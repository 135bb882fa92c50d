//! CNI plugins, version 1.1.
//!
//! The first valid configuration of a directory ([`config`]) is a list of plugins. To connect a
//! pod, they run in order ([`exec`]), each with the result of the previous one ([`result`]); to
//! disconnect it, they run in reverse with the configuration and result of the connect, which are
//! stored in files ([`cache`]) in the format of other runtimes. If a plugin no longer exists, the
//! current configuration of the network replaces it ([`undo`]). Operations on one sandbox are
//! serialized.

mod cache;
mod config;
mod exec;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod result;
mod undo;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use coracle_base::sync::Mutex;
use serde_json::{Value, json};

use crate::{Attachment, Error, NotReady, Pod, PodNetwork};
use cache::Cached;
pub use config::ConfigError;
use config::{NetworkList, Plugin};
use exec::Call;
pub use exec::PluginError;

/// The directories of plugins and configurations.
#[derive(Clone, Debug)]
pub struct CniConfig {
    /// Directory of configurations: `/etc/cni/net.d`.
    pub configurations: PathBuf,
    /// Directories of plugins, searched in order: `/opt/cni/bin`.
    pub plugins: Vec<PathBuf>,
    /// Directory of stored results.
    pub cache: PathBuf,
    /// Timeout of a plugin.
    pub timeout: Duration,
}

/// The network made by CNI plugins.
pub struct CniNetwork {
    config: CniConfig,
    locks: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

/// The name of a pod's interface; CRI clients expect it.
const INTERFACE: &str = "eth0";

impl CniNetwork {
    pub fn new(config: CniConfig) -> Self {
        Self {
            config,
            locks: Mutex::default(),
        }
    }

    async fn add(&self, pod: &Pod, list: &NetworkList) -> Result<Value, Error> {
        let mut result = None;
        for plugin in &list.plugins {
            result = self
                .run("ADD", pod, list, plugin, result.as_ref())
                .await?
                .or(result);
        }
        Ok(result.unwrap_or_else(|| json!({})))
    }

    async fn delete(
        &self,
        pod: &Pod,
        list: &NetworkList,
        result: Option<&Value>,
    ) -> Result<(), Error> {
        let mut first_failure = Ok(());
        for plugin in list.plugins.iter().rev() {
            // A failing plugin does not stop the others: they release what they hold, addresses
            // above all.
            match self.run("DEL", pod, list, plugin, result).await {
                Ok(_) => {}
                Err(error) if first_failure.is_ok() => first_failure = Err(error),
                Err(error) => {
                    tracing::warn!(sandbox = pod.sandbox, plugin = plugin.kind, %error, "CNI DEL failed as well");
                }
            }
        }

        first_failure
    }

    /// The list to disconnect a pod that `then` connected.
    fn disconnect_list(&self, then: NetworkList) -> NetworkList {
        let exists = |plugin: &Plugin| {
            plugin
                .programs()
                .all(|kind| exec::find(kind, &self.config.plugins).is_ok())
        };
        // If the directory cannot be read, the error names the missing plugin.
        let now = NetworkList::named(&self.config.configurations, &then.name)
            .ok()
            .flatten();
        undo::disconnect_list(then, now, exists)
    }

    /// Runs one plugin.
    async fn run(
        &self,
        command: &'static str,
        pod: &Pod,
        list: &NetworkList,
        plugin: &Plugin,
        previous: Option<&Value>,
    ) -> Result<Option<Value>, Error> {
        let call = Call {
            command,
            sandbox: &pod.sandbox,
            // Without a namespace the path is empty; plugins then clean up what is outside of it.
            netns: pod.netns.exists().then_some(pod.netns.as_path()),
            interface: INTERFACE,
            arguments: arguments(pod),
            plugins: &self.config.plugins,
            timeout: self.config.timeout,
        };

        Ok(call
            .run(
                &plugin.kind,
                &list.input(plugin, &capabilities(pod), previous),
            )
            .await?)
    }

    /// The lock of a sandbox, removed when unused.
    fn lock_of(&self, sandbox: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock();
        locks.retain(|_, lock| lock.strong_count() > 0);
        let known = locks.entry(sandbox.to_owned()).or_default();
        known.upgrade().unwrap_or_else(|| {
            let fresh = Arc::new(tokio::sync::Mutex::new(()));
            *known = Arc::downgrade(&fresh);
            fresh
        })
    }
}

#[async_trait]
impl PodNetwork for CniNetwork {
    fn ready(&self) -> Result<(), NotReady> {
        NetworkList::first(&self.config.configurations)
            .map(drop)
            .map_err(|error| NotReady {
                reason: "NetworkPluginNotReady".to_owned(),
                message: format!(
                    "Network plugin returns error: cni plugin not initialized: {error}"
                ),
            })
    }

    async fn attach(&self, pod: &Pod) -> Result<Attachment, Error> {
        let lock = self.lock_of(&pod.sandbox);
        let _alone = lock.lock().await;
        let list = NetworkList::first(&self.config.configurations)?;
        list.check_name()?;

        // Checked before the first plugin runs, so that nothing is left half-connected.
        for plugin in &list.plugins {
            exec::find(&plugin.kind, &self.config.plugins)?;
        }

        let mut cached = Cached::new(&pod.sandbox, INTERFACE, &list, &pod.netns, &arguments(pod));

        // Stored before the first plugin runs, so that a disconnect knows what to undo.
        cached.write(&self.config.cache)?;
        let added = match self.add(pod, &list).await {
            Ok(result) => addresses(&result).map(|addresses| (result, addresses)),
            Err(error) => Err(error),
        };

        match added {
            Ok((result, addresses)) => {
                cached.result = result;
                cached.write(&self.config.cache)?;
                Ok(Attachment { addresses })
            }
            Err(error) => {
                // The original failure is reported. If it cannot be undone now, the disconnect
                // retries.
                match self.delete(pod, &list, None).await {
                    Ok(()) => {
                        Cached::remove(&self.config.cache, &list.name, &pod.sandbox, INTERFACE)?
                    }
                    Err(left) => {
                        tracing::warn!(sandbox = pod.sandbox, error = %left, "cannot undo failed pod attachment")
                    }
                }

                Err(error)
            }
        }
    }

    async fn detach(&self, pod: &Pod) -> Result<(), Error> {
        let lock = self.lock_of(&pod.sandbox);
        let _alone = lock.lock().await;
        let Some(cached) = Cached::find(&self.config.cache, &pod.sandbox, INTERFACE)? else {
            return Ok(());
        };
        let list = self.disconnect_list(NetworkList::read(&cached.config)?);

        let result = Some(&cached.result).filter(|result| !result.is_null());
        self.delete(pod, &list, result)
            .await
            .map_err(|error| match error {
                Error::Plugin(PluginError::NotFound { kind, folders }) => Error::PluginGone {
                    kind,
                    folders,
                    network: list.name.clone(),
                    configurations: self.config.configurations.clone(),
                },
                other => other,
            })?;

        Ok(Cached::remove(
            &self.config.cache,
            &list.name,
            &pod.sandbox,
            INTERFACE,
        )?)
    }
}

fn addresses(result: &Value) -> Result<Vec<IpAddr>, Error> {
    let found = result::addresses(result, INTERFACE);
    if found.is_empty() {
        Err(Error::NoAddress)
    } else {
        Ok(found)
    }
}

/// CNI_ARGS about the pod, with the names that plugins expect.
fn arguments(pod: &Pod) -> Vec<(String, String)> {
    let arguments = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", &pod.namespace),
        ("K8S_POD_NAME", &pod.name),
        ("K8S_POD_INFRA_CONTAINER_ID", &pod.sandbox),
        ("K8S_POD_UID", &pod.uid),
    ];
    arguments
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Capability arguments.
fn capabilities(pod: &Pod) -> BTreeMap<&'static str, Value> {
    let mut capabilities = BTreeMap::new();
    let ports: Vec<Value> = pod
        .ports
        .iter()
        .map(|port| {
            let mut mapping = json!({
                "hostPort": port.host_port,
                "containerPort": port.container_port,
                "protocol": port.protocol.name(),
            });

            if let Some(host) = port.host_ip {
                mapping["hostIP"] = json!(host);
            }

            mapping
        })
        .collect();

    if !ports.is_empty() {
        capabilities.insert("portMappings", json!(ports));
    }
    if let Some(bandwidth) = bandwidth(&pod.annotations) {
        capabilities.insert("bandwidth", bandwidth);
    }

    capabilities
}

/// Bandwidth limits by the pod's annotations, in bits per second. The burst is unlimited, as in
/// other runtimes.
fn bandwidth(annotations: &BTreeMap<String, String>) -> Option<Value> {
    let rate = |direction: &str| {
        annotations
            .get(&format!("kubernetes.io/{direction}-bandwidth"))
            .and_then(|text| bits(text))
    };

    let mut limits = json!({});
    for (direction, name) in [("ingress", "ingress"), ("egress", "egress")] {
        if let Some(rate) = rate(direction) {
            limits[format!("{name}Rate")] = json!(rate);
            limits[format!("{name}Burst")] = json!(i32::MAX);
        }
    }

    limits
        .as_object()
        .is_some_and(|limits| !limits.is_empty())
        .then_some(limits)
}

/// An integer quantity with a suffix.
fn bits(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };

    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_read_from_annotations() {
        let check = |annotations: &[(&str, &str)], expected: Option<Value>| {
            let annotations = annotations
                .iter()
                .map(|(name, value)| (format!("kubernetes.io/{name}"), (*value).to_owned()));
            assert_eq!(bandwidth(&annotations.collect()), expected);
        };

        check(&[], None);
        check(&[("ingress-bandwidth", "nonsense")], None);
        check(
            &[("ingress-bandwidth", "10M")],
            Some(json!({"ingressRate": 10_000_000, "ingressBurst": i32::MAX})),
        );

        check(
            &[("egress-bandwidth", "1Ki")],
            Some(json!({"egressRate": 1024, "egressBurst": i32::MAX})),
        );
    }
}
