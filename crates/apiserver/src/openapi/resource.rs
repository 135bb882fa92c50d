//! The operations on a resource, from its verbs, its scope and its subresources.

use coracle_api::catalog::{BUILTIN, Catalog, Resource};

use super::names::{article, title};
use super::operation::{Body, Model, Operation, Parameter, query_of, sorted};
use super::routes::{Reach, Routes};

/// A log is a text, whatever else the client would take.
const LOG: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// Methods of a proxied path, in the order of documents.
const PROXIED: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];
const STREAMED: [&str; 2] = ["get", "post"];

/// The operations on a resource and on its subresources.
pub(super) fn operations<'c>(catalog: &'c Catalog, resource: &'c Resource) -> Vec<Operation<'c>> {
    let Some(main) = Routes::of(catalog, resource, None) else {
        return Vec::new();
    };
    let below = resource
        .subresources
        .iter()
        .filter_map(|below| Routes::of(catalog, resource, Some(below)));
    std::iter::once(main)
        .chain(below)
        .flat_map(|routes| routes.operations())
        .collect()
}

impl<'c> Routes<'c> {
    fn operations(&self) -> Vec<Operation<'c>> {
        // Exec, attach, proxy and the like have no object: their kind is that of their options.
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

        if self.resource.namespaced && self.below.is_none() && has("list") {
            found.push(self.list(Reach::AllNamespaces));
        }

        // The deprecated watch paths exist only for resources that had them.
        if has("watch") && !self.dialect.is_custom {
            found.push(self.watch());
            found.push(self.watch_list(Reach::Here));
            found.extend(
                self.resource
                    .namespaced
                    .then(|| self.watch_list(Reach::AllNamespaces)),
            );
        }

        found
    }

    fn list(&self, reach: Reach) -> Operation<'c> {
        let kind = self.kind.kind;
        let watched = !self.dialect.is_custom && self.verbs().iter().any(|verb| verb == "watch");
        let what = if watched { "list or watch" } else { "list" };
        let rest = format!(
            "{}{}{}",
            self.namespaced(reach),
            self.named(),
            reach.suffix()
        );

        Operation {
            description: format!("{what} objects of kind {kind}").into(),
            produces: self.dialect.stream,
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
                format!(
                    "create {} of{}{}",
                    below.name,
                    article(&self.resource.kind),
                    self.resource.kind
                )
            }
        };

        Operation {
            description: description.into(),
            body: Some(Body {
                of: self.of,
                required: true,
            }),
            codes: &[200, 201, 202],
            parameters: self.parameters(Reach::Here, named, [self.options("CreateOptions")]),
            ..self.operation("post", "create", "post", path, &self.id_rest())
        }
    }

    fn delete_collection(&self) -> Operation<'c> {
        let custom = self.dialect.is_custom;
        let options = self.options("DeleteOptions").filter(|_| !custom);
        let mut parameters =
            self.parameters(Reach::Here, false, [options, self.options("ListOptions")]);
        parameters
            .retain(|one| custom || !matches!(one.name.as_str(), "watch" | "allowWatchBookmarks"));
        let rest = format!("Collection{}", self.id_rest());

        Operation {
            description: format!("delete collection of {}", self.kind.kind).into(),
            body: self.delete_body().filter(|_| !custom),
            answer: self.kind_named("Status"),
            parameters,
            ..self.operation(
                "delete",
                "delete",
                "deletecollection",
                self.collection(Reach::Here),
                &rest,
            )
        }
    }

    fn get(&self) -> Operation<'c> {
        let log = self.below.and_then(|below| self.log_options(below));
        let options = if self.dialect.is_custom {
            self.options("GetOptions")
        } else {
            log
        };

        Operation {
            description: format!("read {}", self.specified()).into(),
            produces: if log.is_some() {
                LOG
            } else {
                self.dialect.object
            },
            answer: if log.is_some() {
                Model::Text
            } else {
                Model::Type(self.of)
            },
            parameters: self.parameters(Reach::Here, true, [options]),
            ..self.operation("get", "read", "get", self.item(), &self.id_rest())
        }
    }

    fn update(&self) -> Operation<'c> {
        Operation {
            description: format!("replace {}", self.specified()).into(),
            body: Some(Body {
                of: self.of,
                required: true,
            }),
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
            consumes: self.dialect.patches,
            codes: if self.dialect.is_custom {
                &[200]
            } else {
                &[200, 201]
            },
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
            answer: if self.resource.returns_deleted {
                Model::Type(self.of)
            } else {
                status
            },
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
            produces: self.dialect.stream,
            answer: watch_event(),
            parameters: self.parameters(Reach::Here, true, [self.options("ListOptions")]),
            ..self.operation("get", "watch", "watch", self.watched(&self.item()), &self.id_rest())
        }
    }

    fn watch_list(&self, reach: Reach) -> Operation<'c> {
        let rest = format!(
            "{}{}List{}",
            self.namespaced(reach),
            self.named(),
            reach.suffix()
        );

        Operation {
            description: format!(
                "watch individual changes to a list of {}. deprecated: use the 'watch' parameter with a list operation \
                 instead.",
                self.kind.kind
            )
            .into(),
            produces: self.dialect.stream,
            answer: watch_event(),
            parameters: self.parameters(reach, false, [self.options("ListOptions")]),
            ..self.operation("get", "watch", "watchlist", self.watched(&self.collection(reach)), &rest)
        }
    }

    /// Operations that hand a stream or a whole request on.
    fn connects(&self) -> Vec<Operation<'c>> {
        // Options that name a path are those of a proxy, which takes every method and whatever path
        // follows.
        let proxy = self.of.field("path").is_some();
        let methods: &[&str] = if proxy { &PROXIED } else { &STREAMED };
        let mut found: Vec<_> = methods
            .iter()
            .map(|method| self.connect(method, false))
            .collect();

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
            produces: &["*/*"],
            answer: Model::Text,
            parameters: sorted(parameters),
            ..self.operation(method, "connect", "connect", path, &rest)
        }
    }
}

fn watch_event<'c>() -> Model<'c> {
    BUILTIN
        .type_named("meta.v1.WatchEvent")
        .map_or(Model::Text, Model::Type)
}
