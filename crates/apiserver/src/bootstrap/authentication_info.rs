//! The ConfigMap `extension-apiserver-authentication`: servers behind the aggregator read there whom this one trusts.
//!
//! Several servers write it, so that what others trust stays; authorities that have expired go.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{MANAGER, RETRY};
use crate::ApiError;
use crate::authn::Authorities;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};
use crate::registry::Part;
use crate::serve::certificates;
use crate::serve::files::FromFiles;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const KEY: &str = "kube-system/extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";

pub(super) async fn run(loopback: &Loopback, authorities: Option<&FromFiles<Authorities>>, hook: &Hook) {
    let listening = loopback.cache(resource("", "v1", "configmaps")).bell_of(KEY);
    loop {
        // Listened to before anything is looked at, so that nothing in between is missed.
        let heard = listening.bell.heard();
        tokio::pin!(heard);
        heard.as_mut().enable();
        let reloaded = async {
            match authorities {
                Some(authorities) => authorities.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(reloaded);
        match ensure(loopback, authorities).await {
            Ok(()) => {
                hook.done();
                tokio::select! {
                    () = heard => {}
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

async fn ensure(loopback: &Loopback, authorities: Option<&FromFiles<Authorities>>) -> Result<(), ApiError> {
    let config_maps = resource("", "v1", "configmaps");
    let now = (loopback.registry.now)();
    let own = authorities.map(|authorities| authorities.current(now));
    let own = own.as_ref().map(|authorities| authorities.certificates()).unwrap_or_default();
    let found = loopback.get(config_maps, KEY);
    let before = found.as_ref().and_then(|found| found.at(&["data", CLIENT_CA])).and_then(Value::as_str);
    let text = bundle(before.unwrap_or_default(), own, now);
    match found {
        None => loopback.ensure(config_maps, NAMESPACE, MANAGER, &config_map(&text)).await,
        Some(found) if before.unwrap_or_default() == text => {
            drop(found);
            Ok(())
        }
        Some(mut found) => {
            let data = found.as_object_mut().expect("what is kept is an object").object_mut("data");
            data.insert(CLIENT_CA, text.as_str());
            loopback.update(config_maps, NAMESPACE, Part::Main, MANAGER, &found).await.map(drop)
        }
    }
}

/// Those that were there and our own, each once, without those that have expired.
fn bundle(before: &str, own: &[CertificateDer<'static>], now: Timestamp) -> String {
    let before = certificates(before.as_bytes()).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let kept = before.iter().chain(own).filter(|certificate| {
        let expires = X509Certificate::from_der(certificate);
        let expires = expires.map(|(_, parsed)| parsed.validity().not_after.timestamp());
        expires.is_ok_and(|at| at >= now.unix_seconds()) && seen.insert(certificate.as_ref().to_vec())
    });
    kept.map(|certificate| pem(certificate)).collect()
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", lines.collect::<String>())
}

fn config_map(client_ca: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", NAME);
    metadata.insert("namespace", NAMESPACE);
    let mut object = Map::new();
    object.insert("apiVersion", "v1");
    object.insert("kind", "ConfigMap");
    object.insert("metadata", metadata);
    if !client_ca.is_empty() {
        let mut data = Map::new();
        data.insert(CLIENT_CA, client_ca);
        object.insert("data", data);
    }
    Value::Object(object)
}
