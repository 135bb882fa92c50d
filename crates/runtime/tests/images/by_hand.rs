//! Images that are changed by hand while another process works with them, and a folder that is
//! watched.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coracle_runtime::images::{Arrivals, Deed, ImageError, Report};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use crate::made::{docker_archive, layer};
use crate::place::Place;

fn silent() -> Report {
    Arc::new(|_| ())
}

fn import(path: PathBuf) -> Deed {
    Deed::Import {
        path,
        name: None,
        pinned: false,
    }
}

fn archive(name: &str) -> Vec<u8> {
    docker_archive(&[name], &[layer(&[("a", name)])], &json!({}))
}

#[tokio::test]
async fn who_works_with_the_images_does_what_others_ask_for() {
    let place = Place::new();
    let images = place.open();
    let file = place.write("app.tar", &archive("app:v1"));

    // Nobody opens yet.
    let refused = import(file.clone())
        .carry_out(place.config(), &silent())
        .await
        .unwrap_err();
    assert!(matches!(refused, ImageError::Store(_)), "{refused}");

    let tending = tokio::spawn(Arc::clone(&images).tend(Arrivals::at(&place.path("preload"))));

    let imported = until(|| async {
        import(file.clone())
            .carry_out(place.config(), &silent())
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

    let broken = import(place.write("broken.tar", b"no archive"))
        .carry_out(place.config(), &silent())
        .await;
    assert!(
        matches!(&broken, Err(ImageError::Elsewhere(_))),
        "{broken:?}"
    );

    let absent = Deed::Remove {
        image: "nothing".to_owned(),
    }
    .carry_out(place.config(), &silent())
    .await;

    assert!(
        matches!(&absent, Err(ImageError::Absent(name)) if name == "nothing"),
        "{absent:?}"
    );

    let pull = Deed::Pull {
        image: "127.0.0.1:1/x:y".to_owned(),
        credentials: Vec::new(),
        authorities: Vec::new(),
        plain: Vec::new(),
    };

    // Nobody is there; that is said with its reasons.
    let unreachable = pull
        .carry_out(place.config(), &silent())
        .await
        .unwrap_err()
        .to_string();
    assert!(unreachable.contains("127.0.0.1:1"), "{unreachable}");

    let removed = Deed::Remove {
        image: "app:v1".to_owned(),
    }
    .carry_out(place.config(), &silent())
    .await
    .unwrap();
    assert_eq!(removed, imported);

    assert_eq!(place.counts()[..2], [0, 0]);

    // Nonsense harms nobody.
    let mut socket = tokio::net::UnixStream::connect(place.path("images/socket"))
        .await
        .unwrap();
    socket.write_all(b"\xff{}\n").await.unwrap();

    drop(socket);
    assert!(
        import(file.clone())
            .carry_out(place.config(), &silent())
            .await
            .is_ok()
    );

    tending.abort();
    drop(tending.await);
    drop(images);

    // Whatever it has left behind, the next one works with them itself.
    let alone = import(file)
        .carry_out(place.config(), &silent())
        .await
        .unwrap();
    assert_eq!(alone[0].tags, ["docker.io/library/app:v1"]);
}

#[tokio::test]
async fn who_ends_over_a_deed_is_told_of_with_the_deed() {
    let place = Place::new();
    let _taken = place.open();

    let listener = tokio::net::UnixListener::bind(place.path("images/socket")).unwrap();
    let ends = tokio::spawn(async move {
        for _ in 0..3 {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::io::BufReader::new(socket)
                .read_line(&mut String::new())
                .await
                .unwrap();
        }
    });

    let check = async |deed: Deed, expected: &str| {
        let error = deed
            .carry_out(place.config(), &silent())
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
        Deed::Pull {
            image: "x:y".to_owned(),
            credentials,
            authorities,
            plain,
        },
        "pulled \"x:y\"",
    )
    .await;

    check(
        Deed::Remove {
            image: "x:y".to_owned(),
        },
        "removed \"x:y\"",
    )
    .await;

    ends.await.unwrap();
}

#[tokio::test]
async fn what_comes_into_a_watched_folder_is_an_image() {
    let place = Place::new();
    let images = place.open();
    let folder = place.path("preload");
    let tending = tokio::spawn(Arc::clone(&images).tend(Arrivals::at(&folder)));
    let comes = async |name: &str| until(|| async { images.find(name) }).await;

    // Written in pieces, and moved in when it is whole.
    std::fs::write(folder.join("written.tar"), archive("written:v1")).unwrap();
    comes("written:v1").await;
    std::fs::write(folder.join("broken.tar"), "no archive").unwrap();
    std::fs::write(folder.join(".hidden.tar"), archive("hidden:v1")).unwrap();
    std::fs::rename(
        place.write("elsewhere.tar", &archive("moved:v1")),
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
    tending.abort();
}

async fn until<T, F: Future<Output = Option<T>>>(mut found: impl FnMut() -> F) -> T {
    for _ in 0..6000 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come");
}
