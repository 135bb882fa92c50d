//! The cluster's DNS, as every cluster has it, behind the Service `kube-system/kube-dns`: a DaemonSet
//! with a pod on each of our nodes, which runs this program (`coracle dns`) from an image built of
//! the running binary. They are ordinary pods and keep answering while the server is down.
//!
//! The Service prefers the endpoint of the node that asks. So no lookup depends on another node: one
//! that dies would otherwise be asked until it is noticed, and a resolver that repeats its question
//! would ask it again, because the kernel keeps the way of a flow.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use coracle_api::codec::json as text;
use coracle_client::{
    Client, DeleteOptions, Error, Informer, Informers, Patch, Resource, Selection, Tasks, Typed,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

/// The image that runs this program.
pub(super) const IMAGE: &str = "coracle";

/// This program and the shared libraries it has loaded, for the image.
pub(super) fn program() -> io::Result<(PathBuf, BTreeSet<PathBuf>)> {
    let program = fs::read_link("/proc/self/exe")?;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let libraries = libraries(&maps).filter(|path| *path != program).collect();
    Ok((program, libraries))
}

/// The shared libraries in a process's `/proc/PID/maps`.
fn libraries(maps: &str) -> impl Iterator<Item = PathBuf> {
    let mapped = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    mapped
        .filter(|path| path.starts_with('/') && path.contains(".so"))
        .map(PathBuf::from)
}

/// The label of nodes that have the image, and so can run the cluster DNS.
pub(crate) const NODE_LABEL: &str = "coracle.local/dns";

/// The ConfigMap that customizes it, named as that of kube-dns.
const CONFIG_MAP: &str = "kube-dns";

/// The cluster DNS of a cluster.
pub(super) struct ClusterDns {
    /// The address of its Service.
    pub(super) address: IpAddr,
    pub(super) domain: String,
    /// The unspecified address of all IP versions that pods have.
    pub(super) any: IpAddr,
}

/// Applies the objects of the cluster DNS with server-side apply; fields of other managers stay.
pub(super) async fn ensure(client: &Client, dns: &ClusterDns) -> Result<(), Error> {
    for (group, version, plural, object) in objects(dns) {
        let access = client.resource(&Resource::builtin(group, version, plural));
        let access = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => access.namespace(namespace),
            None => access,
        };

        let name = object["metadata"]["name"]
            .as_str()
            .expect("each has a name")
            .to_owned();

        let object = text::parse(object.to_string().as_bytes()).expect("it is plain data");
        let manager = "coracle".to_owned();
        access
            .patch(
                &name,
                &Patch::Apply {
                    object,
                    manager,
                    force: true,
                },
            )
            .await?;
    }

    Ok(())
}

