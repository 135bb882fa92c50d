//! Which requests can be approved automatically. Pure.

use coracle_api::Value;

use super::super::has;
use super::super::request::{Request, RequestError, usages};

/// The signer of client certificates for kubelets.
const KUBELETS: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// An access check on the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessCheck {
    /// The subresource that the requester must be authorized to create.
    pub part: &'static str,
    /// The message of the approval.
    pub message: &'static str,
}

/// A node that requests a certificate of its own name.
const SELF: AccessCheck = AccessCheck {
    part: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
/// Any user that requests a certificate of a node.
const ANY: AccessCheck = AccessCheck {
    part: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

/// The access checks for a request, tried in order until one is allowed; empty: left to manual
/// approval.
///
/// # Errors
/// The request is malformed.
pub fn plan(object: &Value) -> Result<Vec<AccessCheck>, RequestError> {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default();
    let is_decided = !text(&["status", "certificate"]).is_empty()
        || has(object, "Approved")
        || has(object, "Denied");
    if is_decided || text(&["spec", "signerName"]) != KUBELETS {
        return Ok(Vec::new());
    }

    let request = Request::of(object)?;
    if request.why_not_kubelet_client(&usages(object)).is_some() {
        return Ok(Vec::new());
    }

    let is_own = text(&["spec", "username"]) == request.common_name;
    Ok(if is_own { vec![SELF, ANY] } else { vec![ANY] })
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use coracle_api::codec::yaml;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn object(common_name: &str, username: &str, signer: &str, status: &str) -> Value {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);

        params
            .distinguished_name
            .push(DnType::OrganizationName, "system:nodes");
        let request = params
            .serialize_request(&KeyPair::generate().unwrap())
            .unwrap()
            .pem()
            .unwrap();

        let text = format!(
            "{{spec: {{request: {}, signerName: {signer}, username: '{username}', usages: [digital signature, client \
             auth]}}, status: {status}}}",
            STANDARD.encode(request)
        );

        yaml::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_requests_that_nodes_may_make_are_checked() {
        let check =
            |object: &Value, expected: &[AccessCheck]| assert_eq!(plan(object).unwrap(), expected);
        check(
            &object("system:node:n", "system:node:n", KUBELETS, "{}"),
            &[SELF, ANY],
        );

        check(
            &object("system:node:n", "system:bootstrap:x", KUBELETS, "{}"),
            &[ANY],
        );

        check(&object("jane", "jane", KUBELETS, "{}"), &[]);
        check(
            &object(
                "system:node:n",
                "x",
                "kubernetes.io/kube-apiserver-client",
                "{}",
            ),
            &[],
        );

        check(
            &object(
                "system:node:n",
                "x",
                KUBELETS,
                "{conditions: [{type: Denied}]}",
            ),
            &[],
        );

        check(
            &object("system:node:n", "x", KUBELETS, "{certificate: YQ==}"),
            &[],
        );
    }
}
