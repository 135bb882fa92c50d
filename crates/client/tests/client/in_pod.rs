//! A program in a pod: it finds the server through its environment and its account through files,
//! and creates and deletes objects as its role allows.

use std::fs;
use std::path::Path;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::{Client, Config, DeleteOptions, Environment, Error, Mapper, Resource};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, REAL, eventually};

/// The objects that the program creates.
const MANIFEST: &[&str] = &[
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {k: v}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: \
     {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}",
];

/// Writes the files of an account as a kubelet does.
async fn mount(cluster: &Cluster, account: &str, folder: &Path) {
    let accounts = cluster
        .client()
        .resource(&Resource::builtin("", "v1", "serviceaccounts"))
        .namespace("default");

    accounts
        .create(&object(&format!(
            "{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: {account}}}}}"
        )))
        .await
        .unwrap();

    let request = object("{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}");
    let answer = accounts
        .subresource("token")
        .create_below(account, &request)
        .await
        .unwrap();

    fs::write(
        folder.join("token"),
        answer.at(&["status", "token"]).unwrap().as_str().unwrap(),
    )
    .unwrap();

    fs::copy(cluster.file("ca.crt"), folder.join("ca.crt")).unwrap();
    fs::write(folder.join("namespace"), "default").unwrap();
}

/// Maps each document to its resource, and creates or deletes it.
async fn carry_out(client: &Client, mapper: &Mapper, makes: bool) -> Result<(), Error> {
    for text in MANIFEST {
        let wanted = object(text);
        let says = |name: &str| {
            wanted
                .get(name)
                .and_then(Value::as_str)
                .unwrap()
                .to_string()
        };
        let (api_version, kind) = (says("apiVersion"), says("kind"));

        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let mapping = mapper.of_kind(group, version, &kind).await.unwrap();

        let objects = client
            .resource(&mapping.resource)
            .namespace(client.default_namespace());
        match makes {
            true => drop(objects.create(&wanted).await?),
            false => drop(
                objects
                    .delete(wanted.meta().name(), &DeleteOptions::default())
                    .await?,
            ),
        }
    }

    Ok(())
}

#[tokio::test]
async fn a_program_in_a_pod_makes_and_deletes_what_its_role_allows() {
    let cluster = Cluster::start_with_https().await;
    let folder = tempfile::tempdir().unwrap();
    mount(&cluster, "worker", folder.path()).await;

    let server = cluster.https().server;
    let (host, port) = server
        .strip_prefix("https://")
        .unwrap()
        .split_once(':')
        .unwrap();

    let environment = Environment {
        service: Some((host.to_string(), port.to_string())),
        account: folder.path().to_path_buf(),
        ..Environment::default()
    };

    let client = Client::connect(Config::in_cluster(&environment).unwrap(), REAL)
        .await
        .unwrap();
    let mapper = Mapper::new(client.discovery());

    let refused = carry_out(&client, &mapper, true).await.unwrap_err();
    assert_eq!(refused.status().map(|status| status.code), Some(403));
    assert_eq!(
        refused.to_string(),
        "configmaps is forbidden: User \"system:serviceaccount:default:worker\" cannot create resource \"configmaps\" \
         in API group \"\" in the namespace \"default\""
    );

    for (plural, text) in [
        (
            "roles",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: maker, namespace: default}, rules: \
             [{apiGroups: ['', apps], resources: [configmaps, deployments], verbs: [create, delete]}]}",
        ),
        (
            "rolebindings",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: maker, namespace: default}, \
             roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: maker}, subjects: [{kind: ServiceAccount, \
             name: worker, namespace: default}]}",
        ),
    ] {
        let of = Resource::builtin("rbac.authorization.k8s.io", "v1", plural);
        cluster
            .client()
            .resource(&of)
            .create(&object(text))
            .await
            .unwrap();
    }

    eventually("the role is in effect", async || {
        carry_out(&client, &mapper, true).await.ok()
    })
    .await;

    let config_maps = cluster
        .client()
        .resource(&Resource::builtin("", "v1", "configmaps"))
        .namespace("default");
    let made = config_maps.get("settings").await.unwrap();
    assert_eq!(json::to_string(made.get("data").unwrap()), r#"{"k":"v"}"#);

    carry_out(&client, &mapper, false).await.unwrap();
    assert!(config_maps.find("settings").await.unwrap().is_none());

    cluster.stop().await;
}
