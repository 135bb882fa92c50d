//! The operations on a resource, from its verbs, its scope and its subresources.

use coracle_api::catalog::{BUILTIN, Catalog, Resource, Struct, Subresource};

use super::names::{self, article, title};
use super::operation::{Body, KindName, Model, Operation, Parameter, query_of, sorted};

const ANY: &[&str] = &["*/*"];
const OBJECT: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAM: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const LOG: &[&str] =
    &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// Methods of a path that hands requests on, in the order of documents.
const PROXIED: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];
const STREAMED: [&str; 2] = ["get", "post"];

/// The operations on a resource and on what stands below it.
pub(super) fn operations<'c>(catalog: &'c Catalog, resource: &'c Resource) -> Vec<Operation<'c>> {
    let Some(main) = Routes::of(catalog, resource, None) else { return Vec::new() };
    let below = resource.subresources.iter().filter_map(|below| Routes::of(catalog, resource, Some(below)));
    std::iter::once(main).chain(below).flat_map(|routes| routes.operations()).collect()
}

/// A resource or a subresource, with what its operations have in common.
struct Routes<'c> {
    catalog: &'c Catalog,
    resource: &'c Resource,
    below: Option<&'c Subresource>,
    kind: KindName<'c>,
    of: Struct<'c>,
}

