//! Service: a name with a stable address.
//!
//! Most fields of a Service follow from a few. On a write, [`intent`] interprets requests of old
//! clients and carries over what was allocated before; [`families`] decides which address families
//! it has; [`addresses`] and [`node_ports`] reserve what it needs, and release it if the write
//! fails; [`validate`] validates the result.

mod addresses;
mod families;
mod intent;
mod node_ports;
mod print;
mod spec;
mod status;
mod update;
mod validate;
mod warnings;

pub use node_ports::NodePorts;

use coracle_api::names::{self, Rule};
use coracle_api::{Value, typed};
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use spec::SpecExt;

use crate::ApiError;
use crate::Part;
use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, Settle, Strategy, View};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Services,
    printer: printer!(print::print_row),
    ..Behaviour::DEFAULT
};

struct Services;

impl Strategy for Services {
    type Object = Service;

    fn name_rule(&self) -> Rule {
        names::dns1123_label
    }

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        if cx.part != Part::Main {
            return None;
        }
        Some(Box::pin(reserve(new, old, cx)))
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part != Part::Main {
            return;
        }

        let (Ok(mut after), Ok(before)) = (view(new), view(old)) else {
            return;
        };
        intent::drop_what_the_type_has_not(&mut after, &before);
        spec::write(new, &after);

        if !after.is("LoadBalancer")
            && let Some(status) = new
                .as_object_mut()
                .map(|service| service.object_mut("status"))
        {
            status.insert("loadBalancer", Value::object());
        }
    }

    fn validate(&self, new: &View<'_, Service>, _: &Context<'_>, errors: &mut Errors) {
        validate::validate_service(new, None, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Service>,
        old: &View<'_, Service>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        match cx.part {
            Part::Status => status::validate(new, old, errors),
            _ => {
                update::validate(new, old, errors);
                validate::validate_service(new, Some(old), errors);
            }
        }
    }

    /// An ExternalName Service has no internal traffic policy.
    fn canonicalize(&self, new: &mut Value) {
        let spec = new
            .as_object_mut()
            .map(|service| service.object_mut("spec"));
        if let Some(spec) = spec.filter(|spec| spec.str("type") == Some("ExternalName")) {
            spec.remove("internalTrafficPolicy");
        }
    }

    fn warnings(
        &self,
        new: &View<'_, Service>,
        _: Option<&View<'_, Service>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        match cx.part {
            Part::Status => status::warnings(new),
            _ => warnings::of(new),
        }
    }

    fn after_delete<'a>(
        &'a self,
        object: &'a Value,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'a, ()>> {
        Some(Box::pin(release(object, cx)))
    }
}

/// The spec of the tree; the default, if there is none.
fn view(tree: &Value) -> Result<ServiceSpec, ApiError> {
    let service: Service =
        typed::from_tree(tree).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(service.spec.unwrap_or_default())
}

async fn reserve<'a>(
    new: &mut Value,
    old: Option<&Value>,
    cx: &'a Context<'a>,
) -> Result<Option<Settle<'a>>, ApiError> {
    let mut after = view(new)?;
    let before = old.map(view).transpose()?;
    let name = new.meta().name().to_string();

    if let Some(before) = &before {
        intent::keep_allocated(&mut after, before);
    }

    intent::settle_cluster_ips(&mut after, before.as_ref());
    let refused = |errors: Errors| ApiError::invalid(cx.kind, &name, &errors);
    let ranges = addresses::Ranges::of(cx.cluster);
    families::settle(&mut after, before.as_ref(), &ranges).map_err(refused)?;

    let owner = addresses::Owner {
        name: &name,
        namespace: cx.namespace,
    };

    let held = addresses::reserve(&mut after, before.as_ref(), &ranges, &owner, cx).await?;
    let ports = match node_ports::reserve(&mut after, before.as_ref(), &name, cx) {
        Ok(ports) => ports,
        Err(refused) => {
            held.settle(false, cx).await;
            return Err(refused);
        }
    };

    spec::write(new, &after);

    Ok(Some(Box::new(move |happened| {
        Box::pin(async move {
            ports.settle(happened, cx.cluster.node_ports());
            held.settle(happened, cx).await;
        })
    })))
}

async fn release(object: &Value, cx: &Context<'_>) {
    let Ok(spec) = view(object) else { return };
    cx.cluster.node_ports().release(&node_ports::of(&spec));
    addresses::release(spec.addresses(), cx).await;
}
