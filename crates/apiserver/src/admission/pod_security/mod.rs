//! PodSecurity: pods must meet the security level that the labels of their namespace set.
//!
//! Labels become a [`Policy`](policy::Policy) of three modes; each mode has a level and the version
//! of its checks. A pod that violates the enforced level is refused; one that violates the warn
//! level gets a warning. Kinds with a pod template only get warnings, and so does an update that
//! raises the level of a namespace above that of its existing pods. `baseline` and `restricted`
//! have the checks.

mod baseline;
mod metrics;
mod pod_view;
mod policy;
mod restricted;
mod standards;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::field_error::FieldErrors;
use coracle_api::{Value, typed};
use coracle_kinds::Part;
use coracle_kinds::builtin;
use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::{Attributes, Operation, Plugin, Setup};
use crate::ApiError;
use metrics::{Mode, PodSecurityMetrics};
use pod_view::PodView;
use policy::{Level, LevelVersion, Policy};

pub(super) use standards::Standards;

pub(super) struct PodSecurity {
    standards: Standards,
    metrics: PodSecurityMetrics,
}

impl PodSecurity {
    pub(super) fn make(setup: &Setup<'_>) -> Arc<dyn Plugin> {
        Arc::new(PodSecurity {
            standards: setup.configurations.pod_security.clone(),
            metrics: PodSecurityMetrics::new(setup.metrics),
        })
    }
}

/// The most pods of a namespace that are checked when its level is raised.
const MOST_PODS: usize = 3000;

#[async_trait]
impl Plugin for PodSecurity {
    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(object) = object else { return Ok(()) };
        let (standards, resource) = (&self.standards, attributes.cx.resource);
        match (
            resource.group.as_str(),
            resource.plural.as_str(),
            attributes.cx.part,
        ) {
            ("", "namespaces", Part::Main) => check_namespace(object, standards, attributes),
            ("", "pods", Part::Main | Part::EphemeralContainers | Part::Resize) => {
                self.check_pod(object, attributes)
            }
            (group, plural, Part::Main) => {
                if let Some(template) = template_of(group, plural, object) {
                    self.warn_of_template(template, attributes);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Why a pod does not keep to a level: what is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    reason: String,
    detail: String,
}

/// What is wrong with a pod by the rules of a level.
fn violations(wanted: LevelVersion, pod: &PodView<'_>) -> Vec<Violation> {
    match wanted.level {
        Level::Privileged => Vec::new(),
        Level::Baseline => baseline::violations(pod, wanted.minor(), false),
        Level::Restricted => {
            let mut found = baseline::violations(pod, wanted.minor(), true);
            found.extend(restricted::violations(pod, wanted.minor()));
            found
        }
    }
}

fn describe(violations: &[Violation]) -> String {
    let each = violations
        .iter()
        .map(|violation| format!("{} ({})", violation.reason, violation.detail));
    each.collect::<Vec<_>>().join(", ")
}

/// The policy of the request's namespace, and the errors in its labels.
fn policy_of_namespace(
    standards: &Standards,
    attributes: &Attributes<'_>,
) -> (Policy, FieldErrors) {
    let namespace = attributes
        .cx
        .cluster
        .get(builtin("", "v1", "namespaces"), attributes.cx.namespace)
        .unwrap_or_default();
    Policy::of(namespace.meta().labels(), standards.defaults)
}

impl PodSecurity {
    fn check_pod(&self, object: &Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let standards = &self.standards;
        if standards.exempts(attributes.cx.namespace, &attributes.cx.user.name) {
            self.metrics.exempted(attributes);
            return Ok(());
        }

        let (policy, mistakes) = policy_of_namespace(standards, attributes);
        if policy.asks_for_nothing() {
            self.metrics
                .evaluated(Mode::Enforce, policy.enforce, true, attributes);
            return Ok(());
        }

        let Some(pod) = view(object) else {
            return Ok(());
        };
        let before = attributes
            .old
            .filter(|_| attributes.operation == Operation::Update)
            .and_then(view);

        if before.is_some_and(|before| !runs_other_images(&pod, &before)) {
            return Ok(());
        }

        let nothing = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&nothing);
        if standards.exempts_runtime(spec.runtime_class_name.as_deref()) {
            self.metrics.exempted(attributes);
            return Ok(());
        }
        if !mistakes.is_empty() {
            self.metrics.misread(attributes);
        }
        let seen = PodView::new(object.meta().annotations(), spec);

        let found = violations(policy.enforce, &seen);
        self.metrics
            .evaluated(Mode::Enforce, policy.enforce, found.is_empty(), attributes);
        if !found.is_empty() {
            let why = format!(
                "violates PodSecurity \"{}\": {}",
                policy.enforce,
                describe(&found)
            );

            self.count_audit(&policy, &seen, attributes);
            return Err(ApiError::forbidden(
                attributes.cx.resource,
                attributes.name,
                &why,
            ));
        }

        self.count_audit(&policy, &seen, attributes);
        self.warn(&policy, &seen, attributes);

        Ok(())
    }

    fn warn(&self, policy: &Policy, seen: &PodView<'_>, attributes: &Attributes<'_>) {
        let found = violations(policy.warn, seen);
        if !found.is_empty() {
            self.metrics
                .evaluated(Mode::Warn, policy.warn, false, attributes);
            attributes.notes.warnings.add(format!(
                "would violate PodSecurity \"{}\": {}",
                policy.warn,
                describe(&found)
            ));
        }
    }

    /// Counts a violation of the level that is audited.
    fn count_audit(&self, policy: &Policy, seen: &PodView<'_>, attributes: &Attributes<'_>) {
        if !violations(policy.audit, seen).is_empty() {
            self.metrics
                .evaluated(Mode::Audit, policy.audit, false, attributes);
        }
    }

    fn warn_of_template(&self, template: &Value, attributes: &Attributes<'_>) {
        let standards = &self.standards;
        if standards.exempts(attributes.cx.namespace, &attributes.cx.user.name) {
            self.metrics.exempted(attributes);
            return;
        }

        let (policy, mistakes) = policy_of_namespace(standards, attributes);
        let modes = [policy.audit, policy.warn];
        if mistakes.is_empty() && modes.iter().all(|mode| mode.level == Level::Privileged) {
            return;
        }

        let spec = template
            .get("spec")
            .and_then(|spec| typed::from_tree::<PodSpec>(spec).ok())
            .unwrap_or_default();
        if standards.exempts_runtime(spec.runtime_class_name.as_deref()) {
            self.metrics.exempted(attributes);
            return;
        }
        if !mistakes.is_empty() {
            self.metrics.misread(attributes);
        }

        let seen = PodView::new(template.meta().annotations(), &spec);
        self.count_audit(&policy, &seen, attributes);
        self.warn(&policy, &seen, attributes);
    }
}

/// Where kinds that make pods have their template.
fn template_of<'o>(group: &str, plural: &str, object: &'o Value) -> Option<&'o Value> {
    match (group, plural) {
        ("", "podtemplates") => object.get("template"),
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => object.at(&["spec", "template"]),
        ("batch", "cronjobs") => object.at(&["spec", "jobTemplate", "spec", "template"]),
        _ => None,
    }
}

