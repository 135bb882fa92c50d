//! The settings of a node, as `coracle server` and `coracle agent` have them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use coracle_api::{Map, Text, Value};
use coracle_kubelet::{ImageSettings, ListedImages, Pulls, Verification};
use coracle_network::Encapsulation;
use coracle_runtime::images::{ProxyError, Registries};
use coracle_settings::{Element, OptionalText, Part, Setting};
use k8s_openapi::api::core::v1::Taint;

use crate::host;
use crate::process::{self, REGISTRIES_FILE, REGISTRY_HOSTS_DIR};
use crate::server::pod_network::Plugins;

/// The settings of a node.
#[derive(Default)]
pub(crate) struct NodeOptions {
    pub(crate) name: OptionalText,
    pub(crate) kubelet_port: Option<u16>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) external_addresses: Vec<IpAddr>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<TaintText>,
    pub(crate) pods: PodFlags,
    pub(crate) images: ImageFlags,
    pub(crate) cni: CniFlags,
    pub(crate) resolv_conf: Option<PathBuf>,
    pub(crate) encapsulation: Option<EncapsulationMode>,
}

impl NodeOptions {
    /// The name of the node: --node-name, or the hostname.
    ///
    /// # Errors
    /// The hostname is not a valid name.
    pub(crate) fn node_name(&self) -> Result<String, String> {
        match &self.name.0 {
            Some(name) => Ok(name.clone()),
            None => subdomain(&host::name().to_lowercase()),
        }
    }

    /// What the types of the settings do not check.
    pub(crate) fn check(&self, mistakes: &mut Vec<String>) {
        mistakes.extend(self.images.settings().err().into_iter().flatten());
        if let Some(Err(why)) = self.name.0.as_ref().map(|name| subdomain(name)) {
            mistakes.push(format!("--node-name: {why}"));
        }
        check_addresses("--node-ip", &self.addresses, mistakes);
        check_addresses("--node-external-ip", &self.external_addresses, mistakes);
        check_labels("--node-label", &self.labels, mistakes);

        let has_other_dirs = self
            .cni
            .bin_dirs
            .iter()
            .any(|dir| dir.as_os_str() != CNI_BIN_DIR);
        if has_other_dirs && self.cni.conf_dir.is_none() {
            mistakes.push(String::from("--cni-bin-dir requires --cni-conf-dir"));
        }
    }

    /// The flags that are given, of those that mean nothing without a node.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let given = [
            ("node-name", self.name.0.is_some()),
            ("kubelet-port", self.kubelet_port.is_some()),
            ("node-external-ip", !self.external_addresses.is_empty()),
            ("node-ip", !self.addresses.is_empty()),
            ("node-label", !self.labels.is_empty()),
            ("node-taint", !self.taints.is_empty()),
            ("pod-max-pids", self.pods.max_pids.is_some()),
            (
                "allowed-unsafe-sysctls",
                !self.pods.allowed_unsafe_sysctls.is_empty(),
            ),
            ("cni-conf-dir", self.cni.conf_dir.is_some()),
            ("resolv-conf", self.resolv_conf.is_some()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        given.map(|(flag, _)| flag).collect()
    }

    /// When packets between nodes are encapsulated.
    pub(crate) fn encapsulation(&self) -> Encapsulation {
        self.encapsulation
            .map_or_else(Encapsulation::default, |mode| mode.0)
    }

    /// The taints with which the node is registered.
    pub(crate) fn taints(&self) -> Vec<Taint> {
        self.taints.iter().map(|taint| taint.0.clone()).collect()
    }
}

/// At most one address of each family, and none that other machines cannot reach.
pub(crate) fn check_addresses(flag: &str, addresses: &[IpAddr], mistakes: &mut Vec<String>) {
    let of_v4 = addresses.iter().filter(|address| address.is_ipv4()).count();
    if of_v4 > 1 || addresses.len() - of_v4 > 1 {
        mistakes.push(format!(
            "{flag}: at most one IPv4 and one IPv6 address can be given"
        ));
    }
    for address in addresses {
        if address.is_loopback() || address.is_unspecified() || address.is_multicast() {
            mistakes.push(format!("{flag}: {address} is not the address of a node"));
        }
    }
}

