//! Turns parsed pages into Rust tables: names are resolved to indices, inlined messages to nested
//! wires.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::parse::{Field, Gate, Group, Page, Resource, Type};

pub(crate) fn tables(pages: &[Page], gates: &[Gate], groups: &[Group]) -> String {
    let mut tables = Tables::new(pages);
    for page in pages {
        for declared in page.types.iter().filter(|declared| is_struct(declared)) {
            tables.add_type(page, declared);
        }
    }

    let mut out = String::new();
    let t = &tables;
    table(&mut out, "TYPES", "Type", &t.types);
    table(&mut out, "FIELDS", "Field", &t.fields);
    table(&mut out, "ALWAYS", "u16", &t.always);
    table(&mut out, "WIRES", "Wire", &t.wires);

    table(&mut out, "ITEMS", "Item", &t.items.rows);
    table(&mut out, "EXTRAS", "Extra", &t.extras.rows);
    table(&mut out, "UNIONS", "Union", &t.unions);

    table(&mut out, "KINDS", "Kind", &kinds(pages, t));
    table(&mut out, "RESOURCES", "Resource", &resources(pages));
    table(
        &mut out,
        "GATES",
        "Gate",
        &gates.iter().map(gate).collect::<Vec<_>>(),
    );

    table(
        &mut out,
        "GROUPS",
        "Group",
        &groups.iter().map(group).collect::<Vec<_>>(),
    );

    out
}

pub(crate) fn table(out: &mut String, name: &str, of: &str, rows: &[String]) {
    writeln!(
        out,
        "pub(super) static {name}: [{of}; {}] = [\n{},\n];",
        rows.len(),
        rows.join(",\n")
    )
    .expect("writing to a string");
}

/// Scalars have shapes of their own; everything else is a row of `TYPES`.
pub(crate) fn is_struct(declared: &Type) -> bool {
    declared.scalar.is_none()
}

/// Rows without duplicates: a row that exists already is reused.
#[derive(Default)]
struct Interned {
    rows: Vec<String>,
    indices: HashMap<String, usize>,
}

impl Interned {
    fn intern(&mut self, row: String) -> usize {
        if let Some(index) = self.indices.get(&row) {
            return *index;
        }
        self.rows.push(row.clone());
        self.indices.insert(row, self.rows.len() - 1);
        self.rows.len() - 1
    }
}

struct Tables {
    ids: HashMap<String, usize>,
    scalars: HashMap<String, String>,
    types: Vec<String>,
    fields: Vec<String>,
    always: Vec<String>,
    wires: Vec<String>,
    unions: Vec<String>,
    items: Interned,
    extras: Interned,
}

impl Tables {
    fn new(pages: &[Page]) -> Tables {
        let (mut ids, mut scalars) = (HashMap::new(), HashMap::new());
        for page in pages {
            for declared in &page.types {
                let name = format!("{}.{}", page.package, declared.name);
                match &declared.scalar {
                    None => {
                        ids.insert(name, ids.len());
                    }
                    Some(scalar) => {
                        scalars.insert(name, scalar.clone());
                    }
                }
            }
        }

        let mut extras = Interned::default();
        extras.intern("NO_EXTRA".to_string());

        Tables {
            ids,
            scalars,
            types: Vec::new(),
            fields: Vec::new(),
            always: Vec::new(),
            wires: Vec::new(),
            unions: Vec::new(),
            items: Interned::default(),
            extras,
        }
    }

    fn add_type(&mut self, page: &Page, declared: &Type) {
        let name = format!("{}.{}", page.package, declared.name);
        let start = self.fields.len();
        let mut fields: Vec<&Field> = declared.fields.iter().collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let first_always = self.always.len();

        for (index, field) in fields.iter().enumerate() {
            let row = self.field(page, &name, field);
            if self.always_written(page, field) {
                self.always.push(index.to_string());
            }
            self.fields.push(row);
        }

        let always = format!(
            "Span::new({first_always}, {})",
            self.always.len() - first_always
        );

        let tags: Vec<(Vec<u16>, usize)> = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| !field.tag.is_empty())
            .map(|(index, field)| (field.tag.clone(), index))
            .collect();
        let wires = self.wire_span(&tags);

