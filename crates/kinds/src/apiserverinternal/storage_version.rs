//! StorageVersion: in which version each API server stores a resource.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::meta::validate::Prefix;
use coracle_api::names::{Messages, dns1035_label, dns1123_subdomain, qualified_name};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::apiserverinternal::v1alpha1::{
    ServerStorageVersion, StorageVersion, StorageVersionCondition, StorageVersionStatus,
};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{internal, items};
use crate::{OwnMetadata, Part, keep_metadata};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");

/// All but the name.
const REST_OF_METADATA: OwnMetadata = OwnMetadata {
    prefix: Prefix::Unchecked,
    ..OwnMetadata::named(any_name)
};

fn any_name(_: &str) -> Messages {
    Messages::new()
}

/// So many servers are printed.
const MOST_PRINTED: usize = 3;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &StorageVersions,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct StorageVersions;

impl Strategy for StorageVersions {
    type Object = StorageVersion;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_create: false,
            on_update: false,
            ..REST_OF_METADATA
        }
    }

    fn validate(&self, new: &View<'_, StorageVersion>, cx: &Context<'_>, errors: &mut Errors) {
        let meta = new.tree.meta();
        for (field, found) in [
            ("generateName", meta.generate_name()),
            ("name", meta.name()),
        ] {
            let faults = name_faults(found).into_iter().filter(|_| !found.is_empty());
            let at = METADATA.field(field);
            errors.extend(faults.map(|why| FieldError::invalid_str(&at, found, why)));
        }
        REST_OF_METADATA.validate(new.tree, cx, errors);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, StorageVersion>,
        _: &View<'_, StorageVersion>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if let Some(status) = new.status.as_ref().filter(|_| cx.part == Part::Status) {
            validate_status(status, errors);
        }
    }
}

/// A name is `GROUP.RESOURCE`.
fn name_faults(name: &str) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let group = dns1123_subdomain(group)
        .into_iter()
        .map(|why| format!("the group segment {why}"));
    let resource = dns1035_label(resource)
        .into_iter()
        .map(|why| format!("the resource segment {why}"));
    group.chain(resource).collect()
}

fn validate_status(status: &StorageVersionStatus, errors: &mut Errors) {
    let servers = items(&status.storage_versions);
    let mut seen = BTreeSet::new();
    for (index, server) in servers.iter().enumerate() {
        let at = STATUS.field("storageVersions");
        let at = at.index(index);
        if !seen.insert(&server.api_server_id) {
            let shown = internal::text(&server.api_server_id);
            errors.push(FieldError::duplicate(&at.field("apiServerID"), shown));
        }
        validate_server(server, &at, errors);
    }

    validate_common(status, servers, errors);
    validate_conditions(items(&status.conditions), errors);
}

fn validate_server(server: &ServerStorageVersion, at: &Path<'_>, errors: &mut Errors) {
    let id = &server.api_server_id;
    refuse(&at.field("apiServerID"), id, dns1123_subdomain(id), errors);

    let encoding = &server.encoding_version;
    validate_version(encoding, &at.field("encodingVersion"), errors);

    let decodable = &server.decodable_versions;
    let place = at.field("decodableVersions");
    for (index, version) in decodable.iter().enumerate() {
        validate_version(version, &place.index(index), errors);
    }
    if !decodable.contains(encoding) {
        let why = format!("decodableVersions must include encodingVersion {encoding}");
        errors.push(FieldError::invalid(
            &place,
            internal::texts(Some(decodable)),
            why,
        ));
    }

    let place = at.field("servedVersions");
    for (index, version) in items(&server.served_versions).iter().enumerate() {
        let at = place.index(index);
        validate_version(version, &at, errors);
        if !decodable.contains(version) {
            let all = decodable.join(" ");
            let why = format!(
                "individual served version : {version} must be included in decodableVersions : [{all}]"
            );
            errors.push(FieldError::invalid_str(&at, version, why));
        }
    }
}

/// Validates an `apiVersion`. All that is wrong with it is one error.
fn validate_version(version: &str, at: &Path<'_>, errors: &mut Errors) {
    const EMPTY: &str = "must be non-empty";
    let mut wrong: Vec<String> = Vec::new();
    let mut check = |part: &str, found: &str, rule: fn(&str) -> Messages| {
        if found.is_empty() {
            wrong.push(format!("{part} part: {EMPTY}"));
        } else {
            let messages = rule(found);
            wrong.extend(messages.iter().map(|message| match part {
                "version" => message.to_string(),
                _ => format!("{part} part: {message}"),
            }));
        }
    };

    match version.split('/').collect::<Vec<_>>().as_slice() {
        [version] => check("version", version, dns1035_label),
        [group, version] => {
            check("group", group, dns1123_subdomain);
            check("version", version, dns1035_label);
        }
        _ => wrong.push(
            "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex \
             used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyVersion')"
                .to_owned(),
        ),
    }

    if !wrong.is_empty() {
        errors.push(FieldError::invalid_str(at, version, wrong.join(",")));
    }
}

/// The common version is set where all servers have the same, and only there.
fn validate_common(
    status: &StorageVersionStatus,
    servers: &[ServerStorageVersion],
    errors: &mut Errors,
) {
    let first = servers.first().map(|server| &server.encoding_version);
    let actual = first.filter(|first| {
        let mut others = servers.iter();
        others.all(|server| server.encoding_version == **first)
    });

    let at = STATUS.field("commonEncodingVersion");
    match (actual, &status.common_encoding_version) {
        (None, None) => {}
        (None, Some(told)) => errors.push(FieldError::invalid_str(
            &at,
            told,
            "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet",
        )),
        (Some(actual), None) => {
            let why = format!("the common encoding version is {actual}");
            errors.push(FieldError::invalid(&at, "null".to_owned(), why));
        }
        (Some(actual), Some(told)) if actual != told => {
            let why = format!("the actual common encoding version is {actual}");
            errors.push(FieldError::invalid_str(&at, told, why));
        }
        _ => {}
    }
}

/// The paths are those of upstream, without the field's name.
fn validate_conditions(conditions: &[StorageVersionCondition], errors: &mut Errors) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = STATUS.index(index);
        let (place, kind) = (at.field("type"), &condition.type_);
        if let Some(first) = seen.get(kind.as_str()) {
            let why = format!(
                "the type of the condition is not unique, it also appears in conditions[{first}]"
            );
            errors.push(FieldError::invalid_str(&place, kind, why));
        }
        seen.insert(kind, index);

        refuse(&place, kind, qualified_name(kind), errors);
        let status = &condition.status;
        refuse(&at.field("status"), status, qualified_name(status), errors);
        for (name, text) in [
            ("reason", &condition.reason),
            ("message", &condition.message),
        ] {
            if text.is_empty() {
                errors.push(FieldError::required(&at.field(name), ""));
            }
        }
    }
}

fn print_row(object: &StorageVersion, now: Timestamp) -> Row {
    let status = object.status.as_ref();
    let common = status.and_then(|status| status.common_encoding_version.as_deref());
    let servers = status.map_or(&[][..], |status| items(&status.storage_versions));
    let shown: Vec<String> = servers
        .iter()
        .map(|server| format!("{}={}", server.api_server_id, server.encoding_version))
        .collect();

    row![
        cells::name(&object.metadata),
        common.unwrap_or(cells::UNSET),
        cells::few(&shown, ",", MOST_PRINTED),
        cells::age(&object.metadata, now)
    ]
}
