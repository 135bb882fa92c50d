//! RunPodSandbox: all or nothing. Where cleanup after a failure fails too, the rest is listed as a
//! sandbox that is not ready, and is removed when it is stopped.

use std::fs::{self, Permissions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use coracle_cri::v1::{ContainerEventType, NamespaceMode, PodSandboxConfig, Protocol};
use coracle_files::private;
use coracle_podnet::{Pod, PortMapping};
use coracle_supervisor::protocol::Request;
use rustix::mount::{MountFlags, mount};

use super::{Sandbox, name_of};
use crate::error::Error;
use crate::namespaces::{Pins, PodNamespaces};
use crate::node::{Node, blocking};
use crate::records::{SandboxRecord, save};
use crate::spec::sysctls::{self, OwnNamespaces};
use crate::spec::{join, pod_namespaces};
use crate::{clock, ids};

/// Mount options of `/dev/shm`, shared by a pod's containers.
const SHM: &std::ffi::CStr = c"mode=1777,size=65536k";

impl Node {
    pub(crate) async fn run_sandbox(
        self: &Arc<Self>,
        config: PodSandboxConfig,
        handler: &str,
    ) -> Result<String, Error> {
        if !handler.is_empty() {
            return Err(Error::Invalid(format!(
                "no runtime for {handler:?} is configured"
            )));
        }

        check_sysctls(&config)?;
        let id = ids::new();
        let reservation = self.reserve(name_of(&config), &id)?;

        let record = SandboxRecord {
            config,
            created_at: clock::now(),
            ..SandboxRecord::default()
        };

        let sandbox = Arc::new(Sandbox::new(id.clone(), record));
        match self.build(&sandbox).await {
            Ok(()) => {
                reservation.keep();
                self.add_sandbox(Arc::clone(&sandbox));
                self.send_event(&id, &id, ContainerEventType::ContainerCreatedEvent);
                self.send_event(&id, &id, ContainerEventType::ContainerStartedEvent);
                Ok(id)
            }
            Err(error) => {
                // Only the write of the last state may have failed.
                sandbox.change(|record| record.complete = false);

                if let Err(left) = self.remove_unfinished(&sandbox).await {
                    // With its causes.
                    let left = coracle_cri::Error::from(left);
                    tracing::warn!(
                        sandbox = id, error = %left,
                        "sandbox cleanup incomplete after failed start; listed as not ready until stopped"
                    );
                }

                Err(error)
            }
        }
    }

    async fn build(self: &Arc<Self>, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        // Recorded before anything is created, so that a restart finds what to remove.
        let (node, pod) = (Arc::clone(self), Arc::clone(sandbox));
        blocking(move || node.prepare_sandbox(&pod)).await?;
        let (addresses, ready) =
            tokio::join!(self.connect(sandbox), self.connect_supervisor(sandbox));
        let (addresses, ()) = (addresses?, ready?);

        let record = sandbox.record();
        if pod_namespaces(&record.config).pid() == NamespaceMode::Pod {
            self.start_pause(sandbox).await?;
        }

        let record = sandbox.change(|record| {
            record.addresses = addresses.iter().map(ToString::to_string).collect();
            record.complete = true;
        });

        let folder = self.config.sandbox_root(&sandbox.id);
        blocking(move || save(&folder, record.as_ref())).await
    }

    /// Attaches the pod to its network. Returns its addresses; none on the host network.
    async fn connect(&self, sandbox: &Sandbox) -> Result<Vec<IpAddr>, Error> {
        match &self.network {
            Some(network)
                if pod_namespaces(&sandbox.record().config).network() != NamespaceMode::Node =>
            {
                Ok(network.attach(&self.pod(sandbox)).await?.addresses)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Creates folders, supervisor, namespaces and files of a pod.
    fn prepare_sandbox(&self, sandbox: &Sandbox) -> Result<(), Error> {
        let (root, state) = (
            self.config.sandbox_root(&sandbox.id),
            self.config.sandbox_state(&sandbox.id),
        );

        for folder in [&root, &state] {
            private::folder(folder).map_err(Error::io("create", folder))?;
        }

        let record = sandbox.record();
        save(&root, record.as_ref())?;

        Pins(&state).create(&namespaces_of(&record.config), || {
            self.start_supervisor(sandbox)?;
            let shm = state.join("shm");
            fs::create_dir_all(&shm).map_err(Error::io("create", &shm))?;
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount("shm", &shm, "tmpfs", flags, SHM)
                .map_err(|errno| Error::io("mount", &shm)(errno.into()))?;
            write_files(&root, &record.config)?;

            let logs = Path::new(&record.config.log_directory);
            if !record.config.log_directory.is_empty() {
                fs::create_dir_all(logs).map_err(Error::io("create", logs))?;
            }

            Ok(())
        })
    }

    /// Connects to the supervisor that was just started.
    async fn connect_supervisor(self: &Arc<Self>, sandbox: &Arc<Sandbox>) -> Result<(), Error> {
        let turn = sandbox.supervision.lock().await;
        let supervisor = self.dial_supervisor(sandbox).await?;
        drop(turn);
        supervisor.ready().await
    }

    /// Starts the pause process, which holds the shared PID namespace of the pod.
    async fn start_pause(&self, sandbox: &Sandbox) -> Result<(), Error> {
        let group = self.group(&sandbox.cgroup_parent(), &sandbox.id);
        let join = join(&group);
        blocking(move || group.create()).await?;
        let supervisor = sandbox.supervisor().ok_or(Error::SupervisorGone)?;
        supervisor.call(Request::Pause { join }, &[]).await?;
        Ok(())
    }

    /// The pod as its network plugin sees it.
    pub(crate) fn pod(&self, sandbox: &Sandbox) -> Pod {
        let record = sandbox.record();
        let config = &record.config;
        let metadata = config.metadata.clone().unwrap_or_default();
        let port = |port: i32| u16::try_from(port).unwrap_or_default();
        let ports = config
            .port_mappings
            .iter()
            .filter(|mapping| mapping.host_port > 0);

        Pod {
            sandbox: sandbox.id.clone(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            netns: Pins(&self.config.sandbox_state(&sandbox.id)).network(),
            ports: ports
                .map(|mapping| PortMapping {
                    protocol: match mapping.protocol() {
                        Protocol::Tcp => coracle_podnet::Protocol::Tcp,
                        Protocol::Udp => coracle_podnet::Protocol::Udp,
                        Protocol::Sctp => coracle_podnet::Protocol::Sctp,
                    },
                    container_port: port(mapping.container_port),
                    host_port: port(mapping.host_port),
                    host_ip: mapping.host_ip.parse().ok(),
                })
                .collect(),
            annotations: config.annotations.clone().into_iter().collect(),
        }
    }
}

fn namespaces_of(config: &PodSandboxConfig) -> PodNamespaces {
    let modes = pod_namespaces(config);
    let network = modes.network() != NamespaceMode::Node;
    let sysctls = config
        .linux
        .as_ref()
        .map(|linux| linux.sysctls.clone())
        .unwrap_or_default();

    PodNamespaces {
        network,
        ipc: modes.ipc() != NamespaceMode::Node,
        hostname: network.then(|| config.hostname.clone()),
        sysctls: sysctls.into_iter().collect(),
    }
}

fn check_sysctls(config: &PodSandboxConfig) -> Result<(), Error> {
    let PodNamespaces {
        network,
        ipc,
        hostname,
        sysctls,
    } = namespaces_of(config);

    let own = OwnNamespaces {
        network,
        ipc,
        uts: hostname.is_some(),
    };

    sysctls
        .iter()
        .try_for_each(|(name, _)| sysctls::check(name, &own))
}

/// Writes the files that every container of the pod has in its `/etc`.
fn write_files(folder: &Path, config: &PodSandboxConfig) -> Result<(), Error> {
    let host = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let hostname = if config.hostname.is_empty() {
        host("/etc/hostname")
    } else {
        format!("{}\n", config.hostname)
    };

    let resolver = config
        .dns_config
        .as_ref()
        .map_or_else(|| host("/etc/resolv.conf"), resolver);

    for (name, text) in [
        ("hostname", hostname),
        ("hosts", host("/etc/hosts")),
        ("resolv.conf", resolver),
    ] {
        let path = folder.join(name);
        write_shared(&path, &text).map_err(Error::io("write", &path))?;
    }

    Ok(())
}

/// Readable by containers of any user.
fn write_shared(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o644))
}

fn resolver(dns: &coracle_cri::v1::DnsConfig) -> String {
    let mut text = String::new();
    if !dns.searches.is_empty() {
        text += &format!("search {}\n", dns.searches.join(" "));
    }
    for server in &dns.servers {
        text += &format!("nameserver {server}\n");
    }
    if !dns.options.is_empty() {
        text += &format!("options {}\n", dns.options.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use coracle_cri::v1::DnsConfig;

    use super::*;

    #[test]
    fn resolv_conf_contains_the_dns_config_of_the_pod() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let dns = DnsConfig {
            servers: texts(&["10.0.0.10", "::1"]),
            searches: texts(&["default.svc", "svc"]),
            options: texts(&["ndots:5"]),
        };
        assert_eq!(
            resolver(&dns),
            "search default.svc svc\nnameserver 10.0.0.10\nnameserver ::1\noptions ndots:5\n"
        );
        assert_eq!(resolver(&DnsConfig::default()), "");
    }
}
