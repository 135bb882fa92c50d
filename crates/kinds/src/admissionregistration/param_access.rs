//! Who writes a policy with parameters, or a binding that names some, must be allowed to read them:
//! expressions can show what is in them.

use coracle_api::catalog::split_api_version;
use coracle_api::field_error::FieldError;
use coracle_api::{Map, Value};

use crate::access::{Attributes, ResourceTarget};
use crate::strategy::{AnyStrategy, Context, Errors, SPEC};
use crate::{ApiError, Part, User, builtin};

/// What of a spec is checked.
#[derive(Clone, Copy)]
pub(super) enum Checked {
    /// The kind of a policy's parameters.
    Policy,
    /// The parameters of a binding to a policy of this resource.
    Binding { policies: &'static str },
}

/// Refuses an object that is valid otherwise.
pub(super) async fn check(
    checked: Checked,
    strategy: &dyn AnyStrategy,
    new: &Value,
    old: Option<&Value>,
    cx: &Context<'_>,
) -> Result<(), ApiError> {
    if cx.part != Part::Main || cx.user.is_master() {
        return Ok(());
    }
    let denied = match checked {
        Checked::Policy => deny_kind(new, old, cx).await,
        Checked::Binding { policies } => deny_params(policies, new, old, cx).await,
    };
    let Some(why) = denied else { return Ok(()) };

    let mut errors = Errors::default();
    strategy.validate_tree(new, old, cx, &mut errors)?;
    if !errors.is_empty() {
        return Ok(());
    }
    let field = match checked {
        Checked::Policy => "paramKind",
        Checked::Binding { .. } => "paramRef",
    };
    errors.push(FieldError::forbidden(&SPEC.field(field), why));
    Err(ApiError::invalid(cx.kind, new.meta().name(), &errors))
}

async fn deny_kind(new: &Value, old: Option<&Value>, cx: &Context<'_>) -> Option<String> {
    let kind = member(new, "paramKind")?;
    if old.and_then(|old| member(old, "paramKind")) == Some(kind) {
        return None;
    }

    let resource = Readable::of(kind, cx);
    let target = ResourceTarget {
        namespace: "*",
        name: "*",
        ..resource.target()
    };
    let is_allowed = cx.cluster.authorize(Attributes::on(cx.user, "get", target));
    (!is_allowed.await).then(|| {
        format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
            shown(cx.user),
            kind.text("kind"),
            kind.text("apiVersion")
        )
    })
}

async fn deny_params(
    policies: &str,
    new: &Value,
    old: Option<&Value>,
    cx: &Context<'_>,
) -> Option<String> {
    let params = member(new, "paramRef")?;
    let policy_of = |binding: &Value| binding.at(&["spec", "policyName"]).cloned();
    let is_same = old.is_some_and(|old| {
        member(old, "paramRef") == Some(params) && policy_of(old) == policy_of(new)
    });
    if is_same {
        return None;
    }

    let policy = policy_of(new);
    let policy_name = policy.as_ref().and_then(Value::as_str).unwrap_or_default();
    let resource = builtin("admissionregistration.k8s.io", "v1", policies);
    let policy = cx.cluster.get(resource, policy_name);
    let kind = policy
        .as_deref()
        .and_then(|policy| member(policy, "paramKind"));
    let resource = kind.map_or_else(Readable::default, |kind| Readable::of(kind, cx));

    let name = params.text("name");
    let verb = if name.is_empty() { "list" } else { "get" };
    let target = ResourceTarget {
        namespace: params.text("namespace"),
        name,
        ..resource.target()
    };
    if cx
        .cluster
        .authorize(Attributes::on(cx.user, verb, target))
        .await
    {
        return None;
    }

    let user = shown(cx.user);
    let all = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, \
         versions and resources"
    );
    Some(match (&policy, kind) {
        (None, _) => format!("unable to get policy {policy_name} {all}"),
        (Some(_), Some(kind)) if resource.plural.is_none() => format!(
            "unable to resolve paramKind &{{{} {}}} {all}",
            kind.text("apiVersion"),
            kind.text("kind")
        ),
        // Upstream has the two the wrong way round here.
        _ if policies.starts_with("mutating") => {
            format!(
                "user {verb} does not have \"{user}\" permission on the object referenced by paramRef"
            )
        }
        _ => format!(
            "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
        ),
    })
}

/// What must be readable: everything, where the kind is not known.
#[derive(Default)]
struct Readable<'k> {
    /// Its group and version.
    version: Option<(&'k str, &'k str)>,
    plural: Option<String>,
}

impl<'k> Readable<'k> {
    fn of(kind: &'k Map, cx: &Context<'_>) -> Readable<'k> {
        let version = split_api_version(kind.text("apiVersion"));
        Readable {
            version: Some(version),
            plural: cx.cluster.resource_of_kind(version, kind.text("kind")),
        }
    }

    fn target(&self) -> ResourceTarget<'_> {
        let (group, version) = self.version.unwrap_or(("*", "*"));
        ResourceTarget {
            group,
            version,
            resource: self.plural.as_deref().unwrap_or("*"),
            ..ResourceTarget::default()
        }
    }
}

fn member<'v>(object: &'v Value, name: &str) -> Option<&'v Map> {
    object.at(&["spec", name]).and_then(Value::as_object)
}

/// A user as Go prints one.
fn shown(user: &User) -> String {
    let extra = user.extra.iter();
    let extra: Vec<String> = extra
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        user.name,
        user.uid,
        user.groups.join(" "),
        extra.join(" ")
    )
}
