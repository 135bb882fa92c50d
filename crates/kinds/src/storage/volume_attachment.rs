//! VolumeAttachment: a volume that is attached to a node. Its spec never changes.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1123_subdomain;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::storage::v1::{
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentStatus, VolumeError,
};

use super::validate_driver_name;
use crate::behaviour::Behaviour;
use crate::core::volume_spec;
use crate::print::Row;
use crate::print::cells::{age, name};
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::internal_form::{self, Form};
use crate::{OwnMetadata, Part, keep_metadata};

/// How many bytes the metadata of an attachment may have, and the message of an error.
const LONGEST_METADATA: usize = 256 << 10;
const LONGEST_MESSAGE: usize = 1 << 10;

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// The spec as errors show it.
const FORM: Form = Form::Struct(&[
    ("Attacher", "attacher", Form::Text),
    (
        "Source",
        "source",
        Form::Struct(&[
            ("PersistentVolumeName", "persistentVolumeName", Form::Same),
            ("InlineVolumeSpec", "inlineVolumeSpec", volume_spec::FORM),
        ]),
    ),
    ("NodeName", "nodeName", Form::Text),
]);

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &VolumeAttachments,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct VolumeAttachments;

impl Strategy for VolumeAttachments {
    type Object = VolumeAttachment;

    /// A change is validated as new; a change of metadata is validated for every kind.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(self.name_rule())
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(&self, new: &View<'_, VolumeAttachment>, _: &Context<'_>, errors: &mut Errors) {
        let spec = &new.spec;
        validate_driver_name(&spec.attacher, &SPEC.field("attacher"), errors);
        validate_source(&spec.source, &SPEC.field("source"), errors);

        let node = &spec.node_name;
        refuse(
            &SPEC.field("nodeName"),
            node,
            dns1123_subdomain(node),
            errors,
        );

        if let Some(status) = &new.status {
            validate_status(status, errors);
        }

        if let Some(volume) = &spec.source.persistent_volume_name {
            let at = SPEC.field("source.persistentVolumeName");
            refuse(&at, volume, dns1123_subdomain(volume), errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, VolumeAttachment>,
        old: &View<'_, VolumeAttachment>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
        let (spec, before) = (new.tree.get("spec"), old.tree.get("spec"));
        internal_form::validate_immutable(spec, before, &FORM, &SPEC, errors);
    }
}

fn validate_source(source: &VolumeAttachmentSource, at: &Path<'_>, errors: &mut Errors) {
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (&source.inline_volume_spec, &source.persistent_volume_name) {
        (None, None) => errors.push(FieldError::required(at, why)),
        (Some(_), Some(_)) => errors.push(FieldError::forbidden(at, why)),
        (None, Some(name)) if name.is_empty() => errors.push(FieldError::required(
            &at.field("persistentVolumeName"),
            "must specify non empty persistentVolumeName",
        )),
        (None, Some(_)) => {}
        (Some(spec), None) => {
            volume_spec::validate_inline(spec, &at.field("inlineVolumeSpec"), errors);
        }
    }
}

fn validate_status(status: &VolumeAttachmentStatus, errors: &mut Errors) {
    let metadata = status.attachment_metadata.iter().flatten();
    let bytes: usize = metadata.map(|(key, value)| key.len() + value.len()).sum();
    if bytes > LONGEST_METADATA {
        let at = STATUS.field("attachmentMetadata");
        errors.push(FieldError::too_long(&at, LONGEST_METADATA));
    }

    validate_error(&status.attach_error, &STATUS.field("attachError"), errors);
    validate_error(&status.detach_error, &STATUS.field("detachError"), errors);
}

fn validate_error(error: &Option<VolumeError>, at: &Path<'_>, errors: &mut Errors) {
    let Some(error) = error else { return };
    if error
        .message
        .as_ref()
        .is_some_and(|text| text.len() > LONGEST_MESSAGE)
    {
        // The limit that upstream names is that of the metadata.
        errors.push(FieldError::too_long(&at.field("message"), LONGEST_METADATA));
    }

    if let Some(code) = error.error_code.filter(|code| *code < 0) {
        let why = "must be between 0 and 2147483647, inclusive";
        errors.push(FieldError::invalid(
            &at.field("errorCode"),
            code.to_string(),
            why,
        ));
    }
}

fn print_row(attachment: &VolumeAttachment, now: Timestamp) -> Row {
    let spec = &attachment.spec;
    row![
        name(&attachment.metadata),
        spec.attacher.as_str(),
        spec.source
            .persistent_volume_name
            .as_deref()
            .unwrap_or_default(),
        spec.node_name.as_str(),
        attachment
            .status
            .as_ref()
            .is_some_and(|status| status.attached),
        age(&attachment.metadata, now)
    ]
}
