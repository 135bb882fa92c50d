//! Requests to test servers on loopback.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A server that answers every request with `answer(head)`.
pub(crate) async fn server(
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (u16, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, &answer).await;
        }
    });
    (port, tasks)
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &impl Fn(&str) -> String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let response = answer(&String::from_utf8_lossy(&head));
    if stream.write_all(response.as_bytes()).await.is_ok() {
        stream.shutdown().await.unwrap_or_default();
    }
}

pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn redirect_to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 5\r\n\r\nthere")
}

fn target(port: u16, more: &str) -> Target {
    let action = serde_json::from_str(&format!(r#"{{"port":{port}{more}}}"#)).unwrap();
    Target::of(&action, &Container::default(), "127.0.0.1", "probe").unwrap()
}

#[tokio::test]
async fn a_request_carries_its_headers_and_reads_a_bounded_answer() {
    let (port, _server) = server(|head| {
        if head.starts_with("GET /long") {
            ok(&"x".repeat(3 * MAX_BODY))
        } else {
            ok(head)
        }
    })
    .await;

    let headers = r#","path":"/a?b=c","httpHeaders":[{"name":"Host","value":"shop.example"},{"name":"X-A","value":"1"}]"#;
    let answer = get(&target(port, headers), None).await.unwrap();
    let head = answer.body.to_lowercase();
    assert!(head.starts_with("get /a?b=c http/1.1\r\n"), "{head}");

    for line in [
        "host: shop.example\r\n",
        "x-a: 1\r\n",
        "user-agent: kube-probe/1.36\r\n",
        "accept: */*\r\n",
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }

    let answer = get(&target(port, r#","path":"/long""#), None)
        .await
        .unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, MAX_BODY));
}

#[tokio::test]
async fn redirects_are_followed_within_a_host_up_to_a_limit() {
    let (port, _server) = server(|head| match head.split(' ').nth(1).unwrap() {
        "/here" => ok("arrived"),
        "/near" => redirect_to("/here"),
        "/far" => redirect_to("http://localhost:1/"),
        "/nowhere" => "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => redirect_to("/circle"),
    })
    .await;

    let request =
        async |path: &str| get(&target(port, &format!(r#","path":"{path}""#)), None).await;
    assert_eq!(
        request("/near").await.unwrap(),
        Answer {
            status: 200,
            body: "arrived".to_owned()
        }
    );

    assert_eq!(
        request("/far").await.unwrap(),
        Answer {
            status: 302,
            body: "there".to_owned()
        }
    );

    assert_eq!(request("/nowhere").await.unwrap().status, 302);

    let looping = request("/circle").await.unwrap_err().to_string();
    assert_eq!(
        looping,
        format!("Get \"http://127.0.0.1:{port}/circle\": stopped after 10 redirects")
    );
}

#[tokio::test]
async fn errors_have_the_text_of_gos_client() {
    let unused = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = unused.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    let slow = get(&target(port, ""), Some(Duration::from_millis(50)))
        .await
        .unwrap_err()
        .to_string();

    let text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    assert_eq!(slow, format!("Get \"{url}\": {text}"));

    drop(unused);
    let refused = get(&target(port, ""), None).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        format!("Get \"{url}\": dial tcp 127.0.0.1:{port}: connect: connection refused")
    );

    let (port, _server) = server(|_| String::new()).await;
    let ended = get(&target(port, ""), None).await.unwrap_err().to_string();
    assert_eq!(ended, format!("Get \"http://127.0.0.1:{port}/\": EOF"));
}

#[tokio::test]
async fn any_certificate_is_accepted_and_plain_http_is_detected() {
    let made = rcgen::generate_simple_self_signed(["unrelated".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();

    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(settings));

    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(acceptor.accept(stream).await.unwrap(), &|_: &str| {
            ok("secret")
        })
        .await;
    });

    let answer = get(&target(port, r#","scheme":"HTTPS""#), None)
        .await
        .unwrap();
    assert_eq!(answer.body, "secret");

    let (port, _server) = plain_server().await;
    let plain = get(&target(port, r#","scheme":"HTTPS""#), None)
        .await
        .unwrap_err();
    assert!(plain.is_plain_http(), "{plain}");
}

/// A server that answers anything but a GET with a plain HTTP 400, as most servers do.
pub(crate) async fn plain_server() -> (u16, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();

    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut some = [0; 8];
            let read = stream.read(&mut some).await.unwrap_or(0);
            let response = if some[..read].starts_with(b"GET ") {
                ok("plain")
            } else {
                refusal()
            };
            stream
                .write_all(response.as_bytes())
                .await
                .unwrap_or_default();
        }
    });

    (port, tasks)
}

fn refusal() -> String {
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_owned()
}

#[test]
fn ports_are_numbers_or_names() {
    let container: Container =
        serde_json::from_str(r#"{"name":"c","ports":[{"name":"web","containerPort":8080}]}"#)
            .unwrap();
    let check = |port: IntOrString, expected: Result<u16, &str>| {
        let found = resolve_port(&port, &container).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{port:?}");
    };

    check(IntOrString::Int(80), Ok(80));
    check(IntOrString::Int(0), Err("invalid port number: 0"));
    check(IntOrString::Int(65536), Err("invalid port number: 65536"));
    check(IntOrString::String("web".to_owned()), Ok(8080));
    check(IntOrString::String("81".to_owned()), Ok(81));
    check(
        IntOrString::String("dns".to_owned()),
        Err("strconv.Atoi: parsing \"dns\": invalid syntax"),
    );
}
