//! RBAC with generated users, roles and bindings: SubjectAccessReviews and real requests are
//! compared with a reference evaluation without an index. The seed of each generated policy is
//! printed; `CORACLE_SEED` runs one alone.

mod generated;
mod reference;

use coracle_api::Value;
use serde_json::json;

use crate::cluster::Raw;
use crate::server_under_test::ServerUnderTest;
use crate::simulated_nodes::until;
use generated::{Authentication, Policy, Request, Rng, USERS, User};
use reference::allowed;

/// Number of reviews and of requests per policy.
const REVIEWS: usize = 1200;
const REQUESTS: usize = 250;

#[test]
fn reviews_and_requests_agree_with_the_reference_evaluation() {
    let target = ServerUnderTest::start_with(&["--controllers=clusterrole-aggregation"]);
    for namespace in ["a", "b"] {
        target.server.kubectl(&["create", "namespace", namespace]);
        target
            .server
            .kubectl(&["-n", namespace, "create", "serviceaccount", "robot"]);
    }
    for seed in seeds() {
        println!("CORACLE_SEED={seed} runs this policy alone");
        run_seed(&target, seed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a seed that failed is asked for from outside"
)]
fn seeds() -> Vec<u64> {
    match std::env::var("CORACLE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => vec![1, 2, 3],
    }
}

fn run_seed(target: &ServerUnderTest, seed: u64) {
    let mut rng = Rng::new(seed);
    let policy = Policy::generate(&mut rng);
    let file = target.folder.path().join("policy.json");
    std::fs::write(&file, policy.objects().to_string()).unwrap();
    let file = file.to_str().unwrap();
    target.server.kubectl(&["create", "-f", file]);
    aggregated(target, &policy);
    let raw = Raw::new(&target.server.kubeconfig);

    let mut yes = 0;
    for _ in 0..REVIEWS {
        let (user, request) = (rng.one(USERS), Request::generate(&mut rng));
        let expected = allowed(&policy, user, &request);
        assert_eq!(
            reviewed(&raw, user, &request),
            expected,
            "seed {seed}: {} {request:?}",
            user.name
        );

        yes += usize::from(expected);
    }

    // Worlds in which everything or nothing is allowed would show nothing.
    assert!(
        (REVIEWS / 50..REVIEWS * 9 / 10).contains(&yes),
        "{yes} of {REVIEWS} were allowed"
    );

    for _ in 0..REQUESTS {
        let (user, request) = (rng.one(USERS), Request::generate(&mut rng));
        let Some((method, path)) = request.http() else {
            continue;
        };
        let expected = allowed(&policy, user, &request);

        let status = asked(target, user, method, &path);
        assert_eq!(
            status != 403,
            expected,
            "seed {seed}: {} {method} {path}: {status}",
            user.name
        );
    }

    target.server.kubectl(&["delete", "-f", file]);
}

/// Waits until aggregated roles have their rules.
fn aggregated(target: &ServerUnderTest, policy: &Policy) {
    for role in policy.roles.iter().filter(|role| role.gathers.is_some()) {
        let mut expected: Vec<serde_json::Value> = Vec::new();
        for rule in reference::rules_of(policy, role).map(generated::Rule::object) {
            if !expected.contains(&rule) {
                expected.push(rule);
            }
        }

        until(&format!("{} is filled", role.name), || {
            let review = target
                .server
                .kubectl(&["get", "clusterrole", &role.name, "-o", "json"]);
            let review: serde_json::Value = serde_json::from_str(&review).unwrap();
            let rules = review["rules"].as_array().cloned().unwrap_or_default();
            rules.len() == expected.len() && expected.iter().all(|rule| rules.contains(rule))
        });
    }
}

fn reviewed(raw: &Raw, user: &User, request: &Request) -> bool {
    let mut spec = json!({"user": user.name, "groups": user.groups});
    match request {
        Request::Resource {
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
        } => {
            spec["resourceAttributes"] = json!({"verb": verb, "group": group, "resource": resource,
                "subresource": subresource, "namespace": namespace, "name": name});
        }
        Request::Path { verb, path } => {
            spec["nonResourceAttributes"] = json!({"verb": verb, "path": path})
        }
    }

    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    let answer = raw.post(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        &review.to_string(),
    );
    assert_eq!(answer.status, 201, "{review}: {:?}", answer.body);

    answer
        .body
        .get("status")
        .and_then(|status| status.get("allowed"))
        .and_then(Value::as_bool)
        .unwrap()
}

fn asked(target: &ServerUnderTest, user: &User, method: &str, path: &str) -> u16 {
    let (who, headers) = match user.authentication {
        Authentication::Anonymous => (None, String::new()),
        Authentication::Certificate => {
            let group = user
                .groups
                .first()
                .filter(|group| !group.starts_with("system:"));
            (target.user(user.name, group.unwrap_or(&"")), String::new())
        }
        Authentication::Token { namespace } => {
            let token = target
                .server
                .kubectl(&["-n", namespace, "create", "token", "robot"]);
            (None, format!("Authorization: Bearer {}\r\n", token.trim()))
        }
        // More groups than one certificate of the tests can have.
        Authentication::Impersonated => {
            let groups = user
                .groups
                .iter()
                .map(|group| format!("Impersonate-Group: {group}\r\n"));

            let headers = format!(
                "Impersonate-User: {}\r\n{}",
                user.name,
                groups.collect::<String>()
            );

            (target.user("root", "system:masters"), headers)
        }
    };

    target.ask(who, method, path, &headers, "").status
}
