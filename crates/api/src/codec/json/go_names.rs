//! The Go names in type errors: of the expected type, and of the fields on the path.
//!
//! Upstream decodes into Go structs, and its messages reveal more of them than JSON has: named
//! strings (`v1.Protocol`), and embedded structs (`spec.volumes.VolumeSource.emptyDir`).
//! `catalog/go_names.txt` lists them; it is parsed for the first such message.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::Path;
use crate::catalog::{FieldRef, Node, Shape, Struct};

/// Upstream's name for the type of the value at a path.
pub(crate) fn type_at(node: Node<'_>, path: &Path<'_>, within: Option<Struct<'_>>) -> String {
    match node.shape {
        // These decode a plain value first, whose type the error names.
        Shape::Time | Shape::MicroTime | Shape::Duration => return "string".to_string(),
        Shape::IntOrString => return "int32".to_string(),
        _ => {}
    }

    // The field's type, less a list or map for each step below the field.
    let mut named = None;
    for link in path.links() {
        named = match link {
            Path::Field(_, name) => within
                .and_then(|of| find(of, name))
                .and_then(|names| names.declared),
            Path::Index(..) => named.and_then(|name: &str| name.strip_prefix("[]")),
            Path::Key(..) => named
                .and_then(|name| name.strip_prefix("map[")?.split_once(']'))
                .map(|(_, name)| name),
            Path::Root => named,
        };
    }

    named.map_or_else(|| node.go_type(), str::to_string)
}

/// The names of the fields on a path, without indices and map keys, but with embedded structs.
pub(super) fn fields_on(path: &Path<'_>, root: Option<Node<'_>>) -> String {
    let mut names = Vec::new();
    let mut node = root;
    for link in path.links() {
        match link {
            Path::Field(_, name) => {
                let of = node.and_then(struct_of);
                names.extend(
                    of.and_then(|of| find(of, name))
                        .and_then(|names| names.inside),
                );
                names.push(*name);
                node = of.and_then(|of| of.field(name)).map(FieldRef::node);
            }
            // In the catalogue a list of schemas has no items; its elements have the same type.
            _ => node = node.and_then(|node| node.item().or(Some(node))),
        }
    }

    names.join(".")
}

fn struct_of(node: Node<'_>) -> Option<Struct<'_>> {
    match node.shape {
        Shape::SchemaOrArray(id) | Shape::SchemaOrBool(id) | Shape::SchemaOrStrings(id) => {
            Some(node.page.struct_of(id))
        }
        _ => node.as_struct(),
    }
}

/// What Go declares about a field beyond the catalogue.
struct Names {
    /// The name of its type.
    declared: Option<&'static str>,
    /// The embedded structs that contain it.
    inside: Option<&'static str>,
}

fn find(of: Struct<'_>, field: &str) -> Option<&'static Names> {
    TABLE.get(of.declared.name.as_str())?.get(field)
}

static TABLE: LazyLock<HashMap<&str, HashMap<&str, Names>>> = LazyLock::new(|| {
    let text = include_str!("../../../catalog/go_names.txt");
    let mut table: HashMap<&str, HashMap<&str, Names>> = HashMap::new();
    let mut of = "";
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let Some(row) = line.strip_prefix("  ") else {
            of = line;
            continue;
        };
        let (row, inside) = row
            .split_once(" in ")
            .map_or((row, None), |(row, inside)| (row, Some(inside)));
        let Some((field, declared)) = row.split_once(' ') else {
            continue;
        };
        let declared = (declared != "-").then_some(declared);
        table
            .entry(of)
            .or_default()
            .insert(field, Names { declared, inside });
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::BUILTIN;

    #[test]
    fn every_name_belongs_to_a_field_of_the_catalogue() {
        assert!(TABLE.len() > 100, "hardly any names were read");
        for (of, fields) in TABLE.iter() {
            let declared = BUILTIN
                .type_named(of)
                .unwrap_or_else(|| panic!("{of} is no type"));
            for field in fields.keys() {
                assert!(declared.field(field).is_some(), "{of} has no {field}");
            }
        }
    }

    #[test]
    fn type_errors_name_upstreams_types() {
        let pod = BUILTIN.root(BUILTIN.kind_of("v1", "Pod").unwrap()).node();
        let check = |text: &str, expected: &str| {
            let error = super::super::decode(text.as_bytes(), Some(pod))
                .unwrap_err()
                .to_string();
            assert_eq!(error, format!("json: cannot unmarshal {expected}"));
        };

        check(
            r#"{"spec":{"volumes":[{"emptyDir":"x"}]}}"#,
            "string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        );

        check(
            r#"{"spec":{"containers":[{"ports":[{"protocol":1}]}]}}"#,
            "number into Go struct field ContainerPort.spec.containers.ports.protocol of type v1.Protocol",
        );

        check(
            r#"{"spec":{"containers":[{"resources":{"limits":[]}}]}}"#,
            "array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        );

        check(
            r#"{"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":[1]}}}}]}}"#,
            "number into Go struct field PersistentVolumeClaimSpec.spec.volumes.VolumeSource.ephemeral.\
             volumeClaimTemplate.spec.accessModes of type v1.PersistentVolumeAccessMode",
        );
    }
}
