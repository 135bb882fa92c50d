//! The history of a template: a ControllerRevision for each template that was rolled out.
//!
//! DaemonSets and StatefulSets keep their old templates in this way: `kubectl rollout undo`
//! restores one. [`sort`] finds the revision of the current template, [`Revisions`] writes what is
//! missing. [`Revised`] is the base of both controllers.

mod act;
mod revised;

use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::selector::LabelSelector;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::ownership::{Claim, Controller, claim};
use coracle_client::{Cached, Projection};

pub use act::{HistoryError, Revisions, Settled};
pub use revised::{Names, Revised};

use crate::pods::Owner;
use crate::template;
use crate::views::orphans_of;

/// The most characters of the parent's name in a revision's name.
const NAME_LENGTH: usize = 223;

/// A ControllerRevision.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// The object.
    pub object: Arc<Value>,
    /// The revision number.
    pub number: i64,
    /// Its controller.
    pub controller: Option<Controller>,
    /// The template, in the form used for comparison.
    template: Option<Value>,
}

impl Projection for Revision {
    fn project(object: &Arc<Value>) -> Result<Revision, TypedError> {
        let number = object
            .get("revision")
            .and_then(Value::as_int)
            .unwrap_or_default();
        let (controller, template) = (Controller::of(object.meta()), template_in(object));
        Ok(Revision {
            object: object.clone(),
            number,
            controller,
            template,
        })
    }
}

impl Revision {
    /// Whether it holds this template.
    pub fn is_of(&self, template: &Value) -> bool {
        self.template.as_ref() == Some(&template::comparable(template))
    }

    /// Its template.
    pub fn template(&self) -> Option<&Value> {
        self.template.as_ref()
    }

    /// A label of it.
    pub fn label(&self, key: &str) -> &str {
        self.object.meta().label(key).unwrap_or_default()
    }

    /// Its key in the index [`BY_CONTROLLER`](crate::views::BY_CONTROLLER).
    pub fn by_controller(revision: &Cached<Revision>) -> Vec<Text> {
        let owner = revision.controller.as_ref();
        vec![owner.map_or_else(
            || Text::from(orphans_of(&revision.key.namespace)),
            |owner| owner.uid.clone(),
        )]
    }
}

/// The template in a revision's data, which some projections hold as text.
fn template_in(revision: &Value) -> Option<Value> {
    let parsed = match revision.get("data")? {
        Value::Raw(text) => json::parse(text.as_str().as_bytes()).ok()?,
        data => data.clone(),
    };
    let mut template = parsed.at(&["spec", "template"])?.clone();
    template.as_object_mut()?.remove("$patch");
    Some(template::comparable(&template))
}

/// The revisions of one owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// That of the current template; the newest, if there are several.
    pub current: Option<Arc<Cached<Revision>>>,
    /// All others, the oldest first.
    pub old: Vec<Arc<Cached<Revision>>>,
    /// Orphans to adopt.
    pub adopt: Vec<Arc<Cached<Revision>>>,
    /// Revisions to release.
    pub release: Vec<Arc<Cached<Revision>>>,
}

impl History {
    /// The number that the current revision must have to be the newest.
    pub fn next_number(&self) -> i64 {
        self.old
            .iter()
            .map(|revision| revision.number)
            .max()
            .unwrap_or_default()
            + 1
    }

    /// The oldest unused revisions beyond the limit.
    pub fn surplus(
        &self,
        limit: usize,
        is_live: impl Fn(&Cached<Revision>) -> bool,
    ) -> Vec<Arc<Cached<Revision>>> {
        let dead: Vec<_> = self
            .old
            .iter()
            .filter(|revision| !is_live(revision))
            .cloned()
            .collect();
        let surplus = self.old.len().saturating_sub(limit).min(dead.len());
        dead[..surplus].to_vec()
    }
}

/// Sorts the revisions that may belong to an owner.
pub fn sort(
    owner: &Value,
    selector: &LabelSelector,
    template: &Value,
    revisions: &[Arc<Cached<Revision>>],
) -> History {
    let mut history = History::default();
    let (uid, is_going) = (owner.meta().uid(), owner.meta().is_being_deleted());

    let none = Map::new();
    for revision in revisions {
        let meta = revision.object.object.meta();
        let matches = selector.matches(meta.labels().unwrap_or(&none));
        let controller = revision
            .controller
            .as_ref()
            .map(|controller| controller.uid.as_str());

        match claim(uid, is_going, controller, matches, meta.is_being_deleted()) {
            Claim::Keep => {}
            Claim::Adopt => history.adopt.push(revision.clone()),
            Claim::Release => {
                history.release.push(revision.clone());
                continue;
            }
            Claim::Ignore => continue,
        }

        history.old.push(revision.clone());
    }

    history
        .old
        .sort_by(|one, other| (one.number, &one.key.name).cmp(&(other.number, &other.key.name)));
    let current = history
        .old
        .iter()
        .rposition(|revision| revision.is_of(template));
    history.current = current.map(|at| history.old.remove(at));

    history
}

/// Builds a revision of a template; its hash is in the label `hash_label`.
pub fn new_revision(
    owner: &Owner,
    parent: &Value,
    template: &Value,
    hash_label: &str,
    number: i64,
    collisions: Option<i64>,
) -> Value {
    let hash = template::hash(&template::comparable(template), collisions);
    let mut remembered = template.clone();
    if let Some(members) = remembered.as_object_mut() {
        members.insert("$patch", "replace");
    }

    let mut data = Map::new();
    data.object_mut("spec").insert("template", remembered);
    let mut revision = Map::new();
    revision.insert("apiVersion", "apps/v1");
    revision.insert("kind", "ControllerRevision");
    revision.insert("data", data);
    revision.insert("revision", number);

    let mut revision = Value::Object(revision);
    let name = &owner.key.name;
    let mut meta = revision.meta_mut();
    meta.set_namespace(&owner.key.namespace);
    meta.set_name(&format!("{}-{hash}", &name[..name.len().min(NAME_LENGTH)]));
    meta.set_labels(template.meta().labels().cloned().unwrap_or_default());
    meta.set_label(hash_label, Some(&hash));
    meta.set_annotations(parent.meta().annotations().cloned().unwrap_or_default());
    meta.set_owner_references([owner.controller.reference()]);

    revision
}
