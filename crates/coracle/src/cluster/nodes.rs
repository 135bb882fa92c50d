//! The nodes of a cluster: their namespaces and links, and the processes in them.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use coracle_client::{Config, Environment};
use coracle_netlink::route::{Connection, Mac, Peer};
use ipnet::IpNet;

use super::ClusterError;
use super::place;
use super::state::Cluster;
use crate::process;
use crate::running;
use crate::token::{self, JoinToken};

const MTU: u32 = 1500;
const BRIDGE: &str = "br0";
const INTERFACE: &str = "eth0";
/// How long the token of a cluster's nodes is valid: until they have joined.
const TOKEN_TTL: Duration = Duration::from_secs(600);

/// Whether a node runs.
pub(super) enum State {
    Running,
    Stopped,
}

/// Creates the namespaces and links of all nodes, and starts them.
pub(super) fn create(cluster: &Cluster) -> Result<(), ClusterError> {
    let at = |path: PathBuf| move |error| ClusterError::File { path, error };
    place::make_folder(&cluster.places()).map_err(at(cluster.places()))?;
    make_bridge(cluster)?;
    for index in 0..cluster.nodes.len() {
        make_node(cluster, index)?;
    }

    start(cluster, 0, None)?;
    if cluster.nodes.len() > 1 {
        let token = token(cluster)?;
        let starting: Vec<_> = (1..cluster.nodes.len())
            .map(|index| spawn(cluster, index, Some(&token)).map(|child| (index, child)))
            .collect();
        for started in starting {
            let (index, child) = started?;
            until_ready(cluster, index, child)?;
        }
    }
    Ok(())
}

fn token(cluster: &Cluster) -> Result<JoinToken, ClusterError> {
    let file = cluster.data_dir(&cluster.nodes[0]).join("admin.kubeconfig");
    let server = cluster.url();
    let config = Config::load(Some(&file), Some(&server), &Environment::default())?;
    Ok(process::block_on(token::for_nodes(&config, TOKEN_TTL))??)
}

/// A bridge in a network namespace of its own, with an interface to this machine.
fn make_bridge(cluster: &Cluster) -> Result<(), ClusterError> {
    let bridge = cluster.bridge();
    bridge.create(None).map_err(|source| ClusterError::Place {
        node: "the bridge".to_owned(),
        source,
    })?;

    let mut inside = bridge.connection()?;
    inside.add_bridge(BRIDGE, mac(cluster, 255), MTU)?;
    let index = index_of(&mut inside, BRIDGE)?;
    inside.set_up(index)?;

    let host = File::open("/proc/self/ns/net").map_err(|error| ClusterError::File {
        path: PathBuf::from("/proc/self/ns/net"),
        error,
    })?;
    let uplink = cluster.uplink();
    let peer = Peer {
        name: &uplink,
        mac: mac(cluster, 254),
        namespace: &host,
    };
    inside.add_pair("uplink", index, MTU, &peer)?;

    let mut outside = Connection::open()?;
    let index = index_of(&mut outside, &uplink)?;
    outside.add_address(index, network(cluster.gateway().into()))?;
    Ok(outside.set_up(index)?)
}

fn make_node(cluster: &Cluster, index: usize) -> Result<(), ClusterError> {
    let node = &cluster.nodes[index];
    let at = |path: PathBuf| move |error| ClusterError::File { path, error };
    let kubelet = cluster.data_dir(node).join("kubelet");
    fs::create_dir_all(&kubelet).map_err(at(kubelet.clone()))?;
    let place = cluster.place(node);
    place
        .create(Some(&kubelet))
        .map_err(|source| ClusterError::Place {
            node: node.clone(),
            source,
        })?;

    let mut bridge = cluster.bridge().connection()?;
    let port_of = index_of(&mut bridge, BRIDGE)?;
    let namespace = place.open_network().map_err(at(cluster.places()))?;
    let number = u8::try_from(index).unwrap_or(u8::MAX);
    let peer = Peer {
        name: INTERFACE,
        mac: mac(cluster, number),
        namespace: &namespace,
    };
    bridge.add_pair(&Cluster::port(index), port_of, MTU, &peer)?;

    let mut inside = place.connection()?;
    let interface = index_of(&mut inside, INTERFACE)?;
    inside.add_address(interface, network(cluster.node_address(index).into()))?;
    inside.set_up(interface)?;
    Ok(inside.add_default_route(cluster.gateway().into(), interface)?)
}

