//! NodeRestriction: a kubelet writes its own Node, the status of its own pods, and little else.
//!
//! Authorization allows every node to write nodes and pods; this plugin has the object and checks
//! that it belongs to the node.

mod node;
mod pod;
mod token;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::certificate_subject::CertificateSubject;
use coracle_api::go_text::Quoted;
use coracle_kinds::Part;
use coracle_kinds::builtin;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;
use crate::authz::node::identity;

const LEASES: &str = "kube-node-lease";

/// Signers of certificates for nodes.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
];

pub(super) struct NodeRestriction;

#[async_trait]
impl Plugin for NodeRestriction {
    fn handles(&self, operation: Operation) -> bool {
        operation != Operation::Connect
    }

    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let written = attributes.operation != Operation::Delete;
        check(written.then_some(&*object), attributes).await
    }
}

/// A write by a node.
struct Write<'a> {
    node: &'a str,
    /// Absent on a delete.
    object: Option<&'a Value>,
    attributes: &'a Attributes<'a>,
}

async fn check(object: Option<&Value>, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let user = attributes.cx.user;
    let Some(node) = identity(user) else {
        return Ok(());
    };
    let write = Write {
        node,
        object,
        attributes,
    };

    if node.is_empty() {
        return Err(write.refused(&format!(
            "could not determine node from user {}",
            Quoted(&user.name)
        )));
    }

    let resource = attributes.cx.resource;
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::check(&write),
        ("", "nodes") => node::check(&write),
        ("", "persistentvolumeclaims") => pod::check_claim(&write),
        ("", "serviceaccounts") => token::check(&write).await,
        ("coordination.k8s.io", "leases") => lease(&write),
        ("storage.k8s.io", "csinodes") => {
            write.own_name("can only access CSINode with the same name as the requesting node")
        }
        ("resource.k8s.io", "resourceslices") => resource_slice(&write),
        ("certificates.k8s.io", "certificatesigningrequests") => signing_request(&write),
        ("certificates.k8s.io", "podcertificaterequests") => {
            Err(write.refused("PodCertificateRequest feature gate is disabled"))
        }
        _ => Ok(()),
    }
}

impl<'a> Write<'a> {
    fn refused(&self, why: &str) -> ApiError {
        match self.object {
            Some(object) => self.attributes.forbidden(object, why),
            None => ApiError::forbidden(self.attributes.cx.resource, self.attributes.name, why),
        }
    }

    /// The name of what is written.
    fn name(&self) -> &'a str {
        match (self.attributes.name, self.object) {
            ("", Some(object)) => object.meta().name(),
            (name, _) => name,
        }
    }

    fn own_name(&self, why: &str) -> Result<(), ApiError> {
        if self.name() == self.node {
            Ok(())
        } else {
            Err(self.refused(why))
        }
    }

    /// A pod of the namespace that is written to.
    fn pod(&self, name: &str) -> Result<Arc<Value>, ApiError> {
        let pods = builtin("", "v1", "pods");
        self.attributes
            .lookup(pods, name)
            .ok_or_else(|| ApiError::not_found(pods, name))
    }
}

fn is_on(pod: &Value, node: &str) -> bool {
    pod.at(&["spec", "nodeName"]).and_then(Value::as_str) == Some(node)
}

fn lease(write: &Write<'_>) -> Result<(), ApiError> {
    if write.attributes.cx.namespace != LEASES {
        let why = format!("can only access leases in the \"{LEASES}\" system namespace");
        return Err(write.refused(&why));
    }
    write.own_name("can only access node lease with the same name as the requesting node")
}

fn resource_slice(write: &Write<'_>) -> Result<(), ApiError> {
    let (slice, doing) = match write.attributes.operation {
        Operation::Create => (write.object, "create"),
        Operation::Delete => (write.attributes.old, "delete"),
        // Of which node it is never changes.
        Operation::Update | Operation::Connect => return Ok(()),
    };

    let own = slice.and_then(|slice| slice.at(&["spec", "nodeName"])?.as_str()) == Some(write.node);
    if own {
        return Ok(());
    }

    Err(write.refused(&format!(
        "can only {doing} ResourceSlice with the same NodeName as the requesting node"
    )))
}

/// A node requests certificates only for itself.
fn signing_request(write: &Write<'_>) -> Result<(), ApiError> {
    let Some(object) = write
        .object
        .filter(|_| write.attributes.operation == Operation::Create)
    else {
        return Ok(());
    };

    let text = |name| {
        object
            .at(&["spec", name])
            .and_then(Value::as_str)
            .unwrap_or_default()
    };

    if write.attributes.cx.part != Part::Main || !SIGNERS.contains(&text("signerName")) {
        return Ok(());
    }

    let user = &write.attributes.cx.user.name;
    match common_name(text("request")) {
        None => Err(write.refused("unable to parse csr")),
        Some(name) if name == *user => Ok(()),
        Some(_) => Err(write.refused(&format!("can only create a node CSR with CN={user}"))),
    }
}

/// Of a request in PEM, in base64.
fn common_name(request: &str) -> Option<String> {
    use base64::Engine;
    let pem = base64::engine::general_purpose::STANDARD
        .decode(request)
        .ok()?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let subject = request.certification_request_info.subject.as_raw();
    CertificateSubject::from_der(subject)
        .ok()
        .map(|subject| subject.common_name)
}
