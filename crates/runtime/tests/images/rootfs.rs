//! Root filesystems: layers over each other, with a writable one on top.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use coracle_cri::v1::ImageSpec;
use coracle_cri::{Error, Images};
use coracle_runtime::images::{ImageStore, ImportOptions};
use coracle_runtime::rootfs::OverlayRootFs;
use coracle_runtime::{ImageForContainer, RootFs, RootFsError};
use serde_json::json;

use crate::fixtures::{docker_archive, layer};
use crate::in_mount_namespace;
use crate::test_store::TestStore;

#[test]
fn layers_lie_over_each_other_and_writes_stay_on_top() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let images = store.open();

        let layers = [
            layer(&[
                ("same", "lowest"),
                ("gone", "x"),
                ("d/low", "x"),
                ("hidden/low", "x"),
                ("a/b/", ""),
                ("l -> d", ""),
            ]),
            layer(&[
                ("same", "highest"),
                (".wh.gone", ""),
                ("d/high", "y"),
                ("hidden/.wh..wh..opq", ""),
                ("hidden/high", ""),
            ]),
            layer(&[("a/b/c", "implied")]),
        ];
        let image = import(&store, &images, &layers).await;

        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let root = rootfs.prepare("c1", &image, &[]).await.unwrap();
        let names = |path: &str| {
            let mut names: Vec<String> = fs::read_dir(root.join(path))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names.join(" ")
        };

        assert_eq!(fs::read(root.join("same")).unwrap(), b"highest");
        assert_eq!(names(""), "a d hidden l same");
        assert_eq!(names("d"), "high low");

        assert_eq!(names("l"), "high low");
        assert_eq!(names("hidden"), "high");
        assert_eq!(
            fs::metadata(root.join("a/b")).unwrap().mtime(),
            0,
            "as the layer that has it says"
        );

        fs::write(root.join("d/written"), vec![b'x'; 10_000]).unwrap();
        fs::remove_file(root.join("d/low")).unwrap();
        let used = rootfs.usage("c1").await.unwrap();
        assert!(used.bytes >= 10_000 && used.inodes >= 3, "{used:?}");

        let other = rootfs.prepare("c2", &image, &[]).await.unwrap();
        assert!(other.join("d/low").exists() && !other.join("d/written").exists());
        assert_eq!(
            rootfs.prepare("c1", &image, &[]).await.unwrap(),
            root,
            "asked again, the same"
        );

        // A reboot removes the mount, not the writable layer.
        rustix::mount::unmount(&root, rustix::mount::UnmountFlags::empty()).unwrap();
        drop((images, rootfs));

        let reopened = OverlayRootFs::new(store.open(), store.path("mounts"));
        assert_eq!(reopened.containers().await.unwrap(), ["c1", "c2"]);
        assert!(
            reopened
                .prepare("c1", &image, &[])
                .await
                .unwrap()
                .join("d/written")
                .exists()
        );

        for container in ["c1", "c2", "c1"] {
            reopened.remove(container).await.unwrap();
        }

        assert_eq!(fs::read_dir(store.path("mounts")).unwrap().count(), 0);
        assert_eq!(
            fs::read_dir(store.path("images/containers"))
                .unwrap()
                .count(),
            0
        );
    });
}

