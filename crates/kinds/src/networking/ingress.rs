//! Ingress: which requests from outside are routed to which service.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, ip, names};
use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule,
    IngressServiceBackend, IngressSpec, IngressTLS,
};

use crate::Part;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{items, text, validate_required};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const LOAD_BALANCER: Path<'static> = Path::Field(&Path::Root, "status.loadBalancer");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Ingresses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct Ingresses;

impl Strategy for Ingresses {
    type Object = Ingress;

    fn validate(&self, new: &View<'_, Ingress>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, OldFaults::default(), errors);
        let class = new
            .spec
            .as_ref()
            .and_then(|spec| spec.ingress_class_name.as_deref());

        if let (Some(annotated), Some(class)) =
            (new.tree.meta().annotation(CLASS_ANNOTATION), class)
            && annotated != class
        {
            let at = Path::Root.field("annotations");
            let detail = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid_str(
                &at.field(CLASS_ANNOTATION),
                annotated,
                detail,
            ));
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, Ingress>,
        old: &View<'_, Ingress>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            return validate_status(new, old, errors);
        }
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        validate_spec(new, OldFaults::of(old), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, Ingress>,
        old: Option<&View<'_, Ingress>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if cx.part == Part::Status {
            let at = LOAD_BALANCER.field("ingress");
            for (index, address) in addresses(new).into_iter().enumerate() {
                warnings.extend(address.and_then(|address| ip::warning(address, &at.index(index))));
            }
        }

        let classless = new
            .spec
            .as_ref()
            .is_none_or(|spec| spec.ingress_class_name.is_none());

        if old.is_none() && classless && new.tree.meta().annotation(CLASS_ANNOTATION).is_some() {
            warnings.push(format!(
                "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
            ));
        }

        warnings
    }
}

/// Invalid fields that the old object has already.
#[derive(Clone, Copy, Default)]
struct OldFaults {
    /// Invalid names of secrets.
    secrets: bool,
    /// Invalid rules of wildcard hosts.
    wildcard_rules: bool,
}

impl OldFaults {
    fn of(old: &Ingress) -> OldFaults {
        let Some(spec) = &old.spec else {
            return OldFaults::default();
        };
        let is_bad = |rule: &IngressRule| {
            let mut faults = Errors::new();
            if let Some(http) = &rule.http {
                validate_http(http, &Path::Root, &mut faults);
            }
            text(&rule.host).contains('*') && !faults.is_empty()
        };

        OldFaults {
            secrets: items(&spec.tls)
                .iter()
                .any(|tls| !secret_faults(tls).is_empty()),
            wildcard_rules: items(&spec.rules).iter().any(is_bad),
        }
    }
}

fn validate_spec(ingress: &Ingress, kept: OldFaults, errors: &mut Errors) {
    let nothing = IngressSpec::default();
    let spec = ingress.spec.as_ref().unwrap_or(&nothing);
    let rules = items(&spec.rules);
    if rules.is_empty() && spec.default_backend.is_none() {
        let shown = if spec.rules.is_none() { "null" } else { "[]" };
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&SPEC, shown.to_owned(), detail));
    }

    if let Some(backend) = &spec.default_backend {
        validate_backend(backend, &SPEC.field("defaultBackend"), errors);
    }

    for (index, rule) in rules.iter().enumerate() {
        validate_rule(rule, kept, &SPEC.field("rules").index(index), errors);
    }

    for (index, tls) in items(&spec.tls).iter().enumerate() {
        validate_tls(tls, kept, &SPEC.field("tls").index(index), errors);
    }

    if let Some(class) = &spec.ingress_class_name {
        refuse(
            &SPEC.field("ingressClassName"),
            class,
            names::dns1123_subdomain(class),
            errors,
        );
    }
}

fn validate_host(host: &str, at: &Path<'_>, errors: &mut Errors) {
    let rule = if host.contains('*') {
        names::wildcard_dns1123_subdomain
    } else {
        names::dns1123_subdomain
    };
    refuse(at, host, rule(host), errors);
}

