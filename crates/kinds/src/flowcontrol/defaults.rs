//! The flow schemas and priority levels that every cluster starts with.

use k8s_openapi::api::flowcontrol::v1::{
    ExemptPriorityLevelConfiguration, FlowDistinguisherMethod, FlowSchema, FlowSchemaSpec,
    GroupSubject, LimitResponse, LimitedPriorityLevelConfiguration, NonResourcePolicyRule,
    PolicyRulesWithSubjects, PriorityLevelConfiguration, PriorityLevelConfigurationReference,
    PriorityLevelConfigurationSpec, QueuingConfiguration, ResourcePolicyRule,
    ServiceAccountSubject, Subject, UserSubject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Schemas and levels that are in force even without their objects.
pub const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// Objects with this annotation are reset to the specs here, unless it is set to `false`.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

const ALL_USERS: &[SubjectName] = &[
    SubjectName::Group("system:unauthenticated"),
    SubjectName::Group("system:authenticated"),
];

/// The subjects of a schema.
enum SubjectName {
    User(&'static str),
    Group(&'static str),
    /// Every service account of a namespace.
    AccountsOf(&'static str),
}

pub fn flow_schemas() -> Vec<FlowSchema> {
    let anything = || {
        (
            Some(vec![paths(&["*"], &["*"])]),
            Some(vec![resources(&["*"], &["*"], &["*"], true)]),
        )
    };

    let leases = |verbs| resources(&["coordination.k8s.io"], &["leases"], verbs, false);
    let probes = (
        Some(vec![paths(&["/healthz", "/readyz", "/livez"], &["get"])]),
        None,
    );

    let election = (None, Some(vec![leases(&["get", "create", "update"])]));
    let nodes = resources(&[""], &["nodes", "nodes/status"], &["*"], true);
    let own_nodes = (None, Some(vec![nodes, leases(&["*"])]));

    let components = [
        SubjectName::User("system:kube-controller-manager"),
        SubjectName::User("system:kube-scheduler"),
        SubjectName::AccountsOf("kube-system"),
    ];
    let [manager, scheduler, system_accounts] = &components;

    let only = std::slice::from_ref::<SubjectName>;
    let masters = only(&SubjectName::Group("system:masters"));
    let kubelets = only(&SubjectName::Group("system:nodes"));
    let accounts = only(&SubjectName::Group("system:serviceaccounts"));

    vec![
        schema("exempt", 1, "exempt", "", masters, anything()),
        schema("probes", 2, "exempt", "", ALL_USERS, probes),
        schema(
            "system-leader-election",
            100,
            "leader-election",
            "ByUser",
            &components,
            election,
        ),
        schema(
            "system-node-high",
            400,
            "node-high",
            "ByUser",
            kubelets,
            own_nodes,
        ),
        schema(
            "system-nodes",
            500,
            "system",
            "ByUser",
            kubelets,
            anything(),
        ),
        schema(
            "kube-controller-manager",
            800,
            "workload-high",
            "ByNamespace",
            only(manager),
            anything(),
        ),
        schema(
            "kube-scheduler",
            800,
            "workload-high",
            "ByNamespace",
            only(scheduler),
            anything(),
        ),
        schema(
            "kube-system-service-accounts",
            900,
            "workload-high",
            "ByNamespace",
            only(system_accounts),
            anything(),
        ),
        schema(
            "service-accounts",
            9000,
            "workload-low",
            "ByUser",
            accounts,
            anything(),
        ),
        schema(
            "global-default",
            9900,
            "global-default",
            "ByUser",
            ALL_USERS,
            anything(),
        ),
        schema(
            "catch-all",
            10000,
            "catch-all",
            "ByUser",
            ALL_USERS,
            anything(),
        ),
    ]
}

pub fn priority_levels() -> Vec<PriorityLevelConfiguration> {
    let exempt = ExemptPriorityLevelConfiguration {
        lendable_percent: Some(0),
        nominal_concurrency_shares: Some(0),
    };

    let exempt = PriorityLevelConfigurationSpec {
        exempt: Some(exempt),
        limited: None,
        type_: "Exempt".to_string(),
    };

    vec![
        level("exempt", exempt),
        level("catch-all", limited(5, 0, None)),
        level("system", limited(30, 33, Some((6, 64)))),
        level("node-high", limited(40, 25, Some((6, 64)))),
        level("leader-election", limited(10, 0, Some((4, 16)))),
        level("workload-high", limited(40, 50, Some((6, 128)))),
        level("workload-low", limited(100, 90, Some((6, 128)))),
        level("global-default", limited(20, 50, Some((6, 128)))),
    ]
}

fn schema(
    name: &str,
    precedence: i32,
    level: &str,
    distinguisher: &str,
    who: &[SubjectName],
    (non_resource_rules, resource_rules): (
        Option<Vec<NonResourcePolicyRule>>,
        Option<Vec<ResourcePolicyRule>>,
    ),
) -> FlowSchema {
    let subjects = who.iter().map(subject).collect();
    FlowSchema {
        metadata: metadata(name),
        spec: Some(FlowSchemaSpec {
            distinguisher_method: (!distinguisher.is_empty()).then(|| FlowDistinguisherMethod {
                type_: distinguisher.to_string(),
            }),
            matching_precedence: Some(precedence),
            priority_level_configuration: PriorityLevelConfigurationReference {
                name: level.to_string(),
            },
            rules: Some(vec![PolicyRulesWithSubjects {
                non_resource_rules,
                resource_rules,
                subjects,
            }]),
        }),
        status: None,
    }
}

fn subject(who: &SubjectName) -> Subject {
    let (kind, mut subject) = match who {
        SubjectName::User(name) => (
            "User",
            Subject {
                user: Some(UserSubject {
                    name: name.to_string(),
                }),
                ..Subject::default()
            },
        ),
        SubjectName::Group(name) => (
            "Group",
            Subject {
                group: Some(GroupSubject {
                    name: name.to_string(),
                }),
                ..Subject::default()
            },
        ),
        SubjectName::AccountsOf(namespace) => {
            let all = ServiceAccountSubject {
                name: "*".to_string(),
                namespace: namespace.to_string(),
            };

            (
                "ServiceAccount",
                Subject {
                    service_account: Some(all),
                    ..Subject::default()
                },
            )
        }
    };
    subject.kind = kind.to_string();

    subject
}

fn paths(urls: &[&str], verbs: &[&str]) -> NonResourcePolicyRule {
    NonResourcePolicyRule {
        non_resource_urls: texts(urls),
        verbs: texts(verbs),
    }
}

/// In every namespace; `cluster_scope`: and outside of all.
fn resources(
    groups: &[&str],
    resources: &[&str],
    verbs: &[&str],
    cluster_scope: bool,
) -> ResourcePolicyRule {
    ResourcePolicyRule {
        api_groups: texts(groups),
        cluster_scope: cluster_scope.then_some(true),
        namespaces: Some(texts(&["*"])),
        resources: texts(resources),
        verbs: texts(verbs),
    }
}

fn level(name: &str, spec: PriorityLevelConfigurationSpec) -> PriorityLevelConfiguration {
    PriorityLevelConfiguration {
        metadata: metadata(name),
        spec: Some(spec),
        status: None,
    }
}

/// `queues`: hand size and number of queues; without them, excess requests are rejected.
fn limited(
    shares: i32,
    lendable_percent: i32,
    queues: Option<(i32, i32)>,
) -> PriorityLevelConfigurationSpec {
    let queuing = queues.map(|(hand_size, queues)| QueuingConfiguration {
        hand_size: Some(hand_size),
        queue_length_limit: Some(50),
        queues: Some(queues),
    });

    let type_ = if queuing.is_some() { "Queue" } else { "Reject" };
    let limited = LimitedPriorityLevelConfiguration {
        borrowing_limit_percent: None,
        lendable_percent: Some(lendable_percent),
        limit_response: Some(LimitResponse {
            queuing,
            type_: type_.to_string(),
        }),
        nominal_concurrency_shares: Some(shares),
    };

    PriorityLevelConfigurationSpec {
        exempt: None,
        limited: Some(limited),
        type_: "Limited".to_string(),
    }
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_string()),
        annotations: Some([(AUTO_UPDATE.to_string(), "true".to_string())].into()),
        ..ObjectMeta::default()
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
