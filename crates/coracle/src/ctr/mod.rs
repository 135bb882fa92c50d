//! `coracle ctr`: list, inspect, read logs of and exec into containers of this node, without an API
//! server.

mod show;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use coracle_cri::streaming::{Reader, Session};
use coracle_cri::v1::{ContainerState, ExecRequest, PodSandboxState};
use coracle_runtime::{Config, Observer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::instance::{DEFAULT_DATA_DIR, Instance};
use crate::process;

/// Lists and inspects pods and containers of this node, prints their logs, runs commands in them.
/// Works without the API server.
#[derive(Args)]
pub(crate) struct Ctr {
    /// Data directory of the node
    #[arg(long, global = true, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,
    /// Persistent directory of the runtime [default: DIR/runtime]
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// State directory of the runtime, emptied by a reboot [default: derived from the data
    /// directory]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List pods
    Pods,
    /// List containers
    Ps {
        /// Include containers that have exited
        #[arg(long, short)]
        all: bool,
    },
    /// Print the logs of a container
    Logs {
        /// Container ID, or a unique prefix of it
        container: String,
    },
    /// Run a command in a container
    Exec {
        /// Connect standard input
        #[arg(long, short = 'i')]
        stdin: bool,
        /// Allocate a terminal
        #[arg(long, short)]
        tty: bool,
        /// Container ID, or a unique prefix of it
        container: String,
        /// Command and arguments
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Print the status of a pod or container as JSON
    Inspect {
        /// Pod or container ID, or a unique prefix of it
        id: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CtrError {
    #[error("cannot start the async runtime")]
    Start(#[source] io::Error),
    #[error("{}: no cluster in this data directory", .0.display())]
    NoCluster(PathBuf),
    #[error(transparent)]
    Runtime(#[from] coracle_runtime::Error),
    #[error("cannot read log {path}")]
    Log { path: String, source: io::Error },
    #[error("connection to the command failed")]
    Streams(#[source] io::Error),
    #[error("command terminated with exit code {0}")]
    Exit(i32),
    #[error("the exit code of the command is unknown: its supervisor ended")]
    ExitUnknown,
}

impl CtrError {
    /// The exit code of a command in a container, which becomes ours.
    pub(crate) fn command_exit(&self) -> Option<u8> {
        match self {
            CtrError::Exit(code) => u8::try_from(*code).ok(),
            _ => None,
        }
    }
}

pub(crate) fn run(ctr: Ctr) -> Result<(), CtrError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CtrError::Start)?;
    let done = runtime.block_on(run_command(ctr));
    // The thread that reads standard input may block for ever.
    runtime.shutdown_background();
    done
}

async fn run_command(ctr: Ctr) -> Result<(), CtrError> {
    let observer = Observer::open(config(&ctr)?).await?;
    match ctr.command {
        Command::Pods => pods(&observer),
        Command::Ps { all } => containers(&observer, all),
        Command::Logs { container } => return logs(&observer, &observer.find(&container)?),
        Command::Inspect { id } => return inspect(&observer, &observer.find(&id)?),
        Command::Exec {
            stdin,
            tty,
            container,
            command,
        } => {
            let container_id = observer.find(&container)?;
            let request = ExecRequest {
                container_id,
                cmd: command,
                tty,
                stdin,
                stdout: true,
                stderr: !tty,
            };

            return exec(observer.exec(request).await?).await;
        }
    }

    Ok(())
}

/// The runtime of the data directory, or that of --root and --state.
fn config(ctr: &Ctr) -> Result<Config, CtrError> {
    if let (Some(root), Some(state)) = (&ctr.root, &ctr.state) {
        let (root, state) = (root.clone(), state.clone());
        return Ok(Config {
            instance: "coracle".to_owned(),
            root,
            state,
            pids_limit: None,
            open_files: None,
        });
    }

    let no_cluster = || CtrError::NoCluster(ctr.data_dir.clone());
    let known = Instance::of(&ctr.data_dir)
        .map_err(|_| no_cluster())?
        .runtime();
    if ctr.root.is_none() && !known.root.exists() {
        return Err(no_cluster());
    }

    Ok(Config {
        root: ctr.root.clone().unwrap_or(known.root),
        state: ctr.state.clone().unwrap_or(known.state),
        ..known
    })
}

fn pods(observer: &Observer) {
    let mut lines = format!("{:<14}{:<10}{:<20}NAME\n", "POD ID", "STATE", "NAMESPACE");
    for pod in observer.pods() {
        let state = if pod.state() == PodSandboxState::SandboxReady {
            "Ready"
        } else {
            "NotReady"
        };
        let metadata = pod.metadata.unwrap_or_default();
        let (id, namespace, name) = (short(&pod.id), metadata.namespace, metadata.name);
        lines += &format!("{id:<14}{state:<10}{namespace:<20}{name}\n");
    }

    process::print(lines);
}

fn containers(observer: &Observer, all: bool) {
    let mut lines = format!(
        "{:<14}{:<14}{:<10}{:<20}IMAGE\n",
        "CONTAINER", "POD ID", "STATE", "NAME"
    );

    for container in observer.containers() {
        let state = match container.state() {
            ContainerState::ContainerCreated => "Created",
            ContainerState::ContainerRunning => "Running",
            ContainerState::ContainerExited => "Exited",
            ContainerState::ContainerUnknown => "Unknown",
        };

        if state != "Running" && !all {
            continue;
        }

        let (id, pod) = (short(&container.id), short(&container.pod_sandbox_id));
        let name = container.metadata.unwrap_or_default().name;
        let image = container.image.unwrap_or_default();

        // A kubelet sets the resolved id as the image, and the user's reference beside it.
        let image = if image.user_specified_image.is_empty() {
            image.image
        } else {
            image.user_specified_image
        };
        lines += &format!("{id:<14}{pod:<14}{state:<10}{name:<20}{image}\n");
    }

    process::print(lines);
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Prints a container log, each line to its stream.
fn logs(observer: &Observer, id: &str) -> Result<(), CtrError> {
    let path = observer.container(id)?.status.unwrap_or_default().log_path;
    let broken = |source: io::Error| CtrError::Log {
        path: path.clone(),
        source,
    };
    let log = BufReader::new(File::open(&path).map_err(broken)?);

    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    for line in log.split(b'\n') {
        let line = line.map_err(broken)?;
        let mut parts = line.splitn(4, |byte| *byte == b' ').skip(1);
        let (Some(stream), Some(tag), Some(text)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };

        let sink: &mut dyn io::Write = if stream == b"stderr" {
            &mut err
        } else {
            &mut out
        };

        let end: &[u8] = if tag == b"P" { b"" } else { b"\n" };
        if let Err(error) = sink.write_all(text).and_then(|()| sink.write_all(end)) {
            process::exit_on_write_error(&error);
        }
    }

    Ok(())
}

fn inspect(observer: &Observer, id: &str) -> Result<(), CtrError> {
    match observer.container(id) {
        Ok(container) => process::print(show::container(&container)),
        Err(_) => process::print(show::pod(&observer.pod(id)?)),
    }
    Ok(())
}

/// Connects the streams of a command with ours until it exits.
async fn exec(session: Session) -> Result<(), CtrError> {
    let Session {
        stdin,
        stdout,
        stderr,
        resize: _resize,
        exit,
    } = session;

    if let Some(mut input) = stdin {
        tokio::spawn(async move {
            tokio::io::copy(&mut tokio::io::stdin(), &mut input)
                .await
                .map(drop)
        });
    }

    let (out, err) = tokio::join!(
        copy(stdout, tokio::io::stdout()),
        copy(stderr, tokio::io::stderr())
    );

    match out.and(err) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            process::exit_on_write_error(&error)
        }
        done => done.map_err(CtrError::Streams)?,
    }

    match exit.await {
        Ok(0) => Ok(()),
        Ok(code) => Err(CtrError::Exit(code)),
        Err(_) => Err(CtrError::ExitUnknown),
    }
}

async fn copy(from: Option<Reader>, mut to: impl tokio::io::AsyncWrite + Unpin) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut chunk = vec![0; 32 << 10];
    loop {
        match from.read(&mut chunk).await? {
            0 => return Ok(()),
            count => {
                to.write_all(&chunk[..count]).await?;
                to.flush().await?;
            }
        }
    }
}
