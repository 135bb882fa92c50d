//! A definition read from its tree, in the storage version: what all versions share may be given
//! once.

use coracle_api::schema::{Format, Props};
use coracle_api::{Map, Text, Value};

use crate::kube_aware;

#[derive(Clone, Copy)]
pub struct Definition<'a> {
    pub spec: &'a Map,
    pub status: Option<&'a Map>,
    /// Some version has its own subresources: those of all versions are ignored then.
    own_subresources: bool,
}

impl<'a> Definition<'a> {
    pub fn of(tree: &'a Value) -> Definition<'a> {
        static EMPTY: Map = Map::new();
        let part = |name: &str| tree.get(name).and_then(Value::as_object);
        let spec = part("spec").unwrap_or(&EMPTY);
        let mut versions = spec.items("versions").iter().filter_map(Value::as_object);
        let own_subresources = versions.any(|version| version.is_set("subresources"));
        Definition {
            spec,
            status: part("status"),
            own_subresources,
        }
    }

    pub fn names(&self) -> &'a Map {
        static EMPTY: Map = Map::new();
        self.spec.below("names").unwrap_or(&EMPTY)
    }

    pub fn is_namespaced(&self) -> bool {
        self.spec.text("scope") == "Namespaced"
    }

    pub fn versions(&self) -> impl Iterator<Item = &'a Map> + use<'a> {
        self.spec
            .items("versions")
            .iter()
            .filter_map(Value::as_object)
    }

    /// The version that objects are stored in.
    pub fn storage_version(&self) -> Option<&'a str> {
        self.versions()
            .find(|version| version.flag("storage"))
            .map(|version| version.text("name"))
    }

    /// The version that clients of a deprecated one should use: the preferred one of those that are
    /// served, if it is preferred to the deprecated one.
    pub fn recommended_version(&self) -> Option<&'a str> {
        let current = self
            .versions()
            .filter(|version| version.flag("served") && !version.flag("deprecated"));
        current
            .map(|version| version.text("name"))
            .min_by(|one, other| kube_aware(one, other))
    }

    /// The versions that objects in the store may have.
    pub fn stored_versions(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let stored = self
            .status
            .map(|status| status.items("storedVersions"))
            .unwrap_or_default();
        stored.iter().filter_map(Value::as_str)
    }

    /// The schema of a version: its own, or that of all.
    pub fn schema(&self, version: &'a Map) -> Option<&'a Value> {
        let of = |holder: Option<&'a Map>| {
            holder
                .and_then(|holder| holder.get("openAPIV3Schema"))
                .filter(|schema| !schema.is_null())
        };
        of(version.below("schema")).or_else(|| of(self.spec.below("validation")))
    }

    /// Every schema that the definition has.
    pub fn schemas(&self) -> impl Iterator<Item = Props<'a>> + use<'a> {
        let shared = self.spec.below("validation");
        let own = self
            .versions()
            .filter_map(|version| version.below("schema"));
        let schemas = shared
            .into_iter()
            .chain(own)
            .filter_map(|holder| holder.get("openAPIV3Schema"));
        schemas.filter(|schema| !schema.is_null()).map(Props::of)
    }

    pub fn subresources(&self, version: &'a Map) -> Option<&'a Map> {
        match self.own_subresources {
            true => version.below("subresources"),
            false => self.spec.below("subresources"),
        }
    }

    pub fn has_status(&self, version: &'a Map) -> bool {
        self.subresources(version)
            .is_some_and(|subresources| subresources.is_set("status"))
    }

    pub fn columns(&self, version: &'a Map) -> &'a [Value] {
        self.own_or_shared(version, "additionalPrinterColumns")
    }

    /// Paths of the selectable fields.
    pub fn selectable(&self, version: &'a Map) -> impl Iterator<Item = &'a str> + use<'a> {
        let fields = self.own_or_shared(version, "selectableFields");
        fields
            .iter()
            .filter_map(|field| field.get("jsonPath")?.as_str())
    }

    fn own_or_shared(&self, version: &'a Map, name: &str) -> &'a [Value] {
        match version.items(name) {
            [] => self.spec.items(name),
            own => own,
        }
    }

    /// Formats that are unknown and have no effect.
    pub fn unknown_formats(&self) -> Vec<Text> {
        let known = |name: &str| {
            Format::named(name).is_some() || matches!(name, "int32" | "int64" | "float" | "double")
        };
        let mut unknown = Vec::new();
        self.each_schema(&mut |schema| {
            let format = schema.text("format");
            if !format.is_empty() && !known(format) {
                unknown.push(Text::new(format));
            }
        });
        unknown
    }

    fn each_schema(&self, visit: &mut dyn FnMut(&Map)) {
        let holders = self
            .versions()
            .filter_map(|version| version.below("schema"));
        for holder in self.spec.below("validation").into_iter().chain(holders) {
            if let Some(schema) = holder.below("openAPIV3Schema") {
                each_below(schema, visit);
            }
        }
    }
}

/// Visits a schema and all those in it.
fn each_below(schema: &Map, visit: &mut dyn FnMut(&Map)) {
    visit(schema);

    for name in [
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "additionalProperties",
        "additionalItems",
    ] {
        match schema.get(name) {
            Some(Value::Object(one)) => each_below(one, visit),
            Some(Value::Array(several)) => {
                several
                    .iter()
                    .filter_map(Value::as_object)
                    .for_each(|one| each_below(one, visit));
            }
            _ => {}
        }
    }

    for name in [
        "properties",
        "patternProperties",
        "definitions",
        "dependencies",
    ] {
        let members = schema.below(name).into_iter().flat_map(Map::values);
        members
            .filter_map(Value::as_object)
            .for_each(|one| each_below(one, visit));
    }
}
