//! Pods with real containers, from an API server in memory to a runtime that runs them. As root.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{HEALTHZ, RestartedRuntime, World, is_ready, restarts};
use coracle_kubelet::LogRotation;
use coracle_testkit::{eventually, on_a_machine};
use k8s_openapi::api::core::v1::PodStatus;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const SERVE: &str = "  terminationGracePeriodSeconds: 2\n  containers:\n  - {name: c, image: coracle.local/echo, imagePullPolicy: IfNotPresent}\n";

#[test]
fn a_pod_starts_becomes_ready_and_is_cleaned_up() {
    on_a_machine("up", async |machine| {
        let world = World::new(machine).await;
        world.create("p", SERVE).await;
        let pod = world.until("p", "ready", is_ready).await;
        let status = pod.status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.2"));
        assert_eq!(status.host_ip.as_deref(), Some("10.244.0.1"));

        let container = &status.container_statuses.unwrap()[0];
        assert!(
            container
                .container_id
                .as_ref()
                .unwrap()
                .starts_with("coracle://")
        );

        assert_eq!(
            (container.ready, container.started, container.restart_count),
            (true, Some(true), 0)
        );

        let uid = pod.metadata.uid.unwrap();
        let logs = world
            .machine
            .folder()
            .join(format!("data/log/pods/default_p_{uid}/c/0.log"));
        assert!(logs.exists());

        world.delete("p", None).await;
        world.gone("p").await;
        let folder = world.machine.folder().join("data/kubelet/pods").join(uid);
        eventually("its folders are gone", async || {
            (!logs.exists() && !folder.exists()).then_some(())
        })
        .await;

        let events = world.events().await;
        for event in [
            "Pulled: Container image \"coracle.local/echo\" already present on machine and can be accessed by the pod",
            "Created: Container created",
            "Started: Container started",
            "Killing: Stopping container c",
        ] {
            assert!(
                events.iter().any(|event_text| event_text == event),
                "{event}: {events:#?}"
            );
        }

        world.end().await
    });
}

#[test]
fn a_registry_that_does_not_answer_holds_up_no_pull_from_another() {
    on_a_machine("pulls", async |machine| {
        let world = World::new(machine).await;
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();

        // Bound and not listened on: connections are refused.
        let absent = tokio::net::TcpSocket::new_v4().unwrap();
        absent.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let pod = |registry: std::net::SocketAddr| {
            format!(
                "  terminationGracePeriodSeconds: 2\n  containers:\n  - {{name: c, image: '{registry}/app:v1'}}\n"
            )
        };

        world
            .create("waits", &pod(silent.local_addr().unwrap()))
            .await;
        let _pulling = silent.accept().await.unwrap();

        world
            .create("other", &pod(absent.local_addr().unwrap()))
            .await;
        let is_refused = |status: &PodStatus| {
            waiting_for(status)
                .is_some_and(|reason| matches!(reason, "ErrImagePull" | "ImagePullBackOff"))
        };

        world
            .until("other", "refused by its registry", is_refused)
            .await;
        let waits = world.get("waits").await.unwrap().status.unwrap_or_default();
        assert!(
            !is_refused(&waits),
            "its pull is still under way: {waits:?}"
        );

        for name in ["waits", "other"] {
            world.delete(name, None).await;
            world.gone(name).await;
        }

        // Pods without containers are gone before their sandboxes are.
        let left = ["data/kubelet/pods", "root/sandboxes", "state/sandboxes"];
        let left = left.map(|name| world.machine.folder().join(name));
        eventually("nothing of them is left", async || {
            left.iter()
                .all(|folder| std::fs::read_dir(folder).unwrap().next().is_none())
                .then_some(())
        })
        .await;

        world.end().await
    });
}

/// Why the first container of a pod waits.
fn waiting_for(status: &PodStatus) -> Option<&str> {
    let container = status.container_statuses.as_ref()?.first()?;
    container
        .state
        .as_ref()?
        .waiting
        .as_ref()?
        .reason
        .as_deref()
}

