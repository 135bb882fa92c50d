//! `serviceaccounts/token`: a token of a service account, perhaps bound to a pod, a node or a
//! secret.

use std::sync::Arc;

use coracle_api::catalog::{Resource, split_api_version};
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::go_text::Quoted;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Path, Value};
use coracle_kinds::Part;
use coracle_kinds::SPEC;
use coracle_kinds::builtin as resource;

use super::review::Review;
use super::{Call, Reply};
use crate::ApiError;
use crate::authn::token::{Bound, Issuer, TokenSpec};

const MIN_SECONDS: i64 = 10 * 60;
const MAX_SECONDS: i64 = 1 << 32;

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let Some(issuer) = &call.registry.access.issuer else {
        return Err(ApiError::no_such_resource());
    };
    let mut review = Review::of(call, Part::Token).await?;
    match issued(call, issuer, &mut review).await {
        Ok(()) => Ok(review.reply()),
        Err(refused) => Err(refused.after(review.warnings)),
    }
}

async fn issued(call: &Call<'_>, issuer: &Issuer, review: &mut Review<'_>) -> Result<(), ApiError> {
    let now = (call.registry.now)();
    check_name(call, &review.object)?;
    let accounts = call.scope.resource;
    let key = format!("{}/{}", call.scope.namespace, call.name);
    let account = call
        .registry
        .lookup(accounts, &key)
        .ok_or_else(|| ApiError::not_found(accounts, call.name))?;
    complete(call, issuer, &account, &mut review.object, now)?;

    review.validate().await?;
    let object = &mut review.object;
    let Bindings { pod, node, secret } = bindings(call, object)?;
    let mut seconds = object
        .at(&["spec", "expirationSeconds"])
        .and_then(Value::as_int)
        .unwrap_or_default();

    if let Some(most) = issuer.max_seconds.filter(|most| seconds > *most) {
        let shortened =
            format!("requested expiration of {seconds} seconds shortened to {most} seconds");
        review.warnings.push(shortened);
        seconds = most;
        spec(object).insert("expirationSeconds", most);
    }

    let order = TokenSpec {
        namespace: call.scope.namespace.to_string(),
        account: Bound::of(&account),
        pod,
        node,
        secret,
        audiences: audiences(object),
        seconds,
    };
    let token = issuer.issue(order, call.registry.new_uid(), now);
    let token = token.ok_or_else(|| ApiError::internal("failed to generate token"))?;

    let mut status = Map::new();
    status.insert("token", token);

    let expires = Timestamp::from_unix(now.unix_seconds() + seconds, 0);
    status.insert("expirationTimestamp", Time(expires).text());
    object
        .as_object_mut()
        .expect("it was decoded as an object")
        .insert("status", status);

    Ok(())
}

/// A name in the body is the one in the path.
fn check_name(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    let name = object.meta().name();
    if name.is_empty() || name == call.name {
        return Ok(());
    }

    let at = Path::Root.field("metadata");
    let detail = "must match the service account name if specified";
    let error = FieldError::invalid_str(&at.field("name"), name, detail);

    Err(ApiError::invalid(
        call.scope.kind,
        call.name,
        &FieldErrors::from(error),
    ))
}

/// Sets defaults in the request, and validates it.
fn complete(
    call: &Call<'_>,
    issuer: &Issuer,
    account: &Value,
    object: &mut Value,
    now: Timestamp,
) -> Result<(), ApiError> {
    let (wanted, uid) = (object.meta().uid().to_string(), account.meta().uid());
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "the UID in the token request ({wanted}) does not match the UID of the service account ({uid})"
        );
        return Err(ApiError::conflict_of_kind(call.scope.kind, call.name, &why));
    }

    if audiences(object).is_empty() {
        let own = issuer
            .audiences
            .iter()
            .map(Value::string)
            .collect::<Vec<_>>();
        spec(object).insert("audiences", own);
    }

    spec(object).get_or_insert_with("boundObjectRef", || Value::Null);

    let metadata = object
        .as_object_mut()
        .expect("it was decoded as an object")
        .object_mut("metadata");
    metadata.insert("name", call.name);

    metadata.insert("namespace", call.scope.namespace);
    metadata.insert("uid", uid);
    metadata.insert("creationTimestamp", Time(now).text());
    let seconds = object
        .at(&["spec", "expirationSeconds"])
        .and_then(Value::as_int)
        .unwrap_or_default();

    let detail = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };

    let error = FieldError::invalid(
        &SPEC.field("expirationSeconds"),
        seconds.to_string(),
        detail,
    );

    Err(ApiError::invalid(
        call.scope.kind,
        "",
        &FieldErrors::from(error),
    ))
}

