//! Probes of servers on loopback, with a simulated container state.

use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use coracle_testkit::REAL;
use k8s_openapi::api::core::v1::Container;
use tokio::net::TcpListener;

use super::*;
use crate::http_get::tests::{ok, server};
use crate::observed::{ObservedContainer, Sandbox};

/// An unreachable runtime, for exec probes that fail.
fn no_runtime() -> Arc<dyn Runtime> {
    Arc::new(coracle_cri::Client::new(Path::new("/no/such/socket")).unwrap())
}

async fn probed(probe: &str) -> Outcome {
    let prober = Prober {
        runtime: no_runtime(),
        container: Container {
            name: "c".to_owned(),
            ..Container::default()
        },
        container_id: "id".to_owned(),
        pod: "p_ns(u)".to_owned(),
        address: "127.0.0.1".to_owned(),
    };
    prober.probe(&serde_json::from_str(probe).unwrap()).await
}

fn failed(text: impl Into<String>) -> Outcome {
    Outcome::Failed(text.into())
}

#[tokio::test]
async fn an_http_probe_follows_the_response_status() {
    let (port, _server) = server(|head| match head.split(' ').nth(1).unwrap() {
        "/ok" => ok("fine"),
        "/elsewhere" => {
            "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 3\r\n\r\nbye"
                .to_owned()
        }
        "/half" => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_owned(),
        _ => "HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nsecret".to_owned(),
    })
    .await;

    let http = async |path: &str| {
        probed(&format!(
            r#"{{"httpGet":{{"port":{port},"path":"{path}"}}}}"#
        ))
        .await
    };
    assert_eq!(http("/ok").await, Outcome::Passed);

    assert_eq!(
        http("/broken").await,
        failed("HTTP probe failed with statuscode: 500")
    );

    let warned = "Probe terminated redirects, Response body: bye".to_owned();
    assert_eq!(http("/elsewhere").await, Outcome::Warned(warned));
    assert!(matches!(
        http("/half").await,
        Outcome::Error {
            state: "failure",
            ..
        }
    ));

    let named = probed(r#"{"httpGet":{"port":"web"}}"#).await;
    let reason = "strconv.Atoi: parsing \"web\": invalid syntax".to_owned();
    assert_eq!(
        named,
        Outcome::Error {
            state: "unknown",
            reason
        }
    );
}

#[tokio::test]
async fn a_tcp_probe_passes_if_it_connects() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tcp = format!(r#"{{"tcpSocket":{{"port":{port}}}}}"#);
    assert_eq!(probed(&tcp).await, Outcome::Passed);
    drop(listener);
    assert_eq!(
        probed(&tcp).await,
        failed(format!(
            "dial tcp 127.0.0.1:{port}: connect: connection refused"
        ))
    );
}

#[tokio::test]
async fn a_grpc_probe_follows_the_health_status() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let grpc = format!(r#"{{"grpc":{{"port":{port}}},"timeoutSeconds":1}}"#);
    let text = format!(
        "timeout: failed to connect service \"127.0.0.1:{port}\" within 1s: context deadline exceeded"
    );
    drop(listener);
    assert_eq!(probed(&grpc).await, failed(text));

    let (port, _server) = health_server().await;
    let grpc = async |service: &str| {
        probed(&format!(
            r#"{{"grpc":{{"port":{port},"service":"{service}"}}}}"#
        ))
        .await
    };
    assert_eq!(grpc("well").await, Outcome::Passed);

    assert_eq!(
        grpc("ill").await,
        failed("service unhealthy (responded with \"NOT_SERVING\")")
    );

    let text = "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service";
    assert_eq!(grpc("other").await, failed(text));

    let text = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): no";
    assert_eq!(grpc("none").await, failed(text));
}

