//! ResourceQuota: a namespace uses no more than its quotas allow.
//!
//! The usage of an object ([`coracle_api::quota`]) is added to the `status.used` of every quota
//! that counts it, before the object is written; a quota that it would exceed refuses it. Each
//! quota is updated by compare-and-swap against the version that was checked, so that concurrent
//! requests, also to different servers, cannot exceed it together. The quota controller corrects
//! the usage charged for objects that were not written after all, and that of deleted ones.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::quantity::Quantity;
use coracle_api::quota::{Amounts, Counter, Kind, amounts};
use coracle_kinds::Part;
use coracle_kinds::builtin;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct ResourceQuota;

#[async_trait]
impl Plugin for ResourceQuota {
    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(object) = object.filter(|_| attributes.cx.resource.namespaced) else {
            return Ok(());
        };
        if counter(attributes).is_ignored() || !changes(object, attributes) {
            return Ok(());
        }

        let found = attributes
            .cx
            .cluster
            .list(builtin("", "v1", "resourcequotas"), attributes.cx.namespace);

        if found.is_empty() {
            return Ok(());
        }

        let refused = |why: String| attributes.forbidden(object, &why);
        let mut charges = Vec::new();
        for quota in &found {
            if let Some(charge) = charge(quota, object, attributes).map_err(refused)? {
                // All quotas are checked before any is charged.
                charged(quota, &charge, attributes).map_err(refused)?;
                charges.push((quota.meta().name(), charge));
            }
        }

        match attributes.cx.dry_run {
            true => Ok(()),
            false => book(&charges, object, attributes).await,
        }
    }
}

fn counter<'a>(attributes: &Attributes<'a>) -> Counter<'a> {
    Counter::of(
        &attributes.cx.resource.group,
        &attributes.cx.resource.plural,
    )
}

/// Whether a write can change what is counted.
fn changes(object: &Value, attributes: &Attributes<'_>) -> bool {
    let ends = |pod: &Value| {
        pod.at(&["spec", "activeDeadlineSeconds"])
            .is_some_and(|after| !after.is_null())
    };

    match (
        counter(attributes).kind(),
        attributes.operation,
        attributes.cx.part,
    ) {
        (_, Operation::Create, Part::Main)
        | (Kind::Pods, Operation::Update, Part::Resize)
        | (Kind::Services | Kind::Claims, Operation::Update, Part::Main) => true,
        (Kind::Pods, Operation::Update, Part::Main) => {
            attributes.old.is_some_and(|old| ends(old) != ends(object))
        }
        (Kind::Claims, Operation::Update, Part::Status) => {
            let allocated = |claim: &Value| {
                claim
                    .at(&["status", "allocatedResources", "storage"])
                    .cloned()
            };
            attributes
                .old
                .is_some_and(|old| allocated(old) != allocated(object))
        }
        _ => false,
    }
}

/// What an object adds to a quota; none where the quota does not count it.
fn charge(
    quota: &Value,
    object: &Value,
    attributes: &Attributes<'_>,
) -> Result<Option<Amounts>, String> {
    let (name, counter) = (quota.meta().name(), counter(attributes));
    let hard = read(quota, "hard");
    let counted: Vec<&str> = hard
        .keys()
        .map(String::as_str)
        .filter(|name| counter.counts(name))
        .collect();

    if counted.is_empty() || !counter.is_in_scope(quota, object) {
        return Ok(None);
    }

    if let Some(missing) = counter.missing(&counted, object) {
        return Err(format!("failed quota: {name}: {missing}"));
    }

    let used = read(quota, "used");
    if counted.iter().any(|name| !used.contains_key(*name)) {
        return Err(format!(
            "status unknown for quota: {name}, resources: {}",
            counted.join(",")
        ));
    }

    let now = attributes.cx.now;
    let mut wanted = counter.usage(object, now);

    // What the object needed before is paid for, where this quota counted it.
    if let Some(old) = attributes
        .old
        .filter(|old| attributes.operation == Operation::Update && counter.is_in_scope(quota, old))
    {
        let before = counter.usage(old, now);
        for (name, amount) in &mut wanted {
            if let Some(paid) = before.get(name) {
                amount.sub(paid);
            }
        }
    }

    wanted.retain(|name, amount| amount.signum() > 0 && hard.contains_key(name));

    Ok((!wanted.is_empty()).then_some(wanted))
}

