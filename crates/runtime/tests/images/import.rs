//! Archives and layouts.

use std::fs;
use std::process::Command;

use coracle_cri::Images;
use coracle_cri::v1::ImageSpec;
use coracle_runtime::images::{Digest, ImageError, ImageStore, ImportOptions};
use serde_json::{Value, json};

use crate::fixtures::{Blobs, config, docker_archive, gzip, layer};
use crate::test_store::TestStore;

#[tokio::test]
async fn a_docker_archive_becomes_an_image_with_upstreams_ids() {
    let store = TestStore::new();
    let images = store.open();
    let layers = [layer(&[("a", "1")]), layer(&[("b", "2")])];

    let run = json!({"User": "1000:1000", "Cmd": ["/a"]});
    for bytes in [
        docker_archive(&["app:v1", "h.io/x/app:v2"], &layers, &run),
        gzip(&docker_archive(&["app:v1"], &layers, &run)),
    ] {
        let imported = images
            .import(&store.write("app.tar", &bytes), &ImportOptions::default())
            .await
            .unwrap();
        assert_eq!(imported[0].id, Digest::of(&config(&layers, &run)));
    }

    let image = images.find("app:v1").unwrap();
    assert_eq!(image.tags, ["docker.io/library/app:v1", "h.io/x/app:v2"]);
    assert_eq!(
        images.find("h.io/x/app:v2"),
        images.find(&image.id.to_string())
    );

    assert_eq!(images.find(&image.id.hex()[..12]), Some(image.clone()));
    assert_eq!(store.counts(), [2, 1, 1, 0]);

    let status = images.image_status(spec("app:v1"), true).await.unwrap();
    let shown = status.image.unwrap();
    assert_eq!(
        (shown.uid.unwrap().value, shown.username.as_str()),
        (1000, "")
    );

    assert_eq!(shown.id, image.id.to_string());
    assert!(
        images
            .image_status(spec("other"), false)
            .await
            .unwrap()
            .image
            .is_none()
    );

    assert!(
        ImageStore::open(store.config()).is_err(),
        "one process at a time"
    );

    assert_eq!(
        ImageStore::open_read_only(store.config()).unwrap().list(),
        images.list()
    );

    let known = images.list();
    drop(images);
    assert_eq!(store.open().list(), known);
}

#[tokio::test]
async fn a_layout_is_imported_as_folder_and_as_archive() {
    let store = TestStore::new();
    let layers = [layer(&[("a", "1")])];
    let mut blobs = Blobs::default();
    let mut manifest = blobs.add_image(&layers, gzip, &json!({}));
    let other = blobs.add("application/vnd.oci.image.manifest.v1+json", b"{}".to_vec());

    manifest["platform"] = json!({"os": "linux", "architecture": "amd64"});
    let index = json!({"schemaVersion": 2, "manifests": [with_platform(other, "s390x"), manifest]});
    let mut top = blobs.add(
        "application/vnd.oci.image.index.v1+json",
        index.to_string().into_bytes(),
    );
    top["annotations"] = json!({"io.containerd.image.name": "h.io/multi:v1"});

    let layout = blobs.write_layout(store.folder.path(), &[top.clone()]);
    let images = store.open();
    let image = images
        .import(&layout, &ImportOptions::default())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(image.tags, ["h.io/multi:v1"]);

    assert_eq!(
        image.digests,
        [format!("h.io/multi@{}", top["digest"].as_str().unwrap())],
        "the index's digest"
    );

    assert_eq!(images.find(&image.digests[0]), Some(image));

    let archive = store.path("layout.tar");
    assert!(
        Command::new("tar")
            .arg("-C")
            .arg(&layout)
            .arg("-cf")
            .arg(&archive)
            .arg(".")
            .status()
            .unwrap()
            .success()
    );

    let options = ImportOptions {
        name: Some("other:v2".parse().unwrap()),
        pinned: true,
    };
    let again = images.import(&archive, &options).await.unwrap().remove(0);
    assert!(again.pinned);
    assert_eq!(store.counts(), [1, 1, 3, 0]);
}

