//! The objects that every cluster has: created at startup, and reconciled where upstream reconciles
//! them.
//!
//! Each part is a post-start hook with a health check. It writes its objects through the registry
//! like any client, as `system:apiserver`; those that must not be missing are reconciled whenever
//! they change.

pub(crate) mod api_services;
mod authentication_info;
mod flow_control;
mod identity_lease;
mod kubernetes_service;
mod legacy_tokens;
mod master_leases;
mod priority_classes;
mod rbac;
mod service_cidr;
mod storage_versions;
mod system_namespaces;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use tracing::warn;

pub use kubernetes_service::Advertised;
pub use master_leases::MasterLease;
pub use rbac::node_rules;

use crate::ApiError;
use crate::authn::{Authorities, FrontProxyConfig};
use crate::cache::Notifier;
use crate::files::FromFiles;
use crate::hooks::Hook;
use crate::loopback::Loopback;

/// How long a failure is left alone before the next attempt.
const RETRY: Duration = Duration::from_secs(1);

/// The field manager of what is created here, unless upstream has another name for it.
const MANAGER: &str = "kube-apiserver";

/// What the objects are made from.
pub struct Facts {
    pub advertised: Advertised,
    pub reconciler: EndpointReconciler,
    /// The CAs of client certificates.
    pub client_authorities: Option<Arc<FromFiles<Authorities>>>,
    /// The CAs of front proxies.
    pub proxy_authorities: Option<Arc<FromFiles<Authorities>>>,
    pub front_proxy: Option<FrontProxyConfig>,
}

/// Which addresses the Service `kubernetes` leads to.
pub enum EndpointReconciler {
    /// Those that others put there.
    None,
    /// That of this server.
    Own,
    /// Those of all servers that share a store.
    Leases(MasterLease),
}

/// The hooks of all parts.
pub struct Hooks {
    namespaces: Arc<Hook>,
    /// What the components of a cluster may do.
    pub roles: Arc<Hook>,
    authentication_info: Arc<Hook>,
    priority_classes: Arc<Hook>,
    flow_control: Arc<Hook>,
    kubernetes_service: Arc<Hook>,
    service_cidr: Arc<Hook>,
    api_services: Arc<Hook>,
    identity_lease: Arc<Hook>,
    identity_garbage: Arc<Hook>,
    legacy_tokens: Arc<Hook>,
}

impl Hooks {
    pub fn new() -> Hooks {
        Hooks {
            namespaces: Hook::new("start-system-namespaces-controller"),
            roles: Hook::new("rbac/bootstrap-roles"),
            authentication_info: Hook::new("start-cluster-authentication-info-controller"),
            priority_classes: Hook::new("scheduling/bootstrap-system-priority-classes"),
            flow_control: Hook::new("priority-and-fairness-config-producer"),
            kubernetes_service: Hook::new("bootstrap-controller"),
            service_cidr: Hook::new("start-kubernetes-service-cidr-controller"),
            api_services: Hook::new("kube-apiserver-autoregistration"),
            identity_lease: Hook::new("start-kube-apiserver-identity-lease-controller"),
            identity_garbage: Hook::new("start-kube-apiserver-identity-lease-garbage-collector"),
            legacy_tokens: Hook::new("start-legacy-token-tracking-controller"),
        }
    }

    pub fn all(&self) -> Vec<Arc<Hook>> {
        let mut all = vec![
            self.namespaces.clone(),
            self.roles.clone(),
            self.authentication_info.clone(),
            self.priority_classes.clone(),
            self.flow_control.clone(),
            self.kubernetes_service.clone(),
            self.service_cidr.clone(),
            self.api_services.clone(),
            self.identity_lease.clone(),
            self.identity_garbage.clone(),
            self.legacy_tokens.clone(),
            // Servers know of each other by their leases.
            self.identity_lease
                .also("peer-endpoint-reconciler-controller"),
            self.service_cidr
                .also("start-service-ip-repair-controllers"),
        ];
        if storage_versions::is_needed() {
            let name = "built-in-resources-storage-version-updater";
            all.push(self.identity_lease.also(name));
        }
        all
    }
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks::new()
    }
}

/// Creates everything, and reconciles it forever.
pub async fn run(loopback: &Loopback, facts: &Facts, hooks: &Hooks) {
    let after_namespaces = async {
        hooks.namespaces.finished().await;

        tokio::join!(
            authentication_info::run(loopback, facts, &hooks.authentication_info),
            rbac::run(loopback, &hooks.roles),
            identity_lease::run(loopback, &hooks.identity_lease, &hooks.identity_garbage),
            legacy_tokens::run(
                loopback,
                &loopback.registry.access.tokens.used,
                &hooks.legacy_tokens
            ),
            kubernetes_service::run(
                loopback,
                facts,
                &hooks.service_cidr,
                &hooks.kubernetes_service
            ),
        )
    };

    tokio::join!(
        system_namespaces::run(loopback, &hooks.namespaces),
        priority_classes::run(loopback, &hooks.priority_classes),
        flow_control::run(loopback, &hooks.flow_control),
        service_cidr::run(
            loopback,
            &facts.advertised.service_cidrs,
            &hooks.service_cidr
        ),
        api_services::run(loopback, &hooks.api_services),
        after_namespaces,
    );
}

/// Takes this server out of what others find, because it ends.
pub async fn withdraw(loopback: &Loopback, facts: &Facts) {
    if let Err(error) = kubernetes_service::withdraw(loopback, facts).await {
        warn!(
            error = error.message,
            "cannot remove this server from the endpoints of the Service kubernetes"
        );
    }
}

/// Does it once, however often it must be tried.
async fn once<F: Future<Output = Result<(), ApiError>>>(
    hook: &Hook,
    mut ensure: impl FnMut() -> F,
) {
    while let Err(error) = ensure().await {
        complain(hook, &error);
        tokio::time::sleep(RETRY).await;
    }
    hook.done();
}

/// Does it, and again whenever one of the notifiers has rung.
async fn keep<F: Future<Output = Result<(), ApiError>>>(
    hook: &Hook,
    notifiers: &[&Notifier],
    mut ensure: impl FnMut() -> F,
) {
    let mut last_error = String::new();
    loop {
        // Subscribed before anything is read, so that no change in between is missed.
        let mut notified: Vec<_> = notifiers
            .iter()
            .map(|notifier| Box::pin(notifier.notified()))
            .collect();
        notified.iter_mut().for_each(|notified| {
            notified.as_mut().enable();
        });

        match ensure().await {
            Ok(()) => {
                hook.done();
                last_error.clear();
                select_all(notified).await;
            }
            Err(error) => {
                if error.message != last_error {
                    complain(hook, &error);
                }
                last_error = error.message;
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

fn complain(hook: &Hook, error: &ApiError) {
    warn!(
        hook = hook.name,
        error = error.message,
        "post-start hook failed; retrying"
    );
}
