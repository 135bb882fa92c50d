//! Requests, answers, watches and upgraded connections.

use std::time::Duration;

use bytes::Bytes;
use coracle_client::transport::{Body, Dialing, Https};
use coracle_testkit::{Cluster, Extension, REAL, Reply};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{ask, register, serving};

/// A request over HTTPS, whose connection may be upgraded; it lasts as long as its transport.
async fn over_https(
    cluster: &Cluster,
    path: &str,
    headers: &[(&str, &str)],
) -> (Https, http::Response<Body>) {
    let dialing = Dialing {
        http1_only: true,
        ..Dialing::default()
    };
    let https = Https::dialing(cluster.https(), REAL, dialing)
        .await
        .unwrap();

    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }

    let body = Empty::<Bytes>::new().map_err(|never| match never {});
    let request = request.body(body.boxed_unsync()).unwrap();
    let answer = https.forward(request).await.unwrap();
    (https, answer)
}

#[tokio::test]
async fn a_request_reaches_its_server_with_its_user_and_nothing_else_of_the_connection() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let handler = serving(|asked| {
        let headers = vec![
            ("x-own", "1".to_owned()),
            ("access-control-allow-origin", "*".to_owned()),
            ("audit-id", "forged".to_owned()),
        ];
        Reply::Text(201, headers, format!("{} {}", asked.method, asked.path))
    });
    let extension = Extension::start(&authority, handler).await;
    register(&cluster, &extension).await;
    extension.take("/");

    let path = "/apis/a.example/v1/namespaces/default/boats/a%2Fb?x=%2F&y=1";
    let headers = [
        ("x-remote-user", "somebody"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-scopes", "all"),
        ("authorization", "Bearer x"),
        ("connection", "close, x-once, x-remote-user"),
        ("x-once", "1"),
        ("audit-id", "an-id"),
        ("impersonate-user", "jane"),
        ("impersonate-group", "sailors"),
        ("impersonate-extra-acme.com%2Fproject", "one"),
    ];
    let refused = ask(&cluster, "POST", path, &headers).await;
    assert_eq!(refused.code(), 403, "{}", refused.text());
    assert!(extension.take("/").is_empty(), "jane may not do this");

    let answered = ask(&cluster, "POST", path, &headers[..7]).await;
    assert_eq!(answered.code(), 201);
    assert_eq!(
        answered.text(),
        "POST /apis/a.example/v1/namespaces/default/boats/a/b?x=%2F&y=1"
    );
    assert_eq!(answered.head.headers["x-own"], "1");
    assert_eq!(answered.head.headers["audit-id"], "an-id");
    assert!(
        !answered
            .head
            .headers
            .contains_key("access-control-allow-origin")
    );

    let asked = extension.take("/apis/a.example/v1/namespaces");
    assert_eq!(asked.len(), 1);
    for (name, expected) in [
        ("x-remote-user", "kubernetes-admin"),
        ("x-remote-group", "system:masters,system:authenticated"),
        ("x-remote-extra-scopes", ""),
        ("authorization", ""),
        ("connection", ""),
        ("x-once", ""),
        ("audit-id", "an-id"),
    ] {
        assert_eq!(asked[0].header(name), expected, "{name}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_watch_arrives_line_by_line_and_an_endless_answer_ends_in_time() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let handler = serving(|asked| match asked.path.contains("watch=1") {
        true => Reply::Lines(vec!["{\"type\":\"ADDED\"}".to_owned()]),
        false => Reply::Trickle,
    });
    let extension = Extension::start(&authority, handler).await;
    register(&cluster, &extension).await;

    let boats = "/apis/a.example/v1/boats";
    let (_open, mut watch) = over_https(&cluster, &format!("{boats}?watch=1"), &[]).await;
    assert_eq!(watch.status(), 200);
    let first = watch.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "{\"type\":\"ADDED\"}\n");

    // It was there before, and is there still when the other is long over.
    let (_open_too, endless) = over_https(&cluster, &format!("{boats}?timeout=1s"), &[]).await;
    assert_eq!(endless.status(), 200);
    let ended = tokio::time::timeout(Duration::from_secs(60), endless.into_body().collect());
    assert!(ended.await.unwrap().is_err(), "it breaks off");
    let more = tokio::time::timeout(Duration::from_millis(10), watch.frame());
    assert!(more.await.is_err(), "the watch goes on");
    cluster.stop().await;
}

#[tokio::test]
async fn a_connection_can_be_upgraded_but_not_to_http2() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let extension = Extension::start(&authority, serving(|_| Reply::Echo("SPDY/3.1"))).await;
    register(&cluster, &extension).await;

    let path = "/apis/a.example/v1/namespaces/default/boats/b/row";
    let headers = [
        ("connection", "Upgrade, x-remote-user"),
        ("upgrade", "SPDY/3.1"),
    ];
    let (_open, answer) = over_https(&cluster, path, &headers).await;
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let asked = extension.take(path);
    assert_eq!(asked[0].header("x-remote-user"), "kubernetes-admin");
    assert_eq!(asked[0].header("connection"), "Upgrade");

    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    stream.write_all(b"row, row").await.unwrap();
    let mut back = [0; 8];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"row, row");
    drop(stream);

    let headers = [
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", "h2c"),
    ];
    let (_, refused) = over_https(&cluster, path, &headers).await;
    assert_eq!(refused.status(), 400);
    assert!(extension.take(path).is_empty());

    // The server changes the protocol although the client did not ask.
    let (_, refused) = over_https(&cluster, path, &[]).await;
    assert_eq!(refused.status(), 503);
    cluster.stop().await;
}
