//! CSIStorageCapacity: how much storage a driver can provision, and where.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::selector::{self, Values, has_bad_value};
use coracle_api::{Path, names, node_label};
use k8s_openapi::api::storage::v1::CSIStorageCapacity;

use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::resources::{read, shown};
use crate::validate::{internal, items};
use crate::{OwnMetadata, Part};

const TOPOLOGY: Path<'static> = Path::Field(&Path::Root, "nodeTopology");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &CsiStorageCapacities,
    ..Behaviour::DEFAULT
};

struct CsiStorageCapacities;

impl Strategy for CsiStorageCapacities {
    type Object = CSIStorageCapacity;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn validate(&self, new: &View<'_, CSIStorageCapacity>, _: &Context<'_>, errors: &mut Errors) {
        validate_capacity(new, Values::Validated, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, CSIStorageCapacity>,
        old: &View<'_, CSIStorageCapacity>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let own = self.own_metadata(cx.part);
        own.validate(new.tree, cx, errors);

        let was_bad = has_bad_value(old.node_topology.as_ref());
        validate_capacity(
            new,
            if was_bad {
                Values::Kept
            } else {
                Values::Validated
            },
            errors,
        );

        own.validate_change(new.tree, old.tree, errors);

        if new.node_topology != old.node_topology {
            let found = internal::pointer(new.node_topology.as_ref().map(internal::label_selector));
            errors.push(FieldError::invalid(&TOPOLOGY, found, IMMUTABLE));
        }

        if new.storage_class_name != old.storage_class_name {
            let at = Path::Root.field("storageClassName");
            errors.push(FieldError::invalid_str(
                &at,
                &new.storage_class_name,
                IMMUTABLE,
            ));
        }
    }

    fn warnings(
        &self,
        new: &View<'_, CSIStorageCapacity>,
        _: Option<&View<'_, CSIStorageCapacity>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let Some(topology) = &new.node_topology else {
            return Vec::new();
        };

        let mut warnings = Vec::new();
        for (index, expression) in items(&topology.match_expressions).iter().enumerate() {
            if let Some(message) = node_label::deprecation(&expression.key) {
                let key = &expression.key;
                warnings.push(format!(
                    "nodeTopology.matchExpressions[{index}].key: {key} is {message}"
                ));
            }
        }

        for key in topology
            .match_labels
            .iter()
            .flat_map(|labels| labels.keys())
        {
            if let Some(message) = node_label::deprecation(key) {
                warnings.push(format!("nodeTopology.matchLabels.{key}: {message}"));
            }
        }

        warnings
    }
}

fn validate_capacity(capacity: &CSIStorageCapacity, values: Values, errors: &mut Errors) {
    selector::validate(capacity.node_topology.as_ref(), values, &TOPOLOGY, errors);
    let class = &capacity.storage_class_name;
    refuse(
        &Path::Root.field("storageClassName"),
        class,
        names::dns1123_subdomain(class),
        errors,
    );

    if let Some(found) = capacity
        .capacity
        .as_ref()
        .map(read)
        .filter(|found| found.signum() < 0)
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            &Path::Root.field("capacity"),
            shown(&found),
            detail,
        ));
    }
}