fn with_platform(mut descriptor: Value, architecture: &str) -> Value {
    descriptor["platform"] = json!({"os": "linux", "architecture": architecture});
    descriptor
}

#[tokio::test]
async fn a_damaged_archive_leaves_nothing_behind() {
    let store = TestStore::new();
    let images = store.open();

    let layers = [layer(&[("a", "1")]), layer(&[("b", "right")])];
    let check = async |bytes: &[u8]| {
        let result = images
            .import(&store.write("bad.tar", bytes), &ImportOptions::default())
            .await;
        assert_eq!(store.counts(), [0, 0, 0, 0]);
        result.unwrap_err()
    };

    let mut wrong = docker_archive(&["app"], &layers, &json!({}));
    let at = wrong
        .windows(5)
        .position(|bytes| bytes == b"right")
        .unwrap();
    wrong[at..at + 5].copy_from_slice(b"wrong");

    assert!(matches!(check(&wrong).await, ImageError::Digest { .. }));

    let hostile = [
        layer(&[("a", "1")]),
        layer(&[("up -> ../..", ""), ("up/.wh...", "")]),
    ];

    assert!(matches!(
        check(&docker_archive(&["app"], &hostile, &json!({}))).await,
        ImageError::Unpack { .. }
    ));

    check(b"neither").await;
    let unnamed = check(&docker_archive(&["UPPER:"], &layers, &json!({}))).await;
    assert_eq!(
        error_chain(&unnamed),
        "couldn't parse image name \"UPPER:\": invalid reference format"
    );

    for list in ["manifest.json", "index.json"] {
        let text = if list == "index.json" {
            r#"{"manifests": []}"#
        } else {
            "[]"
        };

        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        archive
            .append_data(&mut header, list, text.as_bytes())
            .unwrap();

        let empty = check(&archive.into_inner().unwrap()).await;
        assert!(
            error_chain(&empty).starts_with(&format!("{list} lists no image")),
            "{}",
            error_chain(&empty)
        );
    }
}

/// Errors that quote an archive must not contain its control characters.
#[tokio::test]
async fn errors_of_a_garbage_archive_contain_no_control_characters() {
    let store = TestStore::new();
    let images = store.open();

    let garbage: Vec<u8> = b"\x1b[2J\x07\xff\xfe\0garbage"
        .iter()
        .copied()
        .cycle()
        .take(64 << 10)
        .collect();

    // As a whole, and as a layer.
    let as_layer = docker_archive(&["app"], std::slice::from_ref(&garbage), &json!({}));
    for bytes in [garbage, as_layer] {
        let error = images
            .import(&store.write("bad.tar", &bytes), &ImportOptions::default())
            .await
            .unwrap_err();
        let text = error_chain(&error);
        assert!(
            !text.contains(char::is_control) && text.len() < 400,
            "{text:?}"
        );

        assert!(text.contains("cannot"), "{text:?}");
    }

    assert_eq!(store.counts(), [0, 0, 0, 0]);
}

/// An error with its causes.
fn error_chain(error: &dyn std::error::Error) -> String {
    let cause = error
        .source()
        .map(|cause| format!(": {}", error_chain(cause)))
        .unwrap_or_default();
    format!("{error}{cause}")
}

