//! A cluster on a machine without a default route.

use crate::machine::{Machine, eventually};

/// Without a default route, the machine itself reaches Services by their addresses, as its pods do.
#[test]
fn without_a_default_route_the_machine_reaches_services() {
    let machine = Machine::isolated();
    machine.start();
    machine.kubectl("-n kube-system rollout status daemonset/coracle-dns --timeout=300s");
    machine.kubectl("create deployment echo --image=coracle.local/echo");
    machine.kubectl("expose deployment echo --port=80 --target-port=8080");
    machine.kubectl("rollout status deployment/echo --timeout=300s");

    let address = machine.kubectl("get service echo -o jsonpath={.spec.clusterIP}");
    eventually("the machine reaches the Service", || {
        let url = format!("http://{address}/");
        let output = machine
            .command(
                "curl",
                &["--silent", "--show-error", "--max-time", "5", &url],
            )
            .output()
            .unwrap();

        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if said.contains("\"host\":\"echo-") {
            Ok(())
        } else {
            Err(output)
        }
    });

    let kubernetes = machine.kubectl("get service kubernetes -o jsonpath={.spec.clusterIP}");
    let version = machine.types(&format!(
        "curl --silent --insecure --max-time 5 https://{kubernetes}/version"
    ));
    assert!(version.contains("gitVersion"), "{version}");

    let pod = "run visitor --image=coracle.local/echo --restart=Never --command -- /echo fetch http://echo.default.svc.cluster.local/";
    machine.kubectl(pod);
    machine.until("logs visitor", |log| log.contains("\"host\":\"echo-"));
    machine.stop_and_reset();
    machine.has_nothing();
}
