//! The options of requests, and their encoding in a query or a body.

use coracle_api::codec::json;
use coracle_api::{Map, Value};

/// The options of a list or a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// The label selector, `app=web,tier!=cache`; empty: everything.
    pub label_selector: String,
    /// The field selector, `spec.nodeName=n1`; empty: everything.
    pub field_selector: String,
    /// The resource version; empty: the newest. A watch starts after it.
    pub resource_version: String,
    /// `Exact` or `NotOlderThan`; empty: the server's default.
    pub resource_version_match: String,
    /// The maximum number of objects; 0: all.
    pub limit: u32,
    /// The continue token of the last page.
    pub continue_token: String,
    /// The timeout of the request in seconds; 0: the server's default.
    pub timeout_seconds: u64,
    /// Whether a watch sends bookmarks.
    pub bookmarks: bool,
    /// Whether a watch starts with the existing objects.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Objects with these labels.
    pub fn labels(selector: impl Into<String>) -> ListOptions {
        ListOptions {
            label_selector: selector.into(),
            ..ListOptions::default()
        }
    }

    /// Objects with these fields.
    pub fn fields(selector: impl Into<String>) -> ListOptions {
        ListOptions {
            field_selector: selector.into(),
            ..ListOptions::default()
        }
    }

    pub(crate) fn write(&self, query: &mut Query) {
        query.text("labelSelector", &self.label_selector);
        query.text("fieldSelector", &self.field_selector);
        query.text("resourceVersion", &self.resource_version);
        query.text("resourceVersionMatch", &self.resource_version_match);
        query.number("limit", u64::from(self.limit));
        query.text("continue", &self.continue_token);
        query.number("timeoutSeconds", self.timeout_seconds);
        query.flag("allowWatchBookmarks", self.bookmarks);
        if let Some(send) = self.send_initial_events {
            query.text("sendInitialEvents", if send { "true" } else { "false" });
        }
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are orphaned.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

/// Preconditions of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The UID: not another object of the same name.
    pub uid: Option<String>,
    /// The resource version: unchanged.
    pub resource_version: Option<String>,
}

/// The options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The grace period in seconds; `None`: the object's.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents; `None`: the kind's default.
    pub propagation: Option<Propagation>,
    /// The preconditions.
    pub preconditions: Preconditions,
    /// Dry run.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// Deletes only the object with this UID, not another of the same name.
    pub fn only(uid: &str) -> DeleteOptions {
        let preconditions = Preconditions {
            uid: Some(uid.to_string()),
            resource_version: None,
        };
        DeleteOptions {
            preconditions,
            ..DeleteOptions::default()
        }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        if *self == DeleteOptions::default() {
            return Vec::new();
        }

        let mut body = Map::new();
        body.insert("apiVersion", "v1");
        body.insert("kind", "DeleteOptions");

        if let Some(seconds) = self.grace_period_seconds {
            body.insert("gracePeriodSeconds", seconds);
        }

        if let Some(propagation) = self.propagation {
            let policy = match propagation {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            };
            body.insert("propagationPolicy", policy);
        }

        let conditions = body.object_mut("preconditions");
        for (name, text) in [
            ("uid", &self.preconditions.uid),
            ("resourceVersion", &self.preconditions.resource_version),
        ] {
            if let Some(text) = text {
                conditions.insert(name, text.as_str());
            }
        }

        if conditions.is_empty() {
            body.remove("preconditions");
        }
        if self.dry_run {
            body.insert("dryRun", vec![Value::from("All")]);
        }

        json::to_vec(&Value::Object(body))
    }
}

/// A query string being built.
#[derive(Default)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(name);
        self.0.push('=');
        escape(value, &mut self.0);
    }

    pub(crate) fn number(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.text(name, &value.to_string());
        }
    }

    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.text(name, "true");
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Percent-encodes text for a path segment or query value.
pub(crate) fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte))
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}
