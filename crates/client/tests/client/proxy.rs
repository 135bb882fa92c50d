//! Requests through a proxy: the client opens a tunnel and speaks TLS with the server through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coracle_client::{Client, ConfigError, Resource, Tasks};
use coracle_testkit::objects::config_map;
use coracle_testkit::{Cluster, REAL};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// A test proxy, and how many tunnels it has opened.
struct Proxy {
    address: String,
    tunnels: Arc<AtomicUsize>,
    _tasks: Tasks,
}

async fn proxy(answer: fn(TcpStream) -> tunnel::Answered) -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tunnels, tasks) = (Arc::new(AtomicUsize::new(0)), Tasks::new());

    let (counted, own) = (tunnels.clone(), Tasks::new());
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let counted = counted.clone();
            own.spawn(async move {
                if let Some((mut client, target)) = answer(stream).await {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let mut server = TcpStream::connect(target).await.unwrap();
                    drop(copy_bidirectional(&mut client, &mut server).await);
                }
            });
        }
    });

    Proxy {
        address,
        tunnels,
        _tasks: tasks,
    }
}

mod tunnel {
    use std::pin::Pin;

    use tokio::net::TcpStream;

    /// The tunnel's stream and target; `None`: it was rejected.
    pub(crate) type Answered = Pin<Box<dyn Future<Output = Option<(TcpStream, String)>> + Send>>;
}

/// `CONNECT`, with the right password.
fn http(mut stream: TcpStream) -> tunnel::Answered {
    Box::pin(async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }

        let head = String::from_utf8(head).unwrap();
        let target = head
            .strip_prefix("CONNECT ")
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_string();

        // `me:secret`
        if !head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n") {
            stream
                .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                .await
                .unwrap();
            return None;
        }

        stream
            .write_all(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
            .await
            .unwrap();

        Some((stream, target))
    })
}

fn socks(mut stream: TcpStream) -> tunnel::Answered {
    Box::pin(async move {
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head[..4], [5, 1, 0, 3]);

        let mut host = vec![0; usize::from(head[4])];
        stream.read_exact(&mut host).await.unwrap();
        let port = stream.read_u16().await.unwrap();
        stream
            .write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 1])
            .await
            .unwrap();

        Some((
            stream,
            format!("{}:{port}", String::from_utf8(host).unwrap()),
        ))
    })
}

#[tokio::test]
async fn a_client_reaches_the_server_through_its_proxy() {
    let cluster = Cluster::start_with_https().await;
    let (by_http, by_socks) = (proxy(http).await, proxy(socks).await);
    let urls = [
        (format!("http://me:secret@{}", by_http.address), &by_http),
        (format!("socks5://{}", by_socks.address), &by_socks),
    ];

    for (index, (url, proxy)) in urls.into_iter().enumerate() {
        let mut config = cluster.https();
        config.proxy = Some(url.clone());
        let client = Client::connect(config, REAL).await.unwrap();
        let maps = client
            .resource(&Resource::builtin("", "v1", "configmaps"))
            .namespace("default");

        let name = format!("made-{index}");
        maps.create(&config_map(&name, "1")).await.unwrap();
        assert_eq!(maps.get(&name).await.unwrap().meta().name(), name);
        assert_eq!(proxy.tunnels.load(Ordering::Relaxed), 1, "{url}");
    }

    cluster.stop().await;
}

#[tokio::test]
async fn proxy_errors_are_reported_and_an_unknown_proxy_scheme_is_invalid() {
    let cluster = Cluster::start_with_https().await;
    let refusing = proxy(http).await;
    let mut config = cluster.https();
    config.proxy = Some(format!("http://{}", refusing.address));
    let client = Client::connect(config.clone(), REAL).await.unwrap();
    let error = client.get("/version").await.unwrap_err();
    assert!(error.is_unreachable());

    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        text += &error.to_string();
        cause = error.source();
    }

    assert!(text.contains("407 Proxy Authentication Required"), "{text}");

    config.proxy = Some("gopher://proxy".to_string());
    assert!(matches!(
        Client::connect(config, REAL).await,
        Err(ConfigError::Proxy(_))
    ));

    cluster.stop().await;
}
