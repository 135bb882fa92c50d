//! Kinds of the core group, and the pod templates of all groups.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::ConvertError;
use crate::{Map, Text, Value};

/// Annotations that used to represent fields of a pod. A kubelet that still honoured them would run
/// other containers than the spec has.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

pub(super) fn pod(object: &mut Map) -> Result<(), ConvertError> {
    drop_init_container_annotations(object);

    if let Some(spec) = object.below_mut("spec") {
        service_account(spec);
        if spec.int("terminationGracePeriodSeconds") < 0 {
            spec.insert("terminationGracePeriodSeconds", 1);
        }
    }

    if let Some(status) = object.below_mut("status") {
        one_and_many(
            status,
            "podIP",
            "podIPs",
            |item| item.get("ip")?.as_str(),
            |ip| {
                let mut entry = Map::new();
                entry.insert("ip", ip);
                entry.into()
            },
        );
    }

    Ok(())
}

/// A workload with a pod template at `spec.template`.
pub(super) fn workload(object: &mut Map) -> Result<(), ConvertError> {
    if let Some(spec) = object.below_mut("spec") {
        template(spec);
    }
    Ok(())
}

pub(super) fn pod_template(object: &mut Map) -> Result<(), ConvertError> {
    template(object);
    Ok(())
}

pub(super) fn cron_job(object: &mut Map) -> Result<(), ConvertError> {
    let spec = object
        .below_mut("spec")
        .and_then(|spec| spec.below_mut("jobTemplate"));
    if let Some(spec) = spec.and_then(|template| template.below_mut("spec")) {
        template(spec);
    }
    Ok(())
}

fn template(of: &mut Map) {
    let Some(template) = of.below_mut("template") else {
        return;
    };
    drop_init_container_annotations(template);
    if let Some(spec) = template.below_mut("spec") {
        service_account(spec);
    }
}

pub(super) fn node(object: &mut Map) -> Result<(), ConvertError> {
    if let Some(spec) = object.below_mut("spec") {
        one_and_many(spec, "podCIDR", "podCIDRs", Value::as_str, Value::String);
    }
    Ok(())
}

/// `stringData` is merged into `data`, and never returned.
pub(super) fn secret(object: &mut Map) -> Result<(), ConvertError> {
    let Some(Value::Object(texts)) = object.remove("stringData") else {
        return Ok(());
    };
    if !texts.is_empty() {
        let data = object.object_mut("data");
        for (key, text) in texts {
            let encoded = BASE64.encode(text.as_str().unwrap_or_default());
            data.insert(key, Value::string(encoded));
        }
    }
    Ok(())
}

/// `serviceAccount` is the old name of `serviceAccountName`: read where that is missing, and always
/// written.
fn service_account(spec: &mut Map) {
    if spec.text("serviceAccountName").is_empty() {
        let old = Text::new(spec.text("serviceAccount"));
        if old.is_empty() {
            return;
        }
        spec.insert("serviceAccountName", old);
    } else if spec.text("serviceAccount") != spec.text("serviceAccountName") {
        let name = Text::new(spec.text("serviceAccountName"));
        spec.insert("serviceAccount", name);
    }
}

fn drop_init_container_annotations(of: &mut Map) {
    let annotations = of
        .below_mut("metadata")
        .and_then(|metadata| metadata.below_mut("annotations"));
    if let Some(annotations) = annotations {
        annotations.retain(|name, _| !INIT_CONTAINER_ANNOTATIONS.contains(&name));
    }
}

/// A singular field that became plural: clients that know only the singular one win, and it equals
/// the first of the plural.
fn one_and_many(
    of: &mut Map,
    one: &'static str,
    many: &'static str,
    text: impl Fn(&Value) -> Option<&str>,
    entry: impl Fn(Text) -> Value,
) {
    let single = Text::new(of.text(one));
    let first = of.items(many).first();
    let first = first.map(|first| Text::new(text(first).unwrap_or_default()));
    match first {
        Some(first) if single.is_empty() => drop(of.insert(Text::const_new(one), first)),
        Some(first) if single == first => {}
        _ if single.is_empty() => {}
        _ => drop(of.insert(Text::const_new(many), vec![entry(single)])),
    }
}