impl<'c> Routes<'c> {
    /// `None`: the catalogue does not know the kind.
    fn of(
        catalog: &'c Catalog,
        resource: &'c Resource,
        below: Option<&'c Subresource>,
    ) -> Option<Routes<'c>> {
        let own = KindName::new(&resource.group, &resource.version, &resource.kind);
        let kind = match below {
            None => own,
            Some(below) if below.version.is_empty() => KindName { kind: &below.kind, ..own },
            Some(below) => KindName::new(&below.group, &below.version, &below.kind),
        };
        let (_, of) = catalog.kind(kind.group, kind.version, kind.kind)?;
        Some(Routes { catalog, resource, below, kind, of })
    }

    fn operations(&self) -> Vec<Operation<'c>> {
        // Exec, attach, proxy and the like have no object: their kind is what may be asked of them.
        if self.kind.kind.ends_with("Options") {
            return self.connects();
        }
        let has = |verb: &str| self.verbs().iter().any(|known| known == verb);
        let mut found = Vec::new();
        if has("list") {
            found.push(self.list(Reach::Here));
        }
        if has("create") {
            found.push(self.create());
        }
        if has("deletecollection") {
            found.push(self.delete_collection());
        }
        if has("get") {
            found.push(self.get());
        }
        if has("update") {
            found.push(self.update());
        }
        if has("patch") {
            found.push(self.patch());
        }
        if has("delete") {
            found.push(self.delete());
        }
        if has("watch") {
            found.push(self.watch());
            found.push(self.watch_list(Reach::Here));
        }
        if self.resource.namespaced && self.below.is_none() {
            found.extend(has("list").then(|| self.list(Reach::AllNamespaces)));
            found.extend(has("watch").then(|| self.watch_list(Reach::AllNamespaces)));
        }
        found
    }

    fn list(&self, reach: Reach) -> Operation<'c> {
        let kind = self.kind.kind;
        let watched = self.verbs().iter().any(|verb| verb == "watch");
        let what = if watched { "list or watch" } else { "list" };
        let rest = format!("{}{}{}", self.namespaced(reach), self.named(), reach.suffix());
        Operation {
            description: format!("{what} objects of kind {kind}").into(),
            produces: STREAM,
            answer: self.kind_named(&format!("{kind}List")),
            parameters: self.parameters(reach, false, [self.options("ListOptions")]),
            ..self.operation("get", "list", "list", self.collection(reach), &rest)
        }
    }

    fn create(&self) -> Operation<'c> {
        // A subresource is created on an object that has a name.
        let (path, named) = match self.below {
            None => (self.collection(Reach::Here), false),
            Some(_) => (self.item(), true),
        };
        let description = match self.below {
            None => format!("create{}{}", article(self.kind.kind), self.kind.kind),
            Some(below) => {
                format!("create {} of{}{}", below.name, article(&self.resource.kind), self.resource.kind)
            }
        };
        Operation {
            description: description.into(),
            body: Some(Body { of: self.of, required: true }),
            codes: &[200, 201, 202],
            parameters: self.parameters(Reach::Here, named, [self.options("CreateOptions")]),
            ..self.operation("post", "create", "post", path, &self.id_rest())
        }
    }

    fn delete_collection(&self) -> Operation<'c> {
        let mut parameters =
            self.parameters(Reach::Here, false, [self.options("DeleteOptions"), self.options("ListOptions")]);
        parameters.retain(|parameter| !matches!(parameter.name.as_str(), "watch" | "allowWatchBookmarks"));
        Operation {
            description: format!("delete collection of {}", self.kind.kind).into(),
            body: self.delete_body(),
            answer: self.kind_named("Status"),
            parameters,
            ..self.operation(
                "delete",
                "delete",
                "deletecollection",
                self.collection(Reach::Here),
                &format!("Collection{}", self.id_rest()),
            )
        }
    }

    fn get(&self) -> Operation<'c> {
        let log = self.below.and_then(|below| self.get_options(below));
        Operation {
            description: format!("read {}", self.specified()).into(),
            produces: if log.is_some() { LOG } else { OBJECT },
            answer: if log.is_some() { Model::Text } else { Model::Type(self.of) },
            parameters: self.parameters(Reach::Here, true, [log]),
            ..self.operation("get", "read", "get", self.item(), &self.id_rest())
        }
    }

    fn update(&self) -> Operation<'c> {
        Operation {
            description: format!("replace {}", self.specified()).into(),
            body: Some(Body { of: self.of, required: true }),
            codes: &[200, 201],
            parameters: self.parameters(Reach::Here, true, [self.options("UpdateOptions")]),
            ..self.operation("put", "replace", "put", self.item(), &self.id_rest())
        }
    }

    fn patch(&self) -> Operation<'c> {
        let patch = BUILTIN.type_named("meta.v1.Patch");
        Operation {
            description: format!("partially update {}", self.specified()).into(),
            body: patch.map(|of| Body { of, required: true }),
            consumes: PATCHES,
            codes: &[200, 201],
            parameters: self.parameters(Reach::Here, true, [self.options("PatchOptions")]),
            ..self.operation("patch", "patch", "patch", self.item(), &self.id_rest())
        }
    }

    fn delete(&self) -> Operation<'c> {
        let status = self.kind_named("Status");
        Operation {
            description: format!("delete{}{}", article(self.kind.kind), self.kind.kind).into(),
            body: self.delete_body(),
            codes: &[200, 202],
            answer: if self.resource.returns_deleted { Model::Type(self.of) } else { status },
            parameters: self.parameters(Reach::Here, true, [self.options("DeleteOptions")]),
            ..self.operation("delete", "delete", "delete", self.item(), &self.id_rest())
        }
    }

    fn watch(&self) -> Operation<'c> {
        Operation {
            description: format!(
                "watch changes to an object of kind {}. deprecated: use the 'watch' parameter with a list operation \
                 instead, filtered to a single item with the 'fieldSelector' parameter.",
                self.kind.kind
            )
            .into(),
            produces: STREAM,
            answer: watch_event(),
            parameters: self.parameters(Reach::Here, true, [self.options("ListOptions")]),
            ..self.operation("get", "watch", "watch", self.watched(&self.item()), &self.id_rest())
        }
    }

    fn watch_list(&self, reach: Reach) -> Operation<'c> {
        let rest = format!("{}{}List{}", self.namespaced(reach), self.named(), reach.suffix());
        Operation {
            description: format!(
                "watch individual changes to a list of {}. deprecated: use the 'watch' parameter with a list operation \
                 instead.",
                self.kind.kind
            )
            .into(),
            produces: STREAM,
            answer: watch_event(),
            parameters: self.parameters(reach, false, [self.options("ListOptions")]),
            ..self.operation("get", "watch", "watchlist", self.watched(&self.collection(reach)), &rest)
        }
    }

    /// Operations that hand a stream or a whole request on.
    fn connects(&self) -> Vec<Operation<'c>> {
        // Options that name a path are those of a proxy, which takes every method and whatever path follows.
        let proxy = self.of.field("path").is_some();
        let methods: &[&str] = if proxy { &PROXIED } else { &STREAMED };
        let mut found: Vec<_> = methods.iter().map(|method| self.connect(method, false)).collect();
        if proxy {
            found.extend(methods.iter().map(|method| self.connect(method, true)));
        }
        found
    }

    fn connect(&self, method: &'static str, with_path: bool) -> Operation<'c> {
        let below = self.below.map_or("", |below| below.name.as_str());
        let mut parameters: Vec<Parameter> = query_of(self.of).collect();
        parameters.extend(self.path_parameters(Reach::Here, true));
        let (mut path, mut rest) = (self.item(), format!("{}{}", title(method), self.id_rest()));
        if with_path {
            parameters.push(Parameter::path("path", "path to the resource"));
            path.push_str("/{path}");
            rest.push_str("WithPath");
        }
        Operation {
            description: format!(
                "connect {} requests to {below} of {}",
                method.to_uppercase(),
                self.resource.kind
            )
            .into(),
            produces: ANY,
            answer: Model::Text,
            parameters: sorted(parameters),
            ..self.operation(method, "connect", "connect", path, &rest)
        }
    }

    /// What most operations are, for the others to change.
    fn operation(
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
            consumes: ANY,
            produces: OBJECT,
            codes: &[200],
            answer: Model::Type(self.of),
        }
    }
}