/// Labels that a node may give itself.
pub(crate) fn check_labels(
    flag: &str,
    labels: &BTreeMap<String, String>,
    mistakes: &mut Vec<String>,
) {
    for (name, value) in labels {
        let wrong = coracle_api::names::qualified_name(name);
        let wrong = wrong
            .into_iter()
            .chain(coracle_api::names::label_value(value));
        mistakes.extend(wrong.map(|why| format!("{flag}: {name}={value}: {why}")));

        if is_reserved(name) {
            mistakes.push(format!(
                "{flag}: {name}: nodes must not set labels of kubernetes.io and k8s.io, except kubelet.kubernetes.io, \
                 node.kubernetes.io and the well-known ones"
            ));
        }
    }
}

/// Labels of Kubernetes that a kubelet must not set, as upstream's kubelet refuses them.
fn is_reserved(name: &str) -> bool {
    let Some((domain, _)) = name.split_once('/') else {
        return false;
    };
    let below = |parent: &str| {
        let above = domain.strip_suffix(parent);
        above.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_kubernetes = below("kubernetes.io") || below("k8s.io");
    let is_free = below("kubelet.kubernetes.io") || below("node.kubernetes.io");
    is_kubernetes && !is_free && !KUBELET_LABELS.contains(&name)
}

/// The well-known labels that a kubelet may set.
const KUBELET_LABELS: [&str; 12] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// A taint: `key=value:effect` on a command line, an object in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaintText(pub(crate) Taint);

impl Element for TaintText {
    const KIND: &'static str = "taint";
    const LIST: &'static str = "[]v1.Taint";

    fn parse(text: &str) -> Result<TaintText, String> {
        let invalid = || {
            format!(
                "invalid taint spec: {text:?}, must be key[=value]:effect with the effect NoSchedule, PreferNoSchedule or \
                 NoExecute"
            )
        };
        let (name, effect) = text.rsplit_once(':').ok_or_else(invalid)?;
        if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
            return Err(invalid());
        }
        let (key, value) = match name.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (name, None),
        };
        let wrong = coracle_api::names::qualified_name(key);
        let wrong = wrong
            .into_iter()
            .chain(coracle_api::names::label_value(value.unwrap_or_default()));
        if let Some(why) = wrong.into_iter().next() {
            return Err(format!("invalid taint spec: {text:?}: {why}"));
        }

        Ok(TaintText(Taint {
            effect: effect.to_owned(),
            key: key.to_owned(),
            value: value.map(str::to_owned),
            ..Taint::default()
        }))
    }

    fn from_value(value: &Value) -> Result<TaintText, String> {
        if let Value::String(text) = value {
            return TaintText::parse(text);
        }
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        TaintText::parse(&format!(
            "{}={}:{}",
            text("key"),
            text("value"),
            text("effect")
        ))
    }

    fn to_value(&self) -> Value {
        let Taint {
            effect, key, value, ..
        } = &self.0;
        let mut map = Map::new();
        map.insert("effect", effect.as_str());
        map.insert("key", key.as_str());
        if let Some(value) = value {
            map.insert("value", Text::new(value));
        }
        Value::Object(map)
    }
}

/// When packets between nodes are encapsulated.
#[derive(Clone, Copy)]
pub(crate) struct EncapsulationMode(Encapsulation);

impl Element for EncapsulationMode {
    const KIND: &'static str = "mode";

