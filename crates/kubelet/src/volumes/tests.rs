//! Volumes of pods in a temporary directory, with real mounts and an API server.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::atomic::{AtomicI64, Ordering};

use coracle_api::{Value, typed};
use coracle_client::{Client, Informers, Resource, Selection, Tasks};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, eventually};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};

use super::*;
use crate::references::ChangedPods;

/// A node's volumes in a directory that is removed with all its mounts.
struct Setting {
    cluster: Cluster,
    client: Client,
    volumes: VolumeManager,
    changed: ChangedPods,
    folder: tempfile::TempDir,
    _tasks: Tasks,
}

impl Drop for Setting {
    fn drop(&mut self) {
        mount_table::unmount_below(self.folder.path()).unwrap();
    }
}

impl Setting {
    async fn new() -> Setting {
        Setting::of(Cluster::start().await).await
    }

    async fn of(cluster: Cluster) -> Setting {
        let client = cluster.client();
        let folder = tempfile::tempdir().unwrap();

        let (volumes, changed, tasks) = opened(&client, folder.path());
        let setting = Setting {
            cluster,
            client,
            volumes,
            changed,
            folder,
            _tasks: tasks,
        };

        setting
            .create::<Node>(
                "{apiVersion: v1, kind: Node, metadata: {name: n1}, \
                 status: {allocatable: {cpu: '4', memory: 64Mi, ephemeral-storage: 10Gi}}}",
            )
            .await;

        setting
    }

    async fn create<K>(&self, yaml: &str)
    where
        K: k8s_openapi::Resource,
        K::Scope: 'static,
    {
        let tree = object(yaml);
        self.client
            .resource(&Resource::of::<K>())
            .create(&tree)
            .await
            .unwrap();
    }

    /// The text of a file in a pod's volume.
    fn read(&self, pod: &Pod, volume: &str, file: &str) -> String {
        let path = host_path(&self.volumes.layout, pod, volume).unwrap();
        fs::read_to_string(path.join(file)).unwrap()
    }

    fn mounted(&self) -> usize {
        mount_table::mounted_below(self.folder.path())
            .unwrap()
            .len()
    }
}

/// A kubelet's volumes in a directory, as after a start.
fn opened(client: &Client, folder: &Path) -> (VolumeManager, ChangedPods, Tasks) {
    let tasks = Tasks::new();
    let informers = Informers::new(client.clone(), tasks.clone());
    let itself = Selection::all(&Resource::of::<Node>()).fields("metadata.name=n1");

    let (references, changed) = References::new(client);
    let volumes = VolumeManager {
        layout: Layout::below(folder),
        world: client.world(),
        references,
        tokens: tokens::Tokens::new(client.clone()),
        node: informers.of(itself),
        work: KeyedLocks::default(),
        recursive_read_only: true,
    };

    (volumes, changed, tasks)
}

/// A pod whose only container mounts all these volumes, given as YAML.
fn pod(volumes: &str) -> Pod {
    pod_with("", volumes, "")
}

fn pod_with(spec: &str, volumes: &str, mount: &str) -> Pod {
    let volumes = object(&format!("volumes: {volumes}"));
    let names = volumes.get("volumes").and_then(Value::as_array).unwrap();
    let names = names
        .iter()
        .map(|volume| volume.get("name").and_then(Value::as_str).unwrap());

    let mounts: Vec<String> = names
        .map(|name| format!("{{name: {name}, mountPath: /m/{name}{mount}}}"))
        .collect();
    let spec = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: default, uid: u-1, labels: {{app: web}}}}, \
         spec: {{{spec} containers: [{{name: c, image: i, volumeMounts: [{}]}}]}}}}",
        mounts.join(", ")
    );
    let mut pod: Pod = typed::from_tree(&object(&spec)).unwrap();

    let volumes: Vec<Volume> = typed::from_tree(volumes.get("volumes").unwrap()).unwrap();
    pod.spec.as_mut().unwrap().volumes = Some(volumes);

    pod
}