#[tokio::test]
async fn a_tag_moves_and_layers_go_with_the_last_image_that_needs_them() {
    let store = TestStore::new();
    let images = store.open();

    let base = layer(&[("base", "")]);
    let import = async |content: &str| {
        let archive = docker_archive(
            &["app"],
            &[base.clone(), layer(&[("top", content)])],
            &json!({}),
        );

        images
            .import(&store.write("app.tar", &archive), &ImportOptions::default())
            .await
            .unwrap()
            .remove(0)
    };
    let first = import("1").await;

    let second = import("2").await;
    assert_eq!(images.find("app").unwrap().id, second.id);
    assert_eq!(
        images.find(&first.id.to_string()).unwrap().tags,
        Vec::<String>::new()
    );

    assert_eq!(store.counts(), [3, 2, 2, 0]);

    images.remove_image(spec("app")).await.unwrap();
    images.remove_image(spec("app")).await.unwrap();
    assert_eq!(store.counts(), [2, 1, 1, 0]);

    images.remove(&first).await.unwrap();
    assert_eq!(store.counts(), [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_crash_leaves_work_that_the_next_start_clears_away() {
    let store = TestStore::new();
    let archive = docker_archive(&["app"], &[layer(&[("a", "1")])], &json!({}));
    let image = store
        .open()
        .import(&store.write("app.tar", &archive), &ImportOptions::default())
        .await
        .unwrap()
        .remove(0);

    let root = store.path("images");
    fs::create_dir_all(root.join("staging/7/diff/x")).unwrap();
    fs::create_dir_all(root.join("layers").join("0".repeat(64)).join("diff")).unwrap();
    fs::write(root.join("content").join("1".repeat(64)), "x").unwrap();
    assert_eq!(store.open().list().len(), 1);
    assert_eq!(store.counts(), [1, 1, 1, 0]);

    // An image with a missing layer is deleted.
    fs::remove_dir_all(root.join("layers").join(image.layers[0].hex())).unwrap();
    assert_eq!(store.open().list(), []);
    assert_eq!(store.counts(), [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_broken_archive_does_not_stop_the_preload_of_others() {
    let store = TestStore::new();
    let folder = store.path("preload");
    let images = store.open();
    assert_eq!(images.preload(&folder).await.unwrap(), []);

    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a-broken.tar"), "broken").unwrap();
    fs::write(
        folder.join("b.tar"),
        docker_archive(&["b"], &[layer(&[("b", "")])], &json!({})),
    )
    .unwrap();

    assert_eq!(
        images.preload(&folder).await.unwrap()[0].tags,
        ["docker.io/library/b:latest"]
    );
}

#[tokio::test]
async fn what_umoci_and_skopeo_make_is_understood() {
    let store = TestStore::new();
    let layout = store.path("layout");

    let root = store.path("root");
    fs::create_dir_all(root.join("bin")).unwrap();

    fs::write(root.join("bin/tool"), "x").unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let output = output
            .unwrap_or_else(|error| panic!("{program}: {error}; see scripts/test-prereqs.sh"));
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };

    let (layout, image) = (layout.to_str().unwrap(), format!("{}:v1", layout.display()));
    run("umoci", &["init", "--layout", layout]);
    run("umoci", &["new", "--image", &image]);
    run(
        "umoci",
        &["insert", "--image", &image, root.to_str().unwrap(), "/opt"],
    );

    run(
        "umoci",
        &[
            "config",
            "--image",
            &image,
            "--config.cmd",
            "/opt/bin/tool",
            "--config.user",
            "someone",
        ],
    );

    let archive = store.path("saved.tar");
    run(
        "skopeo",
        &[
            "copy",
            &format!("oci:{image}"),
            &format!("docker-archive:{}:made/by:umoci", archive.display()),
        ],
    );

    let images = store.open();

    let named = ImportOptions {
        name: Some("layout:v1".parse().unwrap()),
        pinned: false,
    };
    images.import(layout.as_ref(), &named).await.unwrap();

    images
        .import(&archive, &ImportOptions::default())
        .await
        .unwrap();

    let saved = images
        .image_status(spec("made/by:umoci"), false)
        .await
        .unwrap()
        .image
        .unwrap();
    assert_eq!(saved.username, "someone");

    let found = images.find("layout:v1").unwrap();
    let file = store
        .path("images/layers")
        .join(found.layers[0].hex())
        .join("diff/opt/bin/tool");
    assert_eq!(fs::read(file).unwrap(), b"x");
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}
