//! PersistentVolumeClaim: a request for storage. Once created it may be bound, expanded and given
//! another attributes class, and nothing else.

use coracle_api::field_error::{FieldError, refuse, shown};
use coracle_api::quantity::Quantity;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Path, Value, names, resource_name};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::claim;
use crate::Part;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{resources, validate_unchanged};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PersistentVolumeClaims,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct PersistentVolumeClaims;

impl Strategy for PersistentVolumeClaims {
    type Object = PersistentVolumeClaim;

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        settle_sources(new, None);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Main {
            settle_sources(new, Some(old));
        }
    }

    fn validate(
        &self,
        new: &View<'_, PersistentVolumeClaim>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        claim::validate_spec(&new.spec.clone().unwrap_or_default(), &SPEC, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, PersistentVolumeClaim>,
        old: &View<'_, PersistentVolumeClaim>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            return validate_status(new, errors);
        }
        self.validate_anew(new, cx, errors);
        validate_same_spec(new.tree, old.tree, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, PersistentVolumeClaim>,
        _: Option<&View<'_, PersistentVolumeClaim>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        if cx.part == Part::Status {
            return Vec::new();
        }

        let old = new.tree.meta().annotation(OLD_CLASS).map(|_| {
            format!("metadata.annotations[{OLD_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead")
        });
        let own = new
            .spec
            .as_ref()
            .map(|spec| claim::warnings(spec, &SPEC))
            .unwrap_or_default();

        old.into_iter().chain(own).collect()
    }
}

/// Makes `dataSource` and `dataSourceRef` agree. A `dataSource` of an unsupported kind is dropped,
/// unless the claim has it already.
fn settle_sources(new: &mut Value, old: Option<&Value>) {
    let given = |claim: &Value, name: &str| {
        claim
            .at(&["spec", name])
            .is_some_and(|found| !found.is_null())
    };
    let in_use = old.is_some_and(|old| given(old, "dataSource") || given(old, "dataSourceRef"));

    let Some(spec) = new.as_object_mut().map(|new| new.object_mut("spec")) else {
        return;
    };
    let known = |source: &Value| {
        let text = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
        matches!(
            (text("apiGroup"), text("kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        )
    };

    let found = |spec: &Map, name: &str| spec.get(name).filter(|found| !found.is_null()).cloned();
    let (plain, reference) = (found(spec, "dataSource"), found(spec, "dataSourceRef"));

    let plain = plain.filter(|plain| in_use || reference.is_some() || known(plain));
    match (plain, reference) {
        (None, None) => {
            spec.remove("dataSource");
        }
        (Some(plain), None) => {
            spec.insert("dataSourceRef", plain);
        }
        (None, Some(mut reference)) => {
            let elsewhere = reference
                .get("namespace")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();

            if let Some(members) = reference.as_object_mut().filter(|_| elsewhere.is_empty()) {
                members.remove("namespace");
                spec.insert("dataSource", reference);
            }
        }
        (Some(_), Some(_)) => {}
    }
}

fn size(claim: &Value, path: &[&str]) -> Quantity {
    claim
        .at(path)
        .and_then(|amount| Quantity::from_value(amount).ok())
        .unwrap_or_default()
}

fn validate_same_spec(new: &Value, old: &Value, errors: &mut Errors) {
    let spec = |claim: &Value| claim.get("spec").cloned().unwrap_or_else(Value::object);
    let (mut now, mut before) = (spec(new), spec(old));
    let class = |claim: &Value| {
        claim
            .at(&["spec", "storageClassName"])
            .and_then(Value::as_str)
            .map(str::to_owned)
    };

    let carry = |to: &mut Value, from: &Value, name: &str| {
        let Some(to) = to.as_object_mut() else { return };
        match from.get(name) {
            Some(value) => to.insert(name, value.clone()),
            None => to.remove(name),
        };
    };

    // The volume is set once.
    if before
        .get("volumeName")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        let wanted = now.clone();
        carry(&mut before, &wanted, "volumeName");
    }

    let (annotated, annotated_now) = (
        old.meta().annotation(OLD_CLASS),
        new.meta().annotation(OLD_CLASS),
    );

    let upgraded = annotated.is_some()
        && class(old).is_none()
        && class(new).as_deref() == annotated
        && (annotated_now.is_none() || annotated_now == annotated);

    if !upgraded && annotated.unwrap_or_default() != annotated_now.unwrap_or_default() {
        let at = Path::Root.field("metadata.annotations");
        let found = annotated_now.unwrap_or_default();
        errors.push(FieldError::invalid_str(
            &at.field(OLD_CLASS),
            found,
            "field is immutable",
        ));
    }

    let from_nothing = class(old).is_none()
        && class(new).is_some_and(|class| annotated.is_none_or(|annotated| annotated == class));
    if upgraded || from_nothing {
        carry(&mut now, &before.clone(), "storageClassName");
    }

    if new.at(&["status", "phase"]).and_then(Value::as_str) == Some("Bound") {
        carry(&mut now, &before.clone(), "volumeAttributesClassName");
        let storage = before.at(&["resources", "requests", "storage"]).cloned();

        let requests = now
            .as_object_mut()
            .and_then(|now| now.get_mut("resources")?.as_object_mut());
        if let Some(requests) =
            requests.and_then(|resources| resources.get_mut("requests")?.as_object_mut())
            && let Some(storage) = storage
        {
            requests.insert("storage", storage);
        }
    }

    if now != before {
        let why = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{} is not {}",
            shown(&now),
            shown(&before)
        );
        errors.push(FieldError::forbidden(&SPEC, why));
    }

    let asked = ["spec", "resources", "requests", "storage"];
    if size(new, &asked) < size(old, &asked)
        && size(new, &asked) <= size(old, &["status", "capacity", "storage"])
    {
        let at = SPEC.field("resources.requests.storage");
        errors.push(FieldError::forbidden(
            &at,
            "field can not be less than status.capacity",
        ));
    }

    let mode = ["spec", "volumeMode"];
    validate_unchanged(
        new.at(&mode),
        old.at(&mode),
        &Path::Root.field("volumeMode"),
        "null",
        errors,
    );

    validate_attributes_class_kept(new, old, errors);
}

/// Validates that a class that was applied is not removed.
fn validate_attributes_class_kept(new: &Value, old: &Value, errors: &mut Errors) {
    let class = ["spec", "volumeAttributesClassName"];
    if new.at(&class) == old.at(&class)
        || old
            .at(&["status", "currentVolumeAttributesClassName"])
            .is_none()
    {
        return;
    }

    let why = match new.at(&class).and_then(Value::as_str) {
        None => {
            "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"
        }
        Some("") => {
            "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"
        }
        Some(_) => return,
    };

    errors.push(FieldError::forbidden(
        &SPEC.field("volumeAttributesClassName"),
        why,
    ));
}

fn validate_status(new: &View<'_, PersistentVolumeClaim>, errors: &mut Errors) {
    let Some(status) = &new.status else { return };
    let basic = |name: &str, at: &Path<'_>, amount: &Quantity, errors: &mut Errors| {
        let negative = amount.value() < 0;
        if negative {
            let why = "must be a valid resource quantity";
            errors.push(FieldError::invalid(
                &at.key(name),
                amount.value().to_string(),
                why,
            ));
        }

        !negative
    };

    for (name, amount) in status.capacity.iter().flatten() {
        basic(
            name,
            &STATUS.field("capacity"),
            &resources::read(amount),
            errors,
        );
    }

    let at = STATUS.field("allocatedResourceStatuses");
    for (name, found) in status.allocated_resource_statuses.iter().flatten() {
        validate_resource_key(name, &at, errors);
        if !RESIZES.contains(&found.as_str()) {
            errors.push(FieldError::not_supported(&at, name, &RESIZES));
        }
    }

    let at = STATUS.field("allocatedResources");
    for (name, amount) in status.allocated_resources.iter().flatten() {
        if validate_resource_key(name, &at, errors)
            && basic(name, &at, &resources::read(amount), errors)
        {
            resources::validate_resource_amount("storage", amount, &at.key(name), errors);
        }
    }
}

