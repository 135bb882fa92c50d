//! CSINode: the CSI drivers of a node.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::time::Timestamp;
use coracle_api::{Path, names};
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver};

use super::validate_driver_name;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, items, validate_not_negative};
use crate::{OwnMetadata, Part};

const LONGEST_NODE_ID: usize = 256;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &CsiNodes,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct CsiNodes;

impl Strategy for CsiNodes {
    type Object = CSINode;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn validate(&self, new: &View<'_, CSINode>, _: &Context<'_>, errors: &mut Errors) {
        let at = SPEC.field("drivers");
        let mut seen = BTreeSet::new();
        for (index, driver) in new.spec.drivers.iter().enumerate() {
            validate_driver(driver, &mut seen, &at.index(index), errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, CSINode>,
        old: &View<'_, CSINode>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);

        for before in &old.spec.drivers {
            for now in new
                .spec
                .drivers
                .iter()
                .filter(|now| now.name == before.name)
            {
                // The number of volumes may change.
                let fixed = |driver: &CSINodeDriver| CSINodeDriver {
                    allocatable: None,
                    ..driver.clone()
                };

                if fixed(now) != fixed(before) {
                    errors.push(FieldError::invalid(
                        &SPEC.field("drivers"),
                        driver_shown(now),
                        IMMUTABLE,
                    ));
                }
            }
        }
    }
}

fn validate_driver<'a>(
    driver: &'a CSINodeDriver,
    seen: &mut BTreeSet<&'a str>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_driver_name(&driver.name, &at.field("name"), errors);
    let node = &driver.node_id;
    if node.is_empty() {
        errors.push(FieldError::required(&at.field("nodeID"), ""));
    }

    if node.len() > LONGEST_NODE_ID {
        let detail = format!("must be {LONGEST_NODE_ID} characters or less");
        errors.push(FieldError::invalid_str(&at.field("nodeID"), node, detail));
    }

    if let Some(count) = driver
        .allocatable
        .as_ref()
        .and_then(|allocatable| allocatable.count)
    {
        validate_not_negative(
            count.into(),
            &at.field("allocatable").field("count"),
            errors,
        );
    }

    if !seen.insert(&driver.name) {
        errors.push(FieldError::duplicate(
            &at.field("name"),
            internal::text(&driver.name),
        ));
    }

    let mut keys = BTreeSet::new();
    for key in items(&driver.topology_keys) {
        if key.is_empty() {
            errors.push(FieldError::required(at, ""));
        }
        if !keys.insert(key) {
            errors.push(FieldError::duplicate(at, internal::text(key)));
        }
        refuse(at, key, names::qualified_name(key), errors);
    }
}

fn driver_shown(driver: &CSINodeDriver) -> String {
    internal::object(&[
        ("Name", internal::text(&driver.name)),
        ("NodeID", internal::text(&driver.node_id)),
        (
            "TopologyKeys",
            internal::texts(driver.topology_keys.as_deref()),
        ),
        ("Allocatable", internal::pointer(None)),
    ])
}

fn print_row(node: &CSINode, now: Timestamp) -> Row {
    row![
        cells::name(&node.metadata),
        cells::count(node.spec.drivers.len()),
        cells::age(&node.metadata, now)
    ]
}
