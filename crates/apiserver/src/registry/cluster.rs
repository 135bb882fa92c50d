//! The registry as strategies and admission plugins see it.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::catalog::Resource;
use coracle_kinds::Allocation;
use coracle_kinds::access::Attributes;
use coracle_kinds::core::service::NodePorts;
use coracle_kinds::rbac::{Rule, Unresolved};
use coracle_kinds::{ApiError, Caller, Cluster, User};
use futures_util::future::BoxFuture;
use k8s_openapi::api::rbac::v1::RoleRef;

use super::{Registry, Scope};
use crate::admission::Warnings;
use crate::request::{DeleteOptions, WriteOptions};
use crate::served::Served;

impl Cluster for Registry {
    fn get(&self, resource: &Resource, key: &str) -> Option<Arc<Value>> {
        self.lookup(resource, key)
    }

    fn exists(&self, resource: &Resource, key: &str) -> bool {
        let cache = resource
            .storage
            .as_ref()
            .and_then(|storage| self.caches.get(&storage.prefix));
        cache.is_some_and(|cache| cache.get(key).is_some())
    }

    fn list(&self, resource: &Resource, namespace: &str) -> Vec<Arc<Value>> {
        self.lookup_all(resource, namespace)
    }

    fn serves(&self, resource: &Resource) -> bool {
        self.caches.definitions().served().serves(resource)
    }

    fn resource_of_kind(&self, (group, version): (&str, &str), kind: &str) -> Option<String> {
        let served = Served::of_kind(&self.caches, group, version, kind)?;
        Some(served.resource().plural.to_string())
    }

    fn appears<'a>(
        &'a self,
        resource: &'a Resource,
        key: &'a str,
    ) -> BoxFuture<'a, Option<Arc<Value>>> {
        Box::pin(async move {
            let cache = self.caches.get(&resource.storage.as_ref()?.prefix)?;
            let listening = cache.notifier_of(key);
            loop {
                let notified = listening.notifier.notified();
                if let Some(found) = self.lookup(resource, key) {
                    return Some(found);
                }
                notified.await;
            }
        })
    }

    fn create<'a>(
        &'a self,
        resource: &'static Resource,
        object: Value,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let caller = Caller::system();
            let scope = Scope::new(resource, "", &caller);
            self.insert(&scope, object, &WriteOptions::default(), Vec::new())
                .await
                .map(drop)
        })
    }

    fn delete<'a>(
        &'a self,
        resource: &'static Resource,
        name: &'a str,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let caller = Caller::system();
            let scope = Scope::new(resource, "", &caller);
            let options = DeleteOptions::default();
            Registry::delete(self, &scope, name, &options, &Warnings::default())
                .await
                .map(drop)
        })
    }

    fn change<'a>(
        &'a self,
        resource: &'static Resource,
        namespace: &'a str,
        name: &'a str,
        change: &'a (dyn Fn(&mut Value) -> Result<(), ApiError> + Send + Sync),
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        Box::pin(async move {
            let caller = Caller::system();
            let scope = Scope::new(resource, namespace, &caller);
            self.rewrite(&scope, name, false, change).await.map(drop)
        })
    }

    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.access.authorization.allows(&attributes).await })
    }

    fn rules_of_user(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<Unresolved>) {
        self.access.rbac.rules_of(user, namespace)
    }

    fn rules_of_role(&self, role: &RoleRef, namespace: &str) -> Result<Vec<Rule>, Unresolved> {
        self.access.rbac.referred(role, namespace)
    }

    fn node_ports(&self) -> &NodePorts {
        &self.node_ports
    }

    fn count_allocation(&self, allocation: Allocation) {
        self.allocations.count(allocation);
    }

    fn allow_privileged(&self) -> bool {
        self.allow_privileged
    }

    fn random(&self) -> u64 {
        (self.random)()
    }
}