fn validate_tls(tls: &IngressTLS, kept: OldFaults, at: &Path<'_>, errors: &mut Errors) {
    for (index, host) in items(&tls.hosts).iter().enumerate() {
        validate_host(host, &at.field("hosts").index(index), errors);
    }
    if !kept.secrets {
        refuse(
            &at.field("secretName"),
            text(&tls.secret_name),
            secret_faults(tls),
            errors,
        );
    }
}

fn secret_faults(tls: &IngressTLS) -> names::Messages {
    match text(&tls.secret_name) {
        "" => names::Messages::new(),
        name => names::dns1123_subdomain(name),
    }
}

fn validate_rule(rule: &IngressRule, kept: OldFaults, at: &Path<'_>, errors: &mut Errors) {
    let host = text(&rule.host);
    if !host.is_empty() {
        validate_no_address(host, &at.field("host"), errors);
        validate_host(host, &at.field("host"), errors);
    }

    if let Some(http) = rule
        .http
        .as_ref()
        .filter(|_| !(kept.wildcard_rules && host.contains('*')))
    {
        validate_http(http, &at.field("http"), errors);
    }
}

fn validate_no_address(host: &str, at: &Path<'_>, errors: &mut Errors) {
    if ip::parse(host).is_some() {
        errors.push(FieldError::invalid_str(
            at,
            host,
            "must be a DNS name, not an IP address",
        ));
    }
}

fn validate_http(http: &HTTPIngressRuleValue, at: &Path<'_>, errors: &mut Errors) {
    let at = at.field("paths");
    if http.paths.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }
    for (index, path) in http.paths.iter().enumerate() {
        validate_path(path, &at.index(index), errors);
    }
}

fn validate_path(path: &HTTPIngressPath, at: &Path<'_>, errors: &mut Errors) {
    let (found, place) = (text(&path.path), at.field("path"));
    match path.path_type.as_str() {
        "" if path.path_type.is_empty() => {
            return errors.push(FieldError::required(
                &at.field("pathType"),
                "pathType must be specified",
            ));
        }
        "Exact" | "Prefix" => {
            refuse(&place, found, names::absolute_path(found), errors);

            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if found.contains(sequence) {
                    let detail = format!("must not contain '{sequence}'");
                    errors.push(FieldError::invalid_str(&place, found, detail));
                }
            }

            for end in ["/..", "/."] {
                if found.ends_with(end) {
                    let detail = format!("cannot end with '{end}'");
                    errors.push(FieldError::invalid_str(&place, found, detail));
                }
            }
        }
        "ImplementationSpecific" if found.is_empty() => {}
        "ImplementationSpecific" => refuse(&place, found, names::absolute_path(found), errors),
        other => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(
                &at.field("pathType"),
                other,
                &known,
            ));
        }
    }

    validate_backend(&path.backend, &at.field("backend"), errors);
}

fn validate_backend(backend: &IngressBackend, at: &Path<'_>, errors: &mut Errors) {
    match (&backend.resource, &backend.service) {
        (Some(_), Some(_)) => {
            let detail = "cannot set both resource and service backends";
            errors.push(FieldError::invalid_str(at, "", detail));
        }
        (Some(resource), None) => validate_resource(resource, &at.field("resource"), errors),
        (None, Some(service)) => validate_service(service, at, errors),
        (None, None) => {
            errors.push(FieldError::invalid_str(
                at,
                "",
                "resource or service backend is required",
            ));
        }
    }
}

fn validate_resource(resource: &TypedLocalObjectReference, at: &Path<'_>, errors: &mut Errors) {
    if let Some(group) = &resource.api_group {
        refuse(
            &at.field("apiGroup"),
            group,
            names::dns1123_subdomain(group),
            errors,
        );
    }

    validate_required(
        &resource.kind,
        names::path_segment_name,
        &at.field("kind"),
        errors,
    );

    validate_required(
        &resource.name,
        names::path_segment_name,
        &at.field("name"),
        errors,
    );
}