#[test]
fn a_large_log_is_rotated() {
    on_a_machine("logs", async |machine| {
        let mut world = World::new(machine).await;
        world.kill_kubelet().await;
        world.logs = LogRotation {
            max_size: 1,
            check_interval: Duration::from_millis(100),
            ..world.logs
        };

        world.start_kubelet();
        world.create("p", SERVE).await;
        let pod = world.until("p", "ready", is_ready).await;
        let folder = world.machine.folder().join(format!(
            "data/log/pods/default_p_{}/c",
            pod.metadata.uid.unwrap()
        ));

        let logs = || {
            let names = std::fs::read_dir(&folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        };

        // The first output is rotated, and there is a file for the next.
        let names = eventually("its log is rotated", async || {
            Some(logs()).filter(|logs| logs.len() == 2)
        });
        let names = names.await;
        assert!(
            names[0] == "0.log" && names[1].starts_with("0.log.2"),
            "{names:?}"
        );

        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(
            text(&names[1]).contains("echo: listening"),
            "{}",
            text(&names[1])
        );

        assert_eq!(text("0.log"), "");
        assert_eq!(restarts(&world.get("p").await.unwrap().status.unwrap()), 0);

        world.delete("p", None).await;
        world.gone("p").await;
        eventually("its logs are gone", async || {
            (!folder.exists()).then_some(())
        })
        .await;

        world.end().await
    });
}

#[test]
fn removal_of_orphans_is_retried() {
    on_a_machine("orphans", async |machine| {
        let mut world = World::new(machine).await;
        world.kill_kubelet().await;
        let logs = world.machine.folder().join("data/log");
        let (held, link) = (
            logs.join("pods/default_gone_uid-1/c"),
            logs.join("containers/link.log"),
        );
        std::fs::create_dir_all(&held).unwrap();

        std::fs::create_dir_all(logs.join("containers")).unwrap();
        std::os::unix::fs::symlink("/no/such/folder/0.log", &link).unwrap();
        rustix::mount::mount_bind(&held, &held).unwrap();
        world.start_kubelet();

        // Dangling links are removed last.
        eventually("removal was tried once", async || {
            (!link.is_symlink()).then_some(())
        })
        .await;

        assert!(held.exists(), "something is mounted there");

        rustix::mount::unmount(&held, rustix::mount::UnmountFlags::empty()).unwrap();
        eventually("removal is retried", async || {
            (!held.exists()).then_some(())
        })
        .await;

        world.end().await
    });
}

#[test]
fn a_crashing_container_is_restarted_with_back_off() {
    on_a_machine("crash", async |machine| {
        let world = World::new(machine).await;
        let spec = "  containers:\n  - {name: c, image: coracle.local/echo, args: [exit, '3']}\n";
        world.create("p", spec).await;

        let pod = world
            .until("p", "in back-off", |status| {
                waits_with(status, "CrashLoopBackOff")
            })
            .await;
        let status = pod.status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert_eq!(restarts(&status), 1);

        let last = status.container_statuses.unwrap()[0]
            .last_state
            .clone()
            .unwrap()
            .terminated
            .unwrap();
        assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));

        world.delete("p", Some(1)).await;
        world.gone("p").await;
        eventually("nothing of it runs", async || {
            std::fs::read_dir(world.machine.folder().join("root/sandboxes"))
                .unwrap()
                .next()
                .is_none()
                .then_some(())
        })
        .await;

        world.end().await
    });
}