/// What a token is bound to, besides its account.
#[derive(Default)]
struct Bindings {
    pod: Option<Bound>,
    node: Option<Bound>,
    secret: Option<Bound>,
}

fn bindings(call: &Call<'_>, object: &Value) -> Result<Bindings, ApiError> {
    let Some(reference) = object
        .at(&["spec", "boundObjectRef"])
        .and_then(Value::as_object)
    else {
        return Ok(Bindings::default());
    };
    let text = |name| reference.str(name).unwrap_or_default();
    let (group, version) = split_api_version(text("apiVersion"));

    let name = text("name");
    let found = |of: &'static Resource| {
        let key = if of.namespaced {
            format!("{}/{name}", call.scope.namespace)
        } else {
            name.to_string()
        };

        let found = call
            .registry
            .lookup(of, &key)
            .ok_or_else(|| ApiError::not_found(of, name))?;
        check_uid(of, text("uid"), &found)?;

        Ok::<Arc<Value>, ApiError>(found)
    };

    let none = Bindings::default();
    match (group, text("kind")) {
        ("", "Pod") => {
            let pod = found(resource("", "v1", "pods"))?;
            if pod
                .at(&["spec", "serviceAccountName"])
                .and_then(Value::as_str)
                != Some(call.name)
            {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                    Quoted(call.name)
                )));
            }

            Ok(Bindings {
                pod: Some(Bound::of(&pod)),
                node: node_of(call, &pod),
                ..none
            })
        }
        ("", "Node") => Ok(Bindings {
            node: Some(Bound::of(&*found(resource("", "v1", "nodes"))?)),
            ..none
        }),
        ("", "Secret") => Ok(Bindings {
            secret: Some(Bound::of(&*found(resource("", "v1", "secrets"))?)),
            ..none
        }),
        (group, kind) => Err(ApiError::bad_request(format!(
            "cannot bind token to object of type {group}/{version}, Kind={kind}"
        ))),
    }
}

/// The node of a pod, by name alone where there is no such node.
fn node_of(call: &Call<'_>, pod: &Value) -> Option<Bound> {
    let name = pod
        .at(&["spec", "nodeName"])
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())?;

    let node = call.registry.lookup(resource("", "v1", "nodes"), name);
    Some(node.map_or_else(
        || Bound {
            name: name.to_string(),
            uid: String::new(),
        },
        |node| Bound::of(&node),
    ))
}

fn check_uid(of: &'static Resource, wanted: &str, found: &Value) -> Result<(), ApiError> {
    if wanted.is_empty() || wanted == found.meta().uid() {
        return Ok(());
    }

    let why = format!(
        "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
    );

    let kind = coracle_api::catalog::BUILTIN.kind(&of.group, &of.version, &of.kind);
    Err(ApiError::conflict_of_kind(
        kind.expect("the kind is built in"),
        found.meta().name(),
        &why,
    ))
}

fn audiences(object: &Value) -> Vec<String> {
    let list = object
        .at(&["spec", "audiences"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(str::to_string)
        .collect()
}

fn spec(object: &mut Value) -> &mut Map {
    object
        .as_object_mut()
        .expect("it was decoded as an object")
        .object_mut("spec")
}
