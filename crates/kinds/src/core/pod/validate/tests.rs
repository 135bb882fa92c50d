//! Table tests for the validation of specs. The recorded answers of a real server cover the
//! breadth; these cover what is easily broken, and what those do not reach.

use coracle_api::catalog::BUILTIN;
use coracle_api::codec::json;
use coracle_api::time::Timestamp;
use coracle_api::{Path, defaults, typed};
use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::*;

/// A pod with this in its spec beside one valid container, and with defaults.
fn pod(spec: &str) -> Pod {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},
            "spec":{{"containers":[{{"name":"c","image":"i"}}]{}{spec}}}}}"#,
        if spec.is_empty() { "" } else { "," }
    );
    read(&text)
}

fn read(text: &str) -> Pod {
    let kind = BUILTIN.kind("", "v1", "Pod").unwrap();
    let of = BUILTIN.root(kind);
    let mut tree = json::decode(text.as_bytes(), Some(of.node()))
        .unwrap()
        .value;
    defaults::apply(&mut tree, kind, Timestamp::from_unix(0, 0)).unwrap();
    typed::from_tree(&tree).unwrap()
}

/// `expected`: the prefix of each error.
fn compare(errors: &[FieldError], expected: &[&str], of: &str) {
    let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{of}: {found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            found.starts_with(expected),
            "{of}: {found} is not {expected}"
        );
    }
}

fn check(spec: &str, expected: &[&str]) {
    let pod = pod(spec);
    let mut errors = Errors::new();
    validate_pod(
        &pod.metadata,
        pod.spec.as_ref().unwrap(),
        &Options::of_pod(None, true),
        &mut errors,
    );
    compare(&errors, expected, spec);
}

#[test]
fn plain_pod_is_valid_and_empty_one_lacks_containers() {
    check("", &[]);
    let mut errors = Errors::new();
    validate_spec(
        &PodSpec::default(),
        None,
        &Path::Root.field("spec"),
        &Options::of_template(None, true),
        &mut errors,
    );

    let expected = [
        "spec.terminationGracePeriodSeconds: Required value",
        "spec.containers: Required value",
        "spec.restartPolicy: Required value",
        "spec.dnsPolicy: Required value",
    ];
    compare(&errors, &expected, "nothing");
}

#[test]
fn a_volume_has_one_source_and_a_name_of_its_own() {
    check(
        r#""volumes":[{"name":"a","emptyDir":{}},{"name":"a","emptyDir":{}}]"#,
        &["spec.volumes[1].name: Duplicate value: \"a\""],
    );

    check(
        r#""volumes":[{"name":"a","emptyDir":{},"hostPath":{"path":"/x"},"nfs":{}}]"#,
        &[
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[0].nfs: Forbidden: may not specify more than 1 volume type",
        ],
    );

    // A second source is not validated; two mistakes in the names are upstream's.
    check(
        r#""volumes":[{"name":"a","gcePersistentDisk":{}},{"name":"b","emptyDir":{},"downwardAPI":{}}]"#,
        &[
            "spec.volumes[0].persistentDisk.pdName: Required value",
            "spec.volumes[1].downwarAPI: Forbidden",
        ],
    );

    check(
        r#""volumes":[{"name":"a","ephemeral":{}},{"name":"b","persistentVolumeClaim":{"claimName":"p-a"}}]"#,
        &[
            "spec.volumes[0].ephemeral.volumeClaimTemplate: Required value",
            "spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: \"p-a\": must not reference a PVC",
        ],
    );
}

#[test]
fn files_of_a_projected_volume_do_not_collide_and_stay_inside() {
    check(
        r#""serviceAccountName":"s","volumes":[{"name":"a","projected":{"sources":[
            {"secret":{"name":"s","items":[{"key":"k","path":"x"}]}},
            {"configMap":{"name":"c","items":[{"key":"k","path":"x"},{"key":"k","path":"..y"}]}},
            {"serviceAccountToken":{"path":"../t","expirationSeconds":1}},
            {"secret":{"name":"s"},"configMap":{"name":"c"}}]}}]"#,
        &[
            "spec.volumes[0].projected: Invalid value: \"c\": conflicting duplicate paths",
            "spec.volumes[0].projected.sources[1].configMap.items[1].path: Invalid value: \"..y\": must not start with '..'",
            "spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 1: may not",
            "spec.volumes[0].projected.path: Invalid value: \"../t\": must not contain '..'",
            "spec.volumes[0].projected.sources[3]: Forbidden: may not specify more than 1 volume type per source",
        ],
    );

    check(
        r#""volumes":[{"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]"#,
        &[
            "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when",
        ],
    );
}