#[test]
fn a_restarted_kubelet_keeps_its_pods() {
    on_a_machine("back", async |machine| {
        let mut world = World::new(machine).await;
        world.create("p", SERVE).await;
        let before = world.until("p", "ready", is_ready).await;
        world.kill_kubelet().await;
        world.machine = world.machine.restarted().await;
        world.start_kubelet();

        // A later pod shows that the kubelet works.
        world.create("q", SERVE).await;
        world.until("q", "ready", is_ready).await;
        let after = world.get("p").await.unwrap();
        assert_eq!(before.status, after.status);

        for name in ["p", "q"] {
            world.delete(name, Some(1)).await;
            world.gone(name).await;
        }

        eventually("nothing of them runs", async || {
            std::fs::read_dir(world.machine.folder().join("root/sandboxes"))
                .unwrap()
                .next()
                .is_none()
                .then_some(())
        })
        .await;

        world.end().await
    });
}

#[test]
fn network_not_ready_is_reported_only_if_it_persists() {
    on_a_machine("missed", async |machine| {
        let mut world = World::new(machine).await;
        world.create("p", SERVE).await;
        world.until("p", "ready", is_ready).await;

        world.set_pod_cidr().await;
        let missed = async |world: &World| {
            world
                .events()
                .await
                .into_iter()
                .filter(|event_text| event_text.starts_with("NetworkNotReady"))
                .count()
        };

        world.kill_kubelet().await;
        world.start_kubelet_over(Arc::new(RestartedRuntime::over(
            world.machine.runtime.clone(),
            true,
        )));

        world.create("q", SERVE).await;
        world.until("q", "ready", is_ready).await;
        assert_eq!(missed(&world).await, 0);

        world.kill_kubelet().await;
        world.start_kubelet_over(Arc::new(RestartedRuntime::over(
            world.machine.runtime.clone(),
            false,
        )));

        eventually("both pods have the event", async || {
            (missed(&world).await == 2).then_some(())
        })
        .await;

        for name in ["p", "q"] {
            world.delete(name, Some(1)).await;
            world.gone(name).await;
        }

        nothing_runs(&world).await;

        world.end().await
    });
}

/// Waits until the runtime has removed all pods.
async fn nothing_runs(world: &World) {
    let sandboxes = world.machine.folder().join("root/sandboxes");
    let is_empty = || std::fs::read_dir(&sandboxes).unwrap().next().is_none();
    eventually("nothing runs", async || is_empty().then_some(())).await;
}

#[test]
fn a_failing_pull_is_reported_and_backs_off() {
    on_a_machine("pull", async |machine| {
        let world = World::new(machine).await;
        let image = "localhost:1/none:1";
        world
            .create(
                "p",
                &format!("  containers:\n  - {{name: c, image: '{image}'}}\n"),
            )
            .await;

        world
            .until("p", "waiting to pull", |status| {
                waits_with(status, "ImagePullBackOff")
            })
            .await;

        eventually("all events are recorded", async || {
            let events = world.events().await;
            let of = |event: &str| events.iter().any(|event_text| event_text == event);
            let waiting = format!("BackOff: Back-off pulling image {image:?}");
            (of(&waiting)
                && of("Failed: Error: ErrImagePull")
                && of("Failed: Error: ImagePullBackOff"))
            .then_some(())
        })
        .await;

        world.delete("p", Some(0)).await;
        world.gone("p").await;
        nothing_runs(&world).await;

        world.end().await
    });
}

fn waits_with(status: &PodStatus, reason: &str) -> bool {
    let containers = status.container_statuses.iter().flatten();
    let mut waiting = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref());
    waiting.any(|waiting| waiting.reason.as_deref() == Some(reason))
}

#[test]
fn a_missing_pull_secret_is_reported_even_without_a_pull() {
    on_a_machine("secret", async |machine| {
        let world = World::new(machine).await;
        world
            .create(
                "p",
                &format!("{SERVE}  imagePullSecrets: [{{name: one}}, {{name: other}}]\n"),
            )
            .await;

        world.until("p", "ready", is_ready).await;
        let expected = "FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (one, other); \
            attempting to pull the image may not succeed.";
        eventually("the event is recorded", async || {
            world
                .events()
                .await
                .iter()
                .any(|event_text| event_text == expected)
                .then_some(())
        })
        .await;

        world.delete("p", Some(1)).await;
        world.gone("p").await;
        nothing_runs(&world).await;

        world.end().await
    });
}