fn validate_service(service: &IngressServiceBackend, at: &Path<'_>, errors: &mut Errors) {
    validate_required(
        &service.name,
        names::dns1123_label,
        &at.field("service").field("name"),
        errors,
    );

    let place = at.field("service");
    let place = place.field("port");
    let port = service.port.as_ref();
    let name = port.map(|port| text(&port.name)).unwrap_or_default();

    let number = port.and_then(|port| port.number).unwrap_or_default();
    match (name, number) {
        ("", 0) => errors.push(FieldError::required(at, "port name or number is required")),
        ("", number) => {
            let faults = names::port_number(number.into()).into_iter();
            let shown =
                |message| FieldError::invalid(&place.field("number"), number.to_string(), message);
            errors.extend(faults.map(shown));
        }
        (name, 0) => refuse(&place.field("name"), name, names::port_name(name), errors),
        _ => errors.push(FieldError::invalid_str(
            at,
            "",
            "cannot set both port name & port number",
        )),
    }
}

/// The IP address of each load balancer ingress, if it has one.
fn addresses<'a>(ingress: &'a View<'_, Ingress>) -> Vec<Option<&'a str>> {
    let balancer = ingress
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let places = balancer
        .map(|balancer| items(&balancer.ingress))
        .unwrap_or_default();
    places
        .iter()
        .map(|place| place.ip.as_deref().filter(|ip| !ip.is_empty()))
        .collect()
}

fn validate_status(new: &View<'_, Ingress>, old: &View<'_, Ingress>, errors: &mut Errors) {
    let known: Vec<String> = addresses(old)
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect();

    let at = LOAD_BALANCER.field("ingress");
    let balancer = new
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());

    for (index, place) in balancer
        .map(|balancer| items(&balancer.ingress))
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let at = at.index(index);
        if let Some(address) = place.ip.as_deref().filter(|address| !address.is_empty()) {
            ip::check(address, &known, &at.field("ip"), errors);
        }

        let hostname = text(&place.hostname);
        if !hostname.is_empty() {
            refuse(
                &at.field("hostname"),
                hostname,
                names::dns1123_subdomain(hostname),
                errors,
            );
            validate_no_address(hostname, &at.field("hostname"), errors);
        }
    }
}

/// The most hosts that are printed.
const FEW: usize = 3;

fn print_row(ingress: &Ingress, now: Timestamp) -> Row {
    let spec = ingress.spec.as_ref();
    let has_tls = spec.is_some_and(|spec| spec.tls.iter().flatten().count() > 0);
    row![
        cells::name(&ingress.metadata),
        spec.and_then(|spec| spec.ingress_class_name.as_deref())
            .unwrap_or(cells::NONE),
        hosts(
            spec.and_then(|spec| spec.rules.as_deref())
                .unwrap_or_default()
        ),
        address(ingress),
        if has_tls { "80, 443" } else { "80" },
        cells::age(&ingress.metadata, now)
    ]
}

/// The first hosts. The rest is counted in rules, whether these have a host or not.
fn hosts(rules: &[IngressRule]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        if shown.len() == FEW {
            more = true;
            break;
        }
        shown.extend(rule.host.as_deref().filter(|host| !host.is_empty()));
    }

    let hosts = shown.join(",");
    match hosts.as_str() {
        "" => "*".to_string(),
        _ if more => format!("{hosts} + {} more...", rules.len() - FEW),
        _ => hosts,
    }
}

/// Addresses of load balancers, or their host names where they have no address.
fn address(ingress: &Ingress) -> String {
    let balancer = ingress
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());

    let points = balancer
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    let points: BTreeSet<&str> = points
        .iter()
        .map(|point| {
            cells::or(
                point.ip.as_deref(),
                point.hostname.as_deref().unwrap_or_default(),
            )
        })
        .filter(|point| !point.is_empty())
        .collect();

    points.into_iter().collect::<Vec<_>>().join(",")
}