/// What is used with the charge in it, if it fits.
fn charged(
    quota: &Value,
    charge: &Amounts,
    attributes: &Attributes<'_>,
) -> Result<Amounts, String> {
    let (hard, used) = (read(quota, "hard"), read(quota, "used"));
    let mut after = used.clone();
    amounts::add(&mut after, charge);

    let exceeded: Vec<&String> = charge
        .keys()
        .filter(|name| {
            hard.get(*name)
                .is_some_and(|hard| after.get(*name).is_some_and(|after| after > hard))
        })
        .collect();

    // A claim whose volume turned out larger is counted even if it exceeds the quota.
    if !exceeded.is_empty() && attributes.cx.part != Part::Status {
        let shown = |amounts: &Amounts| {
            let each = exceeded
                .iter()
                .filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?)));
            each.collect::<Vec<_>>().join(",")
        };

        return Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.meta().name(),
            shown(charge),
            shown(&used),
            shown(&hard)
        ));
    }

    Ok(after)
}

/// Charges one quota after the other. If one refuses after all, because of a concurrent request,
/// the charges before it are reverted.
async fn book(
    charges: &[(&str, Amounts)],
    object: &Value,
    attributes: &Attributes<'_>,
) -> Result<(), ApiError> {
    for (index, (name, charge)) in charges.iter().enumerate() {
        let put = |quota: &mut Value| {
            let used = charged(quota, charge, attributes);
            write(
                quota,
                &used.map_err(|why| attributes.forbidden(object, &why))?,
            );
            Ok(())
        };

        match change(name, &put, attributes).await {
            Ok(()) => {}
            // A quota that has been deleted meanwhile limits nothing.
            Err(gone) if gone.code == http::StatusCode::NOT_FOUND => {}
            Err(refused) => {
                for (name, charge) in &charges[..index] {
                    give_back(name, charge, attributes).await;
                }
                return Err(refused);
            }
        }
    }

    Ok(())
}

async fn give_back(name: &str, charge: &Amounts, attributes: &Attributes<'_>) {
    let put = |quota: &mut Value| {
        let mut used = read(quota, "used");
        for (name, amount) in charge {
            if let Some(used) = used.get_mut(name) {
                used.sub(amount);
            }
        }
        write(quota, &used);
        Ok(())
    };

    if let Err(error) = change(name, &put, attributes).await {
        tracing::warn!(
            quota = name,
            ?error,
            "cannot return quota charged for a refused object"
        );
    }
}

/// Changes a quota of the namespace.
async fn change(
    name: &str,
    change: &(dyn Fn(&mut Value) -> Result<(), ApiError> + Send + Sync),
    attributes: &Attributes<'_>,
) -> Result<(), ApiError> {
    let quotas = builtin("", "v1", "resourcequotas");
    let cx = &attributes.cx;
    cx.cluster.change(quotas, cx.namespace, name, change).await
}

/// The amounts of a quota's status.
fn read(quota: &Value, side: &str) -> Amounts {
    let amounts = quota.at(&["status", side]).and_then(Value::as_object);
    let amounts = amounts.into_iter().flat_map(|amounts| amounts.iter());
    amounts
        .map(|(name, amount)| {
            (
                name.to_owned(),
                Quantity::from_value(amount).unwrap_or_default(),
            )
        })
        .collect()
}

fn write(quota: &mut Value, used: &Amounts) {
    let Some(quota) = quota.as_object_mut() else {
        return;
    };
    let place = quota.object_mut("status").object_mut("used");
    for (name, amount) in used {
        place.insert(name.as_str(), amount.to_string());
    }
}