#[tokio::test]
async fn empty_dirs_are_created_and_removed_with_the_pod() {
    let setting = Setting::new().await;
    let pod = pod_with(
        "securityContext: {fsGroup: 2345},",
        "[{name: disk, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]",
        "",
    );
    setting.volumes.mount(&pod).await.unwrap();

    let disk = setting
        .folder
        .path()
        .join("kubelet/pods/u-1/volumes/kubernetes.io~empty-dir/disk");
    let memory = disk.with_file_name("memory");

    // A tmpfs has the sticky bit by default.
    for (dir, mode) in [(&disk, 0o2777), (&memory, 0o3777)] {
        let found = fs::metadata(dir).unwrap();
        assert_eq!(
            (found.mode() & 0o7777, found.gid()),
            (mode, 2345),
            "{}",
            dir.display()
        );
    }

    assert_eq!(setting.mounted(), 1);

    let size = rustix::fs::statfs(&memory).unwrap();
    assert_eq!(
        size.f_blocks * u64::try_from(size.f_bsize).unwrap(),
        1 << 20
    );

    fs::write(disk.join("kept"), "x").unwrap();
    fs::write(memory.join("kept"), "x").unwrap();
    setting.volumes.mount(&pod).await.unwrap();
    assert!(
        disk.join("kept").exists() && memory.join("kept").exists(),
        "a second mount changes nothing"
    );

    assert_eq!(setting.mounted(), 1);

    setting.volumes.unmount("u-1").await.unwrap();
    setting.volumes.unmount("u-1").await.unwrap();
    assert_eq!(setting.mounted(), 0);
    assert!(!disk.exists());
}

#[tokio::test]
async fn a_changed_config_map_updates_its_volume() {
    let mut setting = Setting::new().await;
    setting.create::<ConfigMap>(CONFIG_MAP).await;
    let pod = pod("[{name: v, configMap: {name: cm, defaultMode: 420}}]");
    setting.volumes.mount(&pod).await.unwrap();
    assert_eq!(setting.read(&pod, "v", "k"), "one");

    let changed = object(&CONFIG_MAP.replace("one", "two"));
    setting
        .client
        .resource(&Resource::of::<ConfigMap>())
        .update(&changed)
        .await
        .unwrap();

    assert_eq!(setting.changed.recv().await.unwrap(), "u-1");

    setting.volumes.mount(&pod).await.unwrap();
    assert_eq!(setting.read(&pod, "v", "k"), "two");
}

const CONFIG_MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, namespace: default}, data: {k: one, other: x}}";

#[tokio::test]
async fn missing_objects_fail_with_upstreams_message_until_created() {
    let mut setting = Setting::new().await;
    let pod = pod(
        "[{name: v, configMap: {name: cm, defaultMode: 420}}, {name: s, secret: {secretName: sec, defaultMode: 420}}, \
          {name: o, configMap: {name: none, optional: true, defaultMode: 420}}, {name: disk, hostPath: {path: /no/such, type: Directory}}, \
          {name: claim, persistentVolumeClaim: {claimName: c}}]",
    );
    let failed = setting.volumes.mount(&pod).await.unwrap_err();

    let expected = [
        "MountVolume.SetUp failed for volume \"v\" : configmap \"cm\" not found",
        "MountVolume.SetUp failed for volume \"s\" : secret \"sec\" not found",
        "MountVolume.SetUp failed for volume \"disk\" : hostPath type check failed: /no/such is not a directory",
        "MountVolume.FindPluginBySpec failed for volume \"claim\" : persistentVolumeClaim volumes are not supported by this node",
    ];
    assert_eq!(failed.failures, expected);

    setting.create::<ConfigMap>(CONFIG_MAP).await;
    assert_eq!(
        setting.changed.recv().await.unwrap(),
        "u-1",
        "its creation is reported"
    );

    let failed = setting.volumes.mount(&pod).await.unwrap_err();
    assert_eq!(failed.failures, expected[1..]);
}

#[tokio::test]
async fn unused_volumes_are_not_created() {
    let setting = Setting::new().await;
    let mut pod = pod("[{name: v, configMap: {name: cm, defaultMode: 420}}]");
    pod.spec.as_mut().unwrap().containers[0].volume_mounts = None;
    setting.volumes.mount(&pod).await.unwrap();
    assert!(!setting.volumes.layout.volumes("u-1").exists());
}

#[tokio::test]
async fn a_projected_volume_combines_its_sources() {
    let setting = Setting::new().await;
    setting.create::<ConfigMap>(CONFIG_MAP).await;
    setting
        .create::<Secret>(
            "{apiVersion: v1, kind: Secret, metadata: {name: sec, namespace: default}, stringData: {password: pw}}",
        )
        .await;

    let pod = pod_with(
        "securityContext: {fsGroup: 2000},",
        "[{name: v, projected: {defaultMode: 288, sources: [\
           {configMap: {name: cm, items: [{key: k, path: deep/k}]}}, {secret: {name: sec}}, \
           {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, \
             {path: memory, resourceFieldRef: {containerName: c, resource: limits.memory, divisor: 1Mi}}]}}]}}]",
        "",
    );
    let mounted = setting.volumes.mount(&pod).await.unwrap();
    assert_eq!(mounted.renew_at, None, "nothing in it expires");

    assert_eq!(setting.read(&pod, "v", "deep/k"), "one");

    assert_eq!(setting.read(&pod, "v", "password"), "pw");
    assert_eq!(setting.read(&pod, "v", "labels"), "app=\"web\"");
    assert_eq!(setting.read(&pod, "v", "memory"), "64");

    let path = host_path(&setting.volumes.layout, &pod, "v").unwrap();
    let found = fs::metadata(path.join("password")).unwrap();
    assert_eq!((found.mode() & 0o777, found.gid()), (0o440, 2000));

    setting.volumes.unmount(pod.uid()).await.unwrap();
    assert_eq!(setting.mounted(), 0);
}

