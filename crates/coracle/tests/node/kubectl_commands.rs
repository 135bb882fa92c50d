//! Stock kubectl on a node that runs pods: exec, cp, attach, port-forward, rollouts.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::machine::{Machine, eventually};
use crate::pods::{echo, shell};

/// exec, cp, attach and port-forward of one pod.
#[test]
fn exec_cp_attach_and_port_forward_work() {
    let machine = Machine::new();
    machine.import_tools();
    machine.start();
    let talking = "until [ -e /tmp/go ]; do sleep 0.1; done; echo one; read word; echo heard $word; \
                   until [ -e /tmp/end ]; do sleep 0.1; done; echo the end";
    let mut pod = shell("box", talking);
    pod["spec"]["restartPolicy"] = json!("Never");
    pod["spec"]["containers"][0]["stdin"] = json!(true);
    machine.apply(&[pod, echo("web", &[])]);

    machine.kubectl("wait --for=condition=Ready pod/box pod/web --timeout=300s");
    commands(&machine);
    copies(&machine);
    let followed = machine.speaking(&["logs", "-f", "box"]);
    let mut attached = machine.speaking(&["attach", "-i", "box"]);
    thread::sleep(Duration::from_secs(2));
    machine.kubectl("exec box -- touch /tmp/go");
    machine.until("logs box", |log| log == "one\n");

    // It is held until the end: the client goes when its input ends.
    let mut words = attached.stdin.take().unwrap();
    words.write_all(b"word\n").unwrap();
    machine.until("logs box", |log| log == "one\nheard word\n");
    machine.kubectl("exec box -- touch /tmp/end");
    assert_eq!(
        text(&followed.wait_with_output().unwrap()),
        "one\nheard word\nthe end\n"
    );

    let attached = attached.wait_with_output().unwrap();
    drop(words);
    assert!(
        text(&attached).contains("heard word\nthe end\n"),
        "{attached:?}"
    );

    machine.until("get pod box -o jsonpath={.status.phase}", |phase| {
        phase == "Succeeded"
    });
    ports(&machine);

    let described = machine.kubectl("describe pod box");
    for words in [
        "Status:           Succeeded",
        "Exit Code:    0",
        "Reason:       Completed",
        "Normal  Started",
    ] {
        assert!(described.contains(words), "{words}:\n{described}");
    }

    machine.kubectl("delete pod --all --timeout=300s");
    machine.stop_and_reset();
    machine.has_nothing();
}

fn commands(machine: &Machine) {
    let output = machine.try_kubectl(&[
        "exec",
        "box",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 7",
    ]);

    assert_eq!(
        (output.status.code(), text(&output).as_str()),
        (Some(7), "out\n"),
        "{output:?}"
    );

    let line = "script -qec \"stty rows 33 cols 111; coracle kubectl exec -it box -- sh -c 'tty; sleep 1; stty size'\" /dev/null";
    let said = machine.types(line);
    assert!(
        said.contains("/dev/pts/") && said.contains("33 111"),
        "{said}"
    );
}

fn copies(machine: &Machine) {
    let (sent, received) = (
        machine.folder().join("sent"),
        machine.folder().join("received"),
    );
    fs::write(&sent, "some content\n".repeat(10_000)).unwrap();
    machine.kubectl(&format!("cp {} box:/tmp/there", sent.display()));
    machine.kubectl(&format!("cp box:/tmp/there {}", received.display()));
    assert!(fs::read(&sent).unwrap() == fs::read(&received).unwrap());
}

/// port-forward, and its error when the pod is deleted meanwhile.
fn ports(machine: &Machine) {
    let mut forwarding = machine.speaking(&["port-forward", "pod/web", ":8080"]);
    let mut line = String::new();
    BufReader::new(forwarding.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();

    let port = line
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/");
    let answer = machine.run("curl", &["--silent", "--fail", "--max-time", "10", &url]);
    assert!(answer.contains("\"host\":\"web\""), "{answer}");

    machine.kubectl("delete pod web --timeout=300s");

    let refused = machine
        .command("curl", &["--silent", "--max-time", "10", &url])
        .status()
        .unwrap();
    assert!(!refused.success(), "the pod still answers");

    let mut output = String::new();
    eventually("it ends", || match forwarding.try_wait().unwrap() {
        Some(_) => Ok(()),
        // Interrupted, as by Ctrl-C.
        None => {
            forwarding.kill().unwrap();
            Err("it goes on")
        }
    });

    forwarding
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();

    let words = "the pod has ended or was deleted since the forwarding began";
    assert!(output.contains(words), "{output}");
}

/// A Deployment: rolled out, requested, updated, rolled back, scaled, deleted.
#[test]
fn a_deployment_is_rolled_out_and_back() {
    let machine = Machine::new();
    machine.start();
    machine.kubectl("-n kube-system rollout status daemonset/coracle-dns --timeout=300s");
    machine.kubectl("create deployment web --image=coracle.local/echo --replicas=3");
    machine.kubectl("expose deployment web --port=80 --target-port=8080 --type=NodePort");
    machine.kubectl("rollout status deployment/web --timeout=300s");
    let address = machine.kubectl("get service web -o jsonpath={.spec.clusterIP}");
    let port = machine.kubectl("get service web -o jsonpath={.spec.ports[0].nodePort}");

    let says = |url: &str, words: &str| {
        eventually(&format!("{url} says {words}"), || {
            let output = machine
                .command("curl", &["--silent", "--max-time", "5", url])
                .output()
                .unwrap();

            if text(&output).contains(words) {
                Ok(())
            } else {
                Err(text(&output))
            }
        });
    };

    says(&format!("http://{address}/"), "\"host\":\"web-");
    says(&format!("http://192.0.2.2:{port}/"), "\"host\":\"web-");
    machine.kubectl("set env deployment/web COLOR=green");
    machine.kubectl("rollout status deployment/web --timeout=300s");
    says(&format!("http://{address}/"), "\"COLOR\":\"green\"");
    let history = machine.kubectl("rollout history deployment/web");
    assert!(
        history.contains("\n1 ") && history.contains("\n2 "),
        "{history}"
    );

    machine.kubectl("rollout undo deployment/web");
    machine.kubectl("rollout status deployment/web --timeout=300s");
    eventually("all are of the first revision again", || {
        let output = machine
            .command(
                "curl",
                &["--silent", "--max-time", "5", &format!("http://{address}/")],
            )
            .output();

        let said = text(&output.unwrap());
        if said.contains("\"host\":\"web-") && !said.contains("COLOR") {
            Ok(())
        } else {
            Err(said)
        }
    });

    machine.kubectl("scale deployment/web --replicas=1");
    machine.until(
        "get deployment web -o jsonpath={.status.replicas}",
        |replicas| replicas == "1",
    );

    let described = machine.kubectl("describe deployment web");
    assert!(
        described.contains("1 desired | 1 updated | 1 total | 1 available"),
        "{described}"
    );

    assert!(described.contains("ScalingReplicaSet"), "{described}");

    machine.kubectl("delete deployment,service web");
    machine.until("get pods -o name", str::is_empty);
    assert_eq!(
        machine.kubectl("get endpointslices -l kubernetes.io/service-name=web -o name"),
        ""
    );

    machine.stop_and_reset();
    machine.has_nothing();
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Machine {
    /// A running kubectl with piped input and output.
    fn speaking(&self, arguments: &[&str]) -> Child {
        let mut command: Command = self.kubectl_command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}