fn view(object: &Value) -> Option<Pod> {
    typed::view(object).ok()
}

/// Whether a change of a pod is one that the rules could mind.
fn runs_other_images(new: &Pod, old: &Pod) -> bool {
    let nothing = PodSpec::default();
    let (new, old) = (
        new.spec.as_ref().unwrap_or(&nothing),
        old.spec.as_ref().unwrap_or(&nothing),
    );

    let images = |spec: &PodSpec| -> Vec<Vec<Option<String>>> {
        let init = spec
            .init_containers
            .iter()
            .flatten()
            .map(|container| container.image.clone())
            .collect();

        vec![
            spec.containers
                .iter()
                .map(|container| container.image.clone())
                .collect(),
            init,
        ]
    };

    let debuggers = |spec: &PodSpec| -> BTreeMap<String, Option<String>> {
        let all = spec.ephemeral_containers.iter().flatten();
        all.map(|container| (container.name.clone(), container.image.clone()))
            .collect()
    };
    let before = debuggers(old);

    images(new) != images(old)
        || debuggers(new)
            .iter()
            .any(|(name, image)| before.get(name) != Some(image))
}

fn check_namespace(
    namespace: &Value,
    standards: &Standards,
    attributes: &Attributes<'_>,
) -> Result<(), ApiError> {
    let defaults = standards.defaults;
    let (policy, mistakes) = Policy::of(namespace.meta().labels(), defaults);
    let old = attributes.old.and_then(|old| old.meta().labels());
    let (before, known) = Policy::of(old, defaults);
    let is_new = attributes.operation == Operation::Create;
    if !mistakes.is_empty() && (is_new || mistakes != known) {
        let kind = attributes.cx.kind;
        return Err(ApiError::invalid(kind, attributes.name, &mistakes));
    }

    let (now, then) = (policy.enforce, before.enforce);
    let is_relaxed = now.version == then.version && now.level <= then.level;
    let is_exempt = standards.exempts_namespace(namespace.meta().name());
    if !is_new && !is_exempt && now != then && now.level != Level::Privileged && !is_relaxed {
        warn_of_pods(namespace.meta().name(), now, attributes);
    }

    Ok(())
}

