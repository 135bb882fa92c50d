//! What the README says, in its order.

use crate::machine::Machine;

/// A Deployment behind a Service comes up; it is reached by address, port and name; then all of it goes again.
#[test]
fn what_the_readme_says_works() {
    let mut machine = Machine::new();
    machine.start();
    machine.kubectl("wait --for=condition=Ready node/node-1 --timeout=60s");
    machine.kubectl("create deployment echo --image=coracle.local/echo --replicas=3");
    machine.kubectl("expose deployment echo --port=80 --target-port=8080 --type=NodePort");
    machine.kubectl("rollout status deployment/echo --timeout=60s");
    machine.kubectl("-n kube-system rollout status deployment/coracle-dns --timeout=60s");

    let address = machine.kubectl("get service echo -o jsonpath={.spec.clusterIP}");
    let port = machine.kubectl("get service echo -o jsonpath={.spec.ports[0].nodePort}");
    for url in [format!("http://{address}/"), format!("http://192.0.2.2:{port}/")] {
        let answer = machine.run("curl", &["--silent", "--fail", "--max-time", "5", &url]);
        assert!(answer.contains("echo-"), "{url}: {answer}");
    }
    machine.kubectl(
        "run visitor --image=coracle.local/echo --restart=Never --command -- /echo fetch http://echo.default.svc.cluster.local/",
    );
    machine.until("get pod visitor -o jsonpath={.status.phase}", |phase| phase == "Succeeded");
    assert!(machine.kubectl("logs visitor").contains("echo-"));

    let pod = machine.kubectl("get pods -l app=echo -o jsonpath={.items[0].metadata.name}");
    assert!(machine.kubectl(&format!("logs {pod}")).contains("8080"));
    machine.kubectl(&format!("exec {pod} -- /echo exit 0"));
    machine.kubectl("scale deployment/echo --replicas=1");
    machine.kubectl("delete deployment,service echo");
    machine.kubectl("delete pod visitor");
    machine.until("get pods -o name", str::is_empty);
}
