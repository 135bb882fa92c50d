//! Images of a registry that does not exist, from its mirror on loopback, which asks for a user.

use std::fs;

use crate::machine::Machine;
use crate::registry::{HOST, Registry};
use crate::tools_image::save_tools;

const IMAGE: &str = "private.invalid/team/tools:2";

/// An image that was pulled with the Secret of one pod cannot be used by pods that could not have
/// pulled it, before and after a restart.
#[test]
fn an_image_is_for_the_pods_whose_secrets_could_pull_it() {
    let machine = Machine::new();
    let archive = machine.folder().join("tools.tar");
    save_tools(&archive);
    let registry = Registry::with_user(&machine, "someone:right");
    registry.push(&machine, &archive, "team/tools:2");

    let mirrors = machine.folder().join("registries.yaml");
    let flag = format!("--registries-file={}", mirrors.display());
    let flags = [flag.as_str(), "--serialize-image-pulls=false"];
    machine.begin_with(&flags);
    assert!(machine.is_ready_within(crate::machine::PATIENCE));

    // The mirror is added while the server runs.
    let text = format!("mirrors: {{private.invalid: {{endpoint: [\"http://{HOST}\"]}}}}");
    fs::write(&mirrors, text).unwrap();
    for (namespace, password) in [("one", "right"), ("two", "wrong"), ("three", "right")] {
        machine.kubectl(&format!("create namespace {namespace}"));
        machine.kubectl(&format!(
            "create secret docker-registry pull -n {namespace} --docker-server=private.invalid \
             --docker-username=someone --docker-password={password}"
        ));
    }

    run(&machine, "one", "first", "pull");
    is_running(&machine, "one", "first");
    says(&machine, "one", "first", "Successfully pulled image");

    // Without a Secret, and with one that is of no use.
    for (namespace, name, secret) in [("two", "without", ""), ("two", "wrong", "pull")] {
        run(&machine, namespace, name, secret);
        is_refused(&machine, namespace, name);
    }

    // Another Secret with the same credentials.
    let present = "already present on machine and can be accessed by the pod";
    run(&machine, "three", "same", "pull");
    is_running(&machine, "three", "same");
    says(&machine, "three", "same", present);

    machine.kill_server();
    machine.begin_with(&flags);
    assert!(machine.is_ready_within(crate::machine::PATIENCE));
    run(&machine, "two", "later", "");
    is_refused(&machine, "two", "later");
    run(&machine, "one", "later", "pull");
    is_running(&machine, "one", "later");
    says(&machine, "one", "later", present);

    drop(registry);
    machine.stop_and_reset();
}

fn run(machine: &Machine, namespace: &str, name: &str, secret: &str) {
    let secrets = match secret {
        "" => String::new(),
        secret => format!("\"imagePullSecrets\":[{{\"name\":\"{secret}\"}}],"),
    };
    let spec = format!(
        "{{\"spec\":{{{secrets}\"terminationGracePeriodSeconds\":0,\"containers\":[{{\"name\":\"{name}\",\
         \"image\":\"{IMAGE}\",\"imagePullPolicy\":\"IfNotPresent\",\"command\":[\"sleep\",\"100000\"]}}]}}}}"
    );
    machine.kubectl(&format!(
        "run {name} -n {namespace} --image={IMAGE} --overrides={spec}"
    ));
}

fn is_running(machine: &Machine, namespace: &str, name: &str) {
    let query = format!("get pod {name} -n {namespace} -o jsonpath={{.status.phase}}");
    machine.until(&query, |phase| phase == "Running");
}

fn is_refused(machine: &Machine, namespace: &str, name: &str) {
    let state = "{.status.containerStatuses[0].state.waiting}";
    let query = format!("get pod {name} -n {namespace} -o jsonpath={state}");
    machine.until(&query, |waiting| {
        waiting.contains("ErrImagePull") || waiting.contains("ImagePullBackOff")
    });
    says(machine, namespace, name, "pull access denied");
}

/// Waits for an event of a pod.
fn says(machine: &Machine, namespace: &str, name: &str, words: &str) {
    let query = format!(
        "get events -n {namespace} --field-selector involvedObject.name={name} -o jsonpath={{.items[*].message}}"
    );
    machine.until(&query, |messages| messages.contains(words));
}