#[test]
fn names_of_containers_are_unique_across_their_lists() {
    check(
        r#""initContainers":[{"name":"c","image":"i"},{"name":"i","image":"i"},{"name":"i","image":"i"}]"#,
        &[
            "spec.initContainers[0].name: Duplicate value: \"c\"",
            "spec.initContainers[2].name: Duplicate value: \"i\"",
        ],
    );

    check(
        r#""initContainers":[{"name":"i","image":"i","lifecycle":{"preStop":{"sleep":{"seconds":1}}}},
            {"name":"s","image":"i","restartPolicy":"Always","lifecycle":{"preStop":{"sleep":{"seconds":31}}}}]"#,
        &[
            "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without",
            "spec.initContainers[1].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than \
             terminationGracePeriodSeconds (30)",
        ],
    );
}

#[test]
fn restart_rules_need_a_policy() {
    let rules = r#""restartPolicyRules":[{"action":"Bark"}]"#;

    // Upstream validates the rules of a regular container even so, and not those of an init
    // container.
    check(
        &format!(r#""initContainers":[{{"name":"i","image":"i",{rules}}}]"#),
        &["spec.initContainers[0].restartPolicy: Required value"],
    );

    check(
        &format!(
            r#""initContainers":[{{"name":"i","image":"i","restartPolicy":"Never",{rules}}}]"#
        ),
        &[
            "spec.initContainers[0].restartPolicyRules[0].action: Unsupported value: \"Bark\"",
            "spec.initContainers[0].restartPolicyRules[0].exitCodes: Required value: must be specified",
        ],
    );
}

#[test]
fn pod_level_resources_cover_the_containers() {
    let resources = |of_pod: &str, of_container: &str| {
        let pod = read(&format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"spec":{{"resources":{of_pod},
                "containers":[{{"name":"c","image":"i","resources":{of_container}}}]}}}}"#
        ));

        let mut errors = Errors::new();
        validate_pod(
            &pod.metadata,
            pod.spec.as_ref().unwrap(),
            &Options::of_pod(None, true),
            &mut errors,
        );

        errors
    };

    let errors = resources(
        r#"{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}"#,
        r#"{"requests":{"cpu":"2"},"limits":{"cpu":"3"}}"#,
    );

    let expected = [
        "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container \
         requests of 2",
        "spec.resources.containers[0][cpu].limits: Invalid value: \"3\": must be less than or equal to pod limits of 2",
    ];
    compare(&errors, &expected, "too little");

    let errors = resources(r#"{"requests":{"ephemeral-storage":"1"}}"#, "{}");
    compare(
        &errors,
        &["spec.resources.requests[ephemeral-storage]: Unsupported value"],
        "no such",
    );
}

