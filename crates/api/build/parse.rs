//! Parser of the catalogue's text format, line by line.
//!
//! Every mistake fails the build with `file:line: what is wrong`.

#[derive(Default)]
pub(crate) struct Page {
    pub(crate) package: String,
    pub(crate) group_version: String,
    pub(crate) proto: String,
    pub(crate) resources: Vec<Resource>,
    pub(crate) types: Vec<Type>,
}

#[derive(Default)]
pub(crate) struct Resource {
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) singular: String,
    pub(crate) short: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The feature gate that must be on for it to be served; empty: none.
    pub(crate) gate: String,
    pub(crate) deprecated: Option<Deprecated>,
    pub(crate) verbs: Vec<String>,
    /// Group-version, key prefix, media type.
    pub(crate) storage: Option<(String, String, String)>,
    pub(crate) hash: Option<(String, bool)>,
    /// Name, and what it is compared with.
    pub(crate) selectable: Vec<(String, Option<String>)>,
    pub(crate) rules: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) columns: Vec<Column>,
    /// Path, JSON.
    pub(crate) defaults: Vec<(String, String)>,
}

/// Releases, and what replaces it; empty: unknown.
#[derive(Default)]
pub(crate) struct Deprecated {
    pub(crate) since: String,
    pub(crate) removed: String,
    pub(crate) replacement: String,
}

pub(crate) struct Subresource {
    pub(crate) name: String,
    /// Empty: the page's own group-version.
    pub(crate) group_version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
    pub(crate) has_table: bool,
}

pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: String,
    pub(crate) format: String,
    pub(crate) wide: bool,
    /// The field that the column shows, or a description of its own.
    pub(crate) described: Result<String, String>,
}

#[derive(Default)]
pub(crate) struct Type {
    pub(crate) name: String,
    /// The group-version it is a kind of.
    pub(crate) kind: Option<String>,
    pub(crate) json_only: bool,
    pub(crate) atomic: bool,
    pub(crate) scalar: Option<String>,
    /// Discriminator ("" for none), members and their discriminator values.
    pub(crate) unions: Vec<(String, Vec<(String, String)>)>,
    pub(crate) fields: Vec<Field>,
}

#[derive(Default)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) omit: bool,
    pub(crate) required: bool,
    pub(crate) pointer: bool,
    pub(crate) omit_zero: bool,
    pub(crate) wrapped: bool,
    pub(crate) type_name: String,
    pub(crate) tag: Vec<u16>,
    pub(crate) list: Option<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) map: Option<String>,
    pub(crate) patch: Vec<String>,
    pub(crate) patch_key: Option<String>,
    pub(crate) default: Option<String>,
    pub(crate) shown: Option<String>,
    pub(crate) enumeration: Vec<String>,
    pub(crate) known: Vec<String>,
    pub(crate) gates: Vec<String>,
    pub(crate) milli: bool,
}

pub(crate) struct Gate {
    pub(crate) name: String,
    pub(crate) stage: String,
    pub(crate) on: bool,
    pub(crate) locked: bool,
    pub(crate) used_by: Vec<String>,
}

pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) versions: Vec<String>,
}

pub(crate) fn page(file: &str, text: &str) -> Page {
    let mut page = Page::default();

    enum Open {
        Nothing,
        Resource,
        Type,
    }

    let mut open = Open::Nothing;
    for (number, line) in text.lines().enumerate() {
        let fail = |what: &str| -> ! { panic!("{file}:{}: {what}: {line:?}", number + 1) };
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }

        let (word, rest) = cut(trimmed);
        if !line.starts_with(' ') {
            match word {
                "package" => page.package = rest.to_string(),
                "group-version" => page.group_version = rest.to_string(),
                "proto" => page.proto = rest.to_string(),
                "resource" => {
                    let (plural, kind) = cut(rest);
                    page.resources.push(Resource {
                        plural: plural.to_string(),
                        kind: kind.to_string(),
                        ..Resource::default()
                    });
                    open = Open::Resource;
                }
                "type" => {
                    page.types.push(type_head(rest, &page.group_version));
                    open = Open::Type;
                }
                _ => fail("expected package, group-version, proto, resource or type"),
            }

            continue;
        }

        let result = match open {
            Open::Resource => resource_line(page.resources.last_mut().expect("open"), word, rest),
            Open::Type => type_line(page.types.last_mut().expect("open"), word, rest),
            Open::Nothing => Err("an indented line belongs to a resource or a type"),
        };

        if let Err(what) = result {
            fail(what);
        }
    }

    page
}

