//! Finalizes a deleted definition: deletes its objects, then removes its finalizer.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::time::Time;
use coracle_api::{Text, Value};
use coracle_kinds::Part;
use coracle_kinds::apiextensions::custom_resource_definition::CLEANUP;
use coracle_kinds::apiextensions::custom_resource_definition::condition::{self, Condition};
use coracle_store::Revision;
use futures_util::future::join_all;
use http::StatusCode;
use tracing::warn;

use super::{MANAGER, RETRY, definitions, served, write_status};
use crate::ApiError;
use crate::authn::Caller;
use crate::cache::{Notifier, any_notified};
use crate::loopback::Loopback;
use crate::registry::{DeleteAdmission, Scope};
use crate::request::{DeleteOptions, ListOptions, Query};
use crate::served::Served;

/// Ends definitions that are deleted. Never returns.
pub(super) async fn run(loopback: &Loopback) {
    let mut staying = BTreeMap::new();
    loop {
        let cache = loopback.cache(definitions()).clone();
        let mut notifiers: Vec<Arc<Notifier>> = vec![cache.notifier().clone()];
        let known = loopback.registry.caches.definitions();
        notifiers.extend(
            known
                .iter()
                .filter(|custom| custom.is_terminating)
                .map(|custom| custom.cache.notifier().clone()),
        );

        drop(known);
        let notified = any_notified(&notifiers);
        let going = going(loopback, &mut staying)
            .into_iter()
            .filter(|definition| {
                definition.meta().is_being_deleted() && definition.meta().has_finalizer(CLEANUP)
            });

        let ended = join_all(going.map(|definition| end(loopback, definition))).await;
        match ended.into_iter().find_map(Result::err) {
            None => notified.await,
            Some(error) => {
                warn!(
                    error = error.message,
                    "cannot finalize CustomResourceDefinition; retrying"
                );
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Definitions with a deletion timestamp anywhere in their text. They can be large, and few are
/// being deleted: only these are decoded, and of the others, `staying`, each revision is searched
/// once.
fn going(loopback: &Loopback, staying: &mut BTreeMap<Text, Revision>) -> Vec<Value> {
    const MARK: &[u8] = b"\"deletionTimestamp\"";
    let cache = loopback.cache(definitions());
    let snapshot = cache.snapshot();

    let (mut stay, mut going) = (BTreeMap::new(), Vec::new());
    for entry in snapshot.entries.iter() {
        let is_known = staying.get(entry.key()) == Some(&entry.revision);
        let is_marked = || entry.bytes().windows(MARK.len()).any(|part| part == MARK);
        match !is_known && is_marked() {
            true => going.push(entry.value(cache.storage_version().of)),
            false => drop(stay.insert(Text::new(entry.key()), entry.revision)),
        }
    }
    *staying = stay;
    going
}

/// One step of finalizing a definition; the change it makes triggers the next.
async fn end(loopback: &Loopback, definition: Value) -> Result<(), ApiError> {
    let custom = loopback
        .registry
        .caches
        .definitions()
        .named(definition.meta().name())
        .cloned();

    // One that never was established has no objects.
    let custom = custom
        .filter(|custom| custom.is_established && custom.cache.snapshot().entries.count() > 0);
    let Some(custom) = custom else {
        return release(loopback, definition).await;
    };
    let progress = Condition {
        of: "Terminating",
        status: true,
        reason: "InstanceDeletionInProgress",
        message: "CustomResource deletion is in progress",
    };

    let mut marked = definition.clone();
    condition::set(&mut marked, &progress, Time((loopback.registry.now)()));

    if marked != definition {
        return write_status(loopback, marked).await;
    }

    // Most are stored in this version: they go even if no webhook converts them any more.
    let storage = custom.storage();
    let (served, caller) = (Served::Custom(custom, storage), Caller::system());
    let scope = Scope::of(&served, "", &caller);
    let everything = ListOptions::parse(&Query::parse(""))?;
    loopback
        .registry
        .delete_collection(
            &scope,
            &everything,
            &DeleteOptions::default(),
            DeleteAdmission::Not,
        )
        .await?;

    Ok(())
}

/// Removes the finalizer of a definition. Its condition stays `Terminating` until it is removed, so
/// that no object is created in between.
async fn release(loopback: &Loopback, mut definition: Value) -> Result<(), ApiError> {
    definition.meta_mut().remove_finalizer(CLEANUP);
    match loopback
        .update(definitions(), "", Part::Main, MANAGER, &served(definition)?)
        .await
    {
        Err(error) if !matches!(error.code, StatusCode::CONFLICT | StatusCode::NOT_FOUND) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