fn index_of(connection: &mut Connection, name: &str) -> Result<u32, ClusterError> {
    let index = connection.link(name)?;
    index.ok_or_else(|| ClusterError::File {
        path: PathBuf::from(name),
        error: io::Error::from(io::ErrorKind::NotFound),
    })
}

/// A locally administered address.
fn mac(cluster: &Cluster, number: u8) -> Mac {
    [0x02, 0xc0, 0x7a, 0x1e, cluster.number, number]
}

fn network(address: IpAddr) -> IpNet {
    IpNet::new(address, 24).expect("24 is a length of IPv4 addresses")
}

/// Starts a node and waits until it is ready.
pub(super) fn start(
    cluster: &Cluster,
    index: usize,
    token: Option<&JoinToken>,
) -> Result<(), ClusterError> {
    until_ready(cluster, index, spawn(cluster, index, token)?)
}

/// Starts the process of a node in its namespaces.
fn spawn(
    cluster: &Cluster,
    index: usize,
    token: Option<&JoinToken>,
) -> Result<Child, ClusterError> {
    let node = &cluster.nodes[index];
    let program = if index == 0 { "server" } else { "agent" };
    let mut command = coracle(program, &cluster.data_dir(node));
    command
        .args(["--node-name", node])
        .args(["--node-ip", &cluster.node_address(index).to_string()]);
    if let Some(token) = token {
        command.args(["--server", &cluster.url(), "--token", &token.to_string()]);
    }

    let log = cluster.log(node);
    let opened = File::options().create(true).append(true).open(&log);
    let stderr = opened.map_err(|error| ClusterError::File { path: log, error })?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        // Ctrl-C is for the command, not for the node.
        .process_group(0);
    let spawned = cluster.place(node).inside(|| command.spawn());
    spawned.map_err(|source| ClusterError::Place {
        node: node.clone(),
        source,
    })
}

/// Waits until a node says that it is ready.
fn until_ready(cluster: &Cluster, index: usize, mut child: Child) -> Result<(), ClusterError> {
    let output = child.stdout.take().map(BufReader::new);
    let lines = output.into_iter().flat_map(BufReader::lines);
    for line in lines.map_while(Result::ok) {
        if line.contains(" is ready") {
            return Ok(());
        }
    }

    let log = cluster.log(&cluster.nodes[index]);
    let text = fs::read_to_string(&log).unwrap_or_default();
    let last: Vec<&str> = text.lines().rev().take(5).collect();
    Err(ClusterError::Node {
        node: cluster.nodes[index].clone(),
        tail: last.into_iter().rev().collect::<Vec<_>>().join("\n"),
        log,
    })
}

/// This program with a data directory.
fn coracle(command: &str, data_dir: &Path) -> Command {
    let mut this = Command::new("/proc/self/exe");
    this.arg0("coracle")
        .arg(command)
        .arg("--data-dir")
        .arg(data_dir);
    this
}