    fn parse(text: &str) -> Result<EncapsulationMode, String> {
        match text {
            "never" => Ok(EncapsulationMode(Encapsulation::Never)),
            "cross-subnet" => Ok(EncapsulationMode(Encapsulation::CrossSubnet)),
            "always" => Ok(EncapsulationMode(Encapsulation::Always)),
            _ => Err(format!("{text:?} is not never, cross-subnet or always")),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(match self.0 {
            Encapsulation::Never => "never",
            Encapsulation::CrossSubnet => "cross-subnet",
            Encapsulation::Always => "always",
        })
    }
}

/// Limits of pods.
#[derive(Default)]
pub(crate) struct PodFlags {
    pub(crate) max_pids: Option<i64>,
    pub(crate) allowed_unsafe_sysctls: Vec<String>,
}

impl PodFlags {
    /// The PID limit of one pod; 0 means no limit, as upstream.
    pub(crate) fn pids(&self) -> Option<i64> {
        self.max_pids.map(|most| if most > 0 { most } else { -1 })
    }
}

/// Pulls of images.
#[derive(Default)]
pub(crate) struct ImageFlags {
    pub(crate) registries_file: Option<PathBuf>,
    pub(crate) registry_hosts_dir: Option<PathBuf>,
    pub(crate) serialize_pulls: bool,
    pub(crate) max_parallel_pulls: Option<i64>,
    pub(crate) verification: Option<VerificationPolicy>,
    pub(crate) allowlist: Vec<String>,
}

/// When a pod's credentials are verified for an image that is present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerificationPolicy {
    Never,
    NeverOfPreloaded,
    NeverOfListed,
    Always,
}

impl Element for VerificationPolicy {
    const KIND: &'static str = "policy";

    fn parse(text: &str) -> Result<VerificationPolicy, String> {
        match text {
            "NeverVerify" => Ok(VerificationPolicy::Never),
            "NeverVerifyPreloadedImages" => Ok(VerificationPolicy::NeverOfPreloaded),
            "NeverVerifyAllowlistedImages" => Ok(VerificationPolicy::NeverOfListed),
            "AlwaysVerify" => Ok(VerificationPolicy::Always),
            _ => Err(format!(
                "{text:?} is not NeverVerify, NeverVerifyPreloadedImages, \
                 NeverVerifyAllowlistedImages or AlwaysVerify"
            )),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(match self {
            VerificationPolicy::Never => "NeverVerify",
            VerificationPolicy::NeverOfPreloaded => "NeverVerifyPreloadedImages",
            VerificationPolicy::NeverOfListed => "NeverVerifyAllowlistedImages",
            VerificationPolicy::Always => "AlwaysVerify",
        })
    }
}

impl ImageFlags {
    /// How registries are reached.
    ///
    /// # Errors
    /// A proxy of the environment cannot be used.
    pub(crate) fn registries(&self) -> Result<Registries, ProxyError> {
        Ok(Registries {
            file: self.registries_file.clone(),
            folder: self.registry_hosts_dir.clone(),
            proxies: process::proxies()?,
            ..Registries::default()
        })
    }

    /// How registries are reached where nothing else is set.
    ///
    /// # Errors
    /// As [`ImageFlags::registries`].
    pub(crate) fn default_registries() -> Result<Registries, ProxyError> {
        let flags = ImageFlags {
            registries_file: Some(PathBuf::from(REGISTRIES_FILE)),
            registry_hosts_dir: Some(PathBuf::from(REGISTRY_HOSTS_DIR)),
            ..ImageFlags::default()
        };
        flags.registries()
    }

    pub(crate) fn settings(&self) -> Result<ImageSettings, Vec<String>> {
        let mut mistakes = Vec::new();
        let pulls = self.pulls().unwrap_or_else(|why| {
            mistakes.push(why.to_owned());
            Pulls::default()
        });
        let verification = self.verification().unwrap_or_else(|why| {
            mistakes.push(why);
            Verification::default()
        });

        match mistakes.is_empty() {
            true => Ok(ImageSettings {
                pulls,
                verification,
            }),
            false => Err(mistakes),
        }
    }

    fn pulls(&self) -> Result<Pulls, &'static str> {
        match (self.serialize_pulls, self.max_parallel_pulls) {
            (_, Some(..=0)) => Err("--max-parallel-image-pulls must be a positive number"),
            (true, Some(2..)) => Err(
                "--max-parallel-image-pulls cannot be larger than 1 unless --serialize-image-pulls is false",
            ),
            (true, _) => Ok(Pulls::Serial),
            (false, most) => Ok(Pulls::Parallel(
                most.and_then(|most| usize::try_from(most).ok()),
            )),
        }
    }

