//! Which requests can be approved automatically. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::Value;

use super::super::has;
use super::super::request::{Request, RequestError, usages};
use super::Config;

/// The signer of serving certificates of kubelets.
const SERVING: &str = "kubernetes.io/kubelet-serving";
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

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    pub config: Config,
    pub request: Arc<Value>,
    pub node: NodeFacts,
}

/// What is known of the node that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    pub exists: bool,
    /// Its name, and its names in DNS.
    pub names: BTreeSet<String>,
    pub addresses: BTreeSet<IpAddr>,
    /// Names and addresses of other nodes.
    pub others: BTreeSet<String>,
}

impl NodeFacts {
    /// From all nodes.
    pub fn of(request: &Value, nodes: &[Arc<Value>]) -> NodeFacts {
        let mut facts = NodeFacts::default();
        let Ok(request) = Request::of(request) else {
            return facts;
        };
        let own = request.common_name.strip_prefix(NODE).unwrap_or_default();

        for node in nodes {
            let name = node.meta().name();
            let is_own = name == own;
            let addresses = node.at(&["status", "addresses"]).and_then(Value::as_array);
            let addresses = addresses
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.get("address").and_then(Value::as_str));
            for text in addresses.chain([name]) {
                match (is_own, text.parse()) {
                    (true, Ok(address)) => drop(facts.addresses.insert(address)),
                    (true, Err(_)) => drop(facts.names.insert(text.to_owned())),
                    (false, _) => drop(facts.others.insert(text.to_owned())),
                }
            }
            facts.exists |= is_own;
        }
        facts
    }
}

/// The prefix of the users of nodes.
const NODE: &str = "system:node:";

/// What to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Approve it if one of these access checks succeeds, tried in order; empty: it is left to manual
    /// approval.
    Ask(Vec<AccessCheck>),
    /// Approve it, with this message.
    Approve(&'static str),
    /// Look at it again when nodes change.
    NotYet(String),
}

/// Decides about a request.
///
/// # Errors
/// The request is malformed.
pub fn plan(observed: &Observed) -> Result<Plan, RequestError> {
    let object = &observed.request;
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default();
    let is_decided = !text(&["status", "certificate"]).is_empty()
        || has(object, "Approved")
        || has(object, "Denied");
    let manual = Ok(Plan::Ask(Vec::new()));
    if is_decided {
        return manual;
    }

    let username = text(&["spec", "username"]);
    match text(&["spec", "signerName"]) {
        KUBELETS => client(observed, username),
        SERVING if observed.config.serving => serving(observed, username),
        _ => manual,
    }
}

/// A request for a client certificate of a node.
fn client(observed: &Observed, username: &str) -> Result<Plan, RequestError> {
    let request = Request::of(&observed.request)?;
    let usages = usages(&observed.request);
    if request.why_not_kubelet_client(&usages).is_some() {
        return Ok(Plan::Ask(Vec::new()));
    }

    let is_own = username == request.common_name;
    let is_taken = observed.config.known_nodes_are_taken && observed.node.exists;
    Ok(Plan::Ask(match (is_own, is_taken) {
        (true, true) => vec![SELF],
        (true, false) => vec![SELF, ANY],
        (false, true) => Vec::new(),
        (false, false) => vec![ANY],
    }))
}

