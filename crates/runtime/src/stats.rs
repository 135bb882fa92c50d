//! Resource usage of containers and pods, read from their cgroups on request.

use coracle_cri::v1::{
    ContainerAttributes, ContainerStats, ContainerStatsFilter, CpuUsage, FilesystemIdentifier,
    FilesystemUsage, LinuxPodSandboxStats, MemoryUsage, PodSandboxAttributes, PodSandboxStats,
    PodSandboxStatsFilter, ProcessUsage, UInt64Value,
};

use crate::clock;
use crate::config::text;
use crate::container::{Container, State};
use crate::error::Error;
use crate::filter::{id_matches, labels_match};
use crate::node::Node;
use crate::sandbox::Sandbox;

impl Node {
    pub(crate) async fn container_stats(&self, id: &str) -> Result<ContainerStats, Error> {
        let container = self.container(id)?;
        self.stats_of(&container).await
    }

    pub(crate) async fn list_container_stats(
        &self,
        filter: &ContainerStatsFilter,
    ) -> Result<Vec<ContainerStats>, Error> {
        let mut all = Vec::new();
        for container in self.containers() {
            let wanted = id_matches(&container.id, &filter.id)
                && id_matches(&container.sandbox.id, &filter.pod_sandbox_id)
                && labels_match(&container.record().config.labels, &filter.label_selector);
            if wanted && container.state() == State::Running {
                all.push(self.stats_of(&container).await?);
            }
        }
        Ok(all)
    }

    async fn stats_of(&self, container: &Container) -> Result<ContainerStats, Error> {
        let record = container.record();
        let now = clock::now();
        let usage = self.hierarchies.group(&record.cgroup).usage();

        let disk = self.rootfs.usage(&container.id).await?;
        let writable_layer = FilesystemUsage {
            timestamp: now,
            fs_id: Some(FilesystemIdentifier {
                mountpoint: text(&self.config.root),
            }),
            used_bytes: value(disk.bytes),
            inodes_used: value(disk.inodes),
        };

        Ok(ContainerStats {
            attributes: Some(ContainerAttributes {
                id: container.id.clone(),
                metadata: record.config.metadata.clone(),
                labels: record.config.labels.clone(),
                annotations: record.config.annotations.clone(),
            }),
            cpu: Some(cpu(&usage, now)),
            memory: Some(memory(&usage, now)),
            writable_layer: Some(writable_layer),
            ..ContainerStats::default()
        })
    }

    pub(crate) async fn sandbox_stats(&self, id: &str) -> Result<PodSandboxStats, Error> {
        let sandbox = self.sandbox(id)?;
        self.stats_of_sandbox(&sandbox).await
    }

    pub(crate) async fn list_sandbox_stats(
        &self,
        filter: &PodSandboxStatsFilter,
    ) -> Result<Vec<PodSandboxStats>, Error> {
        let mut all = Vec::new();
        for sandbox in self.sandboxes() {
            let wanted = id_matches(&sandbox.id, &filter.id)
                && labels_match(&sandbox.record().config.labels, &filter.label_selector);
            if wanted && sandbox.is_ready() {
                all.push(self.stats_of_sandbox(&sandbox).await?);
            }
        }
        Ok(all)
    }

    async fn stats_of_sandbox(&self, sandbox: &Sandbox) -> Result<PodSandboxStats, Error> {
        let record = sandbox.record();
        let now = clock::now();
        let mut containers = Vec::new();
        for container in self.containers_of(&sandbox.id) {
            if container.state() == State::Running {
                containers.push(self.stats_of(&container).await?);
            }
        }

        // The parent cgroup is that of the pod, if there is one.
        let parent = sandbox.cgroup_parent();
        let usage = if parent.is_empty() {
            None
        } else {
            Some(self.hierarchies.group(&parent).usage())
        };

        let linux = LinuxPodSandboxStats {
            cpu: usage.as_ref().map(|usage| cpu(usage, now)),
            memory: usage.as_ref().map(|usage| memory(usage, now)),
            process: usage.as_ref().map(|usage| ProcessUsage {
                timestamp: now,
                process_count: value(usage.pids),
            }),
            containers,
            ..LinuxPodSandboxStats::default()
        };

        Ok(PodSandboxStats {
            attributes: Some(PodSandboxAttributes {
                id: sandbox.id.clone(),
                metadata: record.config.metadata.clone(),
                labels: record.config.labels.clone(),
                annotations: record.config.annotations.clone(),
            }),
            linux: Some(linux),
        })
    }
}

fn cpu(usage: &coracle_cgroup::Usage, now: i64) -> CpuUsage {
    CpuUsage {
        timestamp: now,
        usage_core_nano_seconds: value(usage.cpu.nanoseconds),
        ..CpuUsage::default()
    }
}

fn memory(usage: &coracle_cgroup::Usage, now: i64) -> MemoryUsage {
    let memory = &usage.memory;
    MemoryUsage {
        timestamp: now,
        working_set_bytes: value(memory.working_set),
        available_bytes: memory
            .limit
            .and_then(|limit| value(limit.saturating_sub(memory.working_set))),
        usage_bytes: value(memory.usage),
        rss_bytes: value(memory.rss),
        page_faults: value(memory.page_faults),
        major_page_faults: value(memory.major_page_faults),
        psi: None,
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "CRI distinguishes absent from zero"
)]
fn value(value: u64) -> Option<UInt64Value> {
    Some(UInt64Value { value })
}
