//! Memory use of a typed view of a tree.
//!
//! A struct of `k8s-openapi` has all its fields inline, whether they are set or not: a volume,
//! which has thirty alternatives, takes kilobytes, and is `{}` in a request. So lists of such
//! structs make a view large.

use std::sync::OnceLock;

use crate::Value;
use crate::catalog::{BUILTIN, Node, Page, Shape, Struct, TypeId};

/// Approximate size of the elements of all lists and maps in a tree. Types that are not built in
/// have no view.
pub fn size(tree: &Value, of: Struct<'_>) -> usize {
    let page: &Page = &BUILTIN;
    match std::ptr::eq(of.page, page) {
        true => below(tree, of.node()),
        false => 0,
    }
}

fn below(value: &Value, node: Node<'_>) -> usize {
    match value {
        Value::Object(map) => match node.as_struct() {
            Some(of) => {
                let members = map
                    .iter()
                    .filter(|(_, value)| matches!(value, Value::Object(_) | Value::Array(_)));
                members
                    .filter_map(|(name, value)| Some(below(value, of.field(name)?.node())))
                    .sum()
            }
            None => elements(map.values(), map.len(), node),
        },
        Value::Array(items) => elements(items.iter(), items.len(), node),
        _ => 0,
    }
}

fn elements<'v>(values: impl Iterator<Item = &'v Value>, count: usize, node: Node<'_>) -> usize {
    let Some(item) = node.item() else { return 0 };
    let each = item.as_struct().map_or(FIELD, struct_size);
    let inside: usize = match item.shape {
        Shape::Struct(_) | Shape::List(_) | Shape::Map(_) => {
            values.map(|value| below(value, item)).sum()
        }
        _ => 0,
    };
    count.saturating_mul(each).saturating_add(inside)
}

/// Inline size of a string, a list or a map.
const FIELD: usize = 24;

/// Inline size of a struct.
fn struct_size(of: Struct<'_>) -> usize {
    static SIZES: OnceLock<Vec<OnceLock<usize>>> = OnceLock::new();
    let page: &Page = &BUILTIN;
    let sizes = SIZES.get_or_init(|| page.types.iter().map(|_| OnceLock::new()).collect());
    *sizes[usize::from(of.id.0)].get_or_init(|| in_place(page, of.id, &mut Vec::new()))
}

/// `around`: the enclosing structs; a recursive one is behind a pointer.
fn in_place(page: &Page, id: TypeId, around: &mut Vec<TypeId>) -> usize {
    if around.contains(&id) {
        return FIELD;
    }

    around.push(id);

    let size = page
        .struct_of(id)
        .fields()
        .iter()
        .map(|field| match field.shape {
            Shape::Struct(id) => in_place(page, id, around),
            _ => FIELD,
        });
    let size = size.sum();

    around.pop();

    size
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Container, EnvVar, Toleration, Volume};
    use k8s_openapi::api::networking::v1::NetworkPolicyPeer;

    use super::*;

    #[test]
    fn the_size_of_a_struct_is_known_without_making_one() {
        let check = |kind: &str, path: &[&str], real: usize| {
            let mut node = BUILTIN
                .root(
                    BUILTIN
                        .kind_of(
                            if kind == "Pod" {
                                "v1"
                            } else {
                                "networking.k8s.io/v1"
                            },
                            kind,
                        )
                        .unwrap(),
                )
                .node();

            for name in path {
                node = node.as_struct().unwrap().field(name).unwrap().node();
                node = if matches!(node.shape, Shape::List(_)) {
                    node.item().unwrap()
                } else {
                    node
                };
            }

            let found = struct_size(node.as_struct().unwrap());
            assert!(
                found >= real / 2 && found <= real * 2,
                "{path:?}: {found} and not {real}"
            );
        };

        check("Pod", &["spec", "volumes"], size_of::<Volume>());
        check("Pod", &["spec", "containers"], size_of::<Container>());
        check("Pod", &["spec", "tolerations"], size_of::<Toleration>());
        check("Pod", &["spec", "containers", "env"], size_of::<EnvVar>());
        check(
            "NetworkPolicy",
            &["spec", "ingress", "from"],
            size_of::<NetworkPolicyPeer>(),
        );
    }

    #[test]
    fn elements_of_lists_in_lists_count() {
        let pod = BUILTIN.root(BUILTIN.kind_of("v1", "Pod").unwrap());
        let tree = |text: &str| crate::codec::json::parse(text.as_bytes()).unwrap();
        assert_eq!(size(&tree(r#"{"spec":{"nodeName":"n"}}"#), pod), 0);

        let one = size(&tree(r#"{"spec":{"volumes":[{}]}}"#), pod);
        assert_eq!(
            size(&tree(r#"{"spec":{"volumes":[{},{},{}]}}"#), pod),
            3 * one
        );

        assert!(
            size(&tree(r#"{"spec":{"containers":[{"env":[{},{}]}]}}"#), pod)
                > size(&tree(r#"{"spec":{"containers":[{}]}}"#), pod)
        );
    }
}
