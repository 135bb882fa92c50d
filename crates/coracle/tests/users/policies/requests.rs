//! Which requests policies see, and as what.

use super::{MAPS, Target, about, accepted, refused};

#[test]
fn policies_see_deletes_connections_and_subresources() {
    let target = Target::start();
    let deny = |name: &str, about: &str, expression: &str| {
        let spec = format!("{about}, validations: [{{expression: \"{expression}\"}}]");
        target.bind("Validating", name, &spec, "validationActions: [Deny]");
    };
    let why = |name: &str, expression: &str| {
        format!(
            "is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: \
             failed expression: {expression}"
        )
    };

    let keep =
        "object == null && oldObject.data.k != 'keep' && request.options.kind == 'DeleteOptions'";
    deny("deletes", &about("configmaps", "DELETE"), keep);
    accepted(&target.create("keep", r#"{"k":"keep"}"#));
    accepted(&target.create("drop", r#"{"k":"v"}"#));
    let answer = target
        .raw
        .send("DELETE", &format!("{MAPS}/keep"), "application/json", "");
    refused(
        &answer,
        422,
        &format!("configmaps \"keep\" {}", why("deletes", keep)),
    );
    accepted(
        &target
            .raw
            .send("DELETE", &format!("{MAPS}/drop"), "application/json", ""),
    );
    // The objects of a collection have no name in the request.
    let answer = target.raw.send("DELETE", MAPS, "application/json", "");
    refused(
        &answer,
        422,
        &format!("configmaps \"Unknown\" {}", why("deletes", keep)),
    );

    target.apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}]}\n",
    );
    let exec = "object.kind != 'PodExecOptions' || object.command[0] != 'sh' || request.subResource != 'exec'";
    deny("connects", &about("''/v1/pods/*", "CONNECT"), exec);
    let pod = "/api/v1/namespaces/default/pods/web";
    let answer = target
        .raw
        .post(&format!("{pod}/exec?command=sh&stdout=true"), "");
    refused(
        &answer,
        422,
        &format!("pods \"web\" {}", why("connects", exec)),
    );
    let answer = target
        .raw
        .post(&format!("{pod}/exec?command=ls&stdout=true"), "");
    assert!(
        !answer.refusal().1.contains("Policy"),
        "{:?}",
        answer.refusal()
    );

    let status = "object.status.phase != 'Failed'";
    deny("statuses", &about("''/v1/pods/status", "UPDATE"), status);
    let patch = r#"{"status":{"phase":"Failed"}}"#;
    let answer = target
        .raw
        .patch(&format!("{pod}/status"), "strategic-merge", patch);
    refused(
        &answer,
        422,
        &format!("pods \"web\" {}", why("statuses", status)),
    );

    let scale = "object.spec.replicas < 3 && request.kind.kind == 'Scale'";
    deny(
        "scales",
        &about("apps/v1/deployments/scale", "UPDATE"),
        scale,
    );
    target
        .server
        .kubectl(&["create", "deployment", "d", "--image=i"]);
    let deployment = "/apis/apps/v1/namespaces/default/deployments/d";
    let answer = target.raw.patch(
        &format!("{deployment}/scale"),
        "merge",
        r#"{"spec":{"replicas":3}}"#,
    );
    refused(
        &answer,
        422,
        &format!("deployments.apps \"d\" {}", why("scales", scale)),
    );
    accepted(
        &target
            .raw
            .patch(deployment, "merge", r#"{"spec":{"replicas":3}}"#),
    );

    target.stop();
}

#[test]
fn policies_see_the_version_that_they_are_about_and_ask_the_authorizer() {
    let target = Target::start();
    let spec = format!(
        "{}, validations: [{{expression: \"object.spec.targetCPUUtilizationPercentage <= 80 && \
         request.requestResource.version == 'v2' && request.kind.version == 'v1'\"}}]",
        about("autoscaling/v1/horizontalpodautoscalers", "CREATE")
    );
    target.bind("Validating", "cpu", &spec, "validationActions: [Deny]");
    let autoscaler = |percent: u32| {
        let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
        let body = format!(
            r#"{{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{{"name":"a{percent}"}},
            "spec":{{"maxReplicas":2,"scaleTargetRef":{{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}},
            "metrics":[{{"type":"Resource","resource":{{"name":"cpu","target":{{"type":"Utilization","averageUtilization":{percent}}}}}}}]}}}}"#
        );
        target.raw.post(path, &body)
    };
    accepted(&autoscaler(80));
    assert_eq!(autoscaler(81).status, 422);

    let spec = format!(
        "{}, validations: [{{expression: \"authorizer.group('').resource('secrets').namespace('default').check('get').allowed()\", \
         message: may not read secrets}}]",
        about("configmaps", "CREATE")
    );
    target.bind("Validating", "access", &spec, "validationActions: [Deny]");
    accepted(&target.create("a", "{}"));
    target.server.kubectl(&[
        "create",
        "clusterrole",
        "maps",
        "--verb=create",
        "--resource=configmaps",
    ]);
    target.server.kubectl(&[
        "create",
        "clusterrolebinding",
        "maps",
        "--clusterrole=maps",
        "--user=ann",
    ]);
    let refused = target
        .server
        .refused(&["create", "configmap", "b", "--as=ann"]);
    assert!(refused.contains("may not read secrets"), "{refused}");

    target.stop();
}
