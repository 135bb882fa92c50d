//! Impersonation: acting as another user, where that is allowed.
//!
//! Headers name the user. Several modes are tried, the constrained ones first: each requires a
//! permission on the impersonated identity *and* one on the action (`impersonate-on:MODE:VERB`);
//! the legacy mode requires only the former, as `impersonate`. The mode that a requester last
//! succeeded with is tried first: most use one only. If all modes refuse, the response has the error
//! of the first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use coracle_api::go_text::Quoted;
use coracle_api::names;
use http::{HeaderMap, HeaderName};

use crate::ApiError;
use crate::authn::{
    ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User, service_account_groups,
};
use crate::authz::{AccessTarget, Attributes, Authorization, ResourceTarget, forbidden};
use crate::request::decode_path;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const EXTRA: &str = "impersonate-extra-";
const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";

/// The extra field that names the node of a service account's pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// From so many checks on, one for all of them is tried first.
const MANY: usize = 4;

/// The user to impersonate, removed from the headers; `None`: no impersonation.
pub(super) fn wanted(headers: &mut HeaderMap) -> Result<Option<User>, ApiError> {
    if !headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
    {
        return Ok(None);
    }

    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name: &HeaderName| headers.get(name).map(text).unwrap_or_default();
    let mut user = User {
        name: one(&USER),
        uid: one(&UID),
        ..User::default()
    };
    user.groups = headers.get_all(&GROUP).iter().map(text).collect();

    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers.iter() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra
                .entry(decode_path(key).into_owned())
                .or_default()
                .push(text(value));
        }
    }

    user.extra = extra;

    if user.name.is_empty() {
        if user == User::default() {
            return Ok(None);
        }
        return Err(ApiError::bad_request(format!(
            "requested {} without impersonating a user name",
            dump(&user)
        )));
    }

    // Backends must not see that the request is impersonated.
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_ours(name))
        .cloned()
        .collect();

    for name in names {
        headers.remove(name);
    }

    Ok(Some(user))
}

fn is_ours(name: &HeaderName) -> bool {
    *name == USER || *name == UID || *name == GROUP || name.as_str().starts_with(EXTRA)
}

/// The modes that requesters last succeeded with, by their names.
#[derive(Default)]
pub struct LastModes(Mutex<HashMap<String, Mode>>);

impl LastModes {
    fn of(&self, user: &User) -> Option<Mode> {
        let modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        modes.get(&user.name).copied()
    }

    fn remember(&self, user: &User, mode: Mode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if modes.len() >= REMEMBERED && !modes.contains_key(&user.name) {
            modes.clear();
        }
        modes.insert(user.name.clone(), mode);
    }
}

/// The impersonated user, if the requester may act as it.
pub(super) async fn allowed(
    wanted: &User,
    request: &Attributes<'_>,
    authorization: &Authorization,
    last: &LastModes,
) -> Result<Arc<User>, ApiError> {
    let before = last.of(request.user);
    let others = MODES.into_iter().filter(|mode| Some(*mode) != before);

    let mut first = None;
    for mode in before.into_iter().chain(others) {
        if !mode.applies(wanted, request.user) {
            continue;
        }

        match (Attempt {
            mode,
            authorization,
            request,
            wanted,
        })
        .authorize()
        .await
        {
            Ok(user) => {
                last.remember(request.user, mode);
                return Ok(Arc::new(user));
            }
            Err(refused) => first = first.or(Some(refused)),
        }
    }

    Err(first.expect("the last mode always applies"))
}

/// In the order in which they are tried.
const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