    fn verification(&self) -> Result<Verification, String> {
        let listed = self.allowlist.iter().map(|text| ListedImages::parse(text));
        let listed: Vec<ListedImages> = listed
            .collect::<Result<_, _>>()
            .map_err(|why| format!("--preloaded-images-verification-allowlist: {why}"))?;

        match self.verification {
            Some(VerificationPolicy::NeverOfListed) => Ok(Verification::NeverOfListed(listed)),
            _ if !listed.is_empty() => Err("--preloaded-images-verification-allowlist requires \
                 --image-pull-credentials-verification-policy=NeverVerifyAllowlistedImages"
                .to_owned()),
            Some(VerificationPolicy::Never) => Ok(Verification::Never),
            Some(VerificationPolicy::Always) => Ok(Verification::Always),
            Some(VerificationPolicy::NeverOfPreloaded) | None => Ok(Verification::NeverOfPreloaded),
        }
    }
}

/// CNI plugins.
#[derive(Default)]
pub(crate) struct CniFlags {
    pub(crate) conf_dir: Option<PathBuf>,
    pub(crate) bin_dirs: Vec<PathBuf>,
}

impl CniFlags {
    pub(crate) fn plugins(&self) -> Option<Plugins> {
        let configurations = self.conf_dir.clone()?;
        Some(Plugins {
            configurations,
            programs: self.bin_dirs.clone(),
        })
    }
}

/// Parses a DNS-1123 subdomain.
pub(crate) fn subdomain(text: &str) -> Result<String, String> {
    let wrong = coracle_api::names::dns1123_subdomain(text);
    if wrong.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?}: {}", wrong.join(", ")))
    }
}

const CNI_BIN_DIR: &str = "/opt/cni/bin";

/// The settings of a node.
pub(crate) const fn node<T: Part<NodeOptions>>() -> [Setting<T>; 11] {
    [
        Setting::new(
            "allowed-unsafe-sysctls",
            "",
            "Unsafe sysctls that pods may set, separated by commas: names, or prefixes followed by `*`",
            |options: &mut T| &mut options.part().pods.allowed_unsafe_sysctls,
        ),
        Setting::new(
            "cni-bin-dir",
            CNI_BIN_DIR,
            "Directories of CNI plugin binaries, separated by commas",
            |options: &mut T| &mut options.part().cni.bin_dirs,
        ),
        Setting::new(
            "cni-conf-dir",
            "",
            "Use CNI plugins for the pod network, with the first configuration in this directory, instead of the built-in \
             bridge",
            |options: &mut T| &mut options.part().cni.conf_dir,
        ),
        Setting::new(
            "encapsulation",
            "cross-subnet",
            "When packets between pods of this node and of others are encapsulated (VXLAN): never, cross-subnet (where the \
             nodes are on different segments), always",
            |options: &mut T| &mut options.part().encapsulation,
        ),
        Setting::new(
            "node-external-ip",
            "",
            "Addresses of the node outside of its network, at most one of each family, separated by commas",
            |options: &mut T| &mut options.part().external_addresses,
        ),
        Setting::new(
            "node-ip",
            "",
            "Addresses of the node, at most one of each family, separated by commas. Default: the address of the interface \
             with the default route",
            |options: &mut T| &mut options.part().addresses,
        ),
        Setting::new(
            "node-label",
            "",
            "Labels of the node: name=value, separated by commas",
            |options: &mut T| &mut options.part().labels,
        ),
        Setting::new(
            "node-name",
            "",
            "Name of the node. Default: the hostname",
            |options: &mut T| &mut options.part().name,
        ),
        Setting::new(
            "node-taint",
            "",
            "Taints with which the node is registered: key=value:effect, separated by commas",
            |options: &mut T| &mut options.part().taints,
        ),
        Setting::new(
            "pod-max-pids",
            "",
            "Maximum number of processes and threads of one pod; -1: the limit of all pods together. Default: a quarter of \
             that limit",
            |options: &mut T| &mut options.part().pods.max_pids,
        ),
        Setting::new(
            "resolv-conf",
            "",
            "File with the DNS servers and search domains of the host, for pods and the cluster DNS. Default: \
             /etc/resolv.conf, or if its servers are on loopback addresses, the file in which systemd-resolved or \
             NetworkManager names the servers it asks",
            |options: &mut T| &mut options.part().resolv_conf,
        ),
    ]
}

