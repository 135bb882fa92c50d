//! A real etcd with its defaults on the same disk, for comparison.

use coracle_store::{
    Store,
    etcd::{Etcd, EtcdConfig},
};
use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// An etcd with one member; its process ends with this value.
pub(crate) struct Peer {
    process: Child,
    endpoint: String,
}

/// Debian's etcd, and the one installed for the tests.
pub(crate) fn programs() -> [(&'static str, PathBuf); 2] {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("test-tools")
        .join("etcd36");
    [
        ("etcd 3.4", PathBuf::from("/usr/bin/etcd")),
        ("etcd 3.6", built),
    ]
}

impl Peer {
    pub(crate) fn start(program: &Path, directory: &Path) -> Self {
        assert!(
            program.exists(),
            "missing {}: run scripts/test-prereqs.sh",
            program.display()
        );

        let [client, peer] = free_ports().map(|port| format!("http://127.0.0.1:{port}"));
        let arguments = [
            format!("--data-dir={}", directory.display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--logger=zap".to_owned(),
            "--log-level=error".to_owned(),
        ];

        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());

        Peer {
            process: command.spawn().expect("etcd starts"),
            endpoint: client,
        }
    }

    /// A store on it, once it answers.
    pub(crate) async fn store(&self) -> Etcd {
        let store = Etcd::new(&EtcdConfig::new([&self.endpoint])).expect("an endpoint");
        for _ in 0..100 {
            if store.current_revision().await.is_ok() {
                return store;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("etcd did not start");
    }

    /// Its process id, as a path component of `/proc`.
    pub(crate) fn process(&self) -> String {
        self.process.id().to_string()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.process.kill().expect("an end by signal");
        self.process.wait().expect("its end");
    }
}

fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}