/// The last modes of so many requesters are remembered.
const REMEMBERED: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A pod acts as the node that it runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// A permission to impersonate includes all actions.
    Legacy,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    fn verb(self) -> String {
        if self == Mode::Legacy {
            "impersonate".to_string()
        } else {
            format!("impersonate:{}", self.name())
        }
    }

    fn applies(self, wanted: &User, requestor: &User) -> bool {
        let (node, account) = (node_name(&wanted.name), service_account(&wanted.name));
        let only_a_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        match self {
            Mode::AssociatedNode => {
                only_a_name && node.is_some() && service_account(&requestor.name).is_some() && {
                    let on: &[String] = requestor.extra.get(NODE_NAME).map_or(&[], Vec::as_slice);
                    matches!(on, [on] if Some(on.as_str()) == node)
                }
            }
            Mode::ArbitraryNode => only_a_name && node.is_some(),
            Mode::ServiceAccount => only_a_name && account.is_some(),
            Mode::UserInfo => node.is_none() && account.is_none(),
            Mode::Legacy => true,
        }
    }
}

/// One mode of impersonation.
struct Attempt<'a> {
    mode: Mode,
    authorization: &'a Authorization,
    request: &'a Attributes<'a>,
    wanted: &'a User,
}

impl Attempt<'_> {
    async fn authorize(&self) -> Result<User, ApiError> {
        if self.mode != Mode::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), self.request.verb);
            self.authorization
                .check(&Attributes {
                    verb: &verb,
                    ..*self.request
                })
                .await?;
        }

        let groups = self.authorize_name().await?;

        if !self.wanted.uid.is_empty() {
            self.may("authentication.k8s.io", "uids", "", &self.wanted.uid)
                .await?;
        }

        self.authorize_groups().await?;
        self.authorize_extra().await?;
        let mut user = self.wanted.clone();
        user.groups = groups.unwrap_or(user.groups);

        let unknown = user.name == ANONYMOUS;
        let implied = if unknown {
            UNAUTHENTICATED
        } else {
            AUTHENTICATED
        };

        if !user.is_in(implied) && (unknown || !user.is_in(UNAUTHENTICATED)) {
            user.groups.push(implied.to_string());
        }

        Ok(user)
    }

    /// The groups that follow from the name.
    async fn authorize_name(&self) -> Result<Option<Vec<String>>, ApiError> {
        let name = self.wanted.name.as_str();
        let group = self.group_of_names();
        if self.mode != Mode::Legacy
            && let Some(node) = node_name(name)
        {
            let node = if self.mode == Mode::AssociatedNode {
                "*"
            } else {
                node
            };
            self.may(group, "nodes", "", node).await?;
            return Ok(Some(vec![NODES.to_string()]));
        }

        if let Some((namespace, account)) = service_account(name) {
            let target_resource = ResourceTarget {
                group,
                version: "v1",
                resource: "serviceaccounts",
                namespace,
                name: account,
                ..ResourceTarget::default()
            };
            self.may_on(target_resource).await?;

            let implied = self.wanted.groups.is_empty();
            return Ok(implied.then(|| service_account_groups(namespace).to_vec()));
        }

        self.may(group, "users", "", name).await?;

        Ok(None)
    }

    async fn authorize_groups(&self) -> Result<(), ApiError> {
        let (groups, group) = (&self.wanted.groups, self.group_of_names());
        if self.mode != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                return Err(self.refused(
                    group,
                    "groups",
                    "",
                    "impersonating the empty string group is not allowed",
                ));
            }

            if self.wanted.is_in(MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refused(group, "groups", MASTERS, why));
            }

            if groups.len() >= MANY && self.may(group, "groups", "", "*").await.is_ok() {
                return Ok(());
            }
        }

        for name in groups {
            self.may(group, "groups", "", name).await?;
        }

        Ok(())
    }

    async fn authorize_extra(&self) -> Result<(), ApiError> {
        const GROUP: &str = "authentication.k8s.io";

        let extra = &self.wanted.extra;
        if self.mode != Mode::Legacy {
            if let Err(why) = validate_keys(extra) {
                return Err(self.refused(GROUP, "userextras", "", &why));
            }

            let values: usize = extra.values().map(Vec::len).sum();
            if values.max(extra.len()) >= MANY
                && self.may(GROUP, "userextras", "*", "*").await.is_ok()
            {
                return Ok(());
            }
        }

        for (key, values) in extra {
            for value in values {
                self.may(GROUP, "userextras", key, value).await?;
            }
        }

        Ok(())
    }

    /// The API group in which users, nodes, groups and service accounts are authorized.
    fn group_of_names(&self) -> &'static str {
        if self.mode == Mode::Legacy {
            ""
        } else {
            "authentication.k8s.io"
        }
    }

    async fn may(
        &self,
        group: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        self.may_on(ResourceTarget {
            group,
            version: "v1",
            resource,
            subresource,
            name,
            ..ResourceTarget::default()
        })
        .await
    }

    async fn may_on(&self, target_resource: ResourceTarget<'_>) -> Result<(), ApiError> {
        self.authorization
            .check(&Attributes::on(
                self.request.user,
                &self.mode.verb(),
                target_resource,
            ))
            .await
    }

    fn refused(&self, group: &str, resource: &str, name: &str, why: &str) -> ApiError {
        let target_resource = ResourceTarget {
            group,
            version: "v1",
            resource,
            name,
            ..ResourceTarget::default()
        };

        let target = AccessTarget::Resource(target_resource);
        forbidden(
            &Attributes {
                user: self.request.user,
                verb: &self.mode.verb(),
                target,
            },
            why,
        )
    }
}