/// A minimal HTTP/2 server of the gRPC health service.
async fn health_server() -> (u16, tokio::task::JoinSet<()>) {
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();

    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = service_fn(async |request: http::Request<hyper::body::Incoming>| {
                assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");

                let body = request.into_body().collect().await.unwrap().to_bytes();

                // The name follows a frame header of five bytes, a tag and a length.
                let name = String::from_utf8_lossy(body.get(7..).unwrap_or_default()).into_owned();
                let answer = http::Response::builder().header("content-type", "application/grpc");
                let body = |bytes: Vec<u8>, last: &[(&'static str, &'static str)]| {
                    let last = last.iter().map(|(name, value)| {
                        (
                            http::HeaderName::from_static(name),
                            http::HeaderValue::from_static(value),
                        )
                    });
                    let last: http::HeaderMap = last.collect();
                    Full::new(Bytes::from(bytes)).with_trailers(std::future::ready(Some(Ok(last))))
                };

                let status =
                    |status: u8| body(vec![0, 0, 0, 0, 2, 8, status], &[("grpc-status", "0")]);

                answer.body(match name.as_str() {
                    "well" => status(1),
                    "ill" => status(2),
                    "none" => body(Vec::new(), &[("grpc-status", "12"), ("grpc-message", "no")]),
                    _ => body(
                        Vec::new(),
                        &[("grpc-status", "5"), ("grpc-message", "unknown service")],
                    ),
                })
            });

            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::select! {
                served = connection.serve_connection(TokioIo::new(stream), answer) => drop(served),
                () = tokio::time::sleep(Duration::from_secs(30)) => {}
            }
        }
    });

    (port, tasks)
}

#[tokio::test]
async fn a_probe_that_cannot_be_executed_has_an_error() {
    let unasked = probed(r#"{"exec":{"command":["true"]}}"#).await;
    assert!(
        matches!(
            unasked,
            Outcome::Error {
                state: "unknown",
                ..
            }
        ),
        "{unasked:?}"
    );

    let unasked = probed("{}").await;
    let reason = "missing probe handler for p_ns(u):c".to_owned();
    assert_eq!(
        unasked,
        Outcome::Error {
            state: "unknown",
            reason
        }
    );
}

/// The probe manager of a kubelet that started at `begun`, and a pod whose container has these
/// probes.
fn setting(probes: &str, begun: Timestamp) -> (ProbeManager, ProbeResults, Arc<Pod>) {
    let (results, heard) = mpsc::channel(WAITING);
    let shared = Shared {
        runtime: no_runtime(),
        events: Recorder::silent(REAL),
        metrics: ProbeMetrics::new(&coracle_metrics::Registry::default()),
        world: REAL,
        host_address: "127.0.0.1".to_owned(),
        begun,
        results,
        pods: Mutex::default(),
    };

    let pod = format!(
        r#"{{"metadata":{{"name":"p","namespace":"ns","uid":"u"}},"spec":{{"containers":[{{"name":"c"{probes}}}]}},
            "status":{{"containerStatuses":[{{"name":"c","containerID":"coracle://one","ready":true,"started":true,
              "image":"","imageID":"","restartCount":0}}]}}}}"#
    );
    let pod = Arc::new(serde_json::from_str(&pod).unwrap());

    (
        ProbeManager {
            shared: Arc::new(shared),
        },
        heard,
        pod,
    )
}

fn running(id: &str, since: Timestamp) -> Observed {
    let sandbox = Sandbox {
        id: "s".to_owned(),
        attempt: 0,
        ready: true,
        created: since,
        addresses: vec!["127.0.0.1".to_owned()],
        host_network: false,
    };

    let seen = ObservedContainer {
        id: id.to_owned(),
        name: "c".to_owned(),
        attempt: 0,
        state: State::Running { since },
        created: since,
        image: String::new(),
        image_id: String::new(),
        image_ref: String::new(),
        log_path: String::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        user: None,
    };

    Observed {
        sandboxes: vec![sandbox],
        containers: vec![seen],
    }
}

fn probe(kind: &str, port: u16, more: &str) -> String {
    format!(
        r#","{kind}Probe":{{"httpGet":{{"port":{port},"path":"/{kind}"}},"periodSeconds":1{more}}}"#
    )
}