        let unions = self.unions.len();
        for (discriminator, members) in &declared.unions {
            let members: Vec<String> = members
                .iter()
                .map(|(member, value)| format!("(t({member:?}), t({value:?}))"))
                .collect();

            let discriminator = if discriminator.is_empty() {
                "None".to_string()
            } else {
                format!("Some(t({discriminator:?}))")
            };

            self.unions.push(format!(
                "Union {{ discriminator: {discriminator}, members: Cow::Borrowed(&[{}]) }}",
                members.join(", ")
            ));
        }

        assert_eq!(
            self.types.len(),
            self.ids[&name],
            "types are numbered in the order they are written"
        );

        self.types.push(format!(
            "ty({name:?}, {:?}, {}, {}, {start}, {}, {always}, {wires}, {unions}, {})",
            page.proto,
            declared.json_only,
            declared.atomic,
            fields.len(),
            declared.unions.len()
        ));
    }

    fn field(&mut self, page: &Page, type_name: &str, field: &Field) -> String {
        let shape = if field.wrapped && field.type_name == "[]string" {
            "Shape::Strings".to_string()
        } else if field.wrapped {
            assert_eq!(field.type_name, "{}[]string", "{type_name}.{}", field.name);
            let item = self
                .items
                .intern("Item { shape: Shape::Strings }".to_string());
            format!("Shape::Map(ItemId({item}))")
        } else {
            self.shape(page, &field.type_name)
        };

        let flags = [field.required, field.pointer, field.omit, field.omit_zero];
        let presence: u8 = flags
            .iter()
            .enumerate()
            .map(|(bit, set)| u8::from(*set) << bit)
            .sum();

        let extra = self.extras.intern(extra(field));
        format!("f({:?}, {shape}, {presence}, {extra})", field.name)
    }

    /// Whether JSON has the field even when it is not set; `codec::canonical` decides with which
    /// value.
    fn always_written(&mut self, page: &Page, field: &Field) -> bool {
        let shape = self.shape(page, &field.type_name);
        let can_be_nil = field.pointer
            || field.wrapped
            || ["Shape::List", "Shape::Map", "Shape::Bytes"]
                .iter()
                .any(|nil| shape.starts_with(nil));

        match shape.trim_start_matches("Shape::") {
            _ if can_be_nil => !field.omit,
            "Time" | "MicroTime" => !field.omit_zero,
            "String" | "Bool" | "Int32" | "Int64" | "Double" | "Raw(RawKind::Any)" => !field.omit,
            _ => true,
        }
    }

    fn shape(&mut self, page: &Page, name: &str) -> String {
        for (mark, shape) in [("[]", "List"), ("{}", "Map")] {
            if let Some(inner) = name.strip_prefix(mark) {
                let inner = self.shape(page, inner);
                let item = self.items.intern(format!("Item {{ shape: {inner} }}"));
                return format!("Shape::{shape}(ItemId({item}))");
            }
        }

        let simple = match name {
            "string" => "String",
            "bytes" => "Bytes",
            "bool" => "Bool",
            "int32" => "Int32",
            "int64" => "Int64",
            "double" => "Double",
            "any" => "Raw(RawKind::Any)",
            _ => return self.named_shape(page, name),
        };

        format!("Shape::{simple}")
    }

    fn named_shape(&self, page: &Page, name: &str) -> String {
        let full = if name.contains('.') {
            name.to_string()
        } else {
            format!("{}.{name}", page.package)
        };

        if let Some(id) = self.ids.get(&full) {
            return format!("Shape::Struct(TypeId({id}))");
        }

        let Some(scalar) = self.scalars.get(&full) else {
            panic!("{}: no type {full:?}", page.package)
        };
        let package = full.rsplit_once('.').expect("full names have a package").0;

        let schema = || self.ids[&format!("{package}.JSONSchemaProps")];
        match (scalar.as_str(), full.as_str()) {
            ("quantity", _) => "Shape::Quantity".to_string(),
            ("time", _) => "Shape::Time".to_string(),
            ("microtime", _) => "Shape::MicroTime".to_string(),
            ("duration", _) => "Shape::Duration".to_string(),
            ("int-or-string", _) => "Shape::IntOrString".to_string(),
            ("strings", _) => "Shape::Strings".to_string(),
            // Audit records show a stored object in its envelope; JSON has the object itself.
            ("raw", "runtime.RawExtension") | ("envelope", _) => {
                "Shape::Raw(RawKind::RawExtension)".to_string()
            }
            ("raw", "meta.v1.FieldsV1") => "Shape::Raw(RawKind::FieldsV1)".to_string(),
            ("raw", _) => "Shape::Raw(RawKind::Json)".to_string(),
            ("schema-or-array", _) => format!("Shape::SchemaOrArray(TypeId({}))", schema()),
            ("schema-or-bool", _) => format!("Shape::SchemaOrBool(TypeId({}))", schema()),
            ("schema-or-strings", _) => format!("Shape::SchemaOrStrings(TypeId({}))", schema()),
            (other, _) => panic!("{full}: {other:?} is not a scalar that a field can have"),
        }
    }

    /// Rows for the tags given, nested messages first so that a span is one run of rows.
    fn wire_span(&mut self, tags: &[(Vec<u16>, usize)]) -> String {
        let mut by_tag: BTreeMap<u16, Vec<(Vec<u16>, usize)>> = BTreeMap::new();
        for (path, index) in tags {
            by_tag
                .entry(path[0])
                .or_default()
                .push((path[1..].to_vec(), *index));
        }

        let mut rows = Vec::new();
        for (tag, below) in by_tag {
            let to = match below.as_slice() {
                [(rest, index)] if rest.is_empty() => format!("WireTo::Field({index})"),
                nested => format!("WireTo::Inline({})", self.wire_span(nested)),
            };
            rows.push(format!("Wire {{ tag: {tag}, to: {to} }}"));
        }

        let start = self.wires.len();
        let len = rows.len();
        self.wires.extend(rows);

        format!("Span::new({start}, {len})")
    }
}

