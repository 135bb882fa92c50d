//! FlowSchema: which requests are in which priority level and flow.

use coracle_api::field_error::{FieldError, as_json, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names, typed};
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, FlowSchemaSpec, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule,
    ServiceAccountSubject, Subject,
};

use super::defaults::{MANDATORY, flow_schemas};
use super::validate_conditions;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, items};
use crate::{OwnMetadata, Part, keep_metadata};

const LAST: i32 = 10_000;

const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &FlowSchemas,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct FlowSchemas;

impl Strategy for FlowSchemas {
    type Object = FlowSchema;

    /// A change of metadata is validated for every kind.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(&self, new: &View<'_, FlowSchema>, _: &Context<'_>, errors: &mut Errors) {
        let nothing = FlowSchemaSpec::default();
        let spec = new.spec.as_ref().unwrap_or(&nothing);
        let name = new.tree.meta().name();
        validate_spec(spec, name, errors);
        if MANDATORY.contains(&name) && !is_fixed(name, spec) {
            let shown = new.tree.get("spec").map(as_json).unwrap_or_default();
            let detail = format!("spec of '{name}' must equal the fixed value");
            errors.push(FieldError::invalid(&SPEC, shown, detail));
        }
        validate_conditions(new.tree, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, FlowSchema>,
        _: &View<'_, FlowSchema>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        match cx.part {
            Part::Status => validate_conditions(new.tree, errors),
            _ => self.validate_anew(new, cx, errors),
        }
    }
}

/// Whether a mandatory schema has its mandatory spec.
fn is_fixed(name: &str, spec: &FlowSchemaSpec) -> bool {
    let fixed = flow_schemas()
        .into_iter()
        .find(|schema| schema.metadata.name.as_deref() == Some(name));
    let tree = |spec: &FlowSchemaSpec| typed::to_tree(spec).ok();
    fixed
        .and_then(|schema| schema.spec)
        .is_none_or(|fixed| tree(&fixed) == tree(spec))
}

fn validate_spec(spec: &FlowSchemaSpec, name: &str, errors: &mut Errors) {
    let place = spec.matching_precedence.unwrap_or_default();
    let mut refuse_place = |detail: String| {
        errors.push(FieldError::invalid(
            &SPEC.field("matchingPrecedence"),
            place.to_string(),
            detail,
        ));
    };

    if place <= 0 {
        refuse_place("must be a positive value".to_owned());
    }

    if place > LAST {
        refuse_place(format!("must not be greater than {LAST}"));
    }

    if place == 1 && name != "exempt" {
        refuse_place("only the schema named 'exempt' may have matchingPrecedence 1".to_owned());
    }

    if let Some(method) = &spec.distinguisher_method
        && !matches!(method.type_.as_str(), "ByNamespace" | "ByUser")
    {
        let at = SPEC.field("distinguisherMethod");
        let mut error =
            FieldError::not_supported(&at.field("type"), "", &["ByNamespace", "ByUser"]);
        error.bad_value = Some(internal::object(&[("Type", internal::text(&method.type_))]));
        errors.push(error);
    }

    let at = SPEC.field("priorityLevelConfiguration");
    match spec.priority_level_configuration.name.as_str() {
        "" => errors.push(FieldError::required(
            &at.field("name"),
            "must reference a priority level",
        )),
        name => refuse(
            &at.field("name"),
            name,
            names::dns1123_subdomain(name),
            errors,
        ),
    }

    for (index, rule) in items(&spec.rules).iter().enumerate() {
        validate_rule(rule, &SPEC.field("rules").index(index), errors);
    }
}

