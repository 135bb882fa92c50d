//! Parses the path of a request: which resource, which object, which verb.
//!
//! Kubernetes paths are regular: `/api/v1/…` for the core group, `/apis/GROUP/VERSION/…` for the
//! others, then `namespaces/NS/` where the resource is namespaced, then resource, name and
//! subresource. Everything else is a non-resource path.

use coracle_api::Text;
use http::Method;

use super::query::decode_path;
use super::{Query, Verb};

/// The resource or path of a request, by its path and method; it need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// What is done, as authorization knows it.
    pub verb: Verb,
    pub path: String,
    /// Absent: the path is not about a resource.
    pub target: Option<Target>,
}

/// The resource a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub group: Text,
    pub version: Text,
    /// Empty: all of them, or none.
    pub namespace: Text,
    pub resource: Text,
    /// Empty: the collection.
    pub name: Text,
    pub subresource: Text,
    /// The path after the subresource: that of a proxied request.
    pub rest: Text,
    /// The path is one for watches, whatever the query.
    pub old_style_watch: bool,
}

impl RequestInfo {
    pub fn new(method: &Method, path: &str, query: &Query) -> RequestInfo {
        let path = &*decode_path(path);
        let Some(mut target) = target(path) else {
            return RequestInfo {
                verb: plain_verb(method),
                path: path.to_string(),
                target: None,
            };
        };
        let verb = verb(method, &target, query);

        // A list of the one object with that name is as good as a get to authorization.
        if verb.is_of_collection()
            && let Some(name) = query.get("fieldSelector").and_then(single_name)
        {
            target.name = Text::new(name);
        }

        RequestInfo {
            verb,
            path: path.to_string(),
            target: Some(target),
        }
    }

    /// Requests that last as long as they please: no deadline, not waited for at shutdown.
    pub fn is_long_running(&self) -> bool {
        let streams = ["attach", "exec", "proxy", "log", "portforward"];
        match &self.target {
            Some(target) => {
                self.verb == Verb::Watch || streams.contains(&target.subresource.as_str())
            }
            None => self.path.starts_with("/debug/pprof/"),
        }
    }
}

fn target(path: &str) -> Option<Target> {
    let mut parts = path.strip_prefix('/')?.trim_end_matches('/').split('/');
    let (group, version) = match parts.next()? {
        "api" => ("", parts.next()?),
        "apis" => (parts.next()?, parts.next()?),
        _ => return None,
    };

    let mut parts: Vec<&str> = parts.collect();
    let mut target = Target {
        group: Text::new(group),
        version: Text::new(version),
        ..Target::default()
    };

    // The old style of watches: `/api/v1/watch/pods`.
    if parts.len() > 1 && parts[0] == "watch" {
        parts.remove(0);
        target.old_style_watch = true;
    }

    let rest = match parts.as_slice() {
        [] => return None,
        // A namespace is an object and a place: what follows its name decides.
        ["namespaces", name, "status" | "finalize"] => {
            target.namespace = Text::new(name);
            &parts[..]
        }
        ["namespaces", namespace, _, ..] => {
            target.namespace = Text::new(namespace);
            &parts[2..]
        }
        ["namespaces", name] => {
            target.namespace = Text::new(name);
            &parts[..]
        }
        _ => &parts[..],
    };
    target.resource = Text::new(rest[0]);

    target.name = Text::new(rest.get(1).copied().unwrap_or_default());
    target.subresource = Text::new(rest.get(2).copied().unwrap_or_default());
    target.rest = Text::new(rest.get(3..).unwrap_or_default().join("/"));

    Some(target)
}

fn verb(method: &Method, target: &Target, query: &Query) -> Verb {
    match (method.as_str(), target.name.is_empty()) {
        ("GET" | "HEAD", _) if target.old_style_watch => Verb::Watch,
        ("POST", _) => Verb::Create,
        ("GET" | "HEAD", false) => Verb::Get,
        ("GET" | "HEAD", true) if query.is_true("watch") => Verb::Watch,
        ("GET" | "HEAD", true) => Verb::List,
        ("PUT", _) => Verb::Update,
        ("PATCH", _) => Verb::Patch,
        ("DELETE", false) => Verb::Delete,
        ("DELETE", true) => Verb::DeleteCollection,
        _ => plain_verb(method),
    }
}

fn plain_verb(method: &Method) -> Verb {
    Verb::Method(match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        "TRACE" => "trace",
        _ => "",
    })
}

/// The name in `metadata.name=NAME`, if the selector has nothing else.
fn single_name(selector: &str) -> Option<&str> {
    let name = selector
        .strip_prefix("metadata.name=")?
        .trim_start_matches('=');
    (!name.is_empty() && !name.contains([',', '=', '\\'])).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, uri: &str, expected: &str) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let info = RequestInfo::new(&method, path, &Query::parse(query));

        let found = match &info.target {
            None => format!("{} -", info.verb),
            Some(t) => format!(
                "{} {}/{} {} {}/{}/{}{}",
                info.verb,
                t.group,
                t.version,
                t.namespace,
                t.resource,
                t.name,
                t.subresource,
                if t.rest.is_empty() {
                    String::new()
                } else {
                    format!("/{}", t.rest)
                }
            ),
        };
        assert_eq!(found, expected, "{method} {uri}");
    }

    #[test]
    fn paths_are_taken_apart() {
        check("GET", "/", "get -");
        check("GET", "/version", "get -");
        check("GET", "/api", "get -");
        check("GET", "/api/v1", "get -");
        check("GET", "/apis/apps/v1", "get -");
        check("GET", "/api/v1/pods", "list /v1  pods//");

        check("GET", "/api/v1/pods?watch=1", "watch /v1  pods//");
        check("GET", "/api/v1/pods?watch=false", "list /v1  pods//");
        check("POST", "/api/v1/namespaces/a/pods", "create /v1 a pods//");
        check("GET", "/api/v1/namespaces/a/pods/b", "get /v1 a pods/b/");
        check(
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "update apps/v1 a deployments/b/scale",
        );

        check("GET", "/api/v1/namespaces/a", "get /v1 a namespaces/a/");
        check(
            "PUT",
            "/api/v1/namespaces/a/finalize",
            "update /v1 a namespaces/a/finalize",
        );

        check("GET", "/api/v1/namespaces", "list /v1  namespaces//");
        check(
            "DELETE",
            "/api/v1/namespaces/a/pods",
            "deletecollection /v1 a pods//",
        );

        check("DELETE", "/api/v1/nodes/n", "delete /v1  nodes/n/");
        check(
            "GET",
            "/api/v1/nodes/n/proxy/logs/x",
            "get /v1  nodes/n/proxy/logs/x",
        );

        check(
            "GET",
            "/api/v1/namespaces/a/configmaps/",
            "list /v1 a configmaps//",
        );

        check(
            "GET",
            "/api/v1/pods?fieldSelector=metadata.name%3Dx",
            "list /v1  pods/x/",
        );

        check(
            "GET",
            "/api/v1/pods?fieldSelector=metadata.name%3Dx,status.phase%3DRunning",
            "list /v1  pods//",
        );
    }
}