/// How far a list goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Here,
    AllNamespaces,
}

impl Reach {
    fn suffix(self) -> &'static str {
        if self == Reach::AllNamespaces { "ForAllNamespaces" } else { "" }
    }
}

/// Names, paths and parameters.
impl<'c> Routes<'c> {
    fn verbs(&self) -> &'c [coracle_api::Text] {
        self.below.map_or(&self.resource.verbs, |below| &below.verbs)
    }

    /// `/apis/apps/v1`.
    fn root(&self) -> String {
        group_version_path(&self.resource.group, &self.resource.version)
    }

    fn collection(&self, reach: Reach) -> String {
        let place =
            if self.resource.namespaced && reach == Reach::Here { "namespaces/{namespace}/" } else { "" };
        format!("{}/{place}{}", self.root(), self.resource.plural)
    }

    fn item(&self) -> String {
        let below = self.below.map(|below| format!("/{}", below.name)).unwrap_or_default();
        format!("{}/{{name}}{below}", self.collection(Reach::Here))
    }

    /// The path under which the older form of a watch is found.
    fn watched(&self, path: &str) -> String {
        let root = self.root();
        format!("{root}/watch{}", &path[root.len()..])
    }

    fn namespaced(&self, reach: Reach) -> &'static str {
        if self.resource.namespaced && reach == Reach::Here { "Namespaced" } else { "" }
    }

    /// `PodStatus`.
    fn named(&self) -> String {
        format!("{}{}", self.resource.kind, self.below.map(|below| title(&below.name)).unwrap_or_default())
    }

    /// `NamespacedPodStatus`.
    fn id_rest(&self) -> String {
        format!("{}{}", self.namespaced(Reach::Here), self.named())
    }

    /// `the specified Pod`, `status of the specified Pod`.
    fn specified(&self) -> String {
        let below = self.below.map(|below| format!("{} of ", below.name)).unwrap_or_default();
        format!("{below}the specified {}", self.resource.kind)
    }

    fn path_parameters(&self, reach: Reach, named: bool) -> Vec<Parameter> {
        let mut found = Vec::new();
        if named {
            found.push(Parameter::path("name", format!("name of the {}", self.kind.kind)));
        }
        if self.resource.namespaced && reach == Reach::Here {
            found.push(Parameter::path(
                "namespace",
                "object name and auth scope, such as for teams and projects",
            ));
        }
        found
    }

    fn parameters<const N: usize>(
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

    fn options(&self, name: &str) -> Option<Struct<'c>> {
        self.catalog.kind("", "v1", name).map(|(_, of)| of)
    }

    /// What may be said when a subresource is read, if anything: `PodLogOptions`.
    fn get_options(&self, below: &Subresource) -> Option<Struct<'c>> {
        let name = format!("{}{}Options", self.resource.kind, title(&below.name));
        self.catalog.kind(&self.resource.group, &self.resource.version, &name).map(|(_, of)| of)
    }

    fn delete_body(&self) -> Option<Body<'c>> {
        self.options("DeleteOptions").map(|of| Body { of, required: false })
    }

    /// A kind of the resource's group, or else of the core group.
    fn kind_named(&self, name: &str) -> Model<'c> {
        let own = self.catalog.kind(self.kind.group, self.kind.version, name);
        own.or_else(|| self.catalog.kind("", "v1", name)).map_or(Model::Text, |(_, of)| Model::Type(of))
    }
}

fn watch_event<'c>() -> Model<'c> {
    BUILTIN.type_named("meta.v1.WatchEvent").map_or(Model::Text, Model::Type)
}

/// `/api/v1`, `/apis/apps/v1`.
pub(super) fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}
