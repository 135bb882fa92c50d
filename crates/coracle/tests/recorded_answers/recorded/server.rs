//! `coracle kube-apiserver` as the recorded answers want it: alone, with an empty store and
//! certificates made for it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use tempfile::TempDir;

/// A server on a free port; ended when dropped.
pub(super) struct Server {
    folder: TempDir,
    child: Process,
    port: u16,
}

/// Another process may take the port that was free a moment ago.
const ATTEMPTS: usize = 5;

/// On a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(60);

impl Server {
    pub(super) fn start() -> Server {
        let mut folder = tempfile::tempdir().unwrap();
        certificates(folder.path());

        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .unwrap()
                .local_addr()
                .unwrap()
                .port();
            let mut child = spawn(folder.path(), port);
            let stdout = child.stdout.take().unwrap();

            let server = Server {
                folder,
                child: Process(child),
                port,
            };

            if first_line(stdout).starts_with("kube-apiserver is ready at ") {
                return server;
            }

            folder = server.end();
        }

        panic!("the server did not start");
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn end(mut self) -> TempDir {
        self.child.kill();
        self.folder
    }
}

/// A process; ended when dropped.
struct Process(Child);

impl Process {
    fn kill(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a server says first; nothing if it ends or takes too long.
fn first_line(stdout: ChildStdout) -> String {
    let (sender, line) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        if BufReader::new(stdout).read_line(&mut line).is_ok() {
            sender.send(line).ok();
        }
    });
    line.recv_timeout(READY_WITHIN).unwrap_or_default()
}

/// An RSA key, as the recordings were made with.
const SIGNING_KEY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../apiserver/src/authn/token/testdata/rsa.pem"
);

/// The options of `tests/golden/README.md`, as far as there is something behind them.
fn spawn(folder: &Path, port: u16) -> Child {
    let file = |name: &str| folder.join(name).display().to_string();
    Command::new(env!("CARGO_BIN_EXE_coracle"))
        .arg("kube-apiserver")
        .args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")])
        .args([
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--allow-privileged",
            "--enable-admission-plugins=NodeRestriction",
        ])
        .args([
            "--service-account-issuer=https://kubernetes.default.svc",
            "--enable-bootstrap-token-auth",
        ])
        .arg(format!("--service-account-signing-key-file={SIGNING_KEY}"))
        .arg(format!("--data-dir={}", file("data")))
        .arg(format!("--client-ca-file={}", file("ca.crt")))
        .arg(format!("--tls-cert-file={}", file("server.crt")))
        .arg(format!("--tls-private-key-file={}", file("server.key")))
        .arg(format!("--proxy-client-cert-file={}", file("server.crt")))
        .arg(format!("--proxy-client-key-file={}", file("server.key")))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// An authority, a server and an administrator.
fn certificates(folder: &Path) {
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    let mut authority = named("authority", None);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];

    let key = KeyPair::generate().unwrap();
    write("ca.crt", authority.self_signed(&key).unwrap().pem());

    let issuer = Issuer::new(authority, key);
    let mut server = named("kube-apiserver", None);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server
        .subject_alt_names
        .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let mut admin = named("admin", Some("system:masters"));
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];

    for (name, params) in [("server", server), ("admin", admin)] {
        let key = KeyPair::generate().unwrap();
        write(
            &format!("{name}.crt"),
            params.signed_by(&key, &issuer).unwrap().pem(),
        );
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

fn named(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
    }
    params
}