fn extra(field: &Field) -> String {
    let mut parts = Vec::new();
    match field.list.as_deref() {
        None => {}
        Some("atomic") => parts.push("list: Some(ListType::Atomic)".to_string()),
        Some("set") => parts.push("list: Some(ListType::Set)".to_string()),
        Some("map") => parts.push(format!("list: Some(ListType::Map({}))", texts(&field.keys))),
        Some(other) => panic!("{}: list={other}", field.name),
    }

    match field.map.as_deref() {
        None => {}
        Some("atomic") => parts.push("map: Some(MapType::Atomic)".to_string()),
        Some("granular") => parts.push("map: Some(MapType::Granular)".to_string()),
        Some(other) => panic!("{}: map={other}", field.name),
    }

    if !field.patch.is_empty() {
        let has = |word: &str| field.patch.iter().any(|part| part == word);
        parts.push(format!(
            "patch: Patch {{ merge: {}, replace: {}, retain_keys: {}, merge_key: {} }}",
            has("merge"),
            has("replace"),
            has("retainKeys"),
            optional(field.patch_key.as_deref())
        ));
    }

    if field.default.is_some() {
        parts.push(format!("default: {}", optional(field.default.as_deref())));
    }

    if field.shown.is_some() {
        parts.push(format!(
            "published_default: {}",
            optional(field.shown.as_deref())
        ));
    }

    for (name, list) in [
        ("enumeration", &field.enumeration),
        ("known", &field.known),
        ("gates", &field.gates),
    ] {
        if !list.is_empty() {
            parts.push(format!("{name}: {}", texts(list)));
        }
    }

    if field.milli {
        parts.push("milli: true".to_string());
    }

    if parts.is_empty() {
        return "NO_EXTRA".to_string();
    }

    format!("Extra {{ {}, ..NO_EXTRA }}", parts.join(", "))
}

fn kinds(pages: &[Page], tables: &Tables) -> Vec<String> {
    let mut rows: Vec<_> = pages
        .iter()
        .flat_map(|page| page.types.iter().map(move |declared| (page, declared)))
        .filter_map(|(page, declared)| {
            let (group, version) = split(declared.kind.as_deref()?);
            let id = tables.ids[&format!("{}.{}", page.package, declared.name)];
            let row = format!(
                "Kind {{ group: t({group:?}), version: t({version:?}), name: t({:?}), type_id: TypeId({id}) }}",
                declared.name
            );
            Some(((group.to_string(), version.to_string(), declared.name.clone()), row))
        })
        .collect();
    rows.sort();

    rows.into_iter().map(|(_, row)| row).collect()
}

fn resources(pages: &[Page]) -> Vec<String> {
    let mut rows: Vec<_> = pages
        .iter()
        .flat_map(|page| page.resources.iter().map(move |resource| (page, resource)))
        .map(|(page, resource)| {
            let (group, version) = split(&page.group_version);
            let key = (
                group.to_string(),
                version.to_string(),
                resource.plural.clone(),
            );
            (key, self::resource(group, version, resource))
        })
        .collect();
    rows.sort();

    rows.into_iter().map(|(_, row)| row).collect()
}

