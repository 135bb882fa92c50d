use std::path::PathBuf;
use std::time::Duration;

use coracle_settings::{Element as _, Request};
use coracle_store::etcd_server::Listen;

use super::arguments;
use super::complete::complete;
use super::listen_url::ListenUrl;
use super::options::Options;
use super::program::PROGRAM;

fn options(given: &[&str]) -> Result<Options, String> {
    let given: Vec<String> = given.iter().map(ToString::to_string).collect();
    let given =
        arguments::complete(&PROGRAM, &given, |_| None).map_err(|error| error.to_string())?;
    match PROGRAM.read(&given, |_| unreachable!("there is no file")) {
        Ok(Request::Run { options, .. }) => Ok(options),
        Ok(_) => panic!("not a run"),
        Err(mistakes) => Err(mistakes.to_string()),
    }
}

fn refusal(given: &[&str]) -> String {
    match options(given).map(|options| complete(&options).map(drop)) {
        Ok(Ok(())) => panic!("{given:?} is accepted"),
        Ok(Err(error)) => error.to_string(),
        Err(text) => text,
    }
}

#[test]
fn the_command_line_of_kubeadm_is_accepted() {
    let peers = "https://192.0.2.1:2380";
    let settings = complete(
        &options(&[
            "--advertise-client-urls=https://192.0.2.1:2379",
            "--client-cert-auth=true",
            "--data-dir=/var/lib/etcd",
            "--feature-gates=InitialCorruptCheck=true",
            &format!("--initial-advertise-peer-urls={peers}"),
            &format!("--initial-cluster=one={peers}"),
            "--listen-client-urls=http://127.0.0.1:2379,http://192.0.2.1:2379",
            "--listen-metrics-urls=http://127.0.0.1:2381",
            &format!("--listen-peer-urls={peers}"),
            "--name=one",
            "--peer-client-cert-auth=true",
            "--snapshot-count=10000",
            "--trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt",
            "--watch-progress-notify-interval=5s",
        ])
        .unwrap(),
    )
    .unwrap();

    assert_eq!(settings.data_dir, PathBuf::from("/var/lib/etcd"));
    assert!(settings.syncs);
    let servers: Vec<_> = settings.servers.iter().collect();
    assert_eq!(servers.len(), 3);
    for server in &servers {
        assert_eq!(server.name, "one");
        assert_eq!(server.client_urls, ["https://192.0.2.1:2379"]);
        assert_eq!(server.peer_urls, [peers]);
        assert_eq!(server.progress_every, Duration::from_secs(5));
    }
    let alone: Vec<bool> = servers.iter().map(|server| server.pages_only).collect();
    assert_eq!(alone, [false, false, true]);
}

#[test]
fn one_dash_is_as_good_as_two() {
    let options = options(&["-data-dir", "/tmp/d", "-unsafe-no-fsync"]).unwrap();
    assert_eq!(options.data_dir, Some(PathBuf::from("/tmp/d")));
    assert!(options.unsafe_no_fsync);
}

#[test]
fn variables_set_what_the_command_line_does_not() {
    let variable = |key: &str| match key {
        "ETCD_NAME" => Some("one".to_owned()),
        "ETCD_DATA_DIR" => Some("/tmp/d".to_owned()),
        "ETCD_WAL_DIR" => Some(String::new()),
        _ => None,
    };
    let check = |given: &[&str]| {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        arguments::complete(&PROGRAM, &given, variable).map_err(|error| error.to_string())
    };

    assert_eq!(
        check(&["--log-level=warn"]).unwrap(),
        ["--data-dir=/tmp/d", "--name=one", "--log-level=warn"]
    );
    assert_eq!(
        check(&["-name", "two"]).unwrap_err(),
        "conflicting environment variable ETCD_NAME is shadowed by corresponding command-line flag --name (either unset \
         environment variable or disable flag)"
    );
}

#[test]
fn urls_to_listen_on_are_addresses_or_sockets() {
    let check = |text: &str, expected: Result<(Listen, bool), &str>| {
        let found = ListenUrl::parse(text).map(|url| (url.listen, url.is_secure));
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    };
    let tcp = |address: &str| Listen::Tcp(address.parse().unwrap());

    check("http://localhost:0", Ok((tcp("127.0.0.1:0"), false)));
    check("https://[::1]:2379", Ok((tcp("[::1]:2379"), true)));
    check("http://127.0.0.1:2379/", Ok((tcp("127.0.0.1:2379"), false)));
    check(
        "unix:///run/e.sock",
        Ok((Listen::Unix("/run/e.sock".into()), false)),
    );

    check(
        "http://example.org:2379",
        Err("expected IP in URL for binding (http://example.org:2379)"),
    );
    check(
        "http://127.0.0.1",
        Err("URL address does not have the form \"host:port\": http://127.0.0.1"),
    );
    check(
        "http://127.0.0.1:1/a",
        Err("URL must not contain a path: http://127.0.0.1:1/a"),
    );
    check(
        "ftp://127.0.0.1:1",
        Err("URL scheme must be http, https, unix, or unixs: ftp://127.0.0.1:1"),
    );
}

#[test]
fn what_one_member_cannot_be_is_refused() {
    let check = |given: &[&str], expected: &str| assert_eq!(refusal(given), expected, "{given:?}");

    check(
        &[
            "--name=one",
            "--initial-cluster=one=http://a:1,two=http://b:1",
        ],
        "--initial-cluster names another member, \"two=http://b:1\": this program is a cluster of one member",
    );
    check(
        &["--listen-client-urls=http://127.0.0.1:1"],
        "--advertise-client-urls is required when --listen-client-urls is set explicitly",
    );
    check(
        &["--listen-metrics-urls=https://127.0.0.1:1"],
        "cannot listen on TLS for https://127.0.0.1:1: KeyFile and CertFile are not presented",
    );
    check(
        &["--client-cert-auth"],
        "--client-cert-auth requires --trusted-ca-file",
    );

    check(
        &["--discovery=https://example.org"],
        "--discovery accepts only \"\": there is one member: other members are not discovered",
    );
    check(
        &["--auto-compaction-retention=x"],
        "invalid value \"x\" for flag --auto-compaction-retention: hours, or a duration such as 5m",
    );
}

#[test]
fn history_is_kept_unless_the_flags_say_otherwise() {
    let check = |given: &[&str], retention: u64, revisions: u64| {
        let config = complete(&options(given).unwrap()).unwrap().config;
        let expected = (Duration::from_secs(retention), revisions);
        assert_eq!(
            (config.retention, config.retained_revisions),
            expected,
            "{given:?}"
        );
    };

    check(&[], 100 * 365 * 24 * 60 * 60, 0);
    check(&["--auto-compaction-retention=1"], 3600, 0);
    check(&["--auto-compaction-retention=5m"], 300, 0);
    check(
        &[
            "--auto-compaction-mode=revision",
            "--auto-compaction-retention=1000",
        ],
        0,
        1000,
    );
}
