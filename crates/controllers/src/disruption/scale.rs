//! The desired number of pods of their controllers.

use coracle_api::Text;
use coracle_client::ownership::Controller;
use coracle_client::{Cached, Informer, ObjectKey, Projection, Resource};

use super::plan::Scale;
use crate::framework::{Context, Feeds};
use crate::pods::PodOwner;
use crate::replicationcontroller::ReplicationController;
use crate::views::{Deployment, ReplicaSet, StatefulSet};

/// The kinds with a scale.
pub(super) struct Scales {
    sets: Informer<ReplicaSet>,
    deployments: Informer<Deployment>,
    stateful: Informer<StatefulSet>,
    controllers: Informer<ReplicationController>,
}

impl Scales {
    pub(super) fn new(context: &Context, feeds: &mut Feeds) -> Scales {
        let apps = |plural| Resource::builtin("apps", "v1", plural);
        let scales = Scales {
            sets: context.informers.of(&apps("replicasets")),
            deployments: context.informers.of(&apps("deployments")),
            stateful: context.informers.of(&apps("statefulsets")),
            controllers: context.informers.of(&Resource::builtin(
                "",
                "v1",
                "replicationcontrollers",
            )),
        };

        // Only read; their effects arrive as changes of pods.
        feeds.follow(&scales.sets, |_| {});

        feeds.follow(&scales.deployments, |_| {});
        feeds.follow(&scales.stateful, |_| {});
        feeds.follow(&scales.controllers, |_| {});

        scales
    }

    /// The desired number of a controller, or of its own controller.
    pub(super) fn of(&self, namespace: &str, owner: &Controller) -> Scale {
        let (group, _) = owner
            .api_version
            .split_once('/')
            .unwrap_or(("", &owner.api_version));

        match (group, owner.kind.as_str()) {
            ("apps" | "extensions", "ReplicaSet") => {
                let Some(set) = found(&self.sets, namespace, owner) else {
                    return Scale::Gone;
                };
                match set
                    .controller
                    .as_ref()
                    .filter(|above| above.kind == "Deployment")
                {
                    None => wants(&set.uid, i64::try_from(set.replicas()).unwrap_or(i64::MAX)),
                    Some(above) => match found(&self.deployments, namespace, above) {
                        Some(deployment) => wants(&deployment.uid, deployment.replicas()),
                        None => Scale::Gone,
                    },
                }
            }
            ("apps", "StatefulSet") => match found(&self.stateful, namespace, owner) {
                Some(set) => wants(&set.uid, i64::try_from(set.replicas()).unwrap_or(i64::MAX)),
                None => Scale::Gone,
            },
            ("", "ReplicationController") => match found(&self.controllers, namespace, owner) {
                Some(set) => {
                    let replicas = set.object.object().at(&["spec", "replicas"]);
                    wants(
                        &set.uid,
                        replicas.and_then(coracle_api::Value::as_int).unwrap_or(1),
                    )
                }
                None => Scale::Gone,
            },
            ("", kind) => Scale::None(format!("{}s", kind.to_lowercase())),
            (group, kind) => Scale::None(format!("{}s.{group}", kind.to_lowercase())),
        }
    }
}

fn wants(uid: &Text, replicas: i64) -> Scale {
    Scale::Wants {
        uid: uid.clone(),
        replicas,
    }
}

/// The object of a reference, matched by UID.
fn found<T: Projection>(
    all: &Informer<T>,
    namespace: &str,
    owner: &Controller,
) -> Option<std::sync::Arc<Cached<T>>> {
    all.get(&ObjectKey::new(namespace, &owner.name))
        .filter(|found| found.uid == owner.uid)
}
