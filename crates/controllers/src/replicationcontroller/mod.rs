//! The ReplicationController controller: that of ReplicaSets for another kind.

use std::sync::Arc;

use coracle_api::selector::LabelSelector;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::ownership::Controller;
use coracle_client::{Cached, Projection};

use crate::framework::Context;
use crate::pods::PodOwner;
use crate::replicaset::{self, Set};
use crate::views::{ReplicaSet, orphans_of};

/// A ReplicationController: a ReplicaSet whose selector is a plain map of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicationController(ReplicaSet);

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    replicaset::run::<ReplicationController>(context, workers).await;
}

impl Projection for ReplicationController {
    fn project(object: &Arc<Value>) -> Result<ReplicationController, TypedError> {
        let labels = object.at(&["spec", "selector"]).and_then(Value::as_object);
        // An empty selector would match everything or nothing.
        let selector = labels
            .filter(|labels| !labels.is_empty())
            .map(LabelSelector::from_labels);
        let controller = Controller::of(object.meta());
        Ok(ReplicationController(ReplicaSet {
            selector,
            controller,
            object: object.clone(),
        }))
    }
}

impl PodOwner for ReplicationController {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ReplicationController";

    fn object(&self) -> &Value {
        &self.0.object
    }

    fn selects(&self, labels: &Map) -> bool {
        self.0.selects(labels)
    }
}

impl Set for ReplicationController {
    const NAME: &'static str = "replicationcontroller-controller";
    const ACCOUNT: &'static str = "replication-controller";
    const PLURAL: &'static str = "replicationcontrollers";
    const COUNTS_TERMINATING: bool = false;

    fn as_set(set: &Arc<Cached<ReplicationController>>) -> Arc<Cached<ReplicaSet>> {
        let Cached {
            key,
            uid,
            version,
            object,
        } = set.as_ref();

        Arc::new(Cached {
            key: key.clone(),
            uid: uid.clone(),
            version: *version,
            object: object.0.clone(),
        })
    }

    fn by_controller(set: &Cached<ReplicationController>) -> Vec<Text> {
        let owner = set.object.0.controller.as_ref();
        vec![owner.map_or_else(
            || Text::from(orphans_of(&set.key.namespace)),
            |owner| owner.uid.clone(),
        )]
    }
}