fn validate_keys(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".to_string());
        }

        if let Some(why) = names::domain_prefixed_path(key).first() {
            return Err(format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: {why}",
                Quoted(key)
            ));
        }

        if key.chars().any(char::is_uppercase) {
            return Err(format!(
                "impersonating a non-lowercase key in extra is not allowed: {}",
                Quoted(key)
            ));
        }

        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".to_string());
        }
    }

    Ok(())
}

fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(NODE)
        .filter(|name| names::dns1123_subdomain(name).is_empty())
}

/// Namespace and name of a service account, by the name of its user.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    (names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty())
        .then_some((namespace, name))
}

/// A user as upstream shows one that has no name.
fn dump(user: &User) -> String {
    let list = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| Quoted(text).to_string()).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };

    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_string()
    } else {
        list(&user.groups)
    };

    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{}:{}", Quoted(key), list(values)))
        .collect();

    let extra = match extra.as_slice() {
        [] => "map[string][]string(nil)".to_string(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };

    format!(
        "&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}}",
        Quoted(&user.uid)
    )
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::authz::{Authorizer, Decision, Grant, Listing};

    /// Lets everybody impersonate one user, in the legacy mode.
    struct Only(&'static str);

    #[async_trait]
    impl Authorizer for Only {
        async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
            match attributes.target {
                AccessTarget::Resource(target)
                    if attributes.verb == "impersonate" && target.name == self.0 =>
                {
                    Decision::Allow(Grant::Plain)
                }
                _ => Decision::NoOpinion(String::new()),
            }
        }

        fn rules(&self, _: &User, _: &str) -> Listing {
            Listing::default()
        }
    }

    #[tokio::test]
    async fn a_refusal_is_that_of_the_mode_that_the_requester_uses() {
        let named = |name: &str| User {
            name: name.to_owned(),
            ..User::default()
        };
        let authorization = Authorization {
            chain: vec![Arc::new(Only("friend"))],
        };
        let requester = named("jane");
        let target = ResourceTarget {
            version: "v1",
            resource: "pods",
            ..ResourceTarget::default()
        };
        let request = Attributes::on(&requester, "list", target);
        let last = LastModes::default();
        let refused = async |last: &LastModes| {
            let result = allowed(&named("foe"), &request, &authorization, last).await;
            result.unwrap_err().message
        };

        let first = refused(&last).await;
        assert!(first.contains("impersonate-on:user-info:list"), "{first}");

        let user = allowed(&named("friend"), &request, &authorization, &last).await;
        assert_eq!(user.unwrap().name, "friend");
        let second = refused(&last).await;
        let expected =
            r#"users "foe" is forbidden: User "jane" cannot impersonate resource "users""#;
        assert!(second.starts_with(expected), "{second}");
    }
}
