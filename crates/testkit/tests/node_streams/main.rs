//! Stock kubectl, through an API server, to the kubelet's API and real containers: logs, exec,
//! attach, port-forward, cp.
//!
//! Each way is gone over WebSocket and over SPDY, with the newest kubectl and an older one. The
//! pods are not a kubelet's: the test makes them in a runtime of its own, and tells the kubelet's
//! pod manager.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod clients;
mod node;

use std::fs;
use std::time::Duration;

use clients::{Client, clients};
use node::Node;

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_in_a_container() {
    let node = Node::start("exec").await;
    node.run("web", "sleep 1000").await;

    for client in clients(&node) {
        let done = client
            .run(&[
                "exec",
                "web",
                "--",
                "sh",
                "-c",
                "echo out; echo err >&2; exit 7",
            ])
            .await;
        assert_eq!(done.code, 7, "{client}: {done:?}");

        assert_eq!(done.stdout, "out\n", "{client}");
        assert!(done.stderr.starts_with("err\n"), "{client}: {done:?}");
        assert!(
            done.stderr.contains("command terminated with exit code 7"),
            "{client}: {done:?}"
        );

        let done = client
            .run_with(&["exec", "-i", "web", "--", "cat"], "abc\n")
            .await;
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (0, "abc\n"),
            "{client}: {done:?}"
        );

        let done = client.run(&["exec", "web", "--", "/no/such"]).await;
        let text = "error executing command in container: exec: \"/no/such\": stat /no/such: no such file or directory";
        assert!(
            done.code != 0 && done.stderr.contains(text),
            "{client}: {done:?}"
        );

        let done = client
            .run(&["exec", "web", "-c", "other", "--", "true"])
            .await;
        assert!(
            done.stderr
                .contains("container other is not valid for pod web"),
            "{client}: {done:?}"
        );
    }

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn much_is_carried_in_both_directions() {
    let node = Node::start("much").await;
    node.run("web", "sleep 1000").await;

    for client in clients(&node) {
        let done = client
            .run(&[
                "exec",
                "web",
                "--",
                "dd",
                "if=/dev/zero",
                "bs=1048576",
                "count=16",
            ])
            .await;
        assert_eq!(done.stdout.len(), 16 << 20, "{client}: {}", done.stderr);

        let long = "0123456789abcde\n".repeat(1 << 17);
        let done = client
            .run_with(&["exec", "-i", "web", "--", "cat"], &long)
            .await;
        assert!(
            done.stdout == long,
            "{client}: {} bytes of {}: {}",
            done.stdout.len(),
            long.len(),
            done.stderr
        );
    }

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_has_the_size_of_the_clients() {
    let node = Node::start("tty").await;
    node.run("web", "sleep 1000").await;

    for client in clients(&node) {
        let done = client
            .on_terminal(
                "exec -it web -- sh -c 'tty; sleep 1; stty size; echo a; exit 3'",
                33,
                111,
            )
            .await;
        assert!(done.stdout.contains("/dev/pts/"), "{client}: {done:?}");

        assert!(done.stdout.contains("33 111"), "{client}: {done:?}");
        assert_eq!(done.code, 3, "{client}: {done:?}");
    }

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_copied() {
    let node = Node::start("cp").await;
    node.run("web", "sleep 1000").await;
    let folder = tempfile::tempdir().unwrap();
    let (sent, received) = (folder.path().join("sent"), folder.path().join("received"));
    fs::write(&sent, "some content\n".repeat(10_000)).unwrap();

    for client in clients(&node) {
        let done = client
            .run(&["cp", sent.to_str().unwrap(), "web:/tmp/there"])
            .await;
        assert_eq!(done.code, 0, "{client}: {done:?}");

        let done = client
            .run(&["cp", "web:/tmp/there", received.to_str().unwrap()])
            .await;
        assert_eq!(done.code, 0, "{client}: {done:?}");
        assert!(
            fs::read(&sent).unwrap() == fs::read(&received).unwrap(),
            "{client}"
        );

        fs::remove_file(&received).unwrap();
    }

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_shown_and_followed() {
    let node = Node::start("logs").await;
    let script = "echo one; echo two >&2; sleep 1; echo three; until [ -e /tmp/go ]; do sleep 0.1; done; echo four";
    let id = node.run("web", script).await;
    node.has_printed("web", "three").await;
    let client = &clients(&node)[0];
    let log = async |more: &[&str]| client.run(&[&["logs", "web"], more].concat()).await;
    assert_eq!(log(&[]).await.stdout, "one\ntwo\nthree\n");
    assert_eq!(log(&["--tail=1"]).await.stdout, "three\n");
    assert_eq!(log(&["--limit-bytes=5"]).await.stdout, "one\nt");

    let stamped = log(&["--timestamps", "--tail=1"]).await.stdout;
    assert!(
        stamped.ends_with("Z three\n") && stamped.len() == 30 + 1 + 6,
        "{stamped}"
    );

    let refused = log(&["--previous"]).await;
    assert_eq!(
        refused.stderr,
        "Error from server (BadRequest): previous terminated container \"web\" in pod \"web\" not found\n"
    );

    let refused = log(&["--tail=-5"]).await;
    assert!(refused.code != 0, "{refused:?}");

    // Who follows sees what comes, and the end.
    let followed = tokio::spawn({
        let client = client.clone();
        async move { client.run(&["logs", "-f", "web"]).await }
    });

    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!followed.is_finished());

    node.exec(&id, "touch /tmp/go").await;

    let followed = tokio::time::timeout(Duration::from_secs(20), followed)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(followed.stdout, "one\ntwo\nthree\nfour\n");

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_into_the_next_file() {
    let node = Node::start("rotated").await;
    let id = node.run("web", "echo one; until [ -e /tmp/a ]; do sleep 0.1; done; echo two; until [ -e /tmp/b ]; do sleep 0.1; done; echo three").await;
    node.has_printed("web", "one").await;
    let mut followed = clients(&node)[0].follow(&["logs", "-f", "web"]);
    assert_eq!(followed.line().await, "one");

    node.exec(&id, "touch /tmp/a").await;
    node.has_printed("web", "two").await;
    node.rotate("web", &id).await;

    node.exec(&id, "touch /tmp/b").await;
    assert_eq!(
        (
            followed.line().await.as_str(),
            followed.line().await.as_str()
        ),
        ("two", "three")
    );

    assert_eq!(followed.line().await, "");

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_container_is_attached_to() {
    let node = Node::start("attach").await;
    for (number, client) in clients(&node).into_iter().enumerate() {
        let name = format!("web{number}");

        // It prints continuously: a line proves that the client is attached.
        let script = "until [ -e /tmp/go ]; do echo before; sleep 0.1; done; echo after; exit 5";
        let id = node.run(&name, script).await;
        let mut attached = client.follow(&["attach", &name]);
        let mut line = attached.line().await;
        assert_eq!(line, "before", "{number}");

        node.exec(&id, "touch /tmp/go").await;

        while line == "before" {
            line = attached.line().await;
        }

        assert_eq!(
            (line.as_str(), attached.line().await.as_str()),
            ("after", ""),
            "{number}"
        );

        assert_eq!(attached.code().await, Some(0), "{number}");
    }

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_forwarded() {
    let node = Node::start("ports").await;
    let id = node.run("web", "exec nc -ll -p 8080 -e echo hello").await;
    node.exec(
        &id,
        "until nc 127.0.0.1 8080 </dev/null; do sleep 0.1; done",
    )
    .await;

    for client in clients(&node) {
        let mut forwarded = client.forward("web", 8080).await;
        for _ in 0..3 {
            assert_eq!(forwarded.fetch().await, "hello\n", "{client}");
        }

        forwarded.end().await;
        let mut forwarded = client.forward("web", 8081).await;
        assert_eq!(forwarded.fetch().await, "", "{client}");

        let output = forwarded.read_until("connection refused").await;
        assert!(
            output.contains("error forwarding port 8081 to pod web"),
            "{client}: {output}"
        );

        forwarded.end().await;
    }

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_may_reaches_the_kubelet() {
    let node = Node::start("access").await;
    node.run("web", "sleep 1000").await;

    let check = async |path: &str, identity: Option<&str>, expected: (u16, &str)| {
        let (status, text) = node.ask_kubelet(path, identity).await;
        assert_eq!((status, text.as_str()), expected, "{path} {identity:?}");
    };
    check("/healthz", None, (401, "Unauthorized")).await;

    check("/healthz", Some("kubelet-client"), (200, "ok")).await;
    check(
        "/nothing",
        Some("kubelet-client"),
        (404, "404 page not found\n"),
    )
    .await;

    let denied = "Forbidden (user=nobody, verb=get, resource=nodes, subresource(s)=[pods proxy])\n";
    check("/pods", Some("nobody"), (403, denied)).await;
    check(
        "/exec/default/none/web?output=1",
        Some("kubelet-client"),
        (404, "pod does not exist"),
    )
    .await;

    check(
        "/exec/default/web/web",
        Some("kubelet-client"),
        (400, "you must specify at least 1 of stdin, stdout, stderr"),
    )
    .await;

    check(
        "/exec/default/web/web?output=1",
        Some("kubelet-client"),
        (400, "Upgrade request required"),
    )
    .await;

    let (_, pods) = node.ask_kubelet("/pods", Some("kubelet-client")).await;
    assert!(
        pods.contains(r#""kind":"PodList""#) && pods.contains(r#""name":"web""#),
        "{pods}"
    );

    let (_, pods) = node
        .ask_kubelet("/runningpods/", Some("kubelet-client"))
        .await;
    assert!(pods.contains(r#""name":"web""#), "{pods}");

    let (_, stats) = node
        .ask_kubelet("/stats/summary", Some("kubelet-client"))
        .await;
    assert!(
        stats.contains(r#""usageCoreNanoSeconds""#) && stats.contains(r#""workingSetBytes""#),
        "{stats}"
    );

    let (_, metrics) = node.ask_kubelet("/metrics", Some("kubelet-client")).await;
    assert!(metrics.contains("kubelet_running_pods 1\n"), "{metrics}");

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_targets_are_reported() {
    let node = Node::start("unreachable").await;
    node.run("web", "sleep 1000").await;
    node.declare_pod("nowhere", None).await;
    let client: &Client = &clients(&node)[0];

    let done = client.run(&["exec", "nowhere", "--", "true"]).await;
    assert!(
        done.stderr
            .contains("pod nowhere does not have a host assigned"),
        "{done:?}"
    );

    assert_eq!(client.run(&["logs", "nowhere"]).await.stdout, "");

    node.silence().await;
    let done = client.run(&["exec", "web", "--", "true"]).await;
    assert!(
        done.stderr
            .contains("error dialing backend: dial tcp 127.0.0.1:"),
        "{done:?}"
    );

    assert!(
        done.stderr.contains("connect: connection refused"),
        "{done:?}"
    );

    let done = client.run(&["logs", "web"]).await;
    assert!(
        done.stderr
            .contains("/containerLogs/default/web/web?stream=All\": dial tcp 127.0.0.1:"),
        "{done:?}"
    );

    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_are_answered_in_both_versions_of_http() {
    let node = Node::start("heads").await;
    for path in [
        "/healthz",
        "/pods",
        "/metrics",
        "/stats/summary",
        "/containerLogs/default/none/c",
        "/nothing",
    ] {
        // curl takes a body that comes after all for a broken protocol.
        let one = node
            .ask_kubelet_with(path, Some("kubelet-client"), &["--http1.1", "--head"])
            .await;
        let two = node
            .ask_kubelet_with(path, Some("kubelet-client"), &["--http2", "--head"])
            .await;
        assert_eq!(one.0, two.0, "{path}");

        assert!(
            one.1.contains("HTTP/1.1") && two.1.contains("HTTP/2"),
            "{one:?} {two:?}"
        );
    }

    node.stop().await;
}
