use std::path::Path;

use coracle_testkit::REAL;
use tokio::net::TcpListener;

use super::*;
use crate::http_get::tests::{plain_server, server};

async fn run(hook: &str, pod_ips: &[String]) -> Result<(), String> {
    // An unreachable runtime: commands fail with its error.
    let runtime = Arc::new(coracle_cri::Client::new(Path::new("/no/such/socket")).unwrap());
    let hooks = HookRunner {
        runtime,
        events: Recorder::silent(REAL),
    };

    let pod: Pod =
        serde_json::from_str(r#"{"metadata":{"name":"p","namespace":"ns","uid":"u"}}"#).unwrap();
    let container: Container = serde_json::from_str(&format!(
        r#"{{"name":"c","lifecycle":{{"postStart":{hook}}}}}"#
    ))
    .unwrap();

    hooks
        .run_pre_stop(&pod, &container, "id", pod_ips)
        .await
        .unwrap();

    hooks
        .run_post_start(&pod, &container, "id", pod_ips)
        .await
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_hook_over_http_succeeds_whatever_is_answered() {
    let (port, _server) = server(|head| {
        assert!(
            head.to_lowercase()
                .contains("user-agent: kube-lifecycle/1.36"),
            "{head}"
        );
        "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n".to_owned()
    })
    .await;
    let hook = format!(r#"{{"httpGet":{{"port":{port},"path":"/hook"}}}}"#);
    run(&hook, &["127.0.0.1".to_owned()]).await.unwrap();

    let (port, _server) = plain_server().await;
    let hook = format!(r#"{{"httpGet":{{"port":{port},"scheme":"HTTPS","host":"127.0.0.1"}}}}"#);
    run(&hook, &[]).await.unwrap();
}

#[tokio::test]
async fn a_failed_hook_has_upstreams_message() {
    let unused = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);

    let hook = format!(r#"{{"httpGet":{{"port":{port},"path":"/hook"}}}}"#);
    assert_eq!(
        run(&hook, &["127.0.0.1".to_owned()]).await.unwrap_err(),
        format!(
            "HTTP lifecycle hook (/hook) for Container \"c\" in Pod \"p_ns(u)\" failed - error: \
             Get \"http://127.0.0.1:{port}/hook\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
    );

    let nowhere = run(&hook, &[]).await.unwrap_err();
    assert!(
        nowhere.ends_with("error: failed to find networking container"),
        "{nowhere}"
    );

    let command = run(r#"{"exec":{"command":["sh","-c","x"]}}"#, &[])
        .await
        .unwrap_err();
    let begins =
        "Exec lifecycle hook ([sh -c x]) for Container \"c\" in Pod \"p_ns(u)\" failed - error: ";
    assert!(
        command.starts_with(begins) && command.ends_with(", message: \"\""),
        "{command}"
    );

    let none = run(r#"{"tcpSocket":{"port":80}}"#, &[]).await.unwrap_err();
    assert!(
        none.starts_with("Cannot run handler: invalid handler: "),
        "{none}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sleep_hook_waits() {
    let begun = tokio::time::Instant::now();
    run(r#"{"sleep":{"seconds":7}}"#, &[]).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 7);
}