#[test]
fn a_pod_with_a_user_namespace_is_not_run_in_the_hosts() {
    on_a_machine("users", async |machine| {
        let world = World::new(machine).await;
        world
            .create("p", &format!("{SERVE}  hostUsers: false\n"))
            .await;

        let expected = "FailedCreatePodSandBox: Failed to create pod sandbox: RuntimeClass handler \"\" does not \
            support user namespaces";
        eventually("the event is recorded", async || {
            world
                .events()
                .await
                .iter()
                .any(|event_text| event_text == expected)
                .then_some(())
        })
        .await;

        nothing_runs(&world).await;
        world.delete("p", Some(1)).await;
        world.gone("p").await;

        world.end().await
    });
}

#[test]
fn a_container_that_could_not_be_started_has_start_time_zero() {
    on_a_machine("start", async |machine| {
        let world = World::new(machine).await;
        let spec = "  restartPolicy: Never\n  containers:\n  - {name: c, image: coracle.local/echo, command: [/none]}\n";
        world.create("p", spec).await;

        let pod = world
            .until("p", "over", |status| {
                status.phase.as_deref() == Some("Failed")
            })
            .await;
        let container = pod.status.unwrap().container_statuses.unwrap().remove(0);

        let end = container.state.unwrap().terminated.unwrap();
        assert_eq!(
            (end.reason.as_deref(), end.exit_code),
            (Some("StartError"), 128)
        );

        assert_eq!(end.started_at.unwrap().0.as_second(), 0);
        assert!(end.finished_at.unwrap().0 >= pod.metadata.creation_timestamp.unwrap().0);

        world.delete("p", None).await;
        world.gone("p").await;
        nothing_runs(&world).await;

        world.end().await
    });
}

#[test]
fn a_pod_that_runs_once_succeeds() {
    on_a_machine("once", async |machine| {
        let world = World::new(machine).await;
        let spec = "  restartPolicy: Never\n  initContainers:\n  - {name: i, image: coracle.local/echo, args: [exit, '0']}\n  \
             containers:\n  - {name: c, image: coracle.local/echo, args: [sleep, '0.1']}\n";
        world.create("p", spec).await;

        let pod = world
            .until("p", "done", |status| {
                status.phase.as_deref() == Some("Succeeded")
            })
            .await;
        let status = pod.status.unwrap();
        assert!(!is_ready(&status));
        assert!(status.init_container_statuses.unwrap()[0].ready);

        world.delete("p", None).await;
        world.gone("p").await;
        eventually("nothing of it runs", async || {
            std::fs::read_dir(world.machine.folder().join("root/sandboxes"))
                .unwrap()
                .next()
                .is_none()
                .then_some(())
        })
        .await;

        world.end().await
    });
}

#[test]
fn the_node_is_registered_and_ready() {
    on_a_machine("node", async |machine| {
        let world = World::new(machine).await;
        let ready = eventually("the node is ready", async || {
            let node = world.node().await;
            let status = node.status.clone()?;
            let ready = status
                .conditions?
                .into_iter()
                .find(|condition| condition.type_ == "Ready")?;
            (ready.status == "True").then_some(node)
        })
        .await;

        let status = ready.status.unwrap();
        assert_eq!(
            status.node_info.unwrap().container_runtime_version,
            "coracle://0.1.0"
        );

        assert_eq!(
            ready.metadata.labels.unwrap()["kubernetes.io/hostname"],
            "n1"
        );

        assert!(status.capacity.unwrap().contains_key("memory"));

        let mut asked = tokio::net::TcpStream::connect(HEALTHZ).await.unwrap();
        asked
            .write_all(b"GET /healthz HTTP/1.0\r\n\r\n")
            .await
            .unwrap();

        let mut answer = String::new();
        asked.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.0 200 OK") && answer.ends_with("\r\n\r\nok"),
            "{answer}"
        );

        world.end().await
    });
}

