//! Image commands while another process owns the store, and the preload folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coracle_runtime::images::{ImageCommand, ImageError, PreloadWatch, Report};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use crate::fixtures::{docker_archive, layer};
use crate::test_store::TestStore;

fn no_report() -> Report {
    Arc::new(|_| ())
}

fn import(path: PathBuf) -> ImageCommand {
    ImageCommand::Import {
        path,
        name: None,
        pinned: false,
    }
}

fn archive(name: &str) -> Vec<u8> {
    docker_archive(&[name], &[layer(&[("a", name)])], &json!({}))
}

#[tokio::test]
async fn the_process_that_owns_the_store_runs_commands_of_others() {
    let store = TestStore::new();
    let images = store.open();
    let file = store.write("app.tar", &archive("app:v1"));

    // The socket is not served yet.
    let refused = import(file.clone())
        .run(store.config(), &no_report())
        .await
        .unwrap_err();
    assert!(matches!(refused, ImageError::Store(_)), "{refused}");

    let serving = tokio::spawn(Arc::clone(&images).serve(PreloadWatch::at(&store.path("preload"))));

    let imported = until(|| async {
        import(file.clone())
            .run(store.config(), &no_report())
            .await
            .ok()
    })
    .await;
    assert_eq!(imported[0].tags, ["docker.io/library/app:v1"]);

    assert_eq!(
        images.list(),
        imported,
        "the one that works with them knows"
    );

    let broken = import(store.write("broken.tar", b"no archive"))
        .run(store.config(), &no_report())
        .await;
    assert!(
        matches!(&broken, Err(ImageError::Elsewhere(_))),
        "{broken:?}"
    );

    let absent = ImageCommand::Remove {
        image: "nothing".to_owned(),
    }
    .run(store.config(), &no_report())
    .await;

    assert!(
        matches!(&absent, Err(ImageError::Absent(name)) if name == "nothing"),
        "{absent:?}"
    );

    let pull = ImageCommand::Pull {
        image: "127.0.0.1:1/x:y".to_owned(),
        credentials: Vec::new(),
        authorities: Vec::new(),
        plain: Vec::new(),
    };

    // The connection is refused; the error has its causes.
    let unreachable = pull
        .run(store.config(), &no_report())
        .await
        .unwrap_err()
        .to_string();
    assert!(unreachable.contains("127.0.0.1:1"), "{unreachable}");

    let removed = ImageCommand::Remove {
        image: "app:v1".to_owned(),
    }
    .run(store.config(), &no_report())
    .await
    .unwrap();
    assert_eq!(removed, imported);

    assert_eq!(store.counts()[..2], [0, 0]);

    // Invalid requests are ignored.
    let mut socket = tokio::net::UnixStream::connect(store.path("images/socket"))
        .await
        .unwrap();
    socket.write_all(b"\xff{}\n").await.unwrap();

    drop(socket);
    assert!(
        import(file.clone())
            .run(store.config(), &no_report())
            .await
            .is_ok()
    );

    serving.abort();
    drop(serving.await);
    drop(images);

    // After it has stopped, the command runs in this process.
    let alone = import(file)
        .run(store.config(), &no_report())
        .await
        .unwrap();
    assert_eq!(alone[0].tags, ["docker.io/library/app:v1"]);
}

#[tokio::test]
async fn a_server_that_stops_during_a_command_is_reported_with_the_command() {
    let store = TestStore::new();
    let _taken = store.open();

    let listener = tokio::net::UnixListener::bind(store.path("images/socket")).unwrap();
    let ends = tokio::spawn(async move {
        for _ in 0..3 {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::io::BufReader::new(socket)
                .read_line(&mut String::new())
                .await
                .unwrap();
        }
    });

    let check = async |command: ImageCommand, expected: &str| {
        let error = command
            .run(store.config(), &no_report())
            .await
            .unwrap_err()
            .to_string();

        assert!(
            error.contains(&format!("stopped before it {expected}")),
            "{error}"
        );
    };

    let (credentials, authorities, plain) = (Vec::new(), Vec::new(), Vec::new());
    check(import("/x.tar".into()), "imported \"/x.tar\"").await;
    check(
        ImageCommand::Pull {
            image: "x:y".to_owned(),
            credentials,
            authorities,
            plain,
        },
        "pulled \"x:y\"",
    )
    .await;

    check(
        ImageCommand::Remove {
            image: "x:y".to_owned(),
        },
        "removed \"x:y\"",
    )
    .await;

    ends.await.unwrap();
}

#[tokio::test]
async fn archives_that_appear_in_the_preload_folder_are_imported() {
    let store = TestStore::new();
    let images = store.open();
    let folder = store.path("preload");
    let serving = tokio::spawn(Arc::clone(&images).serve(PreloadWatch::at(&folder)));
    let comes = async |name: &str| until(|| async { images.find(name) }).await;

    // One is written in place, one is moved in when complete.
    std::fs::write(folder.join("written.tar"), archive("written:v1")).unwrap();
    comes("written:v1").await;
    std::fs::write(folder.join("broken.tar"), "no archive").unwrap();
    std::fs::write(folder.join(".hidden.tar"), archive("hidden:v1")).unwrap();
    std::fs::rename(
        store.write("elsewhere.tar", &archive("moved:v1")),
        folder.join("moved.tar"),
    )
    .unwrap();

    comes("moved:v1").await;
    assert!(images.find("hidden:v1").is_none());

    std::fs::rename(folder.join(".hidden.tar"), folder.join("hidden.tar")).unwrap();
    comes("hidden:v1").await;

    // Another folder of the same name.
    std::fs::remove_dir_all(&folder).unwrap();
    until(|| async { folder.exists().then_some(()) }).await;
    std::fs::write(folder.join("later.tar"), archive("later:v1")).unwrap();
    comes("later:v1").await;
    serving.abort();
}

async fn until<T, F: Future<Output = Option<T>>>(mut found: impl FnMut() -> F) -> T {
    for _ in 0..6000 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out");
}
