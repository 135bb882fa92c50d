//! Names that code generators depend on: operation ids, tags and definitions.

use coracle_api::catalog::Struct;

use super::operation::KindName;

/// `readCoreV1NamespacedPodStatus`: the verb, the group and version, and what follows them.
pub(super) fn operation_id(verb: &str, group: &str, version: &str, rest: &str) -> String {
    format!(
        "{verb}{}{}{rest}",
        camel(short_group(group), true),
        camel(version, true)
    )
}

/// `rbacAuthorization_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    let group = camel(short_group(group), false);
    if version.is_empty() {
        group
    } else {
        format!("{group}_{}", camel(version, false))
    }
}

/// `io.k8s.api.core.v1.Pod`; for a custom kind, `com.example.v1.Widget`.
pub(super) fn definition(of: Struct<'_>) -> String {
    let name = of.definition_name();
    if !name.is_empty() {
        return name;
    }
    let kind = of
        .page
        .kinds_of(of.id)
        .next()
        .expect("every type of a document has a package or is a kind");
    let reversed: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), kind.version, kind.name)
}

/// ` a ` or ` an `, with spaces around; kinds that are plurals have neither.
pub(super) fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return " ";
    }
    if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
        " an "
    } else {
        " a "
    }
}

/// `ephemeralcontainers` becomes `Ephemeralcontainers`.
pub(super) fn title(word: &str) -> String {
    camel(word, true)
}

/// The kinds that are registered in every group, and so are objects of every one.
pub(super) fn is_everywhere(of: Struct<'_>) -> bool {
    matches!(
        of.declared.name.as_str(),
        "meta.v1.DeleteOptions" | "meta.v1.WatchEvent"
    )
}

impl<'c> KindName<'c> {
    pub(super) fn new(group: &'c str, version: &'c str, kind: &'c str) -> KindName<'c> {
        KindName {
            group,
            version,
            kind,
        }
    }
}

fn short_group(group: &str) -> &str {
    if group.is_empty() {
        "core"
    } else {
        group.strip_suffix(".k8s.io").unwrap_or(group)
    }
}

/// Letters, and digits but for the first place; what follows anything else becomes a capital.
fn camel(text: &str, capital_first: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut capital = capital_first;
    for (place, c) in text.char_indices() {
        let stays = c.is_alphabetic() || c == '_' || (place > 0 && c.is_numeric());
        match (stays, capital) {
            (true, true) => out.extend(c.to_uppercase()),
            (true, false) => out.push(c),
            (false, _) => {}
        }
        capital = !stays;
    }

    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_called_what_generated_clients_call_them() {
        let check = |verb, group, version, rest, expected| {
            assert_eq!(operation_id(verb, group, version, rest), expected);
        };
        check("read", "", "v1", "NamespacedPod", "readCoreV1NamespacedPod");
        check(
            "list",
            "rbac.authorization.k8s.io",
            "v1",
            "Role",
            "listRbacAuthorizationV1Role",
        );

        check(
            "get",
            "flowcontrol.apiserver.k8s.io",
            "",
            "APIGroup",
            "getFlowcontrolApiserverAPIGroup",
        );

        check(
            "create",
            "storage.k8s.io",
            "v1beta1",
            "X",
            "createStorageV1beta1X",
        );

        check(
            "patch",
            "stable.example.com",
            "v1",
            "CronTab",
            "patchStableExampleComV1CronTab",
        );
    }

    #[test]
    fn tags_are_group_and_version() {
        assert_eq!(tag("", "v1"), "core_v1");
        assert_eq!(
            tag("rbac.authorization.k8s.io", "v1"),
            "rbacAuthorization_v1"
        );
        assert_eq!(tag("apps", ""), "apps");
    }

    #[test]
    fn kinds_have_the_article_they_need() {
        let check = |kind, expected| assert_eq!(article(kind), expected, "{kind}");
        check("Pod", " a ");
        check("Event", " an ");
        check("Endpoints", " ");
        check("StorageClass", " a ");
        check("IngressClass", " an ");
    }
}
