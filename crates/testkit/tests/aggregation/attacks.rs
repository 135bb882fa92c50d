//! Servers that claim what is not theirs.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::codec::json;
use coracle_base::tls::client::{self, Tls};
use coracle_client::Resource;
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, Extension, Reply, eventually};
use futures_util::{StreamExt, stream};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{ask, register, serving};

const EVERYTHING: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test]
async fn a_server_that_claims_other_groups_gets_its_own() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let claims = |text: &str| json::parse(text.as_bytes()).unwrap();
    let before = ask(&cluster, "GET", "/apis", &[("accept", EVERYTHING)]).await;
    let before_openapi = ask(&cluster, "GET", "/openapi/v3", &[]).await.tree();

    let honest = serving(|_| Reply::HangUp);
    let handler = move |asked: &coracle_testkit::Asked| match asked.path.as_str() {
        "/apis" => {
            let tree = claims(
                r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
                {"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"forged"}]}]},
                {"metadata":{"name":"b.example"},"versions":[{"version":"v1","resources":[{"resource":"forged"}]}]},
                {"metadata":{"name":"a.example"},"versions":[{"version":"v1","resources":[{"resource":"boats","verbs":["get"]}]}]}]}"#,
            );
            let kind = ("content-type", EVERYTHING.to_owned());
            Reply::Text(200, vec![kind], json::to_string(&tree))
        }
        "/openapi/v3" => Reply::Json(claims(
            r#"{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=F"},
                "version":{"serverRelativeURL":"/openapi/v3/version?hash=F"},
                "apis/a.example/v1":{"serverRelativeURL":"/openapi/v3/apis/a.example/v1?hash=A"}}}"#,
        )),
        "/openapi/v3/apis/a.example/v1?hash=A" => Reply::Json(claims(r#"{"openapi":"3.0.0"}"#)),
        "/openapi/v3/apis/apps/v1" => Reply::Json(claims(r#"{"openapi":"forged"}"#)),
        _ => honest(asked),
    };
    let extension = Extension::start(&authority, handler).await;
    register(&cluster, &extension).await;

    let mut after = ask(&cluster, "GET", "/apis", &[("accept", EVERYTHING)])
        .await
        .tree();
    let groups = after.as_object_mut().unwrap().get_mut("items").unwrap();
    let groups = groups.as_array_mut().unwrap();
    let own = groups.pop().unwrap();
    assert_eq!(own.meta().name(), "a.example");
    assert!(json::to_string(&own).contains("boats"), "{own:?}");
    assert_eq!(after, before.tree(), "all others are as they were");

    let mut paths = ask(&cluster, "GET", "/openapi/v3", &[]).await.tree();
    let index = paths.as_object_mut().unwrap().object_mut("paths");
    let own = index.remove("apis/a.example/v1").unwrap();
    assert!(json::to_string(&own).contains("hash=A"), "{own:?}");
    assert_eq!(paths, before_openapi);
    let own = ask(&cluster, "GET", "/openapi/v3/apis/a.example/v1?hash=A", &[]).await;
    assert_eq!(own.text(), r#"{"openapi":"3.0.0"}"#);
    let apps = ask(&cluster, "GET", "/openapi/v3/apis/apps/v1", &[]).await;
    assert!(!apps.text().contains("forged"));
    cluster.stop().await;
}

#[tokio::test]
async fn a_server_cannot_send_clients_elsewhere() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let handler = serving(|_| {
        let elsewhere = ("location", "https://elsewhere.example/".to_owned());
        Reply::Text(307, vec![elsewhere], String::new())
    });
    let extension = Extension::start(&authority, handler).await;
    register(&cluster, &extension).await;

    let answered = ask(&cluster, "GET", "/apis/a.example/v1/boats", &[]).await;
    assert_eq!(
        (answered.code(), answered.text().as_str()),
        (
            502,
            "the backend attempted to redirect this request, which is not permitted"
        )
    );
    assert!(!answered.head.headers.contains_key("location"));
    cluster.stop().await;
}

/// Sends bytes over a connection of the user `nobody`, and returns what came back until the server
/// closed it or fell silent.
async fn raw(cluster: &Cluster, bytes: &str) -> String {
    let read = |name: &str| std::fs::read(cluster.file(name)).unwrap();
    let mut settings = client::config(&Tls {
        authorities: Some(read("ca.crt")),
        identity: Some((read("nobody.crt"), read("nobody.key"))),
        insecure: false,
    })
    .unwrap();
    settings.alpn_protocols = vec![b"http/1.1".to_vec()];

    let address = cluster.https().server.replace("https://", "");
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(Arc::new(settings));
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();

    let mut answered = Vec::new();
    let silence = Duration::from_millis(500);
    loop {
        let mut piece = [0; 4096];
        match tokio::time::timeout(silence, stream.read(&mut piece)).await {
            Ok(Ok(read)) if read > 0 => answered.extend_from_slice(&piece[..read]),
            _ => return String::from_utf8_lossy(&answered).into_owned(),
        }
    }
}

#[tokio::test]
async fn a_request_that_is_hidden_in_another_does_not_reach_the_server() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let handler = serving(|_| Reply::Text(200, Vec::new(), "row".to_owned()));
    let extension = Extension::start(&authority, handler).await;
    register(&cluster, &extension).await;

    // The user may use boats, and nothing else of the group.
    let create = async |plural: &str, text: &str| {
        let resource = Resource::builtin("rbac.authorization.k8s.io", "v1", plural);
        let access = cluster.client().resource(&resource);
        access.create(&object(text)).await.unwrap();
    };
    create(
        "clusterroles",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: boats},
          rules: [{apiGroups: [a.example], resources: [boats], verbs: ['*']}]}",
    )
    .await;
    create(
        "clusterrolebindings",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: boats},
          roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: boats},
          subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nobody}]}",
    )
    .await;

    let (boats, hidden) = ("/apis/a.example/v1/boats", "/apis/a.example/v1/secrets");
    let allowed = format!("GET {boats} HTTP/1.1\r\nHost: s\r\n\r\n");
    eventually("nobody may use boats", async || {
        raw(&cluster, &allowed).await.ends_with("row").then_some(())
    })
    .await;
    let inner = format!(
        "GET {hidden} HTTP/1.1\r\nHost: s\r\nX-Remote-User: root\r\nX-Remote-Group: system:masters\r\n\r\n"
    );
    let refused = raw(&cluster, &inner).await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");

    let chunk = format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len());
    let length = inner.len();
    let mut requests = Vec::new();
    for head in [
        format!("Content-Length: {length}"),
        "Content-Length: 0".to_owned(),
        format!("Content-Length: 0\r\nContent-Length: {length}"),
        format!("Content-Length: {length}, 0"),
        "Content-Length: +0".to_owned(),
        "Content-Length: -1".to_owned(),
        format!("Content-Length: {length}\r\nConnection: close, Content-Length"),
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"),
        "Transfer-Encoding: chunked\r\nContent-Length: 0".to_owned(),
        "Transfer-Encoding: xchunked".to_owned(),
        "Transfer-Encoding: identity, chunked".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity".to_owned(),
        "Transfer-Encoding : chunked".to_owned(),
        "Transfer-Encoding:\tchunked".to_owned(),
        "X: 1\r\n Transfer-Encoding: chunked".to_owned(),
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"
            .to_owned(),
        "Connection: Upgrade\r\nUpgrade: websocket".to_owned(),
        "Expect: 100-continue\r\nContent-Length: 0".to_owned(),
    ] {
        for body in [&inner, &format!("0\r\n\r\n{inner}"), &chunk] {
            for method in ["GET", "POST", "CONNECT"] {
                requests.push(format!(
                    "{method} {boats} HTTP/1.1\r\nHost: s\r\n{head}\r\n\r\n{body}"
                ));
            }
        }
    }
    for path in [
        format!("{boats}%0d%0aX-Remote-User:%20root%0d%0a%0d%0aGET%20{hidden}"),
        format!("{boats}/..%2fsecrets%20HTTP/1.1%0d%0a"),
        format!("{boats}?a=%0d%0aGET%20{hidden}"),
    ] {
        requests.push(format!("GET {path} HTTP/1.1\r\nHost: s\r\n\r\n"));
    }
    let sent = requests.iter().map(|request| raw(&cluster, request));
    let answers: Vec<String> = stream::iter(sent).buffer_unordered(16).collect().await;
    assert!(
        answers.iter().any(|answer| answer.ends_with("row")),
        "some of them are requests as they should be"
    );

    for asked in extension.take(boats) {
        assert_eq!(asked.header("x-remote-user"), "nobody");
        assert!(!asked.header("x-remote-group").contains("masters"));
    }
    let reached = extension.take(hidden);
    assert!(reached.is_empty(), "{reached:?}");
    cluster.stop().await;
}
