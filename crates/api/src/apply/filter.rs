//! Fields that a request cannot change: `status` in a write of the object, everything else in a
//! write of its status. What the strategy resets is never owned through that request.

use super::element::Element;
use super::set::Set;
use crate::Text;

/// Which fields of one version may be owned through a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All but these and what is below them.
    Without(Set),
    /// Only what is on the way to, or below, one of these paths.
    Only(Vec<Vec<Step>>),
}

/// One step of a path in [`Filter::Only`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Any,
    Element(Element),
}

/// The filters of a kind's versions; a version without one keeps all its fields.
pub type Filters = [(Text, Filter)];

/// The set without what the filter of a version removes.
pub(super) fn filtered(set: Set, filters: &Filters, version: &str) -> Set {
    let Some((_, filter)) = filters.iter().find(|(of, _)| of == version) else {
        return set;
    };
    match filter {
        Filter::Without(fields) => set.recursive_difference(fields),
        Filter::Only(paths) => only(&set, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>()),
    }
}

fn only(set: &Set, paths: &[&[Step]]) -> Set {
    if paths.iter().any(|path| path.is_empty()) {
        return set.clone();
    }

    let mut kept = Set::new();
    for node in &set.nodes {
        let leads_on = |path: &&[Step]| match &path[0] {
            Step::Any => true,
            Step::Element(element) => *element == node.element,
        };

        let rest: Vec<&[Step]> = paths
            .iter()
            .filter(|path| leads_on(path))
            .map(|path| &path[1..])
            .collect();

        if !rest.is_empty() {
            kept.push(node.element.clone(), node.member, only(&node.below, &rest));
        }
    }

    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::fields_v1;

    #[test]
    fn filters_keep_what_may_be_owned() {
        let field = |name: &str| Step::Element(Element::field(name));
        let resize = Filter::Only(vec![
            vec![
                field("spec"),
                field("containers"),
                Step::Any,
                field("resources"),
            ],
            vec![field("metadata")],
        ]);

        let status = Filter::Without(fields_v1::decode(r#"{"f:status":{}}"#).unwrap());
        let check = |filter: &Filter, set: &str, expected: &str| {
            let filters = [(Text::new("v1"), filter.clone())];
            let set = fields_v1::decode(set).unwrap();
            assert_eq!(
                fields_v1::encode(&filtered(set.clone(), &filters, "v1")).as_str(),
                expected
            );

            assert_eq!(
                filtered(set.clone(), &filters, "v2"),
                set,
                "another version has its own filter"
            );
        };

        check(
            &status,
            r#"{"f:spec":{"f:a":{}},"f:status":{".":{},"f:b":{}}}"#,
            r#"{"f:spec":{"f:a":{}}}"#,
        );

        check(
            &resize,
            r#"{"f:metadata":{"f:labels":{}},"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:resources":{"f:limits":{}}}},"f:hostname":{}}}"#,
            r#"{"f:metadata":{"f:labels":{}},"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:resources":{"f:limits":{}}}}}}"#,
        );

        check(
            &resize,
            r#"{"f:spec":{"f:hostname":{}},"f:status":{}}"#,
            "{}",
        );
    }
}
