//! Admission: who may still change or refuse a write that is allowed.
//!
//! A chain of plugins in upstream's order. Each first sees the object as the client sent it and may change it
//! (`admit`); when the kind's strategy has shaped and judged the object, each may refuse the outcome (`validate`).
//! Plugins read the caches; they do not call the API.

mod namespace_lifecycle;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use async_trait::async_trait;
use coracle_api::Value;

use crate::ApiError;
use crate::registry::{Part, Registry, Scope};

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// A write, as plugins see it.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub registry: &'a Registry,
    pub scope: &'a Scope<'a>,
    pub operation: Operation,
    pub part: Part,
    /// Empty where the name is yet to be generated.
    pub name: &'a str,
    /// The object that is there: on an update and on a delete.
    pub old: Option<&'a Value>,
    pub dry_run: bool,
}

/// One of the chain.
#[expect(unused_variables, reason = "the names of parameters document what many plugins need not look at")]
#[async_trait]
pub trait Plugin: Send + Sync {
    /// As `--enable-admission-plugins` knows it.
    fn name(&self) -> &'static str;

    /// Changes the object, or refuses it before it is shaped.
    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    /// Refuses what came of it. There is no object on a delete.
    async fn validate(&self, object: Option<&Value>, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}

/// The plugins that are on, in their order.
pub struct Admission {
    plugins: Vec<Box<dyn Plugin>>,
}

impl Default for Admission {
    fn default() -> Admission {
        Admission {
            plugins: vec![
                Box::new(namespace_lifecycle::NamespaceLifecycle),
                Box::new(taint_nodes_by_condition::TaintNodesByCondition),
                Box::new(storage_object_in_use_protection::StorageObjectInUseProtection),
            ],
        }
    }
}

impl Admission {
    pub async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            plugin.admit(object, attributes).await?;
        }
        Ok(())
    }

    pub async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            plugin.validate(object, attributes).await?;
        }
        Ok(())
    }
}