/// As in upstream's snapshotters, a layer is unpacked without those below, and its folder replaces
/// the link.
#[test]
fn a_layer_that_writes_through_a_lower_layers_link_stays_in_the_image() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let host = store.path("host");
        fs::create_dir(&host).unwrap();
        fs::write(host.join("secret"), "secret").unwrap();
        let images = store.open();
        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let absolute = host.to_str().unwrap();

        let up = "../".repeat(20);
        let targets = [
            absolute.to_owned(),
            format!("{up}{absolute}"),
            up.clone(),
            "/etc".to_owned(),
            "../../..".to_owned(),
            "first".to_owned(),
            "dir".to_owned(),
        ];

        for target in &targets {
            let link = format!("dir -> {target}");
            let first = format!("first -> {absolute}");
            let layers = [
                layer(&[(first.as_str(), ""), (link.as_str(), "")]),
                layer(&[("other", "")]),
                layer(&[
                    ("dir/evil", "x"),
                    ("dir/.wh.secret", ""),
                    ("dir/deep/evil", "x"),
                ]),
                layer(&[("dir/deep/more", "x"), ("dir/.wh..wh..opq", "")]),
            ];

            let image = import(&store, &images, &layers).await;
            let root = rootfs.prepare("c1", &image, &[]).await.unwrap();

            let kept: Vec<_> = fs::read_dir(&host)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            assert_eq!(kept, ["secret"], "{target}");

            assert_eq!(
                fs::read(host.join("secret")).unwrap(),
                b"secret",
                "{target}"
            );

            assert!(
                !Path::new("/etc/evil").exists() && !Path::new("/evil").exists(),
                "{target}"
            );

            assert!(
                fs::symlink_metadata(root.join("dir")).unwrap().is_dir(),
                "{target}"
            );

            assert_eq!(
                fs::read(root.join("dir/deep/more")).unwrap(),
                b"x",
                "{target}"
            );

            rootfs.remove("c1").await.unwrap();
        }
    });
}

/// A link of the layer itself is followed inside the layer, and what it leads to is laid over what
/// is below.
#[test]
fn a_layer_that_writes_through_its_own_link_writes_where_that_leads() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let images = store.open();

        let layers = [
            layer(&[("run/", ""), ("run/low", "low"), ("gone/b/", "")]),
            layer(&[
                ("var/run -> /run", ""),
                ("var/run/high", "high"),
                ("gone/b/c", ""),
                ("gone", "a file"),
            ]),
        ];
        let image = import(&store, &images, &layers).await;

        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let root = rootfs.prepare("c1", &image, &[]).await.unwrap();
        assert_eq!(
            fs::read_link(root.join("var/run")).unwrap(),
            Path::new("/run")
        );

        assert_eq!(fs::read(root.join("run/low")).unwrap(), b"low");
        assert_eq!(fs::read(root.join("run/high")).unwrap(), b"high");
        assert_eq!(
            fs::metadata(root.join("run")).unwrap().mtime(),
            0,
            "as the layer that has it says"
        );

        assert_eq!(fs::read(root.join("gone")).unwrap(), b"a file");

        rootfs.remove("c1").await.unwrap();
    });
}

#[test]
fn a_removed_image_is_gone_and_its_containers_are_not() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let images = store.open();
        let image = import(&store, &images, &[layer(&[("a", "1")])]).await;
        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let root = rootfs.prepare("c1", &image, &[]).await.unwrap();

        images.remove(&images.find("app").unwrap()).await.unwrap();
        assert!(matches!(
            rootfs.resolve(&spec("app")).await,
            Err(RootFsError::NoSuchImage(_))
        ));

        assert!(matches!(
            rootfs.prepare("c2", &image, &[]).await,
            Err(RootFsError::NoSuchImage(_))
        ));

        assert_eq!(fs::read(root.join("a")).unwrap(), b"1");
        assert_eq!(store.counts(), [1, 0, 0, 0]);

        rootfs.remove("c1").await.unwrap();
        assert_eq!(store.counts(), [0, 0, 0, 0]);
    });
}

#[test]
fn hundreds_of_layers_and_none_at_all_can_be_mounted() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let images = store.open();
        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let many: Vec<_> = (0..150)
            .map(|number| layer(&[(&format!("f{number}"), "")]))
            .collect();

        let image = import(&store, &images, &many).await;
        assert_eq!(
            fs::read_dir(rootfs.prepare("many", &image, &[]).await.unwrap())
                .unwrap()
                .count(),
            150
        );

        let image = import(&store, &images, &[]).await;
        assert_eq!(
            fs::read_dir(rootfs.prepare("none", &image, &[]).await.unwrap())
                .unwrap()
                .count(),
            0
        );

        for container in ["many", "none"] {
            rootfs.remove(container).await.unwrap();
        }
    });
}