/// Seconds by which the kubelet's clock is ahead of the server's.
static AHEAD: AtomicI64 = AtomicI64::new(0);

#[tokio::test]
async fn a_token_is_renewed_in_its_file_when_four_fifths_of_its_time_are_over() {
    let setting = Setting::of(Cluster::start_with_https().await).await;
    let now = || {
        coracle_testkit::REAL
            .now()
            .plus_seconds(AHEAD.load(Ordering::Relaxed))
    };

    let world = World {
        now,
        ..setting.client.world()
    };
    let client = Client::new(setting.cluster.transport(), world);
    let (volumes, _changed, _tasks) = opened(&client, setting.folder.path());

    setting
        .create::<ServiceAccount>(
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: default}}",
        )
        .await;

    let wanted = pod_with(
        "serviceAccountName: robot, nodeName: n1,",
        "[{name: v, projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 600}}]}}]",
        "",
    );
    let tree = typed::to_tree(&wanted).unwrap();

    let pods = setting
        .client
        .resource(&Resource::of::<Pod>())
        .namespace("default");
    let pod: Pod = typed::from_tree(&pods.create(&tree).await.unwrap()).unwrap();

    let mut seen = Vec::new();
    for (ahead, what) in [
        (0, "the first"),
        (400, "still the first"),
        (481, "a fresh one"),
    ] {
        AHEAD.store(ahead, Ordering::Relaxed);
        let mounted = volumes.mount(&pod).await.unwrap();
        assert!(mounted.renew_at.is_some(), "{what} will have to be renewed");
        seen.push(setting.read(&pod, "v", "token"));
    }

    let same: Vec<bool> = seen.windows(2).map(|two| two[0] == two[1]).collect();
    assert_eq!(same, [true, false]);

    volumes.unmount(pod.uid()).await.unwrap();
}

#[tokio::test]
async fn after_a_restart_volumes_are_found_and_orphans_are_cleaned_up() {
    let setting = Setting::new().await;
    setting.create::<Secret>(
        "{apiVersion: v1, kind: Secret, metadata: {name: sec, namespace: default}, stringData: {password: pw}}",
    )
    .await;

    let mut one = pod_with(
        "",
        "[{name: s, secret: {secretName: sec, defaultMode: 420}}, {name: m, emptyDir: {medium: Memory}}]",
        ", subPath: password",
    );
    setting.volumes.mount(&one).await.unwrap();

    let container = one.pod_spec().containers[0].clone();
    let none = ImageVolumes::new();
    setting
        .volumes
        .bind(&one, &container, &[], &none)
        .await
        .unwrap();
    assert_eq!(setting.mounted(), 4);

    let (again, _changed, _tasks) = opened(&setting.client, setting.folder.path());
    again.mount(&one).await.unwrap();
    again
        .bind(&one, &container, &[], &ImageVolumes::new())
        .await
        .unwrap();
    assert_eq!(setting.mounted(), 4, "nothing is mounted twice");

    one.metadata.uid = Some("u-2".to_owned());
    again.mount(&one).await.unwrap();
    let pod_manager = PodManager::default();
    pod_manager.set(Arc::new(one.clone()));
    again.clean_up(&pod_manager).await.unwrap();
    assert!(!setting.volumes.layout.pod("u-1").exists());
    assert_eq!(setting.mounted(), 2);

    pod_manager.forget("u-2");
    again.clean_up(&pod_manager).await.unwrap();
    assert_eq!(setting.mounted(), 0);
    assert_eq!(
        fs::read_dir(setting.volumes.layout.pods()).unwrap().count(),
        0
    );
}

#[tokio::test]
async fn an_interrupted_setup_is_continued() {
    let setting = Setting::new().await;
    setting.create::<Secret>(
        "{apiVersion: v1, kind: Secret, metadata: {name: sec, namespace: default}, stringData: {password: pw}}",
    )
    .await;

    let pod = pod("[{name: s, secret: {secretName: sec, defaultMode: 420}}]");
    let dir = host_path(&setting.volumes.layout, &pod, "s").unwrap();
    fs::create_dir_all(&dir).unwrap();

    empty_dir::set_up(
        &dir,
        &setting.folder.path().join("elsewhere"),
        &empty_dir::Medium::Memory { size: 1 << 20 },
        None,
    )
    .unwrap();

    fs::create_dir(dir.join("..2026_01_01_00_00_00.1")).unwrap();
    symlink("..2026_01_01_00_00_00.1", dir.join("..data_tmp")).unwrap();
    setting.volumes.mount(&pod).await.unwrap();
    assert_eq!(setting.read(&pod, "s", "password"), "pw");
    assert_eq!(setting.mounted(), 1);
}

