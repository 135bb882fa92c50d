//! The object types of admission: the request, its namespace, and what mutations make.

use coracle_cel::types::{Fields, ObjectType, ObjectTypes, Type};

/// The type of apply configurations; `Object.spec` and so on are those of their members.
pub(super) const OBJECT: &str = "Object";
pub(super) const JSON_PATCH: &str = "JSONPatch";

/// Adds an object type with these fields.
fn add(objects: &mut ObjectTypes, name: &str, fields: Vec<(&str, Type)>) -> Type {
    let fields = fields.into_iter().map(|(name, of)| (name.into(), of));
    objects.insert(ObjectType {
        name: name.into(),
        fields: Fields::Named(fields.collect()),
    });
    Type::object(name)
}

/// The request, without its object and what it replaces, which are variables of their own.
pub(super) fn admission_request(objects: &mut ObjectTypes) -> Type {
    let text = || Type::String;
    let texts = || Type::list(Type::String);
    let kind = add(
        objects,
        "kubernetes.GroupVersionKind",
        vec![("group", text()), ("version", text()), ("kind", text())],
    );
    let resource = add(
        objects,
        "kubernetes.GroupVersionResource",
        vec![("group", text()), ("version", text()), ("resource", text())],
    );
    let user = add(
        objects,
        "kubernetes.UserInfo",
        vec![
            ("username", text()),
            ("uid", text()),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );

    add(
        objects,
        "kubernetes.AdmissionRequest",
        vec![
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

/// The namespace of the request. `UID` is upstream's spelling here, though objects have `uid`.
pub(super) fn namespace(objects: &mut ObjectTypes) -> Type {
    let text = || Type::String;
    let texts = || Type::list(Type::String);
    let labels = || Type::map(Type::String, Type::String);
    let metadata = add(
        objects,
        "kubernetes.NamespaceMetadata",
        vec![
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", text()),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let spec = add(
        objects,
        "kubernetes.NamespaceSpec",
        vec![("finalizers", texts())],
    );
    let condition = add(
        objects,
        "kubernetes.NamespaceCondition",
        vec![
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", Type::Timestamp),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let status = add(
        objects,
        "kubernetes.NamespaceStatus",
        vec![("conditions", Type::list(condition)), ("phase", text())],
    );

    add(
        objects,
        "kubernetes.Namespace",
        vec![("metadata", metadata), ("spec", spec), ("status", status)],
    )
}

/// What mutations make: apply configurations, whose members may have any name, and JSON patches.
pub(super) fn add_patches(objects: &mut ObjectTypes) {
    objects.insert(ObjectType {
        name: OBJECT.into(),
        fields: Fields::Any,
    });
    let fields = [
        ("op", Type::String),
        ("path", Type::String),
        ("from", Type::String),
        ("value", Type::Dyn),
    ];
    objects.insert(ObjectType {
        name: JSON_PATCH.into(),
        fields: Fields::Untyped(fields.map(|(name, of)| (name.into(), of)).into()),
    });
}
