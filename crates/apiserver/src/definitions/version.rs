//! One version of a custom resource: what the catalogue has no place for.

use std::sync::{Arc, OnceLock};

use coracle_api::apply::Declared;
use coracle_api::codec::json;
use coracle_api::field_error::FieldError;
use coracle_api::json_path::JsonPath;
use coracle_api::schema::{BuildError, Props, Schema, TooMuchAdded};
use coracle_api::{Map, Text, Value};
use coracle_expressions::custom_resource::Validator;
use coracle_kinds::apiextensions::custom_resource_definition::view::Definition;
use coracle_kinds::kube_aware;
use tracing::warn;

/// The names by which metrics know a resource.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ResourceNames {
    pub group: Text,
    pub version: Text,
    pub plural: Text,
}

pub struct Version {
    pub name: Text,
    pub names: Arc<ResourceNames>,
    pub kind: Text,
    pub is_served: bool,
    /// The deprecation warning for requests of this version.
    pub warning: Option<String>,
    /// Whether the status is written apart.
    pub has_status: bool,
    pub replicas: Option<Replicas>,
    /// The cells of its printer columns, after the name.
    pub cells: Vec<Cell>,
    /// How fields are owned.
    pub declared: Declared,
    pub schema: Schema,
    /// Of the status alone.
    pub status: Option<Schema>,
    /// Its CEL rules, compiled at the first write: most definitions are never written to.
    rules: OnceLock<Option<Validator>>,
    /// `preserveUnknownFields`: fields that are not in the schema are stored.
    preserves: bool,
}

/// Where the `scale` of an object is.
#[derive(Clone, Debug)]
pub struct Replicas {
    pub spec: Text,
    pub status: Text,
    pub selector: Option<Text>,
}

/// One column.
pub struct Cell {
    /// `None`: the path is none, and nothing is there.
    pub path: Option<JsonPath>,
    /// `string`, `integer`, `date`, …
    pub of: Text,
}

impl Version {
    /// `recommended` is [`Definition::recommended_version`].
    pub(super) fn new(
        definition: &Definition<'_>,
        version: &Map,
        recommended: Option<&str>,
    ) -> Result<Version, BuildError> {
        let source = definition.schema(version).map_or_else(anything, opened);
        let preserves = definition.spec.flag("preserveUnknownFields");
        let status = source.at(&["properties", "status"]);
        let declared = Declared::object(&source, preserves).unwrap_or_else(|error| {
            let version = version.text("name");
            warn!(%error, version, "cannot read field types from the schema; ignoring it");
            Declared::object(&anything(), true).expect("the schema that allows anything is valid")
        });

        let accepted = super::accepted_names(definition);
        let names = ResourceNames {
            group: Text::new(definition.spec.text("group")),
            version: Text::new(version.text("name")),
            plural: Text::new(accepted.text("plural")),
        };

        Ok(Version {
            name: names.version.clone(),
            names: Arc::new(names),
            kind: Text::new(accepted.text("kind")),
            is_served: version.flag("served"),
            warning: version
                .flag("deprecated")
                .then(|| deprecation(definition, version, recommended)),
            has_status: definition.has_status(version),
            replicas: replicas(definition, version),
            cells: cells(definition.columns(version)),
            declared,
            schema: Schema::new(Props::of(&source))?,
            status: status
                .map(|status| Schema::new(Props::of(status)))
                .transpose()?,
            rules: OnceLock::new(),
            preserves,
        })
    }

    /// The CEL rules of its schema.
    pub(super) fn rules(&self) -> Option<&Validator> {
        self.rules
            .get_or_init(|| Validator::new(&self.schema))
            .as_ref()
    }

    /// Drops what the schema does not know, and returns where it stood.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        if self.preserves {
            Vec::new()
        } else {
            self.schema.prune(object)
        }
    }

    /// An object from a client: unknown fields are dropped and returned.
    ///
    /// # Errors
    /// The metadata of an embedded object is invalid.
    pub fn admit(&self, object: &mut Value) -> Result<Vec<String>, FieldError> {
        let mut unknown = self.prune(object);
        self.schema.prune_nulls(object);
        unknown.extend(self.schema.coerce(object, false)?);
        Ok(unknown)
    }

    /// Fills in what is unset.
    ///
    /// # Errors
    /// That would be too much.
    pub fn default(&self, object: &mut Value) -> Result<(), TooMuchAdded> {
        self.schema.default(object)?;
        self.schema.prune_nulls(object);
        Ok(())
    }

    /// An object of the store, which may be older than the schema.
    pub(super) fn repair(&self, object: &mut Value) {
        self.prune(object);
        self.schema.prune_nulls(object);
        if let Err(error) = self.schema.coerce(object, true) {
            warn!(%error, "stored object has an invalid embedded object");
        }
        // It is returned with some of them: defaults that were added later can exceed the size
        // limit of an object.
        if let Err(error) = self.default(object) {
            warn!(name = object.meta().name(), %error, "cannot apply all defaults to stored object");
        }
    }
}

/// The schema of a version as its author wrote it.
pub(super) fn source(definition: &Definition<'_>, name: &str) -> Option<Value> {
    let version = definition
        .versions()
        .find(|version| version.text("name") == name)?;
    definition.schema(version).map(opened)
}

/// The schema of old definitions without one: anything is allowed and stored.
fn anything() -> Value {
    let mut schema = Map::new();
    schema.insert("type", "object");
    schema.insert("x-kubernetes-preserve-unknown-fields", true);
    Value::Object(schema)
}

/// A schema with all JSON in it as trees: defaults and enum values are stored as text.
fn opened(schema: &Value) -> Value {
    json::parse(&json::to_vec(schema)).unwrap_or_else(|_| anything())
}

fn deprecation(definition: &Definition<'_>, version: &Map, recommended: Option<&str>) -> String {
    if let Some(warning) = version.str("deprecationWarning") {
        return warning.to_owned();
    }

    let (group, kind) = (
        definition.spec.text("group"),
        definition.names().text("kind"),
    );

    let name = version.text("name");
    match recommended.filter(|better| kube_aware(better, name).is_lt()) {
        Some(better) => {
            format!("{group}/{name} {kind} is deprecated; use {group}/{better} {kind}")
        }
        None => format!("{group}/{name} {kind} is deprecated"),
    }
}

fn replicas(definition: &Definition<'_>, version: &Map) -> Option<Replicas> {
    let scale = definition.subresources(version)?.below("scale")?;
    let selector = Some(scale.text("labelSelectorPath")).filter(|path| !path.is_empty());
    Some(Replicas {
        spec: Text::new(scale.text("specReplicasPath")),
        status: Text::new(scale.text("statusReplicasPath")),
        selector: selector.map(Text::new),
    })
}

fn cells(columns: &[Value]) -> Vec<Cell> {
    if columns.is_empty() {
        let path = JsonPath::parse(".metadata.creationTimestamp").ok();
        return vec![Cell {
            path,
            of: Text::const_new("date"),
        }];
    }

    let columns = columns.iter().filter_map(Value::as_object);

    let cell = |column: &Map| Cell {
        path: JsonPath::parse(column.text("JSONPath")).ok(),
        of: Text::new(column.text("type")),
    };

    columns.map(cell).collect()
}
