//! LeaseCandidate: a component that would take a Lease, and which versions it has.

use coracle_api::field_error::FieldError;
use coracle_api::names::config_map_key;
use coracle_api::time::Timestamp;
use k8s_openapi::api::coordination::v1beta1::{LeaseCandidate, LeaseCandidateSpec};
use semver::Version;

use super::lease::{OLDEST, validate_strategy};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{text, validate_immutable};
use crate::{OwnMetadata, Part};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &LeaseCandidates,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct LeaseCandidates;

impl Strategy for LeaseCandidates {
    type Object = LeaseCandidate;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            known_finalizers: false,
            ..OwnMetadata::named(config_map_key)
        }
    }

    fn validate(&self, new: &View<'_, LeaseCandidate>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(&new.spec, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, LeaseCandidate>,
        old: &View<'_, LeaseCandidate>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate(new, cx, errors);
        validate_immutable(new.tree, old.tree, &["spec", "leaseName"], "\"\"", errors);
    }
}

fn validate_spec(spec: &LeaseCandidateSpec, errors: &mut Errors) {
    const NOT_A_VERSION: &str = "must be a valid semantic version";
    if spec.lease_name.is_empty() {
        errors.push(FieldError::required(&SPEC.field("leaseName"), ""));
    }

    let emulation_text = text(&spec.emulation_version);
    let emulation = Version::parse(emulation_text).ok();
    let at = SPEC.field("emulationVersion");
    if !emulation_text.is_empty() && emulation.is_none() {
        errors.push(FieldError::invalid_str(&at, emulation_text, NOT_A_VERSION));
    }

    let binary_text = spec.binary_version.as_str();
    let binary = Version::parse(binary_text).ok();
    let place = SPEC.field("binaryVersion");
    if binary_text.is_empty() {
        errors.push(FieldError::required(&place, ""));
    } else if binary.is_none() {
        errors.push(FieldError::invalid_str(&place, binary_text, NOT_A_VERSION));
    }

    // What is no version compares as 0.0.0.
    let zero = Version::new(0, 0, 0);
    let (emulation, binary) = (
        emulation.as_ref().unwrap_or(&zero),
        binary.as_ref().unwrap_or(&zero),
    );
    let both = !binary_text.is_empty() && !emulation_text.is_empty();
    if both && binary.cmp_precedence(emulation).is_lt() {
        let why = "must be greater than or equal to `emulationVersion`";
        errors.push(FieldError::invalid_str(&place, binary_text, why));
    }

    let place = SPEC.field("strategy");
    if spec.strategy.is_empty() {
        return errors.push(FieldError::required(&place, ""));
    }
    if spec.strategy == OLDEST && emulation.cmp_precedence(&zero).is_eq() {
        let why = "must be specified when `strategy` is 'OldestEmulationVersion'";
        errors.push(FieldError::required(&at, why));
    }
    // The path has the field twice, as in upstream.
    validate_strategy(&spec.strategy, &place.field("strategy"), errors);
}

fn print_row(candidate: &LeaseCandidate, now: Timestamp) -> Row {
    let spec = &candidate.spec;
    row![
        cells::name(&candidate.metadata),
        spec.lease_name.as_str(),
        spec.binary_version.as_str(),
        text(&spec.emulation_version),
        cells::age(&candidate.metadata, now)
    ]
}
