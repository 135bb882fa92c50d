//! What nodes need to join: the ConfigMap `cluster-info`, which everyone may read and the bootstrap
//! signer signs; the settings of kubelets and of the network; and what bootstrap tokens and nodes
//! may do. Names and contents are kubeadm's, whose nodes find their way, too.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::codec::json as text;
use coracle_base::error_chain;
use coracle_client::config::{Cluster as KubeconfigCluster, Kubeconfig};
use coracle_client::{Client, Error, Patch, Resource};
use serde_json::{Value, json};

use super::ranges::Ranges;

/// What is told to nodes that join.
pub(super) struct Cluster {
    /// Where nodes reach the API server.
    pub(super) server: SocketAddr,
    /// The CA of the cluster, in PEM.
    pub(super) authority: String,
    pub(super) pods: Ranges,
    pub(super) services: Ranges,
    pub(super) domain: String,
    /// The DNS servers of pods.
    pub(super) dns: Vec<IpAddr>,
}

/// The group of the users of bootstrap tokens, unless a token says otherwise.
pub(crate) const TOKEN_GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";

const RBAC: &str = "rbac.authorization.k8s.io";

/// Applies the objects. The cluster works without them; only nodes cannot join.
pub(super) async fn ensure(client: &Client, cluster: &Cluster) {
    for object in objects(cluster) {
        let mut applied = apply(client, &object).await;
        for _ in 0..TRIES {
            // Namespaces of the system are created while the server starts.
            if !applied.as_ref().is_err_and(Error::is_not_found) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            applied = apply(client, &object).await;
        }
        if let Err(error) = applied {
            let name = object["metadata"]["name"].as_str();
            tracing::warn!(name, error = %error_chain(&error), "cannot apply an object that nodes need to join");
        }
    }
}

/// Attempts to write into a namespace that is not there yet, and the pause between them.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

async fn apply(client: &Client, object: &Value) -> Result<(), Error> {
    let (group, plural) = match object["kind"].as_str() {
        Some("ConfigMap") => ("", "configmaps"),
        Some("Role") => (RBAC, "roles"),
        Some("RoleBinding") => (RBAC, "rolebindings"),
        Some("ClusterRole") => (RBAC, "clusterroles"),
        _ => (RBAC, "clusterrolebindings"),
    };
    let access = client.resource(&Resource::builtin(group, "v1", plural));
    let access = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => access.namespace(namespace),
        None => access,
    };
    let name = object["metadata"]["name"]
        .as_str()
        .expect("each has a name");

    let patch = Patch::Apply {
        object: text::parse(object.to_string().as_bytes()).expect("it is plain data"),
        manager: "coracle".to_owned(),
        force: true,
    };
    access.patch(name, &patch).await.map(drop)
}

fn objects(cluster: &Cluster) -> Vec<Value> {
    let mut objects = vec![cluster_info(cluster)];
    objects.extend(permitted(
        "kube-public",
        "kubeadm:bootstrap-signer-clusterinfo",
        "cluster-info",
        json!([{"apiGroup": RBAC, "kind": "User", "name": "system:anonymous"}]),
    ));

    for (name, role, data) in [
        (
            "kubeadm-config",
            "kubeadm:nodes-kubeadm-config",
            json!({"ClusterConfiguration": cluster_configuration(cluster)}),
        ),
        (
            "kubelet-config",
            "kubeadm:kubelet-config",
            json!({"kubelet": kubelet_configuration(cluster)}),
        ),
    ] {
        objects.push(config_map("kube-system", name, &data));
        let nodes = json!([group("system:nodes"), group(TOKEN_GROUP)]);
        objects.extend(permitted("kube-system", role, name, nodes));
    }

    objects.push(json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": "kubeadm:get-nodes"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
    }));
    objects.extend(bindings());
    objects
}

fn bindings() -> impl Iterator<Item = Value> {
    let requests = "system:certificates.k8s.io:certificatesigningrequests";
    let approver = json!({"kind": "ServiceAccount", "name": "certificate-controller", "namespace": "kube-system"});
    let bindings = [
        (
            "kubeadm:get-nodes",
            "kubeadm:get-nodes".to_owned(),
            group(TOKEN_GROUP),
        ),
        (
            "kubeadm:kubelet-bootstrap",
            "system:node-bootstrapper".to_owned(),
            group(TOKEN_GROUP),
        ),
        (
            "kubeadm:node-autoapprove-bootstrap",
            format!("{requests}:nodeclient"),
            group(TOKEN_GROUP),
        ),
        (
            "kubeadm:node-autoapprove-certificate-rotation",
            format!("{requests}:selfnodeclient"),
            group("system:nodes"),
        ),
        // Ours: agents run the service proxy as their node, and serving certificates of nodes are
        // approved.
        (
            "coracle:node-proxier",
            "system:node-proxier".to_owned(),
            group("system:nodes"),
        ),
        (
            "coracle:node-autoapprove-serving",
            "system:certificates.k8s.io:kubelet-serving-approver".to_owned(),
            approver,
        ),
    ];
    bindings.into_iter().map(|(name, role, subject)| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        })
    })
}

