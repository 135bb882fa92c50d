//! Store commands on real directories: in use, backup, restore, check. No test here starts a
//! process: a lock is shared with a child until the child calls exec.

use coracle_store::{
    Put, Store,
    embedded::{
        Config, Embedded, OpenError, SystemClock, commands, commands::CommandError,
        files::RealFiles,
    },
    etcd_server::{EtcdServer, EtcdServerConfig, Listen},
};
use std::{os::unix::fs::PermissionsExt, path::Path, sync::Arc};

#[test]
fn a_directory_that_another_process_holds_is_a_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());

    let files = Arc::new(RealFiles::new(directory.path()).unwrap());
    let refused = Embedded::open(Config::default(), files, Arc::new(SystemClock::default()))
        .err()
        .unwrap();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");

    assert!(
        refused
            .to_string()
            .contains(&directory.path().display().to_string()),
        "{refused}"
    );

    drop(store);
    open(directory.path());
}

#[tokio::test]
async fn a_backup_command_is_restored_by_the_restore_command() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file, copy) = (
        directory.path().join("a"),
        directory.path().join("backup"),
        directory.path().join("b"),
    );
    let store = open(&data);
    store.put(Put::new("key", "value")).await.unwrap();

    let running = commands::write_backup(store.backup(), &file).unwrap();
    drop(store);
    assert_eq!(commands::backup(&data, &file).unwrap(), running);

    let restored = commands::restore(&file, &copy, Some(running.revision)).unwrap();
    assert_eq!(restored.revision, running.revision.next());

    let report = commands::check(&copy).unwrap();
    assert_eq!((report.keys, report.compacted), (1, restored.revision));
    assert!(
        report.to_string().contains("store is intact: 1 keys"),
        "{report}"
    );
}

#[tokio::test]
async fn store_and_backup_files_are_readable_by_their_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (
        directory.path().join("data").join("store"),
        directory.path().join("backup"),
    );

    let store = open(&data);
    store
        .put(Put::new("/registry/secrets/default/a", "secret"))
        .await
        .unwrap();

    commands::write_backup(store.backup(), &file).unwrap();
    drop(store);

    let inside = std::fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for path in inside.chain([data.clone(), file]) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(
            mode & 0o077,
            0,
            "{} is open to others: {mode:o}",
            path.display()
        );
    }
}

#[tokio::test]
async fn a_backup_that_fails_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("data"));
    let file = directory.path().join("backup");
    std::fs::create_dir_all(file.join("in the way")).unwrap();

    let refused = commands::write_backup(store.backup(), &file).unwrap_err();
    assert!(
        matches!(
            refused,
            CommandError::File {
                action: "rename",
                ..
            }
        ),
        "{refused}"
    );

    assert!(!directory.path().join("backup.unfinished").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_in_use_is_backed_up_through_its_etcd_server() {
    let directory = tempfile::tempdir().unwrap();
    let (file, socket) = (
        directory.path().join("backup"),
        directory.path().join("etcd.sock"),
    );

    let store = Arc::new(open(&directory.path().join("data")));
    for number in 0..1000 {
        store
            .put(Put::new(format!("k{number}"), "x".repeat(1000)))
            .await
            .unwrap();
    }

    let server = EtcdServer::start(
        store.clone(),
        EtcdServerConfig::new(Listen::Unix(socket.clone())),
    )
    .unwrap();
    let report = commands::backup_of_running(&socket, &file).await.unwrap();
    assert_eq!((report.keys, report.revision), (1000, store.revision()));

    server.stop().await;
    let restored = commands::restore(&file, &directory.path().join("copy"), None).unwrap();
    assert_eq!(
        (restored.keys, restored.backup_revision),
        (1000, report.revision)
    );

    let refused = commands::backup_of_running(&socket, &file)
        .await
        .unwrap_err();
    assert!(matches!(refused, CommandError::Running(_)), "{refused}");
}

fn open(directory: &Path) -> Embedded {
    let files = Arc::new(RealFiles::new(directory).expect("a directory"));
    Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).expect("a store")
}