fn validate_rule(rule: &PolicyRulesWithSubjects, at: &Path<'_>, errors: &mut Errors) {
    let place = at.field("subjects");
    if rule.subjects.is_empty() {
        errors.push(FieldError::required(
            &place,
            "subjects must contain at least one value",
        ));
    }

    for (index, subject) in rule.subjects.iter().enumerate() {
        validate_subject(subject, &place.index(index), errors);
    }

    let (resources, others) = (items(&rule.resource_rules), items(&rule.non_resource_rules));
    if resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(at, detail));
    }

    for (index, rule) in resources.iter().enumerate() {
        validate_resources(rule, &at.field("resourceRules").index(index), errors);
    }

    for (index, rule) in others.iter().enumerate() {
        validate_paths(rule, &at.field("nonResourceRules").index(index), errors);
    }
}

fn validate_subject(subject: &Subject, at: &Path<'_>, errors: &mut Errors) {
    let named = |name: &str, found: Option<&str>, errors: &mut Errors| match found {
        None => {
            let kind = if name == "user" { "User" } else { "Group" };
            let detail = format!("{name} is required when subject kind is '{kind}'");
            errors.push(FieldError::required(&at.field(name), detail));
        }
        Some("") => errors.push(FieldError::required(&at.field(name).field("name"), "")),
        Some(_) => {}
    };

    match subject.kind.as_str() {
        "ServiceAccount" => {
            validate_account(
                subject.service_account.as_ref(),
                &at.field("serviceAccount"),
                errors,
            );
        }
        "User" => named(
            "user",
            subject.user.as_ref().map(|user| user.name.as_str()),
            errors,
        ),
        "Group" => named(
            "group",
            subject.group.as_ref().map(|group| group.name.as_str()),
            errors,
        ),
        other => {
            let known = ["Group", "ServiceAccount", "User"];
            return errors.push(FieldError::not_supported(&at.field("kind"), other, &known));
        }
    }

    let others = [
        (
            "serviceAccount",
            "ServiceAccount",
            subject.service_account.is_some(),
        ),
        ("user", "User", subject.user.is_some()),
        ("group", "Group", subject.group.is_some()),
    ];

    for (name, kind, present) in others {
        if present && subject.kind != kind {
            let detail = format!("{name} is forbidden when subject kind is not '{kind}'");
            errors.push(FieldError::forbidden(&at.field(name), detail));
        }
    }
}

fn validate_account(account: Option<&ServiceAccountSubject>, at: &Path<'_>, errors: &mut Errors) {
    let Some(account) = account else {
        let detail = "serviceAccount is required when subject kind is 'ServiceAccount'";
        return errors.push(FieldError::required(at, detail));
    };

    match account.name.as_str() {
        "" => errors.push(FieldError::required(&at.field("name"), "")),
        "*" => {}
        name => refuse(
            &at.field("name"),
            name,
            names::dns1123_subdomain(name),
            errors,
        ),
    }

    match account.namespace.as_str() {
        "" => {
            let detail = "must specify namespace for service account";
            errors.push(FieldError::required(&at.field("namespace"), detail));
        }
        namespace => refuse(
            &at.field("namespace"),
            namespace,
            names::dns1123_label(namespace),
            errors,
        ),
    }
}

fn has_all(found: &[String]) -> bool {
    found.iter().any(|item| item == "*")
}

/// A list with `*` has no other entries; `what` names those.
fn validate_wildcard_alone(found: &[String], what: &str, at: &Path<'_>, errors: &mut Errors) {
    if found.len() > 1 && has_all(found) {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(
            at,
            internal::texts(Some(found)),
            detail,
        ));
    }
}

fn validate_verbs(verbs: &[String], at: &Path<'_>, errors: &mut Errors) {
    if verbs.is_empty() {
        errors.push(FieldError::required(
            at,
            "verbs must contain at least one value",
        ));
    }

    validate_wildcard_alone(verbs, "verbs", at, errors);

    if !has_all(verbs) && !verbs.iter().all(|verb| VERBS.contains(&verb.as_str())) {
        let mut error = FieldError::not_supported(at, "", &VERBS);
        error.bad_value = Some(internal::texts(Some(verbs)));
        errors.push(error);
    }
}