/// Of Kubernetes' own resource names only `storage` is valid.
fn validate_resource_key(name: &str, at: &Path<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    refuse(at, name, names::qualified_name(name), errors);
    if errors.len() == before && resource_name::is_native(name) && name != "storage" {
        errors.push(FieldError::not_supported(at, name, &["storage"]));
    }
    errors.len() == before
}

fn print_row(claim: &PersistentVolumeClaim, now: Timestamp) -> Row {
    let metadata = &claim.metadata;
    let spec = claim.spec.as_ref();
    let status = claim.status.as_ref();
    let phase = match &metadata.deletion_timestamp {
        Some(_) => "Terminating",
        None => status
            .and_then(|status| status.phase.as_deref())
            .unwrap_or_default(),
    };

    let volume = spec
        .and_then(|spec| spec.volume_name.as_deref())
        .unwrap_or_default();

    // The requested size is not the capacity: an unbound claim has none.
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (
            cells::quantity(status.and_then(|status| status.capacity.as_ref()?.get("storage"))),
            access_modes(status.and_then(|status| status.access_modes.as_deref())),
        ),
    };

    row![
        cells::name(metadata),
        phase,
        volume,
        capacity,
        modes,
        storage_class(
            metadata,
            spec.and_then(|spec| spec.storage_class_name.as_deref())
        ),
        spec.and_then(|spec| spec.volume_attributes_class_name.as_deref())
            .unwrap_or(cells::UNSET),
        cells::age(metadata, now),
        spec.and_then(|spec| spec.volume_mode.as_deref())
            .unwrap_or(cells::UNSET)
    ]
}

/// `RWO,ROX`: in this order, without duplicates.
pub(super) fn access_modes(modes: Option<&[String]>) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];

    let has = |mode: &str| modes.unwrap_or_default().iter().any(|known| known == mode);
    let shown: Vec<&str> = known
        .iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| *short)
        .collect();

    shown.join(",")
}

/// The class; the old annotation takes precedence over the field.
pub(super) fn storage_class<'a>(metadata: &'a ObjectMeta, field: Option<&'a str>) -> &'a str {
    let annotations = metadata.annotations.as_ref();
    let annotated = annotations
        .and_then(|annotations| annotations.get("volume.beta.kubernetes.io/storage-class"));
    annotated.map(String::as_str).or(field).unwrap_or_default()
}