#[test]
fn the_built_in_image_is_there_pinned_and_runs() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let images = store.open();
        let image = images.add_built_in().await.unwrap();
        assert_eq!(images.add_built_in().await.unwrap().id, image.id);
        assert!(image.pinned && image.digests[0].starts_with("coracle.local/echo@sha256:"));

        // Its registry does not exist and is never contacted.
        for name in [
            "coracle.local/echo",
            "coracle.local/echo:latest",
            &image.digests[0],
        ] {
            let found = images.pull_image(spec(name), None, None).await.unwrap();
            assert_eq!(found, image.id.to_string(), "{name}");
        }

        assert!(matches!(
            images
                .pull_image(spec("coracle.local/other"), None, None)
                .await,
            Err(Error::NotFound(_))
        ));

        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let found = rootfs.resolve(&spec("coracle.local/echo")).await.unwrap();
        let root = rootfs.prepare("c1", &found, &[]).await.unwrap();
        let ended = std::process::Command::new("chroot")
            .arg(&root)
            .args(["/echo", "exit", "7"])
            .status()
            .unwrap();
        assert_eq!(ended.code(), Some(7));

        rootfs.remove("c1").await.unwrap();
    });
}

#[test]
fn the_root_folder_has_the_mode_of_the_images() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let images = store.open();
        let image = import(&store, &images, &[layer(&[("./", ""), ("a", "")])]).await;
        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let root = rootfs.prepare("c1", &image, &[]).await.unwrap();
        assert_eq!(
            fs::metadata(root).unwrap().permissions().mode() & 0o7777,
            0o755
        );

        assert!(rootfs.prepare("../c1", &image, &[]).await.is_err());

        rootfs.remove("c1").await.unwrap();
    });
}

/// Most containers have the same things mounted: what these need besides the image is shared, and
/// nothing is written.
#[test]
fn usual_mount_points_are_shared_by_all_containers() {
    in_mount_namespace(async {
        let store = TestStore::new();
        let images = store.open();
        let image = import(
            &store,
            &images,
            &[layer(&[("etc/hosts", "own"), ("a", "")])],
        )
        .await;

        let rootfs = OverlayRootFs::new(Arc::clone(&images), store.path("mounts"));
        let places = ["/proc", "/etc/hosts", "/etc/resolv.conf", "/data"].map(str::to_owned);
        for container in ["c1", "c2"] {
            let root = rootfs.prepare(container, &image, &places).await.unwrap();
            assert!(root.join("proc").is_dir() && root.join("etc/resolv.conf").is_file());
            assert_eq!(
                fs::read(root.join("etc/hosts")).unwrap(),
                b"own",
                "the image comes first"
            );

            assert!(!root.join("data").exists(), "only what is usual is shared");
            assert_eq!(rootfs.usage(container).await.unwrap().inodes, 0);

            let written = root.join("etc/resolv.conf");
            fs::write(&written, "own").unwrap();
        }

        let other = rootfs.prepare("c3", &image, &places).await.unwrap();
        assert_eq!(
            fs::read(other.join("etc/resolv.conf")).unwrap(),
            b"",
            "what one writes no other sees"
        );

        let bare = rootfs.prepare("c4", &image, &[]).await.unwrap();
        assert!(!bare.join("proc").exists());

        for container in ["c1", "c2", "c3", "c4"] {
            rootfs.remove(container).await.unwrap();
        }
    });
}

async fn import(
    store: &TestStore,
    images: &Arc<ImageStore>,
    layers: &[Vec<u8>],
) -> ImageForContainer {
    let archive = docker_archive(
        &["app"],
        layers,
        &json!({"Entrypoint": ["/a"], "Env": ["A=b"]}),
    );

    images
        .import(&store.write("app.tar", &archive), &ImportOptions::default())
        .await
        .unwrap();

    let rootfs = OverlayRootFs::new(Arc::clone(images), store.path("unused"));
    let found = rootfs.resolve(&spec("app")).await.unwrap();
    assert_eq!(
        (&found.config.entrypoint[..], &found.config.environment[..]),
        (&["/a".to_owned()][..], &["A=b".to_owned()][..])
    );

    found
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}
