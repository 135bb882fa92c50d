//! Objects with as many elements as fit into a request: CPU grows linearly with their size, and
//! memory is bounded.

use std::fs;
use std::path::Path;

use super::Victim;
use crate::custom_resources::define;
use crate::simulated_nodes::apply;

/// Four times the body may cost so many times the CPU time. The square would be sixteen times.
const MOST_TIMES: u64 = 8;

/// Both are cheap enough then, whatever their relation, in a build without optimisation.
const CHEAP: u64 = 500_000_000;

/// What the server may have taken at most while it answered any of these.
const MAX_PEAK_KIB: u64 = 700 * 1024;

const SMALL: usize = 160 * 1024;

/// A path, a body whose `@` stands for elements, and an element whose `#` stands for its number.
type Case = (&'static str, &'static str, &'static str);

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

macro_rules! pod {
    ($spec:literal) => {
        concat!(
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"#,
            $spec,
            "}}"
        )
    };
}
macro_rules! container {
    ($members:literal) => {
        concat!(
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","#,
            $members,
            "}]}}"
        )
    };
}
macro_rules! metadata {
    ($members:literal) => {
        concat!(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p","#,
            $members,
            "}}"
        )
    };
}
macro_rules! volume {
    ($source:literal) => {
        concat!(
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","#,
            $source,
            "}]}}"
        )
    };
}
macro_rules! service {
    ($spec:literal) => {
        concat!(
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"#,
            $spec,
            "}}"
        )
    };
}

const OF_PODS: &[Case] = &[
    (PODS, pod!(r#""containers":[@]"#), "{}"),
    (
        PODS,
        pod!(r#""containers":[@]"#),
        r#"{"name":"c#","image":"i"}"#,
    ),
    (PODS, pod!(r#""volumes":[@]"#), "{}"),
    (PODS, pod!(r#""initContainers":[@]"#), r#"{"name":"c"}"#),
    (
        PODS,
        pod!(r#""ephemeralContainers":[@]"#),
        r#"{"name":"c"}"#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"tolerations":[@]"#),
        r#"{"key":"k#","operator":"Exists"}"#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"hostAliases":[@]"#),
        r#"{"ip":"1.1.1.1"}"#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"imagePullSecrets":[@]"#),
        r#"{"name":"s"}"#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"schedulingGates":[@]"#),
        r#"{"name":"s"}"#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"readinessGates":[@]"#),
        r#"{"conditionType":"s"}"#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"securityContext":{"sysctls":[@]}"#),
        r#"{"name":"kernel.a#"}"#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"dnsConfig":{"searches":[@]}"#),
        r#""a#""#,
    ),
    (
        PODS,
        pod!(r#""containers":[{"name":"c","image":"i"}],"topologySpreadConstraints":[@]"#),
        r#"{"maxSkew":1,"topologyKey":"k#","whenUnsatisfiable":"DoNotSchedule"}"#,
    ),
    (
        PODS,
        pod!(
            r#""resourceClaims":[{"name":"a","resourceClaimName":"a"}],"containers":[{"name":"c","image":"i","resources":{"claims":[@]}}]"#
        ),
        r#"{"name":"c#"}"#,
    ),
    (
        PODS,
        pod!(
            r#""resourceClaims":[@],"containers":[{"name":"c","image":"i","resources":{"claims":[@]}}]"#
        ),
        r#"{"name":"c#"}"#,
    ),
    (
        PODS,
        container!(r#""ports":[@]"#),
        r#"{"containerPort":80}"#,
    ),
    (
        PODS,
        container!(r#""ports":[@]"#),
        r#"{"containerPort":80,"hostPort":81,"hostIP":"1.#"}"#,
    ),
    (
        PODS,
        container!(r#""ports":[@]"#),
        r#"{"containerPort":80,"hostPort":#}"#,
    ),
    (PODS, container!(r#""env":[@]"#), r#"{"name":"a"}"#),
    (
        PODS,
        container!(r#""env":[@]"#),
        r#"{"name":"a#","value":"$(a1)"}"#,
    ),
    (PODS, container!(r#""envFrom":[@]"#), "{}"),
    (
        PODS,
        container!(r#""volumeMounts":[@],"volumeDevices":[@]"#),
        r#"{"name":"a#","mountPath":"/#","devicePath":"/#"}"#,
    ),
    (
        PODS,
        container!(r#""resizePolicy":[@]"#),
        r#"{"resourceName":"cpu","restartPolicy":"NotRequired"}"#,
    ),
    (
        PODS,
        container!(r#""resources":{"limits":{@}}"#),
        r#""a.example/b#":"1""#,
    ),
    (
        PODS,
        volume!(r#""configMap":{"name":"c","items":[@]}"#),
        r#"{"key":"k","path":"a"}"#,
    ),
    (
        PODS,
        volume!(r#""configMap":{"name":"c","items":[@]}"#),
        r#"{"key":"k","path":"a#"}"#,
    ),
    (
        PODS,
        volume!(
            r#""secret":{"secretName":"c","items":[{"key":"k","path":"@x"},{"key":"k","path":"@y"}]}"#
        ),
        "a/",
    ),
    (
        PODS,
        volume!(r#""projected":{"sources":[@]}"#),
        r#"{"configMap":{"name":"c","items":[{"key":"k","path":"a"}]}}"#,
    ),
    (PODS, volume!(r#""projected":{"sources":[@]}"#), "{}"),
];

const OF_METADATA: &[Case] = &[
    (
        "/api/v1/namespaces/default/configmaps",
        metadata!(r#""annotations":{@}"#),
        r#""k#":"""#,
    ),
    (
        "/api/v1/namespaces/default/configmaps",
        metadata!(r#""labels":{@}"#),
        r#""k#~":"""#,
    ),
    (
        "/api/v1/namespaces/default/configmaps",
        metadata!(r#""finalizers":[@]"#),
        r#""a/b#""#,
    ),
    (
        "/api/v1/namespaces/default/configmaps",
        metadata!(r#""ownerReferences":[@]"#),
        r#"{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u#","controller":true}"#,
    ),
    (
        "/api/v1/namespaces/default/configmaps",
        metadata!(r#""managedFields":[@]"#),
        r#"{"manager":"m#","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}"#,
    ),
    (
        "/api/v1/namespaces/default/configmaps",
        metadata!(r#""managedFields":[{"manager":"@","operation":"Update"}]"#),
        "\\u0001",
    ),
];

const OF_OTHERS: &[Case] = &[
    (
        SERVICES,
        service!(r#""type":"NodePort","ports":[@]"#),
        r#"{"port":#}"#,
    ),
    (SERVICES, service!(r#""ports":[@]"#), r#"{"port":80}"#),
    (
        SERVICES,
        service!(r#""ports":[{"port":80}],"externalIPs":[@]"#),
        r#""10.0.0.#""#,
    ),
    (
        SERVICES,
        service!(r#""ports":[{"port":80}],"ipFamilies":[@]"#),
        r#""IPv#""#,
    ),
    (
        SERVICES,
        service!(r#""ports":[{"port":80}],"type":"LoadBalancer","loadBalancerSourceRanges":[@]"#),
        r#""10.0.0.0/#""#,
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","ports":[@]}]}}}}"#,
        r#"{"containerPort":80}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchExpressions":[@]},"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
        r#"{"key":"a","operator":"In"}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/statefulsets",
        r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"d"},"spec":{"volumeClaimTemplates":[@],"template":{"spec":{"volumes":[@],"containers":[{"name":"c","image":"i"}]}}}}"#,
        r#"{"name":"v#","metadata":{"name":"v#"}}"#,
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"i"},"spec":{"rules":[{"http":{"paths":[@]}}]}}"#,
        r#"{"path":"/a","pathType":"Exact"}"#,
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"i"},"spec":{"tls":[@]}}"#,
        r#"{"hosts":["h"]}"#,
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n"},"spec":{"podSelector":{},"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":[@]}}]}]}}"#,
        r#""10.0.0.1/#""#,
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n"},"spec":{"podSelector":{},"ingress":[@]}}"#,
        "{}",
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        r#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"n"},"addressType":"IPv4","endpoints":[@]}"#,
        r#"{"addresses":["1"]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"n"},"rules":[@]}"#,
        r#"{"verbs":["get"],"resources":["a#"],"apiGroups":[""]}"#,
    ),
    (
        "/apis/batch/v1/namespaces/default/jobs",
        r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"n"},"spec":{"podFailurePolicy":{"rules":[@]},"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}"#,
        r#"{"action":"Count"}"#,
    ),
    (
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        r#"{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"n"},"spec":{"usages":[@]}}"#,
        r#""u#""#,
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"n"},"webhooks":[@]}"#,
        r#"{"name":"a.b.c#"}"#,
    ),
    (
        "/api/v1/nodes",
        r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"taints":[@]}}"#,
        r#"{"key":"k","effect":"NoSchedule"}"#,
    ),
];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

macro_rules! definition {
    ($schema:literal) => {
        concat!(
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.x.example"},"spec":{"group":"x.example","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":"#,
            $schema,
            "}}}}]}}"
        )
    };
}

const OF_DEFINITIONS: &[Case] = &[
    (
        DEFINITIONS,
        definition!(r#"{"type":"object","properties":{@}}"#),
        r#""p#":{}"#,
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"object","required":[@]}"#),
        r#""p#""#,
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"object","properties":{@}}"#),
        r#""p#":{"type":"string","pattern":"^[\\pL]{0,999}$"}"#,
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"object","properties":{@}}"#),
        r#""p#":{"type":"string","pattern":"(\\pL{1000}"}"#,
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"string","pattern":"@"}"#),
        r"\\pL",
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"string","pattern":"[@]"}"#),
        "[:a",
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"string","enum":[@]}"#),
        r#""p#""#,
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"object","anyOf":[@]}"#),
        r#"{"required":["a#"]}"#,
    ),
    (
        DEFINITIONS,
        definition!(
            r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[@],"items":{"type":"object"}}"#
        ),
        r#""p""#,
    ),
    (
        DEFINITIONS,
        definition!(r#"{"type":"object","x-kubernetes-validations":[@]}"#),
        r#"{"rule":"true"}"#,
    ),
    (
        DEFINITIONS,
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.x.example"},"spec":{"group":"x.example","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[@]}}"#,
        r#"{"name":"v#","storage":true}"#,
    ),
];

const LISTS: &str = "/apis/lists.example.com/v1/lists";

macro_rules! list {
    ($spec:literal) => {
        concat!(
            r#"{"apiVersion":"lists.example.com/v1","kind":"List","metadata":{"name":"l"},"spec":{"#,
            $spec,
            "}}"
        )
    };
}

/// Defaults that multiply, keys as long as the object, sets and maps of everything.
const DEFINITION: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lists.lists.example.com}
spec:
  group: lists.example.com
  scope: Cluster
  names: {plural: lists, kind: List}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              full: {type: array, items: {type: object, properties: {a: {type: string, default: "@"}}}}
              more: {type: array, items: {type: object, properties: {a: {type: array, default: [{}, {}, {}, {}, {}, {}, {}, {}], items: {type: object, properties: {b: {type: array, default: [{}, {}, {}, {}, {}, {}, {}, {}], items: {type: object, properties: {c: {type: string, default: c}}}}}}}}}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}
              keys: {type: object, additionalProperties: {type: object, additionalProperties: {type: integer}}}
              known: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}
              words: {type: array, items: {type: string, enum: [a, b], maxLength: 1}}
"#;

const OF_CUSTOM_RESOURCES: &[Case] = &[
    (LISTS, list!(r#""full":[@]"#), "{}"),
    (LISTS, list!(r#""more":[@]"#), "{}"),
    (LISTS, list!(r#""set":[@]"#), r#""a""#),
    (LISTS, list!(r#""set":[@]"#), r#""a#""#),
    (LISTS, list!(r#""map":[@]"#), r#"{"k":"a"}"#),
    (LISTS, list!(r#""map":[@]"#), r#"{"k":"a#"}"#),
    (LISTS, list!(r#""words":[@]"#), r#""cc""#),
    (LISTS, list!(r#""keys":{"0@":{}}"#), "k"),
    (LISTS, list!(r#""keys":{"K":{@}}"#), r#""a#":"""#),
    (LISTS, list!(r#""known":{"K":{@}}"#), r#""a#":"""#),
];

/// The body of a case with about so many bytes.
fn body((_, template, element): &Case, size: usize) -> String {
    let places = template.matches('@').count().max(1);

    // A key as long as all that is wrong below it.
    let long = template.contains("\"K\"");
    let size = size / (places + usize::from(long));
    let separator = if element.len() < 8 && !element.starts_with(['{', '"']) {
        ""
    } else {
        ","
    };

    let mut elements = String::with_capacity(size + 64);
    let mut number = 0;
    while elements.len() < size {
        if number > 0 {
            elements.push_str(separator);
        }
        elements.push_str(&element.replace('#', &number.to_string()));
        number += 1;
    }

    let template = if long {
        template.replace("\"K\"", &format!("\"{}\"", "K".repeat(size)))
    } else {
        (*template).to_owned()
    };

    template.replace('@', &elements)
}

impl Victim {
    /// The CPU time that it has taken so far, in nanoseconds.
    fn cpu(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.server.child.id())).unwrap();
        let of = |task: fs::DirEntry| -> u64 {
            let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            text.split_whitespace()
                .next()
                .and_then(|time| time.parse().ok())
                .unwrap_or_default()
        };
        tasks.filter_map(Result::ok).map(of).sum()
    }

    fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    /// What a dry run of the case costs, in CPU time.
    fn cost(&self, case: &Case, size: usize) -> u64 {
        let before = self.cpu();
        let path = format!("{}?dryRun=All", case.0);
        let answer = self.ask(
            "POST",
            &path,
            "Content-Type: application/json\r\n",
            body(case, size).as_bytes(),
        );

        let shown = &answer.body[..answer.body.len().min(300)];
        assert!(
            (200..=422).contains(&answer.status),
            "{case:?}: {} {shown}",
            answer.status
        );

        self.cpu() - before
    }

    fn grows_with_its_size(&self, case: &Case) {
        let (small, large) = (self.cost(case, SMALL), self.cost(case, 4 * SMALL));
        let peak = self.peak_kib();
        eprintln!(
            "{:>6} ms {:>6} ms {:>5} MiB  {case:?}",
            small / 1_000_000,
            large / 1_000_000,
            peak / 1024
        );

        assert!(
            large <= CHEAP + MOST_TIMES * small,
            "{case:?}: {small} ns became {large} ns"
        );

        assert!(peak < MAX_PEAK_KIB, "{case:?}: {peak} KiB");
    }
}

/// A server that takes pods.
fn victim() -> Victim {
    let victim = Victim::start();
    victim
        .server
        .kubectl(&["create", "serviceaccount", "default"]);
    victim
}

fn check(cases: &[Case]) {
    let victim = victim();
    cases
        .iter()
        .for_each(|case| victim.grows_with_its_size(case));
}

#[test]
fn what_a_pod_costs_grows_with_its_size() {
    check(OF_PODS);
}

#[test]
fn what_metadata_cost_grows_with_their_size() {
    check(OF_METADATA);
}

#[test]
fn what_other_objects_cost_grows_with_their_size() {
    check(OF_OTHERS);
}

#[test]
fn what_a_definition_costs_grows_with_its_size() {
    check(OF_DEFINITIONS);
}

#[test]
fn what_a_custom_resource_costs_grows_with_its_size() {
    let victim = Victim::start();
    let folder: &Path = victim.cluster.path();
    define(&victim.server, folder);
    apply(
        &victim.server,
        folder,
        "lists.yaml",
        &DEFINITION.replace('@', &"x".repeat(32 * 1024)),
    );

    let wait = [
        "wait",
        "--for=condition=Established",
        "crd/lists.lists.example.com",
        "--timeout=60s",
    ];
    victim.server.kubectl(&wait);

    OF_CUSTOM_RESOURCES
        .iter()
        .for_each(|case| victim.grows_with_its_size(case));

    let many = body(&OF_CUSTOM_RESOURCES[0], 150 * 1024);
    let answer = victim.ask(
        "POST",
        LISTS,
        "Content-Type: application/json\r\n",
        many.as_bytes(),
    );
    assert_eq!(answer.status, 413, "{answer:?}");

    assert!(
        answer
            .body
            .contains("defaults of the schema add more than 1572864 bytes"),
        "{answer:?}"
    );
}

/// The request that took the server down: warnings of all pairs of 216 kB of ports and paths.
#[test]
fn a_dry_run_of_many_equal_ports_and_paths_is_answered() {
    let victim = victim();
    let ports = body(
        &(
            PODS,
            container!(r#""ports":[@]"#),
            r#"{"containerPort":80}"#,
        ),
        216 * 1024,
    );

    let paths = body(
        &(
            PODS,
            volume!(r#""configMap":{"name":"c","items":[@]}"#),
            r#"{"key":"k","path":"a"}"#,
        ),
        216 * 1024,
    );

    for text in [ports, paths] {
        let path = format!("{PODS}?dryRun=All");
        let answer = victim.ask(
            "POST",
            &path,
            "Content-Type: application/json\r\n",
            text.as_bytes(),
        );

        assert_eq!(
            answer.status,
            201,
            "{}",
            &answer.body[..answer.body.len().min(300)]
        );

        let warnings = answer.head.to_lowercase().matches("warning: 299").count();
        assert!((1..500).contains(&warnings), "{warnings}");
        assert!(victim.peak_kib() < MAX_PEAK_KIB, "{}", victim.peak_kib());
    }
}
