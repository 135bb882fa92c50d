//! CustomResourceDefinition: its validation, and what follows from it in its own status.
//!
//! Objects are validated in the storage version, where what all versions share is given once:
//! errors name fields of that version, as upstream's do. Name conflicts and serving of resources
//! are handled in the API server's `definitions`.

pub mod approval;
mod columns;
pub mod condition;
mod conversion;
mod names;
mod rules;
mod spec;
mod subresources;
mod versions;
pub mod view;

use coracle_api::field_error::FieldError;
use coracle_api::meta::validate::{self, Prefix, Rules};
use coracle_api::names::dns1123_subdomain;
use coracle_api::schema::check::Demands;
use coracle_api::time::Time;
use coracle_api::{Path, Text, Value};
use serde::de::IgnoredAny;

use self::approval::Approval;
use self::condition::Condition;
use self::view::Definition;
use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::validate_immutable;
use crate::{OwnMetadata, Part, keep_metadata};

/// The finalizer that keeps a definition until its objects are deleted.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &CustomResourceDefinitions,
    ..Behaviour::DEFAULT
};

struct CustomResourceDefinitions;

impl Strategy for CustomResourceDefinitions {
    /// Trees are validated: typed views exist of the served version alone.
    type Object = IgnoredAny;

    /// The name of a new definition follows from its spec, so it is validated with that.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            known_finalizers: false,
            on_create: false,
            ..OwnMetadata::named(dns1123_subdomain)
        }
    }

    /// Schemas are large, and all their patterns are read.
    fn takes_long(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        if let Some(object) = new.as_object_mut() {
            object.remove("status");
        }
        store_version(new);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        match cx.part {
            Part::Status => keep_metadata(new, old),
            _ => store_version(new),
        }
    }

    fn validate(&self, new: &View<'_, IgnoredAny>, _: &Context<'_>, errors: &mut Errors) {
        let definition = Definition::of(new.tree);
        validate_metadata(new.tree, &definition, errors);
        spec::validate(&definition, &spec::Requirements::of_new(), errors);
        validate_status(&definition, errors);
        versions::validate_stored(&definition, errors);
        validate_approval(new.tree, None, &definition, errors);
        validate_preserving(&definition, None, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, IgnoredAny>,
        old: &View<'_, IgnoredAny>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let (definition, before) = (Definition::of(new.tree), Definition::of(old.tree));
        if cx.part == Part::Status {
            return validate_status(&definition, errors);
        }

        spec::validate(
            &definition,
            &spec::Requirements::after(&before, &definition),
            errors,
        );

        if condition::is_true(old.tree, "Established") {
            validate_immutable(new.tree, old.tree, &["spec", "scope"], "\"\"", errors);
            validate_immutable(
                new.tree,
                old.tree,
                &["spec", "names", "kind"],
                "\"\"",
                errors,
            );
        }

        validate_immutable(new.tree, old.tree, &["spec", "group"], "\"\"", errors);
        validate_immutable(
            new.tree,
            old.tree,
            &["spec", "names", "plural"],
            "\"\"",
            errors,
        );

        validate_status(&definition, errors);
        versions::validate_stored(&definition, errors);
        validate_approval(new.tree, Some(old.tree), &definition, errors);
        validate_preserving(&definition, Some(&before), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, IgnoredAny>,
        old: Option<&View<'_, IgnoredAny>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let definition = Definition::of(new.tree);
        let mut warnings = Vec::new();
        if cx.part == Part::Main {
            let before = old
                .map(|old| Definition::of(old.tree).unknown_formats())
                .unwrap_or_default();
            let formats = definition
                .unknown_formats()
                .into_iter()
                .filter(|name| !before.contains(name));

            warnings.extend(formats.map(|name| {
                format!(
                    "unrecognized format {}",
                    coracle_api::go_text::Quoted(&name)
                )
            }));
        }

        warnings
    }

    /// A definition is removed once its objects are deleted, which has not begun yet.
    fn holds(&self, object: &Value) -> bool {
        !object.meta().is_being_deleted()
    }

    fn mark_deleted(&self, object: &mut Value) {
        let generation = object.meta().generation();
        let since = object.meta().deletion_timestamp();
        let mut metadata = object.meta_mut();
        metadata.add_finalizer(CLEANUP);

        // Upstream sets the time, and nothing else.
        metadata.members().remove("deletionGracePeriodSeconds");
        metadata.set_generation((generation - 1).max(1));

        let Some(since) = since else { return };
        condition::set(
            object,
            &Condition {
                of: "Terminating",
                status: true,
                reason: "InstanceDeletionPending",
                message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            },
            Time(since),
        );
    }
}

/// Adds the storage version to the stored versions.
fn store_version(new: &mut Value) {
    let definition = Definition::of(new);
    let Some(name) = definition.storage_version().map(Text::new) else {
        return;
    };
    if definition.stored_versions().any(|known| known == name) {
        return;
    }

    let Some(object) = new.as_object_mut() else {
        return;
    };

    let stored = object
        .object_mut("status")
        .get_or_insert_with("storedVersions", || Value::Array(Vec::new()));
    if stored.is_null() {
        *stored = Value::Array(Vec::new());
    }
    if let Some(stored) = stored.as_array_mut() {
        stored.push(Value::String(name));
    }
}

/// The name consists of names in the spec, so a generated name is never valid.
fn validate_metadata(object: &Value, definition: &Definition<'_>, errors: &mut Errors) {
    let rules = Rules {
        namespaced: false,
        name: dns1123_subdomain,
        prefix: Prefix::LikeName,
    };

    let mut found = Errors::new();
    let at = Path::Root.field("metadata");
    validate::new(object.meta(), &at, rules, &mut found);
    let mut found: Vec<FieldError> = found.into_iter().collect();
    let wanted = format!(
        "{}.{}",
        definition.names().text("plural"),
        definition.spec.text("group")
    );

    let mut place = 0;
    for (field, name) in [
        ("generateName", object.meta().generate_name()),
        ("name", object.meta().name()),
    ] {
        let at = at.field(field);
        let path = at.to_string();
        place += found[place..]
            .iter()
            .take_while(|error| error.field == path)
            .count();

        if !name.is_empty() && name != wanted {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            found.insert(place, FieldError::invalid_str(&at, name, detail));
            place += 1;
        }
    }

    errors.extend(found);
}

fn validate_status(definition: &Definition<'_>, errors: &mut Errors) {
    if let Some(accepted) = definition
        .status
        .and_then(|status| status.below("acceptedNames"))
    {
        names::validate(
            accepted,
            &Path::Root.field("status").field("acceptedNames"),
            errors,
        );
    }
}

/// APIs in protected groups need the approval of the Kubernetes community.
fn validate_approval(
    new: &Value,
    old: Option<&Value>,
    definition: &Definition<'_>,
    errors: &mut Errors,
) {
    if !approval::is_protected(definition.spec.text("group")) {
        return;
    }

    let of = |object: &Value| Approval::of(object.meta().annotation(approval::ANNOTATION));
    if old.is_some_and(|old| of(old) == of(new)) {
        return;
    }

    let metadata = Path::Root.field("metadata");
    let annotations = metadata.field("annotations");
    let at = annotations.key(approval::ANNOTATION);
    let given = new.meta().annotation(approval::ANNOTATION);

    let explained = of(new).explained(given);
    match of(new) {
        Approval::Given | Approval::Bypassed => {}
        Approval::Missing => errors.push(FieldError::required(&at, explained)),
        Approval::Invalid => errors.push(FieldError::invalid_str(
            &at,
            given.unwrap_or_default(),
            explained,
        )),
    }
}

fn validate_preserving(new: &Definition<'_>, old: Option<&Definition<'_>>, errors: &mut Errors) {
    let preserves = |definition: &Definition<'_>| definition.spec.flag("preserveUnknownFields");
    if preserves(new) && !old.is_some_and(preserves) {
        errors.push(FieldError::invalid(
            &SPEC.field("preserveUnknownFields"),
            "true".to_owned(),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
}

/// What the schemas of a changed definition must satisfy: no more than the old ones did.
fn demands(old: &Definition<'_>) -> Demands {
    let schemas: Vec<_> = old.schemas().collect();
    Demands {
        structural: true,
        ..Demands::after(&schemas)
    }
}
