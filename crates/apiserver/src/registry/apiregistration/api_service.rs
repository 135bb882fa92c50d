//! APIService: one that this server answers itself is available from its first moment.

use coracle_api::names::{self, Rule};
use coracle_api::time::Time;
use coracle_api::{Map, Value};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;

use crate::registry::strategy::{Context, Strategy};

pub(in crate::registry) struct APIServices;

impl Strategy for APIServices {
    type Object = APIService;

    fn name_rule(&self) -> Rule {
        names::path_segment_name
    }

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {
        if new.at(&["spec", "service"]).is_some_and(|service| !service.is_null()) {
            return;
        }
        let mut condition = Map::new();
        condition.insert("type", "Available");
        condition.insert("status", "True");
        condition.insert("lastTransitionTime", Time(cx.now).to_string().as_str());
        condition.insert("reason", "Local");
        condition.insert("message", "Local APIServices are always available");
        let mut status = Map::new();
        status.insert("conditions", vec![Value::Object(condition)]);
        if let Some(object) = new.as_object_mut() {
            object.insert("status", status);
        }
    }
}