/// Runs a command of this program in the namespaces of a node.
fn run(
    cluster: &Cluster,
    node: &str,
    name: &'static str,
    arguments: &[&Path],
) -> Result<Output, ClusterError> {
    let mut command = coracle(name, &cluster.data_dir(node));
    command.args(arguments);

    let place = cluster.place(node);
    let output = place
        .inside(|| command.output())
        .map_err(|source| ClusterError::Place {
            node: node.to_owned(),
            source,
        })?;
    match output.status.success() {
        true => Ok(output),
        false => Err(ClusterError::Command {
            node: node.to_owned(),
            command: name,
            error: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

/// Stops a node and its pods.
pub(super) fn stop(cluster: &Cluster, index: usize) -> Result<(), ClusterError> {
    let arguments = [Path::new("--grace-period=0")];
    run(cluster, &cluster.nodes[index], "stop", &arguments).map(drop)
}

pub(super) fn state(cluster: &Cluster, node: &str) -> Result<State, ClusterError> {
    let folder = cluster.data_dir(node);
    let locked = running::is_running(&folder).map_err(|error| ClusterError::File {
        path: folder,
        error,
    })?;
    Ok(if locked {
        State::Running
    } else {
        State::Stopped
    })
}

/// Connects a node to the bridge, or cuts it off.
pub(super) fn connect(
    cluster: &Cluster,
    index: usize,
    is_connected: bool,
) -> Result<(), ClusterError> {
    let mut bridge = cluster.bridge().connection()?;
    let port = index_of(&mut bridge, &Cluster::port(index))?;
    match is_connected {
        true => Ok(bridge.set_up(port)?),
        false => Ok(bridge.set_down(port)?),
    }
}

pub(super) fn load_images(cluster: &Cluster, files: &[PathBuf]) -> Result<(), ClusterError> {
    let mut whole = Vec::new();
    for file in files {
        whole.push(file.canonicalize().map_err(|error| ClusterError::File {
            path: file.clone(),
            error,
        })?);
    }
    for node in &cluster.nodes {
        let mut arguments = vec![Path::new("import")];
        arguments.extend(whole.iter().map(PathBuf::as_path));
        run(cluster, node, "image", &arguments)?;
        process::print_line(format_args!("{node}: images imported"));
    }
    Ok(())
}

/// Copies the logs of nodes and pods.
pub(super) fn export_logs(cluster: &Cluster, folder: &Path) -> Result<(), ClusterError> {
    for node in &cluster.nodes {
        let to = folder.join(node);
        let fail = |error| ClusterError::File {
            path: to.clone(),
            error,
        };
        fs::create_dir_all(&to).map_err(fail)?;
        fs::copy(cluster.log(node), to.join("coracle.log")).map_err(fail)?;
        let pods = cluster.data_dir(node).join("kubelet/log/pods");
        copy_files(&pods, &to.join("pods")).map_err(fail)?;
    }
    process::print_line(format_args!("logs are in {}", folder.display()));
    Ok(())
}

/// Copies regular files and directories; links are left out.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    let mut left = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = left.pop() {
        let entries = match fs::read_dir(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };

        fs::create_dir_all(&to)?;
        for entry in entries {
            let entry = entry?;
            let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
            if kind.is_dir() {
                left.push((entry.path(), target));
            } else if kind.is_file() {
                fs::copy(entry.path(), target)?;
            }
        }
    }
    Ok(())
}

/// Removes pods, processes, namespaces and links of all nodes. Can be repeated.
pub(super) fn remove(cluster: &Cluster) -> Result<(), ClusterError> {
    for node in &cluster.nodes {
        // One that never started has nothing to be removed.
        if cluster.data_dir(node).join("pki").exists() {
            run(cluster, node, "reset", &[Path::new("--yes")])?;
        }
        let removed = cluster.place(node).remove();
        removed.map_err(|source| ClusterError::Place {
            node: node.clone(),
            source,
        })?;
    }

    let places = cluster.places();
    let removed = cluster
        .bridge()
        .remove()
        .and_then(|()| place::remove_folder(&places));
    removed.map_err(|error| ClusterError::File {
        path: places,
        error,
    })?;

    // It goes with its other end, which the kernel removes some time after the namespace.
    let mut outside = Connection::open()?;
    Ok(outside.delete_link(&cluster.uplink())?)
}