fn resource(group: &str, version: &str, r: &Resource) -> String {
    let rule = |word: &str| r.rules.iter().any(|rule| rule == word);
    let columns = r.columns.iter().map(|c| {
        let described = match &c.described {
            Ok(path) => format!("Described::Field(t({path:?}))"),
            Err(words) => format!("Described::Words(t({words:?}))"),
        };
        format!(
            "Column {{ name: t({:?}), data_type: t({:?}), format: t({:?}), wide: {}, described: {described} }}",
            c.name, c.data_type, c.format, c.wide
        )
    });

    let subresources = r.subresources.iter().map(|s| {
        let (group, version) = split(&s.group_version);
        format!(
            "Subresource {{ name: t({:?}), group: t({group:?}), version: t({version:?}), kind: t({:?}), verbs: {}, \
             has_table: {} }}",
            s.name,
            s.kind,
            texts(&s.verbs),
            s.has_table
        )
    });

    let selectable = r.selectable.iter().map(|(name, with)| {
        let compared = match with.as_deref() {
            None => "Compared::Itself".to_string(),
            Some("never") => "Compared::Never".to_string(),
            Some(other) => format!("Compared::With(t({other:?}))"),
        };
        format!("Selectable {{ name: t({name:?}), compared: {compared} }}")
    });

    let defaults = r
        .defaults
        .iter()
        .map(|(path, json)| format!("(t({path:?}), t({json:?}))"));

    let storage = match (&r.storage, &r.hash) {
        (Some((group_version, prefix, media)), Some((hash, published))) => {
            let (group, version) = split(group_version);
            format!(
                "Some(Storage {{ group: t({group:?}), version: t({version:?}), prefix: t({prefix:?}), json: {}, \
                 hash: t({hash:?}), hash_published: {published} }})",
                media == "json"
            )
        }
        (None, None) => "None".to_string(),
        _ => panic!("{}: storage and hash go together", r.plural),
    };

    let gate = match r.gate.as_str() {
        "" => None,
        name => Some(name),
    };
    let deprecated = match &r.deprecated {
        None => "None".to_string(),
        Some(of) => format!(
            "Some(Deprecated {{ since: t({:?}), removed: t({:?}), replacement: t({:?}) }})",
            of.since, of.removed, of.replacement
        ),
    };

    format!(
        "Resource {{ group: t({group:?}), version: t({version:?}), plural: t({:?}), singular: t({:?}), \
         kind: t({:?}), short_names: {}, categories: {}, namespaced: {}, gate: {}, deprecated: {deprecated}, \
         verbs: {}, subresources: {}, \
         storage: {storage}, selectable: {}, columns: {}, defaults: {}, has_generation: {}, \
         create_on_update: {}, needs_version: {}, returns_deleted: {} }}",
        r.plural,
        r.singular,
        r.kind,
        texts(&r.short),
        texts(&r.categories),
        r.namespaced,
        optional(gate),
        texts(&r.verbs),
        borrowed(subresources),
        borrowed(selectable),
        borrowed(columns),
        borrowed(defaults),
        rule("generation"),
        rule("create-on-update"),
        rule("needs-version"),
        rule("returns-deleted"),
    )
}

fn gate(gate: &Gate) -> String {
    let stage = match gate.stage.as_str() {
        "GA" => "Ga",
        other => other,
    };
    format!(
        "Gate {{ name: t({:?}), stage: Stage::{stage}, default: {}, locked: {}, used_by: {} }}",
        gate.name,
        gate.on,
        gate.locked,
        texts(&gate.used_by)
    )
}

fn group(group: &Group) -> String {
    format!(
        "Group {{ name: t({:?}), versions: {} }}",
        group.name,
        texts(&group.versions)
    )
}

fn split(group_version: &str) -> (&str, &str) {
    group_version
        .rsplit_once('/')
        .unwrap_or(("", group_version))
}

fn texts(list: &[String]) -> String {
    borrowed(list.iter().map(|text| format!("t({text:?})")))
}

fn borrowed(rows: impl Iterator<Item = String>) -> String {
    format!("Cow::Borrowed(&[{}])", rows.collect::<Vec<_>>().join(", "))
}

fn optional(text: Option<&str>) -> String {
    match text {
        Some(text) => format!("Some(t({text:?}))"),
        None => "None".to_string(),
    }
}
