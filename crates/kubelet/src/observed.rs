//! The state of one pod in the runtime.

use std::collections::BTreeMap;

use coracle_api::time::{Duration, Timestamp};
use coracle_cri::v1::{ContainerState, ContainerStatus, PodSandboxState, PodSandboxStatus};

/// The sandboxes and containers of a pod, the newest of each first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    pub sandboxes: Vec<Sandbox>,
    pub containers: Vec<ObservedContainer>,
}

/// One sandbox of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    pub id: String,
    pub attempt: u32,
    pub ready: bool,
    pub created: Timestamp,
    pub addresses: Vec<String>,
    /// Whether it uses the host's network.
    pub host_network: bool,
}

/// One instance of a container.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedContainer {
    pub id: String,
    pub name: String,
    pub attempt: u32,
    pub state: State,
    pub created: Timestamp,
    pub image: String,
    pub image_id: String,
    pub image_ref: String,
    pub log_path: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The user it runs as, if the runtime reports it.
    pub user: Option<User>,
}

/// The user of a container's first process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: i64,
    pub gid: i64,
    pub groups: Vec<i64>,
}

/// The state of a container.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    Created,
    Running {
        since: Timestamp,
    },
    Exited {
        started: Timestamp,
        finished: Timestamp,
        code: i32,
        reason: String,
        message: String,
    },
    Unknown,
}

impl State {
    pub fn is_running(&self) -> bool {
        matches!(self, State::Running { .. })
    }

    /// Created and not exited: it holds resources of the pod.
    pub fn is_alive(&self) -> bool {
        !matches!(self, State::Exited { .. })
    }
}

impl Observed {
    /// The newest instance of a container.
    pub fn newest(&self, name: &str) -> Option<&ObservedContainer> {
        self.containers.iter().find(|seen| seen.name == name)
    }

    /// The instance before the newest.
    pub fn previous(&self, name: &str) -> Option<&ObservedContainer> {
        self.containers
            .iter()
            .filter(|seen| seen.name == name)
            .nth(1)
    }

    pub fn running(&self) -> impl Iterator<Item = &ObservedContainer> {
        self.containers
            .iter()
            .filter(|seen| seen.state.is_running())
    }

    /// The pod's current sandbox, if it is ready.
    pub fn ready_sandbox(&self) -> Option<&Sandbox> {
        self.sandboxes.first().filter(|sandbox| sandbox.ready)
    }

    pub fn of(sandboxes: &[PodSandboxStatus], containers: &[ContainerStatus]) -> Observed {
        let mut sandboxes: Vec<Sandbox> = sandboxes.iter().map(Sandbox::of).collect();
        let mut containers: Vec<ObservedContainer> =
            containers.iter().map(ObservedContainer::of).collect();
        sandboxes.sort_by_key(|sandbox| std::cmp::Reverse((sandbox.attempt, sandbox.created)));
        containers.sort_by_key(|seen| std::cmp::Reverse((seen.created, seen.attempt)));
        Observed {
            sandboxes,
            containers,
        }
    }
}

impl Sandbox {
    fn of(status: &PodSandboxStatus) -> Sandbox {
        use coracle_cri::v1::NamespaceMode;

        let network = status.network.clone().unwrap_or_default();
        let first = Some(network.ip).filter(|ip| !ip.is_empty());
        let options = status
            .linux
            .as_ref()
            .and_then(|linux| linux.namespaces.as_ref()?.options.as_ref());

        Sandbox {
            id: status.id.clone(),
            attempt: status
                .metadata
                .as_ref()
                .map_or(0, |metadata| metadata.attempt),
            ready: status.state() == PodSandboxState::SandboxReady,
            created: moment(status.created_at),
            addresses: first
                .into_iter()
                .chain(network.additional_ips.into_iter().map(|ip| ip.ip))
                .collect(),
            host_network: options.is_some_and(|options| options.network() == NamespaceMode::Node),
        }
    }
}

impl ObservedContainer {
    pub fn of(status: &ContainerStatus) -> ObservedContainer {
        let metadata = status.metadata.clone().unwrap_or_default();
        let state = match status.state() {
            ContainerState::ContainerCreated => State::Created,
            ContainerState::ContainerRunning => State::Running {
                since: moment(status.started_at),
            },
            ContainerState::ContainerExited => State::Exited {
                started: moment(status.started_at),
                finished: moment(status.finished_at),
                code: status.exit_code,
                reason: status.reason.clone(),
                message: status.message.clone(),
            },
            ContainerState::ContainerUnknown => State::Unknown,
        };

        let image = status.image.clone().unwrap_or_default();
        let asked = Some(image.user_specified_image).filter(|asked| !asked.is_empty());

        ObservedContainer {
            id: status.id.clone(),
            name: metadata.name,
            attempt: metadata.attempt,
            state,
            created: moment(status.created_at),
            image: asked.unwrap_or(image.image),
            image_id: status.image_id.clone(),
            image_ref: status.image_ref.clone(),
            log_path: status.log_path.clone(),
            labels: status.labels.clone().into_iter().collect(),
            annotations: status.annotations.clone().into_iter().collect(),
            user: status
                .user
                .as_ref()
                .and_then(|user| user.linux.as_ref())
                .map(|user| User {
                    uid: user.uid,
                    gid: user.gid,
                    groups: user.supplemental_groups.clone(),
                }),
        }
    }
}

/// Nanoseconds since 1970, as CRI has it. An unset time is 0 and so in 1970, as upstream shows it:
/// e.g. the start of a container that could not be started.
fn moment(nanos: i64) -> Timestamp {
    Timestamp::from_unix(0, 0) + Duration::from_nanos(nanos)
}
