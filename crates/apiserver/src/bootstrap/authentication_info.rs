//! The ConfigMap `extension-apiserver-authentication`, from which aggregated API servers read the
//! CAs that this server trusts.
//!
//! Several servers write it, so the CAs of others are kept; expired ones are removed.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::codec::json;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_base::tls::certificates;
use coracle_kinds::Part;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Facts, MANAGER, RETRY};
use crate::ApiError;
use crate::authn::Authorities;
use crate::files::FromFiles;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const KEY: &str = "kube-system/extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";

const PROXY_CA: &str = "requestheader-client-ca-file";

type FromFile<'a> = Option<&'a FromFiles<Authorities>>;

pub(super) async fn run(loopback: &Loopback, facts: &Facts, hook: &Hook) {
    let listening = loopback
        .cache(resource("", "v1", "configmaps"))
        .notifier_of(KEY);
    loop {
        // Subscribed before anything is read, so that no change in between is missed.
        let notified = listening.notifier.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        let (clients, proxies) = (
            facts.client_authorities.as_deref(),
            facts.proxy_authorities.as_deref(),
        );

        let reloaded = async {
            tokio::select! { () = changed(clients) => {}, () = changed(proxies) => {} }
        };
        tokio::pin!(reloaded);

        match ensure(loopback, facts).await {
            Ok(()) => {
                hook.done();
                tokio::select! {
                    () = notified => {}
                    () = reloaded => {}
                }
            }
            Err(error) => {
                super::complain(hook, &error);
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn changed(authorities: FromFile<'_>) {
    match authorities {
        Some(authorities) => authorities.changed().await,
        None => std::future::pending().await,
    }
}

async fn ensure(loopback: &Loopback, facts: &Facts) -> Result<(), ApiError> {
    let config_maps = resource("", "v1", "configmaps");
    let found = loopback.get(config_maps, KEY);
    let before = found
        .as_ref()
        .and_then(|found| found.get("data")?.as_object())
        .cloned()
        .unwrap_or_default();

    let data = wanted(&before, facts, (loopback.registry.now)());
    match found {
        None => {
            loopback
                .ensure(config_maps, NAMESPACE, MANAGER, &config_map(data))
                .await
        }
        Some(_) if before == data => Ok(()),
        Some(mut found) => {
            found
                .as_object_mut()
                .expect("a stored value is an object")
                .insert("data", data);
            loopback
                .update(config_maps, NAMESPACE, Part::Main, MANAGER, &found)
                .await
                .map(drop)
        }
    }
}

/// The data to write: the CAs of other servers, and those of this one.
fn wanted(before: &Map, facts: &Facts, now: Timestamp) -> Map {
    let mut data = before.clone();
    let mut trust = |key: &'static str, authorities: FromFile<'_>| {
        let own = authorities.map(|authorities| authorities.current(now));
        let own = own
            .as_ref()
            .map(|authorities| authorities.certificates())
            .unwrap_or_default();

        let text = bundle(before.str(key).unwrap_or_default(), own, now);
        if !text.is_empty() {
            data.insert(key, text.as_str());
        }
    };

    trust(CLIENT_CA, facts.client_authorities.as_deref());
    trust(PROXY_CA, facts.proxy_authorities.as_deref());
    let Some(proxy) = &facts.front_proxy else {
        return data;
    };
    for (key, texts) in [
        ("requestheader-allowed-names", &proxy.names),
        ("requestheader-username-headers", &proxy.user_headers),
        ("requestheader-uid-headers", &proxy.uid_headers),
        ("requestheader-group-headers", &proxy.group_headers),
        ("requestheader-extra-headers-prefix", &proxy.extra_prefixes),
    ] {
        if !texts.is_empty() || !key.contains("uid") {
            let list: Vec<Value> = texts.iter().map(Value::string).collect();
            let text = json::to_vec(&Value::from(list));
            data.insert(key, String::from_utf8_lossy(&text).as_ref());
        }
    }

    data
}

/// Those that were there and our own, each once, without those that have expired.
fn bundle(before: &str, own: &[CertificateDer<'static>], now: Timestamp) -> String {
    let before = certificates(before.as_bytes()).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let kept = before.iter().chain(own).filter(|certificate| {
        let expires = X509Certificate::from_der(certificate);
        let expires = expires.map(|(_, parsed)| parsed.validity().not_after.timestamp());
        expires.is_ok_and(|at| at >= now.unix_seconds())
            && seen.insert(certificate.as_ref().to_vec())
    });
    kept.map(|certificate| pem(certificate)).collect()
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8_lossy(line) + "\n");
    format!(
        "-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n",
        lines.collect::<String>()
    )
}

fn config_map(data: Map) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", NAME);
    metadata.insert("namespace", NAMESPACE);
    let mut object = Map::new();
    object.insert("apiVersion", "v1");
    object.insert("kind", "ConfigMap");
    object.insert("metadata", metadata);
    if !data.is_empty() {
        object.insert("data", data);
    }
    Value::Object(object)
}