/// The settings of its images.
pub(crate) const fn images<T: Part<NodeOptions>>() -> [Setting<T>; 6] {
    [
        Setting::new(
            "image-pull-credentials-verification-policy",
            "NeverVerifyPreloadedImages",
            "When a pod needs credentials for an image that is present: NeverVerify, NeverVerifyPreloadedImages, \
             NeverVerifyAllowlistedImages, AlwaysVerify",
            |options: &mut T| &mut options.part().images.verification,
        ),
        Setting::new(
            "max-parallel-image-pulls",
            "",
            "Maximum number of images pulled at the same time, if --serialize-image-pulls is false. Default: no limit",
            |options: &mut T| &mut options.part().images.max_parallel_pulls,
        ),
        Setting::new(
            "preloaded-images-verification-allowlist",
            "",
            "Images that need no credentials with the policy NeverVerifyAllowlistedImages, separated by commas: names \
             without tag, or paths that end with /*",
            |options: &mut T| &mut options.part().images.allowlist,
        ),
        Setting::new(
            "registries-file",
            REGISTRIES_FILE,
            "Mirrors and settings of registries, in the format of registries.yaml of k3s; read for every pull. It may be \
             missing",
            |options: &mut T| &mut options.part().images.registries_file,
        ),
        Setting::new(
            "registry-hosts-dir",
            REGISTRY_HOSTS_DIR,
            "Directory with a directory of hosts.toml per registry, as containerd has it; read for every pull. It may be \
             missing",
            |options: &mut T| &mut options.part().images.registry_hosts_dir,
        ),
        Setting::new(
            "serialize-image-pulls",
            "true",
            "Pull one image at a time from each registry",
            |options: &mut T| &mut options.part().images.serialize_pulls,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_kubernetes_are_reserved() {
        let check = |name: &str, expected: bool| {
            let labels = BTreeMap::from([(name.to_owned(), "v".to_owned())]);
            let mut mistakes = Vec::new();
            check_labels("--node-label", &labels, &mut mistakes);
            assert_eq!(!mistakes.is_empty(), expected, "{name}: {mistakes:?}");
        };
        check("disk", false);
        check("example.com/disk", false);
        check("node.kubernetes.io/disk", false);
        check("a.kubelet.kubernetes.io/disk", false);
        check("topology.kubernetes.io/zone", false);
        check("node-role.kubernetes.io/worker", true);
        check("node-restriction.kubernetes.io/x", true);
        check("kubernetes.io/x", true);
        check("notkubernetes.io/x", false);
        check("not a name", true);
    }

    #[test]
    fn taints_are_read_from_texts_and_objects() {
        let check = |text: &str, expected: Option<(&str, Option<&str>, &str)>| {
            let found = TaintText::parse(text).ok().map(|taint| taint.0);
            let expected = expected.map(|(key, value, effect)| Taint {
                effect: effect.to_owned(),
                key: key.to_owned(),
                value: value.map(str::to_owned),
                ..Taint::default()
            });
            assert_eq!(found, expected, "{text}");
        };
        check("a=b:NoSchedule", Some(("a", Some("b"), "NoSchedule")));
        check("a:NoExecute", Some(("a", None, "NoExecute")));
        check("a=b", None);
        check("a=b:Never", None);
        check(":NoSchedule", None);

        let taint = TaintText::parse("a=b:NoSchedule").unwrap();
        assert_eq!(TaintText::from_value(&taint.to_value()).unwrap(), taint);
    }
}