/// Deletes the Deployment that earlier versions had.
pub(super) async fn delete_deployment(client: &Client) -> Result<(), Error> {
    let deployments = client
        .resource(&Resource::builtin("apps", "v1", "deployments"))
        .namespace("kube-system");
    match deployments.delete(NAME, &DeleteOptions::default()).await {
        Err(error) if error.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Waits until the Service has a ready endpoint.
pub(super) async fn until_ready(client: Client) {
    let tasks = Tasks::new();
    let slices = Selection::all(&Resource::of::<EndpointSlice>())
        .namespace("kube-system")
        .labels("kubernetes.io/service-name=kube-dns");
    let slices: Informer<Typed<EndpointSlice>> = Informers::new(client, tasks.clone()).of(slices);

    let mut changes = slices.subscribe();
    while !changes
        .next()
        .await
        .object()
        .is_some_and(|slice| has_ready_endpoint(slice))
    {}
}

fn has_ready_endpoint(slice: &EndpointSlice) -> bool {
    let conditions = slice
        .endpoints
        .iter()
        .flatten()
        .filter_map(|endpoint| endpoint.conditions.as_ref());
    conditions
        .filter_map(|conditions| conditions.ready)
        .any(|ready| ready)
}

/// The name of the DaemonSet and of what belongs to it.
const NAME: &str = "coracle-dns";

fn objects(dns: &ClusterDns) -> Vec<(&'static str, &'static str, &'static str, serde_json::Value)> {
    let labels = json!({"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS", "kubernetes.io/cluster-service": "true"});
    let meta = |name: &str| json!({"name": name, "namespace": "kube-system", "labels": labels});
    let role = "system:coracle-dns";
    let rbac = "rbac.authorization.k8s.io";

    vec![
        (
            "",
            "v1",
            "serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(NAME)}),
        ),
        (
            rbac,
            "v1",
            "clusterroles",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role},
                "rules": [
                    {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
                    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
                ],
            }),
        ),
        (
            rbac,
            "v1",
            "clusterrolebindings",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": "kube-system"}],
            }),
        ),
        (
            rbac,
            "v1",
            "roles",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta(NAME),
                "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CONFIG_MAP], "verbs": ["list", "watch"]},
                ],
            }),
        ),
        (
            rbac,
            "v1",
            "rolebindings",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta(NAME),
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": NAME},
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": "kube-system"}],
            }),
        ),
        (
            "",
            "v1",
            "services",
            service(&meta("kube-dns"), dns.address),
        ),
        ("apps", "v1", "daemonsets", daemon_set(&meta(NAME), dns)),
    ]
}

fn service(metadata: &serde_json::Value, address: IpAddr) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {
            "clusterIP": address.to_string(),
            "selector": {"k8s-app": "kube-dns"},
            "trafficDistribution": "PreferSameNode",
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
                {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
            ],
        },
    })
}

fn daemon_set(metadata: &serde_json::Value, dns: &ClusterDns) -> serde_json::Value {
    let arguments = [
        "dns".to_owned(),
        format!("--listen={}", SocketAddr::new(dns.any, 53)),
        format!("--cluster-domain={}", dns.domain),
        format!("--cluster-dns={}", dns.address),
        format!("--config-map=kube-system/{CONFIG_MAP}"),
        "--state=/state/names".to_owned(),
        format!("--metrics-listen={}", SocketAddr::new(dns.any, 9153)),
    ];

    let container = json!({
        "name": "dns",
        "image": format!("coracle.local/{IMAGE}"),
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        // Delays the first readiness probe until the server listens: a probe that fails would delay
        // readiness by a whole period.
        "lifecycle": {"postStart": {"exec": {"command": ["/coracle", "dns", "--wait-for=127.0.0.1:53"]}}},
        "readinessProbe": {"tcpSocket": {"port": 53}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        },
        "volumeMounts": [{"name": "state", "mountPath": "/state"}],
    });

    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-dns"}},
            // The old pod answers until the new one does.
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-dns"}},
                "spec": {
                    "serviceAccountName": NAME,
                    "priorityClassName": "system-node-critical",
                    "nodeSelector": {NODE_LABEL: "true"},
                    "dnsPolicy": "Default",
                    "tolerations": [
                        {"key": "CriticalAddonsOnly", "operator": "Exists"},
                        {"effect": "NoSchedule", "operator": "Exists"},
                    ],
                    "containers": [container],
                    "volumes": [{"name": "state", "emptyDir": {}}],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_is_mapped() {
        let maps = "55-56 r-xp 0 08:01 1 /usr/bin/coracle\n\
                    7f-80 r--p 0 08:01 2 /usr/lib/libc.so.6\n\
                    7f-80 r-xp 1 08:01 2 /usr/lib/libc.so.6\n\
                    7f-80 r-xp 1 08:01 3 /usr/lib/ld-linux-x86-64.so.2\n\
                    7f-80 rw-p 0 00:00 0 [heap]\n";

        let found: BTreeSet<PathBuf> = libraries(maps).collect();
        assert_eq!(
            found,
            ["/usr/lib/ld-linux-x86-64.so.2", "/usr/lib/libc.so.6"]
                .map(PathBuf::from)
                .into()
        );
    }
}
