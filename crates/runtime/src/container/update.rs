//! UpdateContainerResources and ReopenContainerLog.

use std::sync::Arc;

use coracle_cri::v1::LinuxContainerResources;
use coracle_supervisor::protocol::Request;

use super::State;
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::records::save;
use crate::spec::{limits, unsupported_limits};

impl Node {
    pub(crate) async fn update_container(
        &self,
        id: &str,
        resources: LinuxContainerResources,
    ) -> Result<(), Error> {
        let container = self.container(id)?;
        if matches!(container.state(), State::Exited(_)) {
            return Err(Error::WrongState(format!("container {id:?} has exited")));
        }

        let group = self.hierarchies.group(&container.record().cgroup);
        let limits = limits(&resources, None);
        let cannot = blocking(move || group.limit_as_possible(&limits)).await?;
        self.warn_once(unsupported_limits(&cannot));

        let record = container.change(|record| {
            let linux = record.config.linux.get_or_insert_default();
            linux.resources = Some(merged(
                linux.resources.clone().unwrap_or_default(),
                resources,
            ));
        });

        let folder = self.config.container_root(id);
        blocking(move || save(&folder, record.as_ref())).await
    }

    pub(crate) async fn reopen_log(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let container = self.container(id)?;
        if container.state() != State::Running {
            return Err(Error::WrongState(format!(
                "container {id:?} is not running"
            )));
        }

        self.call_supervisor(
            &container.sandbox,
            Request::ReopenLog {
                container: id.to_owned(),
            },
        )
        .await?;

        Ok(())
    }
}

/// Fields that are not set keep their old value.
fn merged(old: LinuxContainerResources, new: LinuxContainerResources) -> LinuxContainerResources {
    let number = |old: i64, new: i64| if new == 0 { old } else { new };
    let text = |old: String, new: String| if new.is_empty() { old } else { new };
    LinuxContainerResources {
        cpu_period: number(old.cpu_period, new.cpu_period),
        cpu_quota: number(old.cpu_quota, new.cpu_quota),
        cpu_shares: number(old.cpu_shares, new.cpu_shares),
        memory_limit_in_bytes: number(old.memory_limit_in_bytes, new.memory_limit_in_bytes),
        oom_score_adj: number(old.oom_score_adj, new.oom_score_adj),
        cpuset_cpus: text(old.cpuset_cpus, new.cpuset_cpus),
        cpuset_mems: text(old.cpuset_mems, new.cpuset_mems),
        hugepage_limits: if new.hugepage_limits.is_empty() {
            old.hugepage_limits
        } else {
            new.hugepage_limits
        },
        unified: old.unified.into_iter().chain(new.unified).collect(),
        memory_swap_limit_in_bytes: number(
            old.memory_swap_limit_in_bytes,
            new.memory_swap_limit_in_bytes,
        ),
    }
}