fn validate_resources(rule: &ResourcePolicyRule, at: &Path<'_>, errors: &mut Errors) {
    validate_verbs(&rule.verbs, &at.field("verbs"), errors);
    let lists = [
        (
            "apiGroups",
            &rule.api_groups,
            "resource rules must supply at least one api group",
            "api groups",
        ),
        (
            "resources",
            &rule.resources,
            "resource rules must supply at least one resource",
            "resources",
        ),
    ];

    for (name, found, missing, others) in lists {
        if found.is_empty() {
            errors.push(FieldError::required(&at.field(name), missing));
        }
        validate_wildcard_alone(found, others, &at.field(name), errors);
    }

    let (namespaces, place) = (items(&rule.namespaces), at.field("namespaces"));
    if namespaces.is_empty() && rule.cluster_scope != Some(true) {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(FieldError::required(&place, detail));
    }

    validate_wildcard_alone(namespaces, "namespaces", &place, errors);

    if has_all(namespaces) {
        return;
    }

    for (index, namespace) in namespaces.iter().enumerate() {
        for message in names::dns1123_label(namespace) {
            let detail =
                format!("each member of this list must be '*' or a DNS-1123 label; {message}");
            errors.push(FieldError::invalid_str(
                &place.index(index),
                namespace,
                detail,
            ));
        }
    }
}

fn validate_paths(rule: &NonResourcePolicyRule, at: &Path<'_>, errors: &mut Errors) {
    validate_verbs(&rule.verbs, &at.field("verbs"), errors);
    let (paths, place) = (&rule.non_resource_urls, at.field("nonResourceURLs"));
    if paths.is_empty() {
        let detail = "nonResourceURLs must contain at least one value";
        errors.push(FieldError::required(&place, detail));
    }

    validate_wildcard_alone(paths, "non-resource URLs", &place, errors);

    if has_all(paths) {
        return;
    }

    for (index, path) in paths.iter().enumerate() {
        if let Some(fault) = path_fault(path) {
            errors.push(FieldError::invalid_str(&place.index(index), path, fault));
        }
    }
}

fn path_fault(path: &str) -> Option<&'static str> {
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ => match path.matches('*').count() {
            0 => None,
            1 if path.ends_with("/*") => None,
            _ => Some("wildcard can only do suffix matching"),
        },
    }
}

fn print_row(schema: &FlowSchema, now: Timestamp) -> Row {
    let spec = schema.spec.as_ref();
    let method = spec.and_then(|spec| spec.distinguisher_method.as_ref());

    let mut conditions = schema
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let dangling = conditions.find(|condition| condition.type_.as_deref() == Some("Dangling"));

    row![
        cells::name(&schema.metadata),
        spec.map_or("", |spec| &spec.priority_level_configuration.name),
        spec.and_then(|spec| spec.matching_precedence)
            .unwrap_or_default(),
        method.map_or(cells::NONE, |method| &method.type_),
        cells::age(&schema.metadata, now),
        dangling.map_or("?", |condition| condition
            .status
            .as_deref()
            .unwrap_or_default())
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_with_a_slash_and_may_end_with_one_asterisk() {
        let check = |path: &str, fault: Option<&str>| assert_eq!(path_fault(path), fault, "{path}");
        for good in ["/", "/a", "/a/*", "/*"] {
            check(good, None);
        }
        check("", Some("must not be empty"));
        check("a", Some("must start with slash"));
        check("/a b", Some("must not contain white-space"));
        check("/a//b", Some("must not contain double slash"));
        check("/a*", Some("wildcard can only do suffix matching"));
        check("/*/*", Some("wildcard can only do suffix matching"));
    }

    #[test]
    fn mandatory_schemas_have_their_mandatory_spec() {
        for schema in flow_schemas() {
            let name = schema.metadata.name.unwrap();
            assert!(is_fixed(&name, &schema.spec.unwrap()), "{name}");
        }
        assert!(!is_fixed("exempt", &FlowSchemaSpec::default()));
    }
}