fn type_head(rest: &str, group_version: &str) -> Type {
    let (declared, scalar) = match rest.split_once(" = ") {
        Some((declared, scalar)) => (declared, Some(scalar.to_string())),
        None => (rest, None),
    };

    let mut words = declared.split_whitespace();
    let mut declared = Type {
        name: words.next().unwrap_or_default().to_string(),
        scalar,
        ..Type::default()
    };

    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("kind", "") => declared.kind = Some(group_version.to_string()),
            ("kind", other) => declared.kind = Some(other.to_string()),
            ("json-only", _) => declared.json_only = true,
            ("atomic", _) => declared.atomic = true,
            _ => panic!("type {}: unknown word {word:?}", declared.name),
        }
    }

    declared
}

fn resource_line(resource: &mut Resource, word: &str, rest: &str) -> Result<(), &'static str> {
    match word {
        "singular" => resource.singular = rest.to_string(),
        "short" => resource.short = words(rest),
        "categories" => resource.categories = words(rest),
        "scope" => resource.namespaced = rest == "Namespaced",
        "gate" => resource.gate = rest.to_string(),
        "deprecated" => resource.deprecated = Some(deprecated(rest)?),
        "verbs" => resource.verbs = words(rest),
        "storage" => match words(rest).as_slice() {
            [group_version, prefix, media] => {
                resource.storage = Some((group_version.clone(), prefix.clone(), media.clone()));
            }
            _ => return Err("expected: storage GROUP/VERSION PREFIX MEDIA"),
        },
        "hash" => {
            let (hash, word) = cut(rest);
            resource.hash = Some((hash.to_string(), word != "unpublished"));
        }
        "selectable" => {
            let pair = |word: &String| match word.split_once('=') {
                Some((name, other)) => (name.to_string(), Some(other.to_string())),
                None => (word.clone(), None),
            };
            resource.selectable = words(rest).iter().map(pair).collect();
        }
        "rules" => resource.rules = words(rest),
        "subresource" => {
            let expected = "expected: subresource NAME [GV] KIND [no-table] : VERBS";
            let (what, verbs) = rest.split_once(" : ").ok_or(expected)?;
            let mut what = words(what);
            let has_table = what.last().is_none_or(|word| word != "no-table");
            what.truncate(what.len() - usize::from(!has_table));

            let (name, group_version, kind) = match what.as_slice() {
                [name, kind] => (name.clone(), String::new(), kind.clone()),
                [name, group_version, kind] => (name.clone(), group_version.clone(), kind.clone()),
                _ => return Err(expected),
            };

            let verbs = words(verbs);
            resource.subresources.push(Subresource {
                name,
                group_version,
                kind,
                verbs,
                has_table,
            });
        }
        "column" => resource.columns.push(
            column(rest)
                .ok_or("expected: column \"NAME\" TYPE [format=F] [wide] of=PATH | : TEXT")?,
        ),
        "default" => {
            let (path, json) = rest
                .split_once(" = ")
                .ok_or("expected: default PATH = JSON")?;
            resource.defaults.push((path.to_string(), json.to_string()));
        }
        _ => return Err("unknown line of a resource"),
    }

    Ok(())
}

fn deprecated(rest: &str) -> Result<Deprecated, &'static str> {
    let (releases, replacement) = match rest.split_once(" : ") {
        Some((releases, replacement)) => (releases, replacement),
        None => (rest, ""),
    };
    let (since, removed) = cut(releases);
    if !since.starts_with('v') {
        return Err("expected: deprecated SINCE [REMOVED] [: GROUP-VERSION KIND]");
    }

    Ok(Deprecated {
        since: since.to_string(),
        removed: removed.to_string(),
        replacement: replacement.to_string(),
    })
}

fn column(rest: &str) -> Option<Column> {
    let (name, rest) = rest.strip_prefix('"')?.split_once('"')?;
    let (rest, words) = rest
        .split_once(" : ")
        .map_or((rest, None), |(rest, words)| (rest, Some(words)));
    let mut column = Column {
        name: name.to_string(),
        data_type: String::new(),
        format: String::new(),
        wide: false,
        described: Err(words.unwrap_or_default().to_string()),
    };

    for word in rest.split_whitespace() {
        match word.split_once('=') {
            Some(("format", format)) => column.format = format.to_string(),
            Some(("of", path)) if words.is_none() => column.described = Ok(path.to_string()),
            None if word == "wide" => column.wide = true,
            None if column.data_type.is_empty() => column.data_type = word.to_string(),
            _ => return None,
        }
    }

    let described = column.described.as_ref().is_ok() || words.is_some();
    (!column.data_type.is_empty() && described).then_some(column)
}