#[test]
fn a_pod_that_does_not_fit_fails_and_can_be_deleted() {
    on_a_machine("fit", async |machine| {
        let world = World::new(machine).await;
        world.create("p", "  containers:\n  - {name: c, image: coracle.local/echo, resources: {requests: {cpu: '5000'}}}\n").await;

        let pod = world
            .until("p", "refused", |status| {
                status.phase.as_deref() == Some("Failed")
            })
            .await;
        let status = pod.status.unwrap();
        assert_eq!(status.reason.as_deref(), Some("OutOfcpu"));

        assert!(status.message.unwrap().starts_with(
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 5000000"
        ));

        world.delete("p", None).await;
        world.gone("p").await;

        world.end().await
    });
}

#[test]
fn rejected_pods_use_no_resources() {
    on_a_machine("rejected", async |machine| {
        let mut world = World::new(machine).await;
        world.kill_kubelet().await;
        world.max_pods = 1;
        world.start_kubelet();
        eventually("the node takes one pod", async || {
            let pods = world.node().await.status?.allocatable?.remove("pods")?;
            (pods.0 == "1").then_some(())
        })
        .await;

        world.kill_kubelet().await;

        // The kubelet receives all at once, in the order of their names.
        let greedy: Vec<String> = (0..50)
            .map(|number| format!("greedy-{number:02}"))
            .collect();
        for name in &greedy {
            let spec = "  containers:\n  - {name: c, image: coracle.local/echo, resources: {requests: {cpu: '5000'}}}\n";
            world.create(name, spec).await;
        }

        world.create("modest", SERVE).await;
        world.start_kubelet();

        for name in &greedy {
            let pod = world
                .until(name, "refused", |status| {
                    status.phase.as_deref() == Some("Failed")
                })
                .await;

            assert_eq!(
                pod.status.unwrap().reason.as_deref(),
                Some("OutOfcpu"),
                "{name}"
            );
        }

        world
            .until("modest", "taken", |status| {
                status.phase.as_deref() == Some("Running")
            })
            .await;

        world.delete("modest", None).await;
        world.gone("modest").await;
        nothing_runs(&world).await;

        world.end().await
    });
}

#[test]
fn a_manifest_is_run_and_has_a_mirror_pod() {
    on_a_machine("static", async |machine| {
        let folder = machine.folder().join("manifests");
        std::fs::create_dir(&folder).unwrap();

        let world = World::new(machine).await;
        let manifest =
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n".to_owned() + SERVE;
        std::fs::write(folder.join("web.yaml"), manifest).unwrap();
        eventually("its mirror is there", async || {
            world.get("web-n1").await.map(drop)
        })
        .await;

        let mirror = world.until("web-n1", "ready", is_ready).await;
        let container = mirror.status.unwrap().container_statuses.unwrap()[0]
            .container_id
            .clone();

        // A deleted mirror is recreated; the pod is not affected.
        world.delete("web-n1", Some(0)).await;
        eventually("another mirror is there", async || {
            world
                .get("web-n1")
                .await
                .filter(|pod| pod.metadata.uid != mirror.metadata.uid)
        })
        .await;

        let again = world.until("web-n1", "ready again", is_ready).await;
        assert_eq!(
            again.status.unwrap().container_statuses.unwrap()[0].container_id,
            container
        );

        std::fs::remove_file(folder.join("web.yaml")).unwrap();
        world.gone("web-n1").await;
        eventually("nothing of it runs", async || {
            std::fs::read_dir(world.machine.folder().join("root/sandboxes"))
                .unwrap()
                .next()
                .is_none()
                .then_some(())
        })
        .await;

        world.end().await
    });
}
