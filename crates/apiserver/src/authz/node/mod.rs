//! The Node authorizer: a kubelet reads what the pods on its node need, and no more.
//!
//! Users are `system:node:NAME` in the group `system:nodes`. They may read secrets, config maps,
//! claims, volumes and service accounts that a pod bound to the node refers to ([`graph`]), and
//! write leases, CSINodes, their own Node and pods by name; the rest is decided by the rules of the
//! role `system:node`.

mod graph;
mod references;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::selector::FieldSelector;

use super::{AccessTarget, Attributes, Authorizer, Decision, Grant, Listing, ResourceTarget};
use crate::authn::User;
use crate::cache::{Caches, Derived};
use coracle_kinds::rbac::Rule;
use graph::Graph;
pub(crate) use references::Needs;

const PREFIX: &str = "system:node:";
const GROUP: &str = "system:nodes";
const LEASES: &str = "kube-node-lease";

/// The name of the node that a user is; `None`: it is none.
pub fn identity(user: &User) -> Option<&str> {
    user.name.strip_prefix(PREFIX).filter(|_| user.is_in(GROUP))
}

pub struct Node {
    caches: Arc<Caches>,
    graph: Derived<Graph>,
    /// What is not about objects of one node.
    rules: Vec<Rule>,
}

impl Node {
    /// `rules` are those of the role `system:node`.
    pub fn new(caches: &Arc<Caches>, rules: Vec<Rule>) -> Node {
        let source = |prefix| {
            caches
                .get(prefix)
                .expect("pods and volumes are built in")
                .clone()
        };
        Node {
            caches: caches.clone(),
            graph: Derived::new(graph::SOURCES.map(source).to_vec()),
            rules,
        }
    }

    fn decide(&self, attributes: &Attributes<'_>) -> Result<(), String> {
        let Some(node) = identity(attributes.user) else {
            return Err(String::new());
        };
        if node.is_empty() {
            let user = coracle_api::go_text::Quoted(&attributes.user.name);
            return Err(format!("unknown node for user {user}"));
        }

        if let AccessTarget::Resource(resource) = &attributes.target
            && let Some(decision) = self.about_objects(node, attributes.verb, resource)
        {
            return decision;
        }

        if self.rules.iter().any(|rule| rule.allows(attributes)) {
            Ok(())
        } else {
            Err(String::new())
        }
    }

    /// Of resources whose objects belong to nodes; `None`: it is another.
    fn about_objects(
        &self,
        node: &str,
        verb: &str,
        resource: &ResourceTarget<'_>,
    ) -> Option<Result<(), String>> {
        let request = NodeRequest {
            of: self,
            node,
            verb,
            resource,
        };

        Some(match (resource.group, resource.resource) {
            ("", "secrets") => request.read(|| request.needs_secret()),
            ("", "configmaps") => {
                request.read(|| request.needs(|needs| contains(&needs.config_maps, resource.name)))
            }
            ("", "persistentvolumeclaims") if resource.subresource == "status" => match verb {
                "update" | "patch" => {
                    request.related(request.needs_claim(resource.namespace, resource.name))
                }
                _ => Err("can only get/update/patch this type".to_string()),
            },
            ("", "persistentvolumeclaims") => {
                request.get(|| request.needs_claim(resource.namespace, resource.name))
            }
            ("", "persistentvolumes") => request.get(|| request.needs_volume()),
            ("resource.k8s.io", "resourceclaims") => request
                .get(|| request.needs(|needs| contains(&needs.resource_claims, resource.name))),
            ("storage.k8s.io", "volumeattachments") => {
                request.get(|| request.names_the_node("volumeattachments", &["spec", "nodeName"]))
            }
            ("", "serviceaccounts") => request.service_account(),
            ("coordination.k8s.io", "leases") => request.lease(),
            ("storage.k8s.io", "csinodes") => request.csi_node(),
            ("resource.k8s.io", "resourceslices") => request.resource_slice(),
            ("", "nodes") => request.own_node(),
            ("", "pods") => request.pod(),
            // Their gate is off.
            ("certificates.k8s.io", "podcertificaterequests") => Err(String::new()),
            _ => return None,
        })
    }
}

/// What a node wants to do to an object.
struct NodeRequest<'a> {
    of: &'a Node,
    node: &'a str,
    verb: &'a str,
    resource: &'a ResourceTarget<'a>,
}

