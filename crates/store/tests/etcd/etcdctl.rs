//! Debian's `etcdctl` on our etcd server.

use crate::servers::{on_a_port, serve};
use coracle_store::{
    KeyRange, Put, RangeRequest, Store,
    embedded::{
        SystemClock,
        files::{Files, RealFiles},
        restore,
    },
    etcd_server::Listen,
};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};

/// The command line on one endpoint.
#[derive(Clone)]
pub(crate) struct Etcdctl {
    endpoint: String,
    more: Vec<String>,
}

impl Etcdctl {
    pub(crate) fn on(endpoint: &str) -> Self {
        assert!(
            Path::new(PROGRAM).exists(),
            "missing Debian's etcd-client: run scripts/test-prereqs.sh"
        );
        Etcdctl {
            endpoint: endpoint.to_owned(),
            more: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, flags: &str) -> Self {
        self.more
            .extend(flags.split_whitespace().map(str::to_owned));
        self
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("ETCDCTL_API", "3")
            .arg("--endpoints")
            .arg(&self.endpoint)
            .args(&self.more);
        // The default timeouts are too short on a busy machine.
        command.args(["--dial-timeout=10m", "--command-timeout=10m"]);
        command.args(arguments.split_whitespace());
        command
    }

    async fn output(&self, arguments: &str, input: &'static str) -> Output {
        let mut command = self.command(arguments);
        let run = move || {
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());

            let mut child = command.spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(input.as_bytes())
                .unwrap();

            child.wait_with_output().unwrap()
        };

        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// Runs a command, which must succeed, and returns its output.
    pub(crate) async fn says(&self, arguments: &str) -> String {
        self.answers(arguments, "").await
    }

    async fn answers(&self, arguments: &str, input: &'static str) -> String {
        let output = self.output(arguments, input).await;
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcdctl {arguments}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command, which must fail, and returns its error output.
    async fn refuses(&self, arguments: &str) -> String {
        let output = self.output(arguments, "").await;
        assert!(
            !output.status.success(),
            "etcdctl {arguments} was not refused"
        );
        String::from_utf8(output.stderr).unwrap()
    }
}

const PROGRAM: &str = "/usr/bin/etcdctl";

/// A running command, which ends with the test.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Self {
        Running(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// The next `count` lines that it prints.
    async fn lines(&mut self, count: usize) -> Vec<String> {
        let output = self.0.stdout.take().unwrap();
        let read = move || {
            BufReader::new(output)
                .lines()
                .take(count)
                .map(Result::unwrap)
                .collect()
        };
        tokio::task::spawn_blocking(read).await.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_put_got_and_deleted() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    for key in ["/registry/pods/a", "/registry/pods/b", "/registry/nodes/n"] {
        assert_eq!(etcdctl.says(&format!("put {key} of-{key}")).await, "OK\n");
    }

    assert_eq!(
        etcdctl.says("get /registry/pods/a").await,
        "/registry/pods/a\nof-/registry/pods/a\n"
    );

    assert_eq!(
        etcdctl.says("get /registry --prefix --keys-only").await,
        "/registry/nodes/n\n\n/registry/pods/a\n\n/registry/pods/b\n\n"
    );

    assert_eq!(
        etcdctl
            .says("get /registry --prefix --keys-only --order DESCEND --sort-by MODIFY --limit 1")
            .await,
        "/registry/nodes/n\n\n"
    );

    let counted = etcdctl
        .says("get /registry --prefix --limit 1 --keys-only -w fields")
        .await;
    assert!(
        counted.contains("\"Count\" : 3") && counted.contains("\"More\" : true"),
        "{counted}"
    );

    assert_eq!(
        etcdctl
            .says("get /registry/pods/a /registry/pods/b --print-value-only")
            .await,
        "of-/registry/pods/a\n"
    );

    assert_eq!(
        etcdctl
            .says("get --from-key /registry/pods/b --print-value-only")
            .await,
        "of-/registry/pods/b\n"
    );

    assert_eq!(etcdctl.says("del /registry/pods --prefix").await, "2\n");
    assert_eq!(
        etcdctl.says("get / --prefix --keys-only").await,
        "/registry/nodes/n\n\n"
    );

    assert_eq!(
        etcdctl.says("del / --prefix --prev-kv").await,
        "1\n/registry/nodes/n\nof-/registry/nodes/n\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn json_output_has_revisions_and_the_header() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    etcdctl.says("put a 1").await;
    etcdctl.says("put a 2").await;

    let json = etcdctl.says("get a -w json").await;
    for part in [
        r#""key":"YQ==","create_revision":2,"mod_revision":3,"version":2,"value":"Mg==""#,
        r#""count":1"#,
        r#""revision":3"#,
        r#""cluster_id":"#,
        r#""member_id":"#,
        r#""raft_term":2"#,
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }

    assert_eq!(
        etcdctl.says("get a --rev 2 --print-value-only").await,
        "1\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_compare_and_choose() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    etcdctl.says("put a 1").await;
    let swap = "mod(\"a\") = \"2\"\n\nput a 2\nget a\n\nget a\n\n";
    assert_eq!(
        etcdctl.answers("txn", swap).await,
        "SUCCESS\n\nOK\n\na\n2\n"
    );
    assert_eq!(etcdctl.answers("txn", swap).await, "FAILURE\n\na\n2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_below_the_compaction_fail_with_etcds_error() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    for value in 1..4 {
        etcdctl.says(&format!("put a {value}")).await;
    }

    assert_eq!(etcdctl.says("compaction 3").await, "compacted revision 3\n");

    let compacted = "etcdserver: mvcc: required revision has been compacted";
    assert!(etcdctl.refuses("get a --rev 2").await.contains(compacted));
    assert!(etcdctl.refuses("compaction 3").await.contains(compacted));

    let future = "etcdserver: mvcc: required revision is a future revision";
    assert!(etcdctl.refuses("get a --rev 99").await.contains(future));
    assert!(
        etcdctl
            .refuses("watch a --rev 1")
            .await
            .contains("required revision has been compacted")
    );

    assert_eq!(
        etcdctl.says("get a --rev 3 --print-value-only").await,
        "2\n"
    );

    assert!(
        etcdctl
            .says("defrag")
            .await
            .contains("Finished defragmenting")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_prints_past_and_new_events() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    etcdctl.says("put w/a 1").await;
    let mut watch = Running::start(etcdctl.command("watch w/ --prefix --rev 2 --prev-kv"));
    etcdctl.says("put w/a 2").await;
    etcdctl.says("put elsewhere x").await;
    etcdctl.says("del w/a").await;
    let expected = [
        "PUT", "w/a", "1", "PUT", "w/a", "1", "w/a", "2", "DELETE", "w/a", "2", "w/a", "",
    ];
    assert_eq!(watch.lines(expected.len()).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_granted_kept_alive_queried_and_revoked() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    let granted = etcdctl.says("lease grant 60").await;
    let id = granted.split_whitespace().nth(1).unwrap();
    assert_eq!(granted, format!("lease {id} granted with TTL(60s)\n"));

    etcdctl.says(&format!("put leased v --lease={id}")).await;
    assert!(etcdctl.says("lease list").await.contains(id));

    let output = etcdctl.says(&format!("lease timetolive {id} --keys")).await;
    assert!(
        output.contains("granted with TTL(60s)") && output.contains("attached keys([leased])"),
        "{output}"
    );

    let kept = etcdctl.says(&format!("lease keep-alive --once {id}")).await;
    assert_eq!(kept, format!("lease {id} keepalived with TTL(60)\n"));
    assert_eq!(
        etcdctl.says(&format!("lease revoke {id}")).await,
        format!("lease {id} revoked\n")
    );

    assert_eq!(etcdctl.says("get leased").await, "");
    assert!(
        etcdctl
            .says(&format!("lease timetolive {id}"))
            .await
            .contains("already expired")
    );

    assert!(
        etcdctl
            .refuses("lease revoke 1234")
            .await
            .contains("etcdserver: requested lease not found")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_health_and_status_print_as_tables() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    let health = etcdctl.says("endpoint health -w table").await;
    assert!(
        health.contains("true") && health.contains(server.etcd.url()),
        "{health}"
    );

    let status = etcdctl.says("endpoint status -w table").await;
    assert!(
        status.contains("3.6.0") && status.contains("true"),
        "{status}"
    );

    let members = etcdctl.says("member list -w table").await;
    assert!(
        members.contains("default") && members.contains(server.etcd.url()),
        "{members}"
    );

    assert!(
        etcdctl
            .says("endpoint hashkv")
            .await
            .contains(server.etcd.url())
    );

    assert_eq!(etcdctl.says("alarm list").await, "");
    assert!(
        etcdctl
            .refuses("member add other --peer-urls=http://127.0.0.1:1")
            .await
            .contains("one member")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_snapshot_can_be_restored() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());

    for number in 0..500 {
        server
            .store
            .put(Put::new(format!("k{number:03}"), vec![b'x'; 2000]))
            .await
            .unwrap();
    }

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snapshot");
    let said = etcdctl
        .says(&format!("snapshot save {}", file.display()))
        .await;
    assert!(said.contains("Snapshot saved"), "{said}");

    let files: Arc<dyn Files> =
        Arc::new(RealFiles::new(directory.path().join("restored")).unwrap());
    let bytes = std::fs::read(&file).unwrap();
    let report = restore("snapshot", &bytes, &files, None, &SystemClock::default()).unwrap();
    assert_eq!(
        (report.keys, report.backup_revision),
        (500, server.store.revision())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_serves_as_well_as_a_port() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(Listen::Unix(directory.path().join("etcd.sock")), None);
    let etcdctl = Etcdctl::on(server.etcd.url());
    assert_eq!(etcdctl.says("put a 1").await, "OK\n");
    let all = server
        .store
        .range(RangeRequest::new(KeyRange::all()))
        .await
        .unwrap();
    assert_eq!(all.count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_the_etcd_server_ends_its_watches() {
    let server = on_a_port();
    let etcdctl = Etcdctl::on(server.etcd.url());
    etcdctl.says("put a 1").await;
    let mut watch = Running::start(etcdctl.command("watch a --rev 2"));
    assert_eq!(watch.lines(3).await, ["PUT", "a", "1"]);
    // It ends because the watch ends, not because of its timeout.
    server.etcd.stop_within(Duration::MAX).await;
}
