//! `kube-rs calls|reflector|watch-list`, with the configuration that KUBECONFIG names.
//!
//! `calls` does one round of everything and says so. The others keep a store of the ConfigMaps of the namespace default
//! and print a line for every change of it, until they are ended.

use std::pin::pin;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_default().await?, "default");
    match std::env::args().nth(1).as_deref() {
        Some("calls") => calls(&maps).await,
        Some("reflector") => follow(maps, watcher::Config::default()).await,
        Some("watch-list") => follow(maps, watcher::Config::default().streaming_lists()).await,
        _ => Err("calls, reflector or watch-list".into()),
    }
}

async fn calls(maps: &Api<ConfigMap>) -> Result<(), Failure> {
    let object = |value: &str| {
        serde_json::from_value(json!({"metadata": {"name": "kube-rs"}, "data": {"k": value}}))
    };
    let mut made = maps.create(&PostParams::default(), &object("v")?).await?;
    made.data.get_or_insert_default().insert("k".into(), "w".into());
    maps.replace("kube-rs", &PostParams::default(), &made).await?;
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"l": "x"}});
    maps.patch("kube-rs", &PatchParams::apply("tests"), &Patch::Apply(applied)).await?;
    let got = maps.get("kube-rs").await?.data.unwrap_or_default();
    assert_eq!(got.into_iter().map(|(key, value)| key + &value).collect::<Vec<_>>(), ["kw", "lx"]);
    assert_eq!(maps.list(&ListParams::default().fields("metadata.name=kube-rs")).await?.items.len(), 1);
    maps.delete("kube-rs", &DeleteParams::default()).await?;
    assert!(maps.get_opt("kube-rs").await?.is_none());
    println!("ok");
    Ok(())
}

async fn follow(maps: Api<ConfigMap>, config: watcher::Config) -> Result<(), Failure> {
    let (store, writer) = reflector::store();
    let events = watcher(maps, config).default_backoff().reflect(writer);
    let mut events = pin!(events);
    loop {
        match events.try_next().await {
            Ok(None) => return Ok(()),
            Ok(Some(event)) => {
                let names = |event: &watcher::Event<ConfigMap>| match event {
                    watcher::Event::Apply(map) => Some(format!("apply {}", map.name_any())),
                    watcher::Event::Delete(map) => Some(format!("delete {}", map.name_any())),
                    watcher::Event::InitDone => Some(format!("synced {}", store.state().len())),
                    watcher::Event::Init | watcher::Event::InitApply(_) => None,
                };
                if let Some(line) = names(&event) {
                    println!("{line}");
                }
            }
            // The server is away, or has forgotten: the watcher tries again.
            Err(error) => println!("error {error}"),
        }
    }
}