#[tokio::test]
async fn a_setup_that_is_given_up_ends_before_the_volumes_are_removed() {
    let setting = Setting::new().await;
    let wanted =
        pod("[{name: one, emptyDir: {medium: Memory}}, {name: other, emptyDir: {medium: Memory}}]");

    for polls in 0..200 {
        let given_up = async {
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
        };

        tokio::select! {
            biased;
            mounted = setting.volumes.mount(&wanted) => drop(mounted.unwrap()),
            () = given_up => {}
        }

        setting.volumes.unmount(wanted.uid()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert_eq!(setting.mounted(), 0, "given up after {polls} steps");
    }
}

#[tokio::test]
async fn subpaths_are_mounted_and_cannot_escape_the_volume() {
    let setting = Setting::new().await;
    let outside = setting.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();

    let bind = async |sub_path: &str| {
        let pod = pod_with(
            "",
            "[{name: v, emptyDir: {}}]",
            &format!(", subPathExpr: '{sub_path}'"),
        );
        setting.volumes.mount(&pod).await.unwrap();

        let container = pod.pod_spec().containers[0].clone();
        let environment = [("POD".to_owned(), "web-0".to_owned())];
        let bound = setting
            .volumes
            .bind(&pod, &container, &environment, &ImageVolumes::new())
            .await;

        bound
            .map(|mut mounts| mounts.remove(0).host_path)
            .map_err(|error| error.to_string())
    };

    let volume = setting
        .volumes
        .layout
        .volume("u-1", empty_dir::DIRECTORY, "v");
    let made = bind("logs/$(POD)").await.unwrap();
    assert_eq!(
        made,
        format!(
            "{}/kubelet/pods/u-1/volume-subpaths/v/c/0",
            setting.folder.path().display()
        )
    );

    fs::write(volume.join("logs/web-0/file"), "in").unwrap();
    assert_eq!(fs::read(Path::new(&made).join("file")).unwrap(), b"in");
    assert_eq!(
        fs::metadata(volume.join("logs/web-0")).unwrap().mode() & 0o7777,
        0o777
    );

    fs::write(volume.join("plain"), "a file").unwrap();
    let file = bind("plain").await.unwrap();
    assert_eq!(
        fs::read(file).unwrap(),
        b"a file",
        "it is replaced by another subpath"
    );

    symlink("logs/web-0", volume.join("inside")).unwrap();
    let inside = bind("inside").await.unwrap();
    assert!(Path::new(&inside).join("file").exists());

    symlink(volume.join("logs"), volume.join("absolute")).unwrap();
    bind("absolute/web-0").await.unwrap();

    symlink(&outside, volume.join("out")).unwrap();
    symlink("../../../../../../outside", volume.join("up")).unwrap();
    symlink("/no/such/place", volume.join("dangling")).unwrap();
    let prepare = "failed to prepare subPath for volumeMount \"v\" of container \"c\"";
    let create = "failed to create subPath directory for volumeMount \"v\" of container \"c\"";
    assert_eq!(bind("out").await.unwrap_err(), prepare);

    assert_eq!(bind("up").await.unwrap_err(), prepare);
    assert_eq!(bind("out/new").await.unwrap_err(), create);
    assert_eq!(bind("dangling").await.unwrap_err(), create);
    assert_eq!(bind("plain/below").await.unwrap_err(), create);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);

    setting.volumes.unmount("u-1").await.unwrap();
    assert_eq!(setting.mounted(), 0);
    assert!(outside.exists());
}

#[tokio::test]
async fn objects_are_watched_as_long_as_a_pod_uses_them() {
    let setting = Setting::new().await;
    setting.create::<ConfigMap>(CONFIG_MAP).await;
    let pod = pod("[{name: v, configMap: {name: cm, defaultMode: 420}}]");
    setting.volumes.mount(&pod).await.unwrap();

    let known = async || setting.volumes.references.config_map("default", "cm").await;
    known().await.unwrap();
    setting.volumes.unmount("u-1").await.unwrap();
    eventually("the watch ends", async || known().await.err()).await;
    assert_eq!(
        known().await.unwrap_err().to_string(),
        "object \"default\"/\"cm\" not registered"
    );
}