fn group(name: &str) -> Value {
    json!({"apiGroup": RBAC, "kind": "Group", "name": name})
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
        "data": data,
    })
}

/// A role to read one ConfigMap, and its binding.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the caller has no use for the subjects"
)]
fn permitted(namespace: &str, role: &str, config_map: &str, subjects: Value) -> [Value; 2] {
    let metadata = json!({"name": role, "namespace": namespace});
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [config_map], "verbs": ["get"]});
    [
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata, "rules": [rule],
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role}, "subjects": subjects,
        }),
    ]
}

/// The address and the CA of the cluster, as a kubeconfig without users. Signatures beside it are
/// the bootstrap signer's.
fn cluster_info(cluster: &Cluster) -> Value {
    let kubeconfig = format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://{}\n  name: \
         \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\nusers: null\n",
        STANDARD.encode(&cluster.authority),
        cluster.server,
    );
    config_map(
        "kube-public",
        "cluster-info",
        &json!({"kubeconfig": kubeconfig}),
    )
}

/// The address and the CA that the ConfigMap `cluster-info` names.
///
/// # Errors
/// It does not have them.
pub(crate) fn server_in(info: &coracle_api::Value) -> Result<KubeconfigCluster, String> {
    let text = info
        .at(&["data", "kubeconfig"])
        .and_then(coracle_api::Value::as_str)
        .ok_or("the ConfigMap cluster-info has no kubeconfig")?;
    let kubeconfig = Kubeconfig::parse(text.as_bytes(), Path::new("cluster-info"))
        .map_err(|error| error.to_string())?;
    let first = kubeconfig.clusters.into_iter().next();
    first
        .map(|cluster| cluster.entry)
        .ok_or_else(|| "the kubeconfig of cluster-info has no cluster".to_owned())
}

fn cluster_configuration(cluster: &Cluster) -> String {
    format!(
        "apiVersion: kubeadm.k8s.io/v1beta4\nclusterName: kubernetes\ncontrolPlaneEndpoint: {}\nkind: \
         ClusterConfiguration\nkubernetesVersion: {}\nnetworking:\n  dnsDomain: {}\n  podSubnet: {}\n  serviceSubnet: {}\n",
        cluster.server,
        coracle_apiserver::VERSION,
        cluster.domain,
        cluster.pods,
        cluster.services,
    )
}

fn kubelet_configuration(cluster: &Cluster) -> String {
    let servers: String = cluster
        .dns
        .iter()
        .map(|address| format!("- {address}\n"))
        .collect();
    let dns = match servers.is_empty() {
        true => String::new(),
        false => format!("clusterDNS:\n{servers}clusterDomain: {}\n", cluster.domain),
    };
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nauthentication:\n  anonymous:\n    enabled: false\n  webhook:\n    \
         enabled: true\n  x509:\n    clientCAFile: /etc/kubernetes/pki/ca.crt\nauthorization:\n  mode: Webhook\n{dns}kind: \
         KubeletConfiguration\nrotateCertificates: true\nserverTLSBootstrap: true\nstaticPodPath: \
         /etc/kubernetes/manifests\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_learn_the_server_its_authority_and_the_ranges() {
        let cluster = Cluster {
            server: "192.0.2.1:6443".parse().unwrap(),
            authority: "ca".to_owned(),
            pods: "10.244.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            domain: "cluster.local".to_owned(),
            dns: vec!["10.96.0.10".parse().unwrap()],
        };
        let objects = objects(&cluster);
        let data = |name: &str, entry: &str| {
            let found = objects
                .iter()
                .find(|object| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name);
            found.unwrap()["data"][entry].as_str().unwrap().to_owned()
        };

        let info = data("cluster-info", "kubeconfig");
        let info = Kubeconfig::parse(info.as_bytes(), Path::new("cluster-info")).unwrap();
        assert_eq!(info.clusters[0].entry.server, "https://192.0.2.1:6443");
        assert_eq!(
            info.clusters[0].entry.certificate_authority_data,
            STANDARD.encode("ca")
        );

        let config = data("kubeadm-config", "ClusterConfiguration");
        let config = coracle_api::codec::yaml::decode(config.as_bytes()).unwrap();
        let subnet = config.at(&["networking", "podSubnet"]).unwrap();
        assert_eq!(subnet.as_str(), Some("10.244.0.0/16"));

        let kubelet = data("kubelet-config", "kubelet");
        let kubelet = coracle_api::codec::yaml::decode(kubelet.as_bytes()).unwrap();
        let dns = kubelet.get("clusterDNS").unwrap().as_array().unwrap();
        assert_eq!(dns[0].as_str(), Some("10.96.0.10"));
    }

    #[test]
    fn every_binding_has_its_role() {
        for binding in bindings() {
            assert!(binding["roleRef"]["name"].is_string(), "{binding}");
            assert_eq!(binding["subjects"].as_array().unwrap().len(), 1);
        }
    }
}