impl NodeRequest<'_> {
    fn read(&self, related: impl Fn() -> bool) -> Result<(), String> {
        if !matches!(self.verb, "get" | "list" | "watch") {
            return Err("can only read resources of this type".to_string());
        }
        if !self.resource.subresource.is_empty() {
            return Err("cannot read subresource".to_string());
        }
        if self.resource.namespace.is_empty() {
            return Err("can only read namespaced object of this type".to_string());
        }
        self.related(!self.resource.name.is_empty() && related())
    }

    fn get(&self, related: impl Fn() -> bool) -> Result<(), String> {
        if self.verb != "get" {
            return Err("can only get individual resources of this type".to_string());
        }
        if !self.resource.subresource.is_empty() {
            return Err("cannot get subresource".to_string());
        }
        self.related(!self.resource.name.is_empty() && related())
    }

    fn related(&self, related: bool) -> Result<(), String> {
        if related {
            return Ok(());
        }
        if self.resource.name.is_empty() {
            return Err("No Object name found".to_string());
        }
        Err(format!(
            "no relationship found between node '{}' and this object",
            self.node
        ))
    }

    fn needs(&self, wanted: impl Fn(&Needs) -> bool) -> bool {
        self.of
            .graph
            .read()
            .needs(self.node, self.resource.namespace, wanted)
    }

    fn needs_secret(&self) -> bool {
        let ResourceTarget {
            namespace, name, ..
        } = *self.resource;
        self.needs(|needs| contains(&needs.secrets, name))
            || self
                .of
                .graph
                .read()
                .volume_needs_secret(self.node, &format!("{namespace}/{name}"))
    }

    fn needs_claim(&self, namespace: &str, name: &str) -> bool {
        !name.is_empty()
            && self
                .of
                .graph
                .read()
                .needs(self.node, namespace, |needs| contains(&needs.claims, name))
    }

    fn needs_volume(&self) -> bool {
        let volume = self.lookup("persistentvolumes");
        let claim = volume
            .as_ref()
            .and_then(|volume| volume.at(&["spec", "claimRef"])?.as_object());
        claim.is_some_and(|claim| self.needs_claim(claim.text("namespace"), claim.text("name")))
    }

    fn names_the_node(&self, prefix: &str, path: &[&str]) -> bool {
        self.lookup(prefix)
            .and_then(|object| Some(object.at(path)?.as_str()? == self.node))
            .unwrap_or(false)
    }

    /// A cluster-wide object of that name.
    fn lookup(&self, prefix: &str) -> Option<Value> {
        let cache = self.of.caches.get(prefix)?;
        Some(
            cache
                .get(self.resource.name)?
                .value(cache.storage_version().of),
        )
    }

    fn service_account(&self) -> Result<(), String> {
        let ResourceTarget {
            subresource, name, ..
        } = *self.resource;

        let used = || self.needs(|needs| needs.account == name);
        if self.verb == "get" && subresource.is_empty() {
            return self.read(used);
        }

        if self.verb != "create" || name.is_empty() {
            return Err("can only create tokens for individual service accounts".to_string());
        }
        if subresource != "token" {
            return Err("can only create token subresource of serviceaccount".to_string());
        }

        self.related(used())
    }

    fn lease(&self) -> Result<(), String> {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return Err("can only get, create, update, patch, or delete a node lease".to_string());
        }

        if self.resource.namespace != LEASES {
            return Err(format!(
                "can only access leases in the \"{LEASES}\" system namespace"
            ));
        }

        if self.verb != "create" && self.resource.name != self.node {
            return Err(
                "can only access node lease with the same name as the requesting node".to_string(),
            );
        }

        Ok(())
    }

    fn csi_node(&self) -> Result<(), String> {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return Err("can only get, create, update, patch, or delete a CSINode".to_string());
        }
        if !self.resource.subresource.is_empty() {
            return Err("cannot authorize CSINode subresources".to_string());
        }

        if self.verb != "create" && self.resource.name != self.node {
            return Err(
                "can only access CSINode with the same name as the requesting node".to_string(),
            );
        }

        Ok(())
    }

    fn resource_slice(&self) -> Result<(), String> {
        if !self.resource.subresource.is_empty() {
            return Err("cannot authorize ResourceSlice subresources".to_string());
        }

        match self.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => {
                self.related(self.names_the_node("resourceslices", &["spec", "nodeName"]))
            }
            "list" | "watch" | "deletecollection" if self.selects("spec.nodeName") => Ok(()),
            "list" | "watch" | "deletecollection" => {
                Err("can only list/watch/deletecollection resourceslices with nodeName field selector".to_string())
            }
            _ => Err("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                      delete, deletecollection"
                .to_string()),
        }
    }

    fn own_node(&self) -> Result<(), String> {
        let (node, name) = (self.node, self.resource.name);
        match (self.resource.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") if name == node => Ok(()),
            ("", "get" | "list" | "watch") if name.is_empty() => Err(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            ("", "get" | "list" | "watch") => Err(format!(
                "node '{node}' cannot read '{name}', only its own Node object"
            )),
            _ => Err(String::new()),
        }
    }

    fn pod(&self) -> Result<(), String> {
        let ResourceTarget {
            namespace, name, ..
        } = *self.resource;
        let here = || {
            self.of
                .graph
                .read()
                .has_pod(self.node, &format!("{namespace}/{name}"))
        };

        match (self.resource.subresource, self.verb) {
            ("", "get") => self.get(here),
            ("", "list" | "watch") if self.selects("spec.nodeName") => Ok(()),
            ("", "list" | "watch") if !name.is_empty() => self.related(here()),
            ("", "list" | "watch") => {
                Err("can only list/watch pods with spec.nodeName field selector".to_string())
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => Err(String::new()),
        }
    }

    /// Whether the selector restricts the request to objects of the node.
    fn selects(&self, field: &str) -> bool {
        let selector = self.resource.field_selector.parse::<FieldSelector>();
        selector.is_ok_and(|selector| selector.exact_value(field) == Some(self.node))
    }
}

fn contains(names: &[coracle_api::Text], name: &str) -> bool {
    names.iter().any(|own| own == name)
}

#[async_trait]
impl Authorizer for Node {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        match self.decide(attributes) {
            Ok(()) => Decision::Allow(Grant::Plain),
            Err(reason) => Decision::NoOpinion(reason),
        }
    }

    fn rules(&self, user: &User, _: &str) -> Listing {
        match identity(user) {
            None => Listing::default(),
            Some(_) => Listing {
                incomplete: true,
                error: "node authorizer does not support user rule resolution".to_string(),
                ..Listing::default()
            },
        }
    }
}