/// A request for a serving certificate of a node: approved for what only this node is called.
fn serving(observed: &Observed, username: &str) -> Result<Plan, RequestError> {
    let request = Request::of(&observed.request)?;
    let usages = usages(&observed.request);
    if request.why_not_kubelet_server(&usages).is_some() || username != request.common_name {
        return Ok(Plan::Ask(Vec::new()));
    }

    let node = &observed.node;
    let names = request.names.dns.iter();
    let unknown_name = names.clone().find(|name| !node.names.contains(*name));
    let addresses = request.names.addresses.iter();
    let unknown_address = addresses
        .clone()
        .find(|address| !node.addresses.contains(*address));
    if let Some(unknown) = unknown_name
        .cloned()
        .or_else(|| unknown_address.map(IpAddr::to_string))
    {
        return Ok(Plan::NotYet(format!(
            "{unknown:?} is not among the names and addresses of the node of {username}"
        )));
    }

    let mut all = names.cloned().chain(addresses.map(IpAddr::to_string));
    match all.find(|name| node.others.contains(name)) {
        Some(shared) => Ok(Plan::NotYet(format!(
            "{shared:?} belongs to another node, too"
        ))),
        None => Ok(Plan::Approve(
            "Auto approving kubelet serving certificate for the names and addresses of the node.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use coracle_api::codec::yaml;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn request(
        common_name: &str,
        username: &str,
        signer: &str,
        status: &str,
        names: &[&str],
    ) -> Value {
        let mut params =
            CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())
                .unwrap();
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

        let usage = if signer == SERVING {
            "server"
        } else {
            "client"
        };
        let text = format!(
            "{{spec: {{request: {}, signerName: {signer}, username: '{username}', usages: [digital signature, {usage} \
             auth]}}, status: {status}}}",
            STANDARD.encode(request)
        );

        yaml::decode(text.as_bytes()).unwrap()
    }

    fn object(common_name: &str, username: &str, signer: &str, status: &str) -> Value {
        request(common_name, username, signer, status, &[])
    }

    fn observed(config: Config, request: Value, nodes: &[&str]) -> Observed {
        let nodes = nodes.iter().map(|text| {
            let node = yaml::decode(text.as_bytes()).unwrap();
            Arc::new(node)
        });
        Observed {
            config,
            node: NodeFacts::of(&request, &nodes.collect::<Vec<_>>()),
            request: Arc::new(request),
        }
    }

    /// A bare `n` is false in YAML 1.1.
    const NODES: [&str; 2] = [
        "{metadata: {name: 'n'}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}, {type: Hostname, address: 'n'}]}}",
        "{metadata: {name: m}, status: {addresses: [{type: InternalIP, address: 192.0.2.2}]}}",
    ];

    #[test]
    fn a_node_that_exists_is_taken_where_the_settings_say_so() {
        let check = |user: &str, taken: bool, nodes: &[&str], expected: &[AccessCheck]| {
            let config = Config {
                known_nodes_are_taken: taken,
                serving: false,
            };
            let request = object("system:node:n", user, KUBELETS, "{}");
            let found = plan(&observed(config, request, nodes)).unwrap();
            assert_eq!(found, Plan::Ask(expected.to_vec()), "{user} {taken}");
        };
        check("system:bootstrap:x", false, &NODES, &[ANY]);
        check("system:bootstrap:x", true, &NODES, &[]);
        check("system:bootstrap:x", true, &NODES[1..], &[ANY]);
        check("system:node:n", true, &NODES, &[SELF]);
        check("system:node:m", true, &NODES, &[]);
    }

    #[test]
    fn a_node_gets_a_serving_certificate_for_itself_only() {
        let check = |user: &str, names: &[&str], nodes: &[&str], expected: Option<bool>| {
            let config = Config {
                serving: true,
                known_nodes_are_taken: true,
            };
            let request = request("system:node:n", user, SERVING, "{}", names);
            let found = match plan(&observed(config, request, nodes)).unwrap() {
                Plan::Approve(_) => Some(true),
                Plan::NotYet(_) => Some(false),
                Plan::Ask(questions) => {
                    assert!(questions.is_empty());
                    None
                }
            };
            assert_eq!(found, expected, "{user} {names:?}");
        };

        check("system:node:n", &["n", "192.0.2.1"], &NODES, Some(true));
        check("system:node:n", &["n"], &NODES, Some(true));
        check("system:node:n", &["n", "192.0.2.2"], &NODES, Some(false));
        check("system:node:n", &["kubernetes"], &NODES, Some(false));
        check("system:node:n", &["n"], &[], Some(false));
        check("system:node:m", &["n"], &NODES, None);
        check("jane", &["n"], &NODES, None);
        check("system:node:n", &[], &NODES, None);

        let stolen = NODES[1].replace("192.0.2.2", "192.0.2.1");
        let names = ["n", "192.0.2.1"];
        check("system:node:n", &names, &[NODES[0], &stolen], Some(false));
    }

    #[test]
    fn serving_certificates_are_left_to_people_by_default() {
        let request = request("system:node:n", "system:node:n", SERVING, "{}", &["n"]);
        let found = plan(&observed(Config::default(), request, &NODES)).unwrap();
        assert_eq!(found, Plan::Ask(Vec::new()));
    }

    #[test]
    fn only_requests_that_nodes_may_make_are_checked() {
        let check = |object: &Value, expected: &[AccessCheck]| {
            let observed = observed(Config::default(), object.clone(), &[]);
            assert_eq!(plan(&observed).unwrap(), Plan::Ask(expected.to_vec()));
        };
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