fn type_line(into: &mut Type, word: &str, rest: &str) -> Result<(), &'static str> {
    if word == "union" {
        let (discriminator, members) = rest
            .split_once(": ")
            .ok_or("expected: union FIELD: MEMBER=VALUE …")?;
        let pair = |word: &str| {
            word.split_once('=')
                .map(|(member, value)| (member.to_string(), value.to_string()))
        };

        let members = members
            .split_whitespace()
            .map(pair)
            .collect::<Option<Vec<_>>>();
        let members = members.ok_or("expected MEMBER=VALUE")?;
        into.unions
            .push((discriminator.trim_matches('-').to_string(), members));
        return Ok(());
    }

    let (type_name, rest) = cut(rest);

    let mut field = Field {
        name: word.trim_end_matches(['?', '!']).to_string(),
        ..Field::default()
    };
    let marks = &word[field.name.len()..];
    (field.omit, field.required) = (marks.contains('?'), marks.contains('!'));
    field.pointer = type_name.starts_with('*');
    field.type_name = type_name.trim_start_matches('*').to_string();

    for word in split_outside_quotes(rest, ' ') {
        field_word(&mut field, word)?;
    }

    into.fields.push(field);

    Ok(())
}

fn field_word(field: &mut Field, word: &str) -> Result<(), &'static str> {
    if let Some(tag) = word.strip_prefix('@') {
        field.tag = tag
            .split('.')
            .map(|part| part.parse().expect("a tag is a number"))
            .collect();
        return Ok(());
    }

    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let choices = || {
        split_outside_quotes(value, '|')
            .into_iter()
            .map(|c| c.trim_matches('"').to_string())
    };

    match name {
        "wrapped" => field.wrapped = true,
        "omitzero" => field.omit_zero = true,
        "milli" => field.milli = true,
        "atomic" => field.list = Some("atomic".to_string()),
        "list" => match value.strip_prefix("map(") {
            Some(keys) => {
                field.list = Some("map".to_string());
                field.keys = keys
                    .trim_end_matches(')')
                    .split(',')
                    .map(str::to_string)
                    .collect();
            }
            None => field.list = Some(value.to_string()),
        },
        "map" => field.map = Some(value.to_string()),
        "patch" => {
            for part in value.split(',') {
                let (strategy, key) = part.split_once('(').unwrap_or((part, ""));
                field.patch.push(strategy.to_string());
                if !key.is_empty() {
                    field.patch_key = Some(key.trim_end_matches(')').to_string());
                }
            }
        }
        "gate" => field.gates = value.split('&').map(str::to_string).collect(),
        "default" => field.default = Some(value.to_string()),
        "shown" if value.is_empty() => field.shown = field.default.clone(),
        "shown" => field.shown = Some(value.to_string()),
        "enum" => field.enumeration = choices().collect(),
        "known" => field.known = choices().collect(),
        _ => return Err("unknown word of a field"),
    }

    Ok(())
}

pub(crate) fn gates(text: &str) -> Vec<Gate> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| match words(line).as_slice() {
        [name, stage, on, locked, used_by] => Gate {
            name: name.clone(),
            stage: stage.clone(),
            on: on == "on",
            locked: locked == "locked",
            used_by: if used_by == "-" {
                Vec::new()
            } else {
                used_by.split(',').map(str::to_string).collect()
            },
        },
        _ => panic!("gates.txt: expected NAME STAGE on|off locked|- USERS: {line:?}"),
    })
    .collect()
}

pub(crate) fn groups(text: &str) -> Vec<Group> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let (name, versions) = cut(line);
        Group {
            name: if name == "core" {
                String::new()
            } else {
                name.to_string()
            },
            versions: words(versions),
        }
    })
    .collect()
}

fn cut(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// Splits at `mark`, but not between double quotes.
fn split_outside_quotes(text: &str, mark: char) -> Vec<&str> {
    let mut quoted = false;
    let parts = text.split(|c| {
        quoted ^= c == '"';
        c == mark && !quoted
    });
    parts.filter(|part| !part.is_empty()).collect()
}
