use std::fs;

use super::*;

const ONE: &str = "apiVersion: v1
kind: Config
clusters:
- name: here
  cluster: {server: 'https://one:6443', certificate-authority: pki/ca.crt}
users:
- name: me
  user: {token: first}
contexts:
- name: mine
  context: {cluster: here, user: me, namespace: work}
current-context: mine
preferences: {}
";

const TWO: &str = "clusters:
- name: here
  cluster: {server: 'https://two', insecure-skip-tls-verify: true}
- name: there
  cluster: {server: 'https://there:1/below/'}
users:
- name: me
  user: {client-certificate-data: QUJD, client-certificate: x, client-key-data: REVG}
- name: cloud
  user: {auth-provider: {name: gcp}}
contexts:
- {name: other, context: {cluster: there, user: me}}
- {name: cloudy, context: {cluster: there, user: cloud}}
- {name: broken, context: {cluster: nowhere, user: me}}
current-context: other
";

fn keeper(config: Config) -> Keeper {
    Keeper::new(config, || coracle_api::time::Timestamp::from_unix(0, 0))
}

fn merged() -> Kubeconfig {
    let folder = tempfile::tempdir().unwrap();
    let files = ["one", "two", "absent"].map(|name| folder.path().join(name));
    fs::write(&files[0], ONE).unwrap();
    fs::write(&files[1], TWO).unwrap();
    Kubeconfig::merged(&files).unwrap()
}

#[test]
fn the_first_file_owns_an_entry_whole() {
    let merged = merged();
    let config = Config::of_context(&merged, None).unwrap();
    assert_eq!(config.server, "https://one:6443");
    assert!(
        !config.insecure,
        "no field of the second file's entry is used"
    );

    assert_eq!(config.namespace.as_deref(), Some("work"));
    assert_eq!(config.credentials.token, Token::Fixed("first".to_string()));
    assert!(
        matches!(config.authorities, Some(Pem::File(file)) if file.ends_with("pki/ca.crt") && file.is_absolute())
    );
    assert_eq!(
        Config::of_context(&merged, Some("other")).unwrap().server,
        "https://there:1/below/"
    );
}

#[test]
fn what_is_missing_is_named() {
    let check = |context: &str, expected: &str| {
        let error = Config::of_context(&merged(), Some(context)).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    check("none", "context \"none\" does not exist");
    check("broken", "cluster \"nowhere\" does not exist");
    check("cloudy", "The gcp auth plugin has been removed.");
    assert!(matches!(
        Config::of_context(&Kubeconfig::default(), None),
        Err(ConfigError::Empty)
    ));
}

#[test]
fn a_malformed_file_is_an_error_and_so_is_a_named_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let load = || Config::load(Some(&file), None, &Environment::default());
    assert!(matches!(load(), Err(ConfigError::Read { .. })));

    fs::write(&file, "clusters: 5").unwrap();
    assert!(matches!(load(), Err(ConfigError::Malformed { .. })));

    fs::write(&file, "clusters:\n- {name: a}\n- {name: a}\n").unwrap();
    assert!(
        load()
            .unwrap_err()
            .to_string()
            .ends_with("duplicate name \"a\" in list")
    );
}

#[tokio::test]
async fn content_wins_over_files_and_a_server_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, TWO).unwrap();

    let config = Config::load(
        Some(&file),
        Some("https://elsewhere"),
        &Environment::default(),
    )
    .unwrap();
    assert_eq!(config.server, "https://elsewhere");

    let secrets = keeper(config).secrets().await.unwrap();
    assert_eq!(
        secrets.tls.identity,
        Some((b"ABC".to_vec(), b"DEF".to_vec()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_finds_its_account_and_its_token_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("token", "one\n"), ("ca.crt", "CA"), ("namespace", "work")] {
        fs::write(folder.path().join(name), content).unwrap();
    }

    let environment = Environment {
        service: Some(("fd00::1".to_string(), "443".to_string())),
        account: folder.path().to_path_buf(),
        ..Environment::default()
    };
    let config = Config::load(None, None, &environment).unwrap();
    assert_eq!(
        (config.server.as_str(), config.namespace.as_deref()),
        ("https://[fd00::1]:443", Some("work"))
    );

    let config = keeper(config);
    let token = async |config: &Keeper| {
        config
            .secrets()
            .await
            .unwrap()
            .authorization
            .clone()
            .unwrap()
    };
    assert_eq!(token(&config).await, "Bearer one");

    fs::write(folder.path().join("token"), "two").unwrap();
    assert_eq!(token(&config).await, "Bearer one", "cached for a while");

    tokio::time::advance(std::time::Duration::from_secs(11)).await;
    assert_eq!(token(&config).await, "Bearer two");
    assert!(matches!(
        Config::in_cluster(&Environment::default()),
        Err(ConfigError::NotInCluster)
    ));
}

#[tokio::test]
async fn a_plugin_is_run_once_and_again_when_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("plugin");
    let script = "#!/bin/sh\necho x >> \"$COUNT\"\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\
                  \"kind\":\"ExecCredential\",\"status\":{\"token\":\"t'\"$1\"'\"}}'\n";
    coracle_testkit::write_program(&plugin, script);

    let count = folder.path().join("count");
    let exec = Exec {
        api_version: "client.authentication.k8s.io/v1".to_string(),
        command: plugin.display().to_string(),
        args: vec!["7".to_string()],
        env: vec![ExecEnv {
            name: "COUNT".to_string(),
            value: count.display().to_string(),
        }],
        ..Exec::default()
    };

    let credentials = Credentials {
        exec: Some((exec, Cluster::default())),
        ..Credentials::default()
    };

    let config = keeper(Config {
        credentials,
        ..Config::default()
    });

    for _ in 0..3 {
        assert_eq!(
            config
                .secrets()
                .await
                .unwrap()
                .authorization
                .clone()
                .unwrap(),
            "Bearer t7"
        );
    }

    assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), 1);

    config.rejected().await;
    config.secrets().await.unwrap();
    assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), 2);
}