/// Warns of the pods of a namespace that the new level would refuse.
fn warn_of_pods(namespace: &str, enforced: LevelVersion, attributes: &Attributes<'_>) {
    let pods = attributes
        .cx
        .cluster
        .list(builtin("", "v1", "pods"), namespace);
    let mut seen_owners = std::collections::BTreeSet::new();

    // The first pod of each owner is checked before the others.
    let (first, others): (Vec<&Value>, Vec<&Value>) =
        pods.iter().map(|pod| &**pod).partition(|pod| {
            let owner = pod.meta().owner_references().find(|owner| owner.controller);
            owner.is_none_or(|owner| seen_owners.insert(owner.uid.to_string()))
        });

    let mut violating: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in first.into_iter().chain(others).take(MOST_PODS) {
        let Some(spec) = view(pod).and_then(|pod| pod.spec) else {
            continue;
        };

        let found = violations(enforced, &PodView::new(pod.meta().annotations(), &spec));
        if !found.is_empty() {
            let reasons: Vec<_> = found
                .into_iter()
                .map(|violation| violation.reason)
                .collect();
            violating
                .entry(reasons.join(", "))
                .or_default()
                .push(pod.meta().name());
        }
    }

    if pods.len() > MOST_PODS {
        attributes.notes.warnings.add(format!(
            "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
            pods.len()
        ));
    }

    if !violating.is_empty() {
        attributes.notes.warnings.add(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{enforced}\""
        ));
    }

    let mut warnings: Vec<String> = violating
        .into_iter()
        .map(|(reasons, pods)| named(&reasons, &pods))
        .collect();
    warnings.sort();

    warnings
        .into_iter()
        .for_each(|warning| attributes.notes.warnings.add(warning));
}

fn named(reasons: &str, pods: &[&str]) -> String {
    let first = pods.iter().min().copied().unwrap_or_default();
    match pods.len() {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        many => format!("{first} (and {} other pods): {reasons}", many - 1),
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn check(level: &str, version: &str, pod: &str, expected: &str) {
        let labels = format!(
            r#"{{"pod-security.kubernetes.io/enforce":"{level}","pod-security.kubernetes.io/enforce-version":"{version}"}}"#
        );
        let labels = json::parse(labels.as_bytes()).unwrap();
        let pod = json::parse(pod.as_bytes()).unwrap();
        let spec: PodSpec = typed::from_tree(pod.get("spec").unwrap()).unwrap();
        let seen = PodView::new(pod.meta().annotations(), &spec);
        let policy = Policy::of(labels.as_object(), Policy::default()).0;
        assert_eq!(describe(&violations(policy.enforce, &seen)), expected);
    }

    #[test]
    fn pods_keep_to_the_level_of_their_namespace() {
        let plain = r#"{"metadata":{},"spec":{"containers":[{"name":"c"}]}}"#;
        check("privileged", "latest", plain, "");

        check("baseline", "latest", plain, "");
        check(
            "restricted",
            "latest",
            plain,
            "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), \
             unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), \
             runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), \
             seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
        );

        let host = r#"{"metadata":{},"spec":{"hostNetwork":true,"hostPID":true,"containers":[{"name":"c","ports":[
            {"containerPort":1,"hostPort":80},{"containerPort":2,"hostPort":8080}]}],"volumes":[{"name":"v","hostPath":{"path":"/"}}]}}"#;
        check(
            "baseline",
            "latest",
            host,
            "host namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volume \"v\"), \
             hostPort (container \"c\" uses hostPorts 80, 8080)",
        );
    }

    #[test]
    fn rules_are_those_of_the_version() {
        let probe = r#"{"metadata":{},"spec":{"containers":[{"name":"c","livenessProbe":{"tcpSocket":{"port":1,"host":"h"}}}]}}"#;
        check("baseline", "v1.33", probe, "");
        check(
            "baseline",
            "v1.34",
            probe,
            "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"h\")",
        );

        let sysctl = r#"{"metadata":{},"spec":{"containers":[],"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem","value":"1"}]}}}"#;
        check("baseline", "v1.32", sysctl, "");
        check(
            "baseline",
            "v1.31",
            sysctl,
            "forbidden sysctls (net.ipv4.tcp_rmem)",
        );

        let proc = r#"{"metadata":{},"spec":{"hostUsers":false,"containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}}"#;
        check("baseline", "latest", proc, "");
        check(
            "baseline",
            "v1.34",
            proc,
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
        );
    }

    #[test]
    fn pods_with_the_same_violations_are_listed_together() {
        assert_eq!(named("x", &["b"]), "b: x");
        assert_eq!(named("x", &["b", "a"]), "a (and 1 other pod): x");
        assert_eq!(named("x", &["b", "a", "c"]), "a (and 2 other pods): x");
    }
}
