//! IPAddress: an allocated address and its owner. Its name is the address.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::meta::validate::{IMMUTABLE, Prefix};
use coracle_api::names::Messages;
use coracle_api::time::Timestamp;
use coracle_api::{Path, ip, names};
use k8s_openapi::api::networking::v1::{IPAddress, ParentReference};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, text, validate_required};
use crate::{OwnMetadata, Part};

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");

/// All but the name.
const REST_OF_METADATA: OwnMetadata = OwnMetadata {
    prefix: Prefix::Unchecked,
    ..OwnMetadata::named(any_name)
};

fn any_name(_: &str) -> Messages {
    Messages::new()
}

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &IpAddresses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct IpAddresses;

impl Strategy for IpAddresses {
    type Object = IPAddress;

    /// Validated with the rest: the canonical name is part of the error.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_create: false,
            on_update: false,
            ..REST_OF_METADATA
        }
    }

    /// The name is an address, so none can be generated.
    fn generate_name(&self, base: &str, _: u64) -> String {
        base.to_owned()
    }

    fn validate(&self, new: &View<'_, IPAddress>, cx: &Context<'_>, errors: &mut Errors) {
        let meta = new.tree.meta();
        for (field, found) in [
            ("generateName", meta.generate_name()),
            ("name", meta.name()),
        ] {
            if !found.is_empty() {
                ip::check_canonical(found, &METADATA.field(field), errors);
            }
        }

        REST_OF_METADATA.validate(new.tree, cx, errors);
        let at = SPEC.field("parentRef");
        if !has_parent(new) {
            return errors.push(FieldError::required(&at, ""));
        }

        let parent = &new.spec.parent_ref;
        let group = text(&parent.group);
        if !group.is_empty() {
            refuse(
                &at.field("group"),
                group,
                names::dns1123_subdomain(group),
                errors,
            );
        }

        validate_required(
            &parent.resource,
            names::path_segment_name,
            &at.field("resource"),
            errors,
        );

        validate_required(
            &parent.name,
            names::path_segment_name,
            &at.field("name"),
            errors,
        );

        let namespace = text(&parent.namespace);
        refuse(
            &at.field("namespace"),
            namespace,
            names::path_segment_name(namespace),
            errors,
        );
    }

    fn validate_update(
        &self,
        new: &View<'_, IPAddress>,
        old: &View<'_, IPAddress>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate(new, cx, errors);
        REST_OF_METADATA.validate_change(new.tree, old.tree, errors);
        if new.spec.parent_ref != old.spec.parent_ref {
            let shown =
                internal::pointer(has_parent(new).then(|| parent_shown(&new.spec.parent_ref)));
            errors.push(FieldError::invalid(
                &SPEC.field("parentRef"),
                shown,
                IMMUTABLE,
            ));
        }
    }
}

fn parent_shown(parent: &ParentReference) -> String {
    internal::object(&[
        ("Group", internal::text(text(&parent.group))),
        ("Resource", internal::text(&parent.resource)),
        ("Namespace", internal::text(text(&parent.namespace))),
        ("Name", internal::text(&parent.name)),
    ])
}

fn has_parent(address: &View<'_, IPAddress>) -> bool {
    address
        .tree
        .at(&["spec", "parentRef"])
        .is_some_and(|parent| !parent.is_null())
}

fn print_row(address: &IPAddress, now: Timestamp) -> Row {
    let parent = Some(&address.spec.parent_ref).filter(|parent| !parent.resource.is_empty());
    row![
        cells::name(&address.metadata),
        parent.map_or_else(|| cells::NONE.to_string(), reference),
        // Upstream has this cell and no column for it.
        cells::age(&address.metadata, now)
    ]
}

/// `services/default/kubernetes`.
fn reference(to: &ParentReference) -> String {
    let mut text = to.resource.to_lowercase();
    if let Some(group) = to.group.as_deref().filter(|group| !group.is_empty()) {
        text = format!("{text}.{}", group.to_lowercase());
    }
    match to.namespace.as_deref().unwrap_or_default() {
        "" => format!("{text}/{}", to.name),
        namespace => format!("{text}/{namespace}/{}", to.name),
    }
}
