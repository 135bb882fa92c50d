//! Which names a definition may use: those that no other definition of its group has. Pure.

use std::collections::BTreeSet;

use coracle_api::go_text::Quoted;
use coracle_api::{Map, Value};
use coracle_kinds::apiextensions::custom_resource_definition::view::Definition;

/// What a definition gets.
#[derive(Debug, PartialEq)]
pub(super) struct Names {
    pub(super) accepted: Map,
    /// Why not all requested names are accepted: reason and message.
    pub(super) conflict: Option<(&'static str, String)>,
}

/// The names of a group that are taken.
#[derive(Default)]
pub(super) struct Taken<'a> {
    resources: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    /// By definitions of the same group, including this one: its own names are no conflict.
    pub(super) fn by(definitions: impl Iterator<Item = Definition<'a>>) -> Taken<'a> {
        let mut taken = Taken::default();
        for definition in definitions {
            let Some(names) = definition
                .status
                .and_then(|status| status.below("acceptedNames"))
            else {
                continue;
            };
            let short = names.items("shortNames").iter().filter_map(Value::as_str);

            let resources = [names.text("plural"), names.text("singular")]
                .into_iter()
                .chain(short);
            taken
                .resources
                .extend(resources.filter(|name| !name.is_empty()));

            let kinds = [names.text("kind"), names.text("listKind")];
            taken
                .kinds
                .extend(kinds.into_iter().filter(|name| !name.is_empty()));
        }

        taken
    }
}

/// Requested names that are free are accepted; the others stay as they were.
pub(super) fn names(definition: &Definition<'_>, taken: &Taken<'_>) -> Names {
    static EMPTY: Map = Map::new();

    let wanted = definition.names();
    let before = definition
        .status
        .and_then(|status| status.below("acceptedNames"))
        .unwrap_or(&EMPTY);

    let mut names = Names {
        accepted: before.clone(),
        conflict: None,
    };

    let name =
        |names: &mut Names, field: &'static str, reason: &'static str, used: &BTreeSet<&str>| {
            let asked = wanted.text(field);
            match asked == before.text(field) || !used.contains(asked) {
                true if asked.is_empty() => drop(names.accepted.remove(field)),
                true => drop(names.accepted.insert(field, asked)),
                // Of several conflicts the last is reported, as upstream does.
                false => names.conflict = Some((reason, in_use(asked))),
            }
        };
    name(&mut names, "plural", "PluralConflict", &taken.resources);

    name(&mut names, "singular", "SingularConflict", &taken.resources);
    short_names(wanted, before, taken, &mut names);
    name(&mut names, "kind", "KindConflict", &taken.kinds);
    name(&mut names, "listKind", "ListKindConflict", &taken.kinds);
    copy(wanted, &mut names.accepted, "categories");

    names
}

fn short_names(wanted: &Map, before: &Map, taken: &Taken<'_>, names: &mut Names) {
    let own: Vec<&Value> = before.items("shortNames").iter().collect();
    let asked = wanted
        .items("shortNames")
        .iter()
        .filter(|name| !own.contains(name));

    let conflicts: Vec<String> = asked
        .filter_map(Value::as_str)
        .filter(|name| taken.resources.contains(name))
        .map(in_use)
        .collect();

    match conflicts.as_slice() {
        [] => copy(wanted, &mut names.accepted, "shortNames"),
        [only] => names.conflict = Some(("ShortNamesConflict", only.clone())),
        several => {
            names.conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", "))))
        }
    }
}

fn copy(from: &Map, to: &mut Map, field: &'static str) {
    match from.items(field) {
        [] => drop(to.remove(field)),
        items => drop(to.insert(field, items.to_vec())),
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", Quoted(name))
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn check(
        wanted: &str,
        before: &str,
        others: &[&str],
        accepted: &str,
        conflict: Option<(&'static str, &str)>,
    ) {
        let tree = |names: &str, accepted: &str| {
            let text = format!(
                r#"{{"spec":{{"names":{names}}},"status":{{"acceptedNames":{accepted}}}}}"#
            );
            json::parse(text.as_bytes()).unwrap()
        };
        let others: Vec<Value> = others.iter().map(|accepted| tree("{}", accepted)).collect();

        let asked = tree(wanted, before);
        let taken = Taken::by(others.iter().chain([&asked]).map(Definition::of));
        let found = names(&Definition::of(&asked), &taken);
        assert_eq!(json::to_string(&Value::Object(found.accepted)), accepted);
        assert_eq!(
            found.conflict,
            conflict.map(|(reason, message)| (reason, message.to_owned()))
        );
    }

    #[test]
    fn free_names_are_given_and_taken_ones_are_not() {
        let wanted =
            r#"{"plural":"as","singular":"a","kind":"A","listKind":"AList","shortNames":["x"]}"#;
        let all =
            r#"{"kind":"A","listKind":"AList","plural":"as","shortNames":["x"],"singular":"a"}"#;
        check(wanted, "{}", &[], all, None);

        check(wanted, all, &[], all, None);
        check(
            wanted,
            "{}",
            &[r#"{"plural":"bs","kind":"A","shortNames":["x","y"]}"#],
            r#"{"listKind":"AList","plural":"as","singular":"a"}"#,
            Some(("KindConflict", "\"A\" is already in use")),
        );

        check(
            wanted,
            "{}",
            &[r#"{"plural":"x"}"#],
            r#"{"kind":"A","listKind":"AList","plural":"as","singular":"a"}"#,
            Some(("ShortNamesConflict", "\"x\" is already in use")),
        );
    }
}
