//! TLS connections: each is served, whatever its bytes are.

use crate::access::Certificates;
use crate::servers::{TestServer, serve};
use coracle_store::{
    KeyRange, Put, RangeRequest, Store,
    etcd::{Etcd, EtcdConfig},
    etcd_server::Listen,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, GetRandomFailed, SecureRandom, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A random source that always returns the same byte, so that a test chooses the bytes of a
/// handshake.
#[derive(Debug)]
struct Always(u8);

impl SecureRandom for Always {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        bytes.fill(self.0);
        Ok(())
    }
}

fn with_tls(certificates: &Certificates) -> TestServer {
    serve(
        Listen::Tcp("127.0.0.1:0".parse().unwrap()),
        Some(certificates.of_server()),
    )
}

fn address(server: &TestServer) -> String {
    server
        .etcd
        .url()
        .strip_prefix("https://")
        .unwrap()
        .to_owned()
}

/// A connection whose handshake repeats one byte, as far as the client chooses it.
async fn connect(certificates: &Certificates, address: &str, byte: u8) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certificates.authority.as_bytes()).unwrap())
        .unwrap();

    let chain = vec![CertificateDer::from_pem_slice(certificates.client.0.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(certificates.client.1.as_bytes()).unwrap();
    let provider = CryptoProvider {
        secure_random: Box::leak(Box::new(Always(byte))),
        ..ring::default_provider()
    };

    let mut settings = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    settings.alpn_protocols = vec![b"h2".to_vec()];

    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();

    TlsConnector::from(Arc::new(settings))
        .connect(name, stream)
        .await
        .unwrap()
}

/// The type of the first frame that an HTTP/2 server sends.
async fn first_frame(mut stream: TlsStream<TcpStream>) -> u8 {
    let empty_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    stream.write_all(&empty_settings).await.unwrap();
    stream.flush().await.unwrap();
    let mut header = [0; 9];
    stream.read_exact(&mut header).await.unwrap();
    header[3]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_handshake_is_mistaken_for_plain_http() {
    const SETTINGS: u8 = 4;
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    for byte in 0..=255 {
        let asked =
            async { first_frame(connect(&certificates, &address(&server), byte).await).await };
        // The timeout only turns a hanging connection into a failure.
        let answered = tokio::time::timeout(Duration::from_secs(60), asked).await;
        assert_eq!(answered, Ok(SETTINGS), "a handshake made of {byte:#04x}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_connections_and_many_bytes_arrive_whole() {
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    let config = EtcdConfig {
        tls: Some(certificates.of_client()),
        ..EtcdConfig::new([server.etcd.url()])
    };

    for number in 0..200_u32 {
        let store = Etcd::new(&config).unwrap();
        store
            .put(Put::new(
                format!("small/{number}"),
                number.to_be_bytes().to_vec(),
            ))
            .await
            .unwrap();
    }

    let small = server
        .store
        .range(RangeRequest::new(KeyRange::prefix("small/")))
        .await
        .unwrap();
    assert_eq!(small.count, 200);

    // Every byte and every pair of neighbours occurs many times, at every offset of a frame.
    let value = |number: u32| -> Vec<u8> {
        let mut dice = fastrand::Rng::with_seed(number.into());
        (0..1_000_000).map(|_| dice.u8(..)).collect()
    };

    let store = Etcd::new(&config).unwrap();
    for number in 0..30 {
        store
            .put(Put::new(format!("large/{number}"), value(number)))
            .await
            .unwrap();

        let found = store
            .get(format!("large/{number}").into())
            .await
            .unwrap()
            .expect("it was put");

        assert!(
            found.value == value(number),
            "value {number} has changed on its way"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_do_not_block_others() {
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(address(&server)).await.unwrap());
    }

    assert_eq!(
        first_frame(connect(&certificates, &address(&server), 7).await).await,
        4
    );

    // The oldest one was dropped.
    assert_eq!(silent[0].read(&mut [0; 1]).await.unwrap_or_default(), 0);
}

/// The output of curl: the status, followed by the body.
async fn curl(arguments: Vec<String>) -> String {
    let run = move || {
        let mut command = Command::new("curl");
        command.args([
            "--silent",
            "--show-error",
            "--write-out",
            "\n%{http_code} %{http_version}",
        ]);

        command
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };

    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_etcd_are_answered_in_both_versions_of_http() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    certificates.write(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let server = with_tls(&certificates);
    server.store.put(Put::new("a", "1")).await.unwrap();

    for (flag, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let get = |path: &str, more: &[&str]| {
            let url = format!("{}{path}", server.etcd.url());
            let files = [
                ("--cacert", "ca"),
                ("--cert", "client"),
                ("--key", "client-key"),
            ];

            let mut all = vec![flag.to_owned(), url];
            all.extend(
                files
                    .into_iter()
                    .flat_map(|(flag, name)| [flag.to_owned(), file(name)]),
            );

            all.extend(more.iter().map(ToString::to_string));

            curl(all)
        };

        let ok = format!("\n200 {version}");
        assert_eq!(
            get("/health", &[]).await,
            format!(r#"{{"health":"true","reason":""}}{ok}"#)
        );

        let versions = r#"{"etcdserver":"3.6.0","etcdcluster":"3.6.0","storage":"3.6.0"}"#;
        assert_eq!(get("/version", &[]).await, format!("{versions}{ok}"));
        assert_eq!(get("/livez", &[]).await, format!("ok\n{ok}"));

        let metrics = get("/metrics", &[]).await;
        for line in [
            "etcd_server_has_leader 1\n",
            "etcd_server_version{server_version=\"3.6.0\"} 1\n",
            "etcd_debugging_mvcc_current_revision 2\n",
            "etcd_debugging_mvcc_keys_total 1\n",
            "# TYPE etcd_mvcc_db_total_size_in_bytes gauge\netcd_mvcc_db_total_size_in_bytes ",
        ] {
            assert!(metrics.contains(line), "{line} in {metrics}");
        }

        assert!(metrics.ends_with(&ok));
        assert_eq!(
            get("/nothing", &[]).await,
            format!("404 page not found\n\n404 {version}")
        );

        let head = get("/health", &["--head"]).await;
        assert!(
            head.ends_with(&format!("\n405 {version}")) && head.contains("GET"),
            "{head}"
        );
    }
}