#[test]
fn huge_pages_are_whole_and_need_cpu_or_memory() {
    let container = |resources: &str, expected: &[&str]| {
        check(
            &format!(r#""initContainers":[{{"name":"i","image":"i","resources":{resources}}}]"#),
            expected,
        );
    };

    let at = "spec.initContainers[0].resources";
    container(r#"{"limits":{"hugepages-2Mi":"4Mi","cpu":"1"}}"#, &[]);
    container(
        r#"{"limits":{"hugepages-2Mi":"3Mi"}}"#,
        &[
            &format!(
                "{at}.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of"
            ),
            &format!(
                "{at}.requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of"
            ),
            &format!("{at}: Forbidden: HugePages require cpu or memory"),
        ],
    );

    container(
        r#"{"limits":{"hugepages-2Mi":"4Mi","cpu":"1"},"requests":{"hugepages-2Mi":"2Mi"}}"#,
        &[&format!(
            "{at}.requests: Invalid value: \"2Mi\": must be equal to hugepages-2Mi limit of 4Mi"
        )],
    );
}

#[test]
fn windows_pods_have_no_linux_fields_and_the_reverse() {
    check(
        r#""os":{"name":"windows"},"hostPID":true,"securityContext":{"runAsUser":1}"#,
        &[
            "spec.hostPID: Forbidden: cannot be set for a windows pod",
            "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
        ],
    );

    check(
        r#""os":{"name":"linux"},"securityContext":{"windowsOptions":{"runAsUserName":"a\\b\\c"}}"#,
        &[
            "spec.securityContext.windowsOptions.runAsUserName: Invalid value: \"a\\\\b\\\\c\": runAsUserName cannot contain \
             more than one backslash",
            "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
        ],
    );

    check(
        r#""securityContext":{"windowsOptions":{"hostProcess":true}}"#,
        &[
            "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess",
        ],
    );
}

#[test]
fn sysctls_of_the_node_are_refused() {
    check(
        r#""securityContext":{"sysctls":[{"name":"net/core.x/y","value":"1"}]}"#,
        &[],
    );
    check(
        r#""hostNetwork":true,"securityContext":{"sysctls":[{"name":"net/core/x","value":"1"},{"name":"a..b","value":""}]}"#,
        &[
            "spec.securityContext.sysctls[0].name: Invalid value: \"net/core/x\": may not be specified when 'hostNetwork'",
            "spec.securityContext.sysctls[1].name: Invalid value: \"a..b\": must have at most 253 characters",
        ],
    );
}

#[test]
fn label_keys_need_a_selector_that_does_not_name_them() {
    let constraint = |rest: &str, expected: &[&str]| {
        check(
            &format!(
                r#""topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"DoNotSchedule",{rest}}}]"#
            ),
            expected,
        );
    };

    let at = "spec.topologySpreadConstraints[0]";
    constraint(
        r#""matchLabelKeys":["a"]"#,
        &[&format!(
            "{at}.matchLabelKeys: Forbidden: must not be specified"
        )],
    );

    constraint(
        r#""matchLabelKeys":["a"],"labelSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}"#,
        &[],
    );

    constraint(
        r#""matchLabelKeys":["a"],"labelSelector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#,
        &[&format!(
            "{at}[0]: Invalid value: \"a\": exists in both matchLabelKeys and labelSelector"
        )],
    );

    constraint(
        r#""labelSelector":{},"minDomains":0"#,
        &[&format!(
            "{at}.minDomains: Invalid value: 0: must be greater than zero"
        )],
    );
}

#[test]
fn faults_of_the_old_spec_are_accepted() {
    let validated = |old: &str, new: &str| {
        let (old, new) = (pod(old), pod(new));
        let options = Options::of_pod(Some((&old.metadata, old.spec.as_ref().unwrap())), true);
        let mut errors = Errors::new();
        validate_pod(
            &new.metadata,
            new.spec.as_ref().unwrap(),
            &options,
            &mut errors,
        );

        errors.len()
    };

    let odd = [
        r#""tolerations":[{"key":"a","operator":"Lt","value":"1"}]"#,
        r#""securityContext":{"seLinuxChangePolicy":"MountOption"}"#,
        r#""hostNetwork":true,"hostUsers":false"#,
        r#""hostIPC":true,"securityContext":{"sysctls":[{"name":"kernel.sem","value":"1"}]}"#,
        r#""initContainers":[{"name":"i","image":"i","resources":{"limits":{"cpu":"1","hugepages-2Mi":"3Mi"}}}]"#,
        r#""initContainers":[{"name":"i","image":"i","resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]}]"#,
        r#""affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k",
            "labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["x y"]}]}}]}}"#,
    ];

    for odd in odd {
        assert!(validated("", odd) > 0, "{odd}");
        assert_eq!(validated(odd, odd), 0, "{odd}");
    }
}

#[test]
fn server_setting_allows_privileged_containers() {
    let pod =
        pod(r#""initContainers":[{"name":"i","image":"i","securityContext":{"privileged":true}}]"#);
    let mut errors = Errors::new();
    validate_pod(
        &pod.metadata,
        pod.spec.as_ref().unwrap(),
        &Options::of_pod(None, false),
        &mut errors,
    );

    let expected = [
        "spec.initContainers[0].securityContext.privileged: Forbidden: disallowed by cluster policy",
    ];
    compare(&errors, &expected, "privileged");
}