#[tokio::test]
async fn the_startup_probe_runs_before_the_others() {
    static ANSWER: AtomicU16 = AtomicU16::new(503);

    let (port, _server) = server(|head| {
        let started = ANSWER.load(Ordering::Relaxed) == 200;
        assert!(started || head.contains("/startup"), "{head}");
        format!(
            "HTTP/1.1 {} X\r\nContent-Length: 0\r\n\r\n",
            ANSWER.load(Ordering::Relaxed)
        )
    })
    .await;

    let spec = probe("startup", port, r#","failureThreshold":100"#)
        + &probe("liveness", port, "")
        + &probe("readiness", port, "");
    let now = REAL.now();
    let (probes, mut heard, pod) = setting(&spec, now);
    probes.follow(&pod, &running("two", now));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!probes.is_started("u", "c") && !probes.is_ready("u", "c"));
    assert_eq!(probes.shared.lock()["u"].instances["c"].due(false), []);

    ANSWER.store(200, Ordering::Relaxed);
    let result = |kind, passed| ProbeResult {
        uid: "u".into(),
        container: "c".into(),
        container_id: "two".into(),
        kind,
        passed,
    };

    assert_eq!(
        heard.recv().await.unwrap(),
        result(ProbeKind::Startup, true)
    );

    assert!(probes.is_started("u", "c"));
    assert_eq!(
        heard.recv().await.unwrap(),
        result(ProbeKind::Readiness, true)
    );

    assert!(probes.is_ready("u", "c"));
    assert_eq!(probes.has_failed("u", "two"), None);

    probes.forget("u");
    assert!(heard.try_recv().is_err(), "liveness was never in doubt");
}

#[tokio::test]
async fn a_failed_liveness_probe_is_reported_once_per_instance() {
    let (port, _server) =
        server(|_| "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let spec = probe("liveness", port, r#","failureThreshold":1"#);
    let now = REAL.now();
    let (probes, mut heard, pod) = setting(&spec, now);
    probes.follow(&pod, &running("two", now));

    let result = heard.recv().await.unwrap();
    assert_eq!((result.kind, result.passed), (ProbeKind::Liveness, false));
    assert_eq!(probes.has_failed("u", "two"), Some(ProbeKind::Liveness));
    assert_eq!(probes.has_failed("u", "one"), None);
    assert!(probes.is_ready("u", "c"), "it has no readiness probe");

    probes.follow(&pod, &running("three", now));
    assert_eq!(probes.has_failed("u", "three"), None);
    assert_eq!(heard.recv().await.unwrap().container_id, "three");

    probes.end("u");
    assert_eq!(
        probes.has_failed("u", "three"),
        None,
        "a pod that ends is not killed by probes"
    );
}

#[tokio::test]
async fn after_a_restart_results_come_from_the_pod_status() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let spec = probe("startup", port, "") + &probe("readiness", port, "");
    let now = REAL.now();
    let before = now.plus_seconds(-60);

    let check = |id: &str, since: Timestamp, expected: (bool, bool)| {
        let (probes, _heard, pod) = setting(&spec, now);
        probes.follow(&pod, &running(id, since));
        assert_eq!(
            (probes.is_started("u", "c"), probes.is_ready("u", "c")),
            expected,
            "{id}"
        );
    };

    check("one", before, (true, true));
    check("other", before, (false, false));
    check("one", now, (true, true));
}

#[tokio::test]
async fn containers_that_do_not_run_are_not_probed() {
    let spec = probe("readiness", 1, "");
    let now = REAL.now();
    let (probes, _heard, pod) = setting(&spec, now);
    let mut observed = running("two", now);
    observed.containers[0].state = State::Created;
    probes.follow(&pod, &observed);
    assert!(probes.shared.lock()["u"].instances.is_empty());

    probes.follow(&pod, &running("two", now));
    assert!(!probes.is_ready("u", "c"));

    observed.containers[0].state = State::Exited {
        started: now,
        finished: now,
        code: 0,
        reason: String::new(),
        message: String::new(),
    };

    probes.follow(&pod, &observed);
    assert_eq!(
        probes.shared.lock()["u"].instances["c"].due(false),
        [ProbeKind::Readiness],
        "its task has ended"
    );
}

#[tokio::test]
async fn the_first_probe_waits_for_the_initial_delay() {
    let spec = probe("readiness", 1, r#","initialDelaySeconds":30"#);
    let now = REAL.now();
    let (probes, _heard, pod) = setting(&spec, now.plus_seconds(-3600));
    probes.follow(&pod, &running("two", now.plus_seconds(-10)));
    let delay = {
        let pods = probes.shared.lock();
        probes
            .shared
            .delay(&pods["u"].instances["c"], ProbeKind::Readiness)
    };
    assert!((19..=20).contains(&delay.as_secs()), "{delay:?}");
}
