//! APIService: which server serves a version of a group. One that this server serves is available
//! at once; whether another one is, the API server finds out.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Path, Value, names};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{
    APIService, APIServiceSpec, APIServiceStatus,
};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{items, text};
use crate::{OwnMetadata, Part, keep_metadata};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &APIServices,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct APIServices;

impl Strategy for APIServices {
    type Object = APIService;

    /// On a create it is validated with the rest, because the expected name follows from the spec.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_create: false,
            ..OWN
        }
    }

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {
        if new
            .at(&["spec", "service"])
            .is_some_and(|service| !service.is_null())
        {
            return;
        }

        let mut condition = Map::new();
        condition.insert("type", "Available");
        condition.insert("status", "True");
        condition.insert("lastTransitionTime", Time(cx.now).to_string().as_str());
        condition.insert("reason", "Local");
        condition.insert("message", "Local APIServices are always available");
        let mut status = Map::new();
        status.insert("conditions", vec![Value::Object(condition)]);

        if let Some(object) = new.as_object_mut() {
            object.insert("status", status);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(&self, new: &View<'_, APIService>, cx: &Context<'_>, errors: &mut Errors) {
        let nothing = APIServiceSpec::default();
        let spec = new.spec.as_ref().unwrap_or(&nothing);
        let (group, version) = (text(&spec.group), text(&spec.version));

        let (name, wanted) = (new.tree.meta().name(), format!("{version}.{group}"));
        if !name.is_empty() && names::path_segment_name(name).is_empty() && name != wanted {
            let detail = format!(
                "must be `spec.version+\".\"+spec.group`: {}",
                Quoted(&wanted)
            );

            errors.push(FieldError::invalid_str(
                &Path::Root.field("metadata.name"),
                name,
                detail,
            ));
        }

        OWN.validate(new.tree, cx, errors);
        validate_spec(spec, group, version, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, APIService>,
        _: &View<'_, APIService>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part != Part::Status {
            return self.validate(new, cx, errors);
        }

        let at = Path::Root.field("status.conditions");
        let conditions = new
            .status
            .as_ref()
            .map(|status| items(&status.conditions))
            .unwrap_or_default();

        for (index, condition) in conditions.iter().enumerate() {
            let known = ["True", "False", "Unknown"];
            if !known.contains(&condition.status.as_str()) {
                let at = at.index(index);
                errors.push(FieldError::not_supported(
                    &at.field("status"),
                    &condition.status,
                    &known,
                ));
            }
        }
    }
}

const OWN: OwnMetadata = OwnMetadata {
    known_finalizers: false,
    ..OwnMetadata::named(names::path_segment_name)
};

fn validate_spec(spec: &APIServiceSpec, group: &str, version: &str, errors: &mut Errors) {
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&SPEC.field("group"), detail));
    }

    if !group.is_empty() {
        refuse(
            &SPEC.field("group"),
            group,
            names::dns1123_subdomain(group),
            errors,
        );
    }

    refuse(
        &SPEC.field("version"),
        version,
        names::dns1035_label(version),
        errors,
    );

    let priorities = [
        ("groupPriorityMinimum", spec.group_priority_minimum, 20_000),
        ("versionPriority", spec.version_priority, 1000),
    ];

    for (name, found, most) in priorities {
        if found <= 0 || found > most {
            let detail = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(
                &SPEC.field(name),
                found.to_string(),
                detail,
            ));
        }
    }

    let bundle = spec.ca_bundle.as_ref().map_or(0, |bundle| bundle.0.len());
    let insecure = spec.insecure_skip_tls_verify == Some(true);

    let place = SPEC.field("insecureSkipTLSVerify");
    let Some(service) = &spec.service else {
        if bundle > 0 {
            let detail = "local APIServices may not have a caBundle";
            let at = SPEC.field("caBundle");
            errors.push(FieldError::invalid_str(
                &at,
                &format!("{bundle} bytes"),
                detail,
            ));
        }

        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid(&place, "true".to_owned(), detail));
        }

        return;
    };

    let at = SPEC.field("service");
    for (name, found) in [("namespace", &service.namespace), ("name", &service.name)] {
        if text(found).is_empty() {
            errors.push(FieldError::required(&at.field(name), ""));
        }
    }

    let port = service.port.unwrap_or_default();
    let messages = names::port_number(port.into());
    if !messages.is_empty() {
        let detail = format!("port is not valid: {}", messages.join(", "));
        errors.push(FieldError::invalid(
            &at.field("port"),
            port.to_string(),
            detail,
        ));
    }

    if insecure && bundle > 0 {
        let detail = "may not be true if caBundle is present";
        errors.push(FieldError::invalid(&place, "true".to_owned(), detail));
    }
}

fn print_row(service: &APIService, now: Timestamp) -> Row {
    let behind = service
        .spec
        .as_ref()
        .and_then(|spec| spec.service.as_ref())
        .map(|to| {
            format!(
                "{}/{}",
                to.namespace.as_deref().unwrap_or_default(),
                to.name.as_deref().unwrap_or_default()
            )
        });

    row![
        cells::name(&service.metadata),
        behind.unwrap_or_else(|| "Local".to_string()),
        available(service.status.as_ref()),
        cells::age(&service.metadata, now)
    ]
}

fn available(status: Option<&APIServiceStatus>) -> String {
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());

    let Some(condition) = conditions.find(|condition| condition.type_ == "Available") else {
        return "Unknown".to_string();
    };
    match (
        condition.status.as_str(),
        condition.reason.as_deref().unwrap_or_default(),
    ) {
        ("True", _) | (_, "") => condition.status.clone(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
