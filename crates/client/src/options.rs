//! What a request may ask for besides, and how that stands in a query or a body.

use coracle_api::codec::json;
use coracle_api::{Map, Value};

/// What a list or a watch is to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// `app=web,tier!=cache`; empty: everything.
    pub label_selector: String,
    /// `spec.nodeName=n1`; empty: everything.
    pub field_selector: String,
    /// How new it must be; empty: the newest. A watch begins after it.
    pub resource_version: String,
    /// `Exact` or `NotOlderThan`; empty: the server's rule.
    pub resource_version_match: String,
    /// At most so many objects; 0: all.
    pub limit: u32,
    /// Where the last page ended.
    pub continue_token: String,
    /// How long the request may last, in seconds; 0: as long as the server likes.
    pub timeout_seconds: u64,
    /// Whether a watch also tells of versions at which nothing matched.
    pub bookmarks: bool,
    /// Whether a watch begins with what there is.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Everything that has these labels.
    pub fn labels(selector: impl Into<String>) -> ListOptions {
        ListOptions {
            label_selector: selector.into(),
            ..ListOptions::default()
        }
    }

    /// Everything that has these fields.
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

/// What becomes of the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay.
    Orphan,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

/// What must be true of an object for it to be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// It is the very object, and not another of its name.
    pub uid: Option<String>,
    /// It has not changed.
    pub resource_version: Option<String>,
}

/// How an object is to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// How long it may take to end; absent: what the object says.
    pub grace_period_seconds: Option<i64>,
    /// What becomes of what it owns; absent: the kind's rule.
    pub propagation: Option<Propagation>,
    /// What must be true.
    pub preconditions: Preconditions,
    /// Only as if.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// The very object, and not another of its name.
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

/// A query on its way into a URL.
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

/// Percent-encodes what may not stand in a part of a URL as it is.
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
