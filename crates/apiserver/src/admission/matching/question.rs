//! What a request is, to rules and selectors.

use std::sync::{Arc, OnceLock};

use coracle_api::catalog::{Kind, Resource};
use coracle_api::selector::LabelSelector;
use coracle_api::{Map, Value};
use coracle_kinds::{ApiError, builtin};

use super::equivalent;
use crate::admission::{Attributes, Operation};

/// The resource and the kind of objects that a policy or webhook wants to see.
#[derive(Clone, Copy, Debug)]
pub struct Match<'a> {
    pub resource: &'a Resource,
    pub kind: &'a Kind,
}

impl Match<'_> {
    /// Whether this is the same resource and kind.
    pub fn is(&self, other: &Match<'_>) -> bool {
        std::ptr::eq(self.resource, other.resource) && std::ptr::eq(self.kind, other.kind)
    }

    pub(super) fn is_same_resource(&self, other: &Resource) -> bool {
        self.resource.group == other.group
            && self.resource.version == other.version
            && self.resource.plural == other.plural
    }
}

/// A request that policies or webhooks may concern. Made once for all of them: what several of them
/// need is found once.
pub struct Question<'a> {
    pub(super) attributes: &'a Attributes<'a>,
    /// Absent on a delete.
    object: Option<&'a Value>,
    namespace: OnceLock<Option<Arc<Value>>>,
    equivalents: OnceLock<Vec<Match<'a>>>,
}

impl<'a> Question<'a> {
    pub fn new(attributes: &'a Attributes<'a>, object: Option<&'a Value>) -> Question<'a> {
        Question {
            attributes,
            object,
            namespace: OnceLock::new(),
            equivalents: OnceLock::new(),
        }
    }

    /// The resource and kind of the request itself.
    pub fn own(&self) -> Match<'a> {
        Match {
            resource: self.attributes.cx.resource,
            kind: self.attributes.cx.kind,
        }
    }

    pub(super) fn equivalents(&self) -> &[Match<'a>] {
        self.equivalents
            .get_or_init(|| equivalent::all(self.attributes))
    }

    /// The namespace of the request, if there is one.
    pub fn namespace(&self) -> Option<&Arc<Value>> {
        let find = || {
            let cluster = self.attributes.cx.cluster;
            cluster.get(builtin("", "v1", "namespaces"), self.attributes.namespace())
        };
        self.namespace.get_or_init(find).as_ref()
    }

    /// Whether the request is about a namespace, or an object in one.
    pub(super) fn has_namespace(&self) -> bool {
        !self.attributes.namespace().is_empty()
            || self.attributes.cx.resource.plural == "namespaces"
    }

    /// Whether a selector of namespaces selects that of the request. Cluster-wide objects are always
    /// selected; a namespace that is written is selected by its own labels.
    pub(super) fn is_in(&self, selector: &LabelSelector) -> Result<bool, ApiError> {
        let attributes = self.attributes;
        let is_namespace = attributes.cx.resource.plural == "namespaces";
        if !self.has_namespace() || selector.is_everything() {
            return Ok(true);
        }

        let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
        if let Some(object) = self.object
            && is_namespace
            && attributes.subresource.is_empty()
            && is_written
        {
            return Ok(selector.matches(&labels(object)));
        }

        let namespaces = builtin("", "v1", "namespaces");
        let namespace = self
            .namespace()
            .ok_or_else(|| ApiError::not_found(namespaces, attributes.namespace()))?;
        Ok(selector.matches(&labels(namespace)))
    }

    /// Whether a selector of objects selects the object, or the one that is there.
    pub(super) fn is_selected_by(&self, selector: &LabelSelector) -> bool {
        // The options of a connection have no labels, not even none.
        let connects = self.attributes.operation == Operation::Connect;
        let mut objects = [self.object, self.attributes.old]
            .into_iter()
            .flatten()
            .filter(|_| !connects);
        selector.is_everything() || objects.any(|object| selector.matches(&labels(object)))
    }
}

fn labels(object: &Value) -> Option<&Map> {
    object.meta().labels()
}
