//! What the operations on a resource have in common: names, paths, parameters and media types.

use coracle_api::Text;
use coracle_api::catalog::{BUILTIN, Catalog, Resource, Struct, Subresource};

use super::names::{self, title};
use super::operation::{Body, KindName, Model, Operation, Parameter, query_of, sorted};

/// The media types of requests and responses.
pub(super) struct Dialect {
    pub(super) consumes: &'static [&'static str],
    pub(super) object: &'static [&'static str],
    /// Of lists and watches.
    pub(super) stream: &'static [&'static str],
    pub(super) patches: &'static [&'static str],
    pub(super) is_custom: bool,
}

static BUILT_IN: Dialect = Dialect {
    consumes: &["*/*"],
    object: &[
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ],
    stream: &[
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
    ],
    patches: &[
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ],
    is_custom: false,
};

/// Custom resources have no protobuf form, and no declaration of how to merge their lists.
static CUSTOM: Dialect = Dialect {
    consumes: &["application/json", "application/yaml"],
    object: &["application/json", "application/yaml"],
    stream: &["application/json", "application/yaml"],
    patches: &[
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ],
    is_custom: true,
};

/// A resource or a subresource, with what its operations have in common.
pub(super) struct Routes<'c> {
    catalog: &'c Catalog,
    pub(super) resource: &'c Resource,
    pub(super) below: Option<&'c Subresource>,
    pub(super) kind: KindName<'c>,
    pub(super) of: Struct<'c>,
    pub(super) dialect: &'static Dialect,
}

impl<'c> Routes<'c> {
    /// `None`: the catalogue does not know the kind.
    pub(super) fn of(
        catalog: &'c Catalog,
        resource: &'c Resource,
        below: Option<&'c Subresource>,
    ) -> Option<Routes<'c>> {
        let own = KindName::new(&resource.group, &resource.version, &resource.kind);
        let kind = match below {
            None => own,
            Some(below) if below.version.is_empty() => KindName {
                kind: &below.kind,
                ..own
            },
            Some(below) => KindName::new(&below.group, &below.version, &below.kind),
        };
        let (_, of) = catalog.kind(kind.group, kind.version, kind.kind)?;

        let is_built_in = BUILTIN
            .resource(&resource.group, &resource.version, &resource.plural)
            .is_some();
        let dialect = if is_built_in { &BUILT_IN } else { &CUSTOM };

        Some(Routes {
            catalog,
            resource,
            below,
            kind,
            of,
            dialect,
        })
    }

    pub(super) fn verbs(&self) -> &'c [Text] {
        self.below
            .map_or(&self.resource.verbs, |below| &below.verbs)
    }

    /// `/apis/apps/v1`.
    fn root(&self) -> String {
        group_version_path(&self.resource.group, &self.resource.version)
    }

    pub(super) fn collection(&self, reach: Reach) -> String {
        let place = if self.resource.namespaced && reach == Reach::Here {
            "namespaces/{namespace}/"
        } else {
            ""
        };
        format!("{}/{place}{}", self.root(), self.resource.plural)
    }

    pub(super) fn item(&self) -> String {
        let below = self
            .below
            .map(|below| format!("/{}", below.name))
            .unwrap_or_default();
        format!("{}/{{name}}{below}", self.collection(Reach::Here))
    }

    /// The path under which the older form of a watch is found.
    pub(super) fn watched(&self, path: &str) -> String {
        let root = self.root();
        format!("{root}/watch{}", &path[root.len()..])
    }

    pub(super) fn namespaced(&self, reach: Reach) -> &'static str {
        if self.resource.namespaced && reach == Reach::Here {
            "Namespaced"
        } else {
            ""
        }
    }

    /// `PodStatus`.
    pub(super) fn named(&self) -> String {
        format!(
            "{}{}",
            self.resource.kind,
            self.below
                .map(|below| title(&below.name))
                .unwrap_or_default()
        )
    }

    /// `NamespacedPodStatus`.
    pub(super) fn id_rest(&self) -> String {
        format!("{}{}", self.namespaced(Reach::Here), self.named())
    }

    /// `the specified Pod`, `status of the specified Pod`.
    pub(super) fn specified(&self) -> String {
        let below = self
            .below
            .map(|below| format!("{} of ", below.name))
            .unwrap_or_default();
        format!("{below}the specified {}", self.resource.kind)
    }

    pub(super) fn path_parameters(&self, reach: Reach, named: bool) -> Vec<Parameter> {
        let mut found = Vec::new();
        if named {
            found.push(Parameter::path(
                "name",
                format!("name of the {}", self.kind.kind),
            ));
        }

        if self.resource.namespaced && reach == Reach::Here {
            found.push(Parameter::path(
                "namespace",
                "object name and auth scope, such as for teams and projects",
            ));
        }

        found
    }

    pub(super) fn parameters<const N: usize>(
        &self,
        reach: Reach,
        named: bool,
        options: [Option<Struct<'c>>; N],
    ) -> Vec<Parameter> {
        let mut found = self.path_parameters(reach, named);
        found.push(Parameter::query(
            "pretty",
            "Whether the answer is indented, for people. Without it: only for browsers, curl and wget.",
        ));
        found.extend(options.into_iter().flatten().flat_map(query_of));
        sorted(found)
    }

    pub(super) fn options(&self, name: &str) -> Option<Struct<'c>> {
        self.catalog.kind("", "v1", name).map(|(_, of)| of)
    }

    /// The options for reading a subresource that is no object: `PodLogOptions`.
    pub(super) fn log_options(&self, below: &Subresource) -> Option<Struct<'c>> {
        let name = format!("{}{}Options", self.resource.kind, title(&below.name));
        self.catalog
            .kind(&self.resource.group, &self.resource.version, &name)
            .map(|(_, of)| of)
    }

    pub(super) fn delete_body(&self) -> Option<Body<'c>> {
        self.options("DeleteOptions").map(|of| Body {
            of,
            required: false,
        })
    }

    /// A kind of the resource's group, or else of the core group.
    pub(super) fn kind_named(&self, name: &str) -> Model<'c> {
        let own = self.catalog.kind(self.kind.group, self.kind.version, name);
        own.or_else(|| self.catalog.kind("", "v1", name))
            .map_or(Model::Text, |(_, of)| Model::Type(of))
    }

    /// What most operations are, for the others to change.
    pub(super) fn operation(
        &self,
        method: &'static str,
        verb: &str,
        action: &'static str,
        path: String,
        rest: &str,
    ) -> Operation<'c> {
        let (group, version) = (&self.resource.group, &self.resource.version);
        Operation {
            method,
            path,
            id: names::operation_id(verb, group, version, rest),
            tag: names::tag(group, version),
            description: "".into(),
            action: Some((action, self.kind)),
            parameters: Vec::new(),
            body: None,
            consumes: self.dialect.consumes,
            produces: self.dialect.object,
            codes: &[200],
            answer: Model::Type(self.of),
        }
    }
}

/// The scope of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Here,
    AllNamespaces,
}

impl Reach {
    pub(super) fn suffix(self) -> &'static str {
        if self == Reach::AllNamespaces {
            "ForAllNamespaces"
        } else {
            ""
        }
    }
}

/// `/api/v1`, `/apis/apps/v1`.
pub(super) fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}
