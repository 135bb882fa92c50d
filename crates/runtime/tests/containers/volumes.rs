//! Volumes declared by images, and images as volumes.
use crate::common;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use common::{Node, script, unpack_busybox, with_security};
use coracle_cri::v1::*;
use coracle_cri::{Error, Runtime as _};
use coracle_runtime::images::{Digest, ImageStore, ImagesConfig, ImportOptions};
use coracle_runtime::rootfs::OverlayRootFs;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_of_an_image_has_its_content_and_is_the_containers_own() {
    let node = Node::on("volumes", async |place| {
        let fill = |root: &Path| {
            let data = root.join("srv/data");
            fs::create_dir_all(data.join("deep/er")).unwrap();
            fs::write(data.join("file"), "from the image").unwrap();
            fs::hard_link(data.join("file"), data.join("deep/er/same")).unwrap();
            fs::write(data.join("tool"), "").unwrap();

            chown(data.join("tool"), Some(33), Some(34)).unwrap();
            fs::set_permissions(data.join("tool"), fs::Permissions::from_mode(0o4750)).unwrap();
            attribute(&data.join("tool"), Some(b"kept")).unwrap();
            symlink("/etc/passwd", data.join("link")).unwrap();
            fs::File::create(data.join("holes"))
                .unwrap()
                .set_len(8 << 20)
                .unwrap();

            chown(&data, Some(33), Some(34)).unwrap();
            fs::set_permissions(&data, fs::Permissions::from_mode(0o1770)).unwrap();

            // The volume is where the link leads to.
            symlink("srv/data", root.join("data")).unwrap();
        };

        image(place, fill, &["/data/", "fresh", "/covered/."]).await
    })
    .await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let covering = node.path().join("covering");
    fs::create_dir(&covering).unwrap();

    let config = |name: &str| {
        let config = with_security(script(name, "sleep 1000"), |security| {
            security.readonly_rootfs = true
        });
        let mount = Mount {
            container_path: "/x/../covered".to_owned(),
            host_path: covering.to_str().unwrap().to_owned(),
            ..Mount::default()
        };

        ContainerConfig {
            mounts: vec![mount],
            ..config
        }
    };
    let one = node.run(&sandbox, &pod, config("one")).await;

    let look =
        "cd /data; stat -c '%n %u:%g %a %h' . file tool deep/er/same; readlink link; cat file";
    let shown = node.exec(&one, look).await;

    let expected = [
        ". 33:34 1770 3",
        "file 0:0 644 2",
        "tool 33:34 4750 1",
        "deep/er/same 0:0 644 2",
        "/etc/passwd",
        "from the image",
    ];
    assert_eq!(shown.1, expected.join("\n"), "{shown:?}");

    let volumes = node
        .path()
        .join("root/containers")
        .join(&one)
        .join("volumes");
    let of_image = volumes.join("0");
    assert_eq!(attribute(&of_image.join("tool"), None).unwrap(), b"kept");

    let holes = fs::metadata(of_image.join("holes")).unwrap();
    assert_eq!((holes.len(), holes.blocks()), (8 << 20, 0));
    assert_eq!(
        fs::metadata(&volumes).unwrap().permissions().mode() & 0o777,
        0o700
    );

    assert_eq!(
        fs::read_dir(&volumes).unwrap().count(),
        2,
        "what the pod brings, the image does not"
    );

    // Only volumes are writable, and only by their owner.
    let write = "stat -c '%u:%g %a' /fresh; touch /no; echo $?; echo mine > /data/file; echo x > /fresh/x; \
                 cat /data/file /srv/data/file; ls /fresh; touch /covered/here; echo $?";
    let written = node.exec(&one, write).await;
    assert_eq!(written.1, "0:0 755\n1\nmine\nmine\nx\n0\n", "{written:?}");
    assert!(covering.join("here").exists());

    let two = node.run(&sandbox, &pod, config("two")).await;
    assert_eq!(
        node.exec(&two, "cat /data/file; ls /fresh").await.1,
        "from the image"
    );

    let mounts = node.status(&one).await.mounts;
    assert_eq!(
        mounts.len(),
        1,
        "only the configured mounts are reported: {mounts:?}"
    );

    node.runtime
        .stop_container(&one, std::time::Duration::ZERO)
        .await
        .unwrap();

    node.runtime.remove_container(&one).await.unwrap();
    assert!(!volumes.exists());

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_of_an_image_reaches_nothing_of_the_host() {
    let victim = tempfile::tempdir().unwrap();
    fs::write(victim.path().join("secret"), "secret").unwrap();

    let outside = victim.path().to_str().unwrap();
    let node = Node::on("volumes-out", async |place| {
        let fill = |root: &Path| {
            symlink(outside, root.join("absolute")).unwrap();
            symlink(
                format!("{}{outside}", "../".repeat(20)),
                root.join("relative"),
            )
            .unwrap();

            fs::create_dir(root.join("links")).unwrap();
            symlink(outside, root.join("links/folder")).unwrap();
            symlink(victim.path().join("secret"), root.join("links/file")).unwrap();
        };

        image(place, fill, &["/absolute", "/relative/sub", "/links"]).await
    })
    .await;

    let (pod, sandbox) = node.sandbox("pod").await;
    let one = node.run(&sandbox, &pod, script("one", "sleep 1000")).await;

    let look = "touch /absolute/evil /relative/sub/evil; ls /absolute/ /relative/sub; ls /links; cat /links/file";
    let (_, shown, complaint) = node.exec(&one, look).await;
    assert_eq!(
        shown,
        "/absolute/:\nevil\nsub\n\n/relative/sub:\nevil\nfile\nfolder\n"
    );

    assert!(complaint.contains("No such file"), "{complaint}");

    let links = node
        .path()
        .join("root/containers")
        .join(&one)
        .join("volumes/1");

    for name in ["file", "folder"] {
        assert!(
            fs::symlink_metadata(links.join(name)).unwrap().is_symlink(),
            "{name}"
        );
    }

    let left: Vec<_> = fs::read_dir(victim.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["secret"]);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_volumes_are_refused_and_leave_nothing() {
    for (number, (volume, expected)) in [
        ("/", "the image declares VOLUME \"/\", its root"),
        ("..", "the image declares VOLUME \"..\", its root"),
        ("/etc/passwd", "not a directory"),
        ("/proc/sys", "inside /proc"),
        ("/loop", "symbolic links"),
    ]
    .into_iter()
    .enumerate()
    {
        let node = Node::on(&format!("volumes-{number}"), async |place| {
            image(
                place,
                |root| symlink("loop", root.join("loop")).unwrap(),
                &[volume],
            )
            .await
        })
        .await;
        let (pod, sandbox) = node.sandbox("pod").await;
        let refused = node
            .runtime
            .create_container(&sandbox, script("one", "true"), pod.clone())
            .await;

        let refused: Error = refused.unwrap_err();
        assert!(
            refused.to_string().contains(expected),
            "{volume}: {refused}"
        );

        assert_eq!(
            fs::read_dir(node.path().join("root/containers"))
                .unwrap()
                .count(),
            0,
            "{volume}"
        );

        node.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_a_volume_that_cannot_be_changed() {
    let victim = tempfile::tempdir().unwrap();
    fs::write(victim.path().join("secret"), "secret").unwrap();
    let secret = victim.path().join("secret");
    let node = Node::on("image-volumes", async |place| {
        let fill = |root: &Path| {
            fs::create_dir_all(root.join("srv/data")).unwrap();
            fs::write(root.join("srv/data/file"), "from the image").unwrap();
            symlink("/srv/data", root.join("link")).unwrap();
            symlink(&secret, root.join("outside")).unwrap();
        };

        image(place, fill, &[]).await
    })
    .await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let mount = |at: &str, below: &str| Mount {
        container_path: at.to_owned(),
        image: Some(ImageSpec {
            image: "busybox".to_owned(),
            ..ImageSpec::default()
        }),
        image_sub_path: below.to_owned(),
        ..Mount::default()
    };
    let with = |name: &str, mounts: Vec<Mount>| ContainerConfig {
        mounts,
        ..script(name, "sleep 1000")
    };

    for below in ["outside", "absent", "srv/data/file/x"] {
        let config = with("bad", vec![mount("/m", below)]);
        let created = node
            .runtime
            .create_container(&sandbox, config, pod.clone())
            .await;
        let refused: Error = created.unwrap_err();
        assert!(refused.to_string().contains(below), "{below}: {refused}");
    }
    let mounted = || fs::read_dir(node.path().join("rootfs")).unwrap().count();
    assert_eq!(mounted(), 0, "what is refused leaves nothing");

    let mounts = vec![
        mount("/all", ""),
        mount("/folder", "link"),
        mount("/one", "../srv/data/file"),
    ];
    let one = node.run(&sandbox, &pod, with("one", mounts)).await;
    let look = "cat /all/srv/data/file /folder/file /one; echo; touch /all/x /folder/x; echo x > /one; \
                /all/bin/busybox true; echo $?";
    let (_, shown, complaint) = node.exec(&one, look).await;
    assert_eq!(shown, format!("{}\n126\n", "from the image".repeat(3)));
    assert_eq!(complaint.matches("Read-only file system").count(), 3);
    assert_eq!(node.status(&one).await.mounts.len(), 3);
    assert_eq!(mounted(), 4);

    node.runtime
        .stop_container(&one, std::time::Duration::ZERO)
        .await
        .unwrap();
    node.runtime.remove_container(&one).await.unwrap();
    assert_eq!(mounted(), 0, "the images are unmounted with the container");

    node.clear().await;
}

/// Root filesystems of an image `busybox` with these volumes, of one layer that is filled by the
/// test.
async fn image(place: &Path, fill: impl FnOnce(&Path), volumes: &[&str]) -> OverlayRootFs {
    let (root, saved) = (place.join("layer"), place.join("saved"));
    fs::create_dir(&saved).unwrap();
    unpack_busybox(&root);
    fill(&root);

    let layer = archive(&root, saved.join("layer.tar"));
    let layer = Digest::of(&fs::read(layer).unwrap()).to_string();
    let volumes: serde_json::Map<_, _> = volumes
        .iter()
        .map(|path| ((*path).to_owned(), json!({})))
        .collect();

    let config = json!({
        "os": "linux", "config": {"Volumes": volumes, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [layer]},
    });
    fs::write(saved.join("config.json"), config.to_string()).unwrap();

    let manifest =
        json!([{"Config": "config.json", "RepoTags": ["busybox"], "Layers": ["layer.tar"]}]);
    fs::write(saved.join("manifest.json"), manifest.to_string()).unwrap();
    let images = ImagesConfig::new(place.join("images"), || SystemTime::UNIX_EPOCH);
    let images = ImageStore::open(images).unwrap();
    images
        .import(
            &archive(&saved, place.join("saved.tar")),
            &ImportOptions::default(),
        )
        .await
        .unwrap();

    OverlayRootFs::new(images, place.join("rootfs"))
}

fn archive(folder: &Path, to: PathBuf) -> PathBuf {
    let mut tar = Command::new("tar");
    tar.args([
        "--xattrs",
        "--xattrs-include=*",
        "--format=posix",
        "-S",
        "-cf",
    ])
    .arg(&to)
    .arg("-C");

    assert!(tar.arg(folder).arg(".").status().unwrap().success());

    to
}

/// Sets an attribute of a file, or reads it.
fn attribute(path: &Path, value: Option<&[u8]>) -> rustix::io::Result<Vec<u8>> {
    const NAME: &str = "user.note";
    if let Some(value) = value {
        rustix::fs::setxattr(path, NAME, value, rustix::fs::XattrFlags::empty())?;
    }
    let mut found = vec![0; 64];
    let length = rustix::fs::getxattr(path, NAME, &mut found[..])?;
    found.truncate(length);
    Ok(found)
}
