//! What holds for every applied configuration of every kind.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use coracle_api::apply::{ApplyError, Owner, Owners, Set, Tracker, Type, only_version};
use coracle_api::catalog::{BUILTIN, Kind};
use coracle_api::codec::{canonical, json};
use coracle_api::fuzz::objects::{self, Seeded};
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};

const SEEDS: u64 = 6;
const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

/// Runs `check` on two generated configurations of every kind that is kept; a failure names kind and seed.
fn for_every_kind(check: impl Fn(&World<'_>, &Value, &Value) -> Result<(), String>) {
    let mut checked = 0;
    for resource in BUILTIN.resources().iter().filter(|resource| resource.storage.is_some()) {
        let kind = BUILTIN.kind(&resource.group, &resource.version, &resource.kind).unwrap();
        let api_version = kind.api_version();
        let of = Type::of_kind(&api_version, &kind.name).unwrap();
        let world = World {
            kind,
            tracker: Tracker {
                api_version: &api_version,
                kind: &kind.name,
                subresource: "",
                of,
                filters: &[],
                convert: &only_version,
            },
        };
        for seed in 0..SEEDS {
            let mut random = Seeded::new(seed);
            let [ours, theirs] = [(); 2].map(|()| world.config(&mut random));
            // Lists of made-up objects may well hold an element twice.
            if [&ours, &theirs].into_iter().any(|config| world.apply(None, config, "try", true).is_err()) {
                continue;
            }
            checked += 1;
            if let Err(error) = check(&world, &ours, &theirs) {
                let texts = [&ours, &theirs].map(json::to_string);
                panic!("{api_version} {} seed {seed}: {error}\n{}\n{}", kind.name, texts[0], texts[1]);
            }
        }
    }
    assert!(checked > 200, "only {checked} configurations were good enough");
}

struct World<'a> {
    kind: &'a Kind,
    tracker: Tracker<'a>,
}

impl World<'_> {
    fn config(&self, random: &mut Seeded) -> Value {
        let mut config = settled(&objects::value(BUILTIN.root(self.kind).node(), random));
        let members = config.as_object_mut().unwrap();
        members.insert("apiVersion", self.kind.api_version());
        members.insert("kind", self.kind.name.clone());
        let metadata = members.object_mut("metadata");
        metadata.remove("managedFields");
        metadata.insert("name", "x");
        config
    }

    /// The object with a configuration applied, in the form in which it would be kept.
    fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApplyError> {
        let applied = self.tracker.apply(live, config, manager, force, NOON)?;
        let node = BUILTIN.root(self.kind).node();
        let mut kept = json::decode(&json::to_vec(&applied), Some(node)).unwrap().value;
        canonical::canonicalize(&mut kept, node);
        Ok(kept)
    }

    fn force(&self, live: Option<&Value>, config: &Value, manager: &str) -> Value {
        self.apply(live, config, manager, true).unwrap_or_else(|error| panic!("{}: {error}", self.kind.name))
    }
}

fn owners(object: &Value) -> Vec<Owner> {
    Owners::decode(object).unwrap().iter().cloned().collect()
}

fn owned_by(object: &Value, manager: &str) -> Set {
    let owner = owners(object).into_iter().find(|owner| owner.manager.name == manager);
    owner.map(|owner| owner.fields).unwrap_or_default()
}

/// Without nulls and empty lists, which say nothing, and with trees where texts are.
fn settled(value: &Value) -> Value {
    match value {
        Value::Raw(raw) => settled(&json::parse(raw.as_str().as_bytes()).unwrap()),
        Value::Array(items) => {
            Value::Array(items.iter().filter(|item| !item.is_null()).map(settled).collect())
        }
        Value::Object(map) => {
            let kept = map.iter().map(|(name, value)| (name.into(), settled(value)));
            let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(<[Value]>::is_empty);
            Value::Object(kept.filter(|(_, value)| !empty(value)).collect::<Map>())
        }
        other => other.clone(),
    }
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}\n found {}\n wanted {}", json::to_string(found), json::to_string(expected)))
}

#[test]
fn applying_twice_is_applying_once() {
    for_every_kind(|world, ours, theirs| {
        let once = world.force(None, ours, "us");
        same("alone", &world.force(Some(&once), ours, "us"), &once)?;
        let once = world.force(Some(&world.force(None, theirs, "them")), ours, "us");
        let twice = world.apply(Some(&once), ours, "us", false).map_err(|error| error.to_string())?;
        same("among others", &twice, &once)
    });
}

#[test]
fn whoever_forces_owns_exactly_the_fields_of_the_configuration() {
    for_every_kind(|world, ours, theirs| {
        let alone = owned_by(&world.force(None, ours, "us"), "us");
        let there = world.force(None, theirs, "them");
        let forced = owned_by(&world.force(Some(&there), ours, "us"), "us");
        if forced == alone { Ok(()) } else { Err(format!("{forced:?} instead of {alone:?}")) }
    });
}

#[test]
fn nobody_owns_a_field_that_somebody_else_forced_to_another_value() {
    for_every_kind(|world, ours, theirs| {
        let forced = world.force(Some(&world.force(None, theirs, "them")), ours, "us");
        let left = owned_by(&forced, "them");
        let Err(ApplyError::Conflicts(conflicts)) = world.apply(Some(&forced), theirs, "them", false) else {
            return Ok(());
        };
        match conflicts.0.iter().find(|conflict| left.has(&conflict.path.0)) {
            None => Ok(()),
            Some(conflict) => Err(format!("both own {}", conflict.path)),
        }
    });
}

#[test]
fn leaving_everything_out_leaves_what_the_others_own() {
    for_every_kind(|world, ours, theirs| {
        let alone = world.force(None, theirs, "them");
        let both = world.force(Some(&world.force(None, ours, "us")), theirs, "them");
        let mut nothing = Value::object();
        let members = nothing.as_object_mut().unwrap();
        members.insert("apiVersion", world.tracker.api_version);
        members.insert("kind", world.tracker.kind);
        let left = world.apply(Some(&both), &nothing, "us", false).map_err(|error| error.to_string())?;
        if owned_by(&left, "them") != owned_by(&alone, "them") || owners(&left).len() > 1 {
            return Err(format!("the owners are {:?}", owners(&left)));
        }
        // What nobody tracks stays as it is.
        let without_identity = |object: &Value| {
            let mut object = object.clone();
            let untracked = [
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "generation",
                "resourceVersion",
                "managedFields",
            ];
            object.meta_mut().members().retain(|name, _| !untracked.contains(&name));
            settled(&object)
        };
        same("left over", &without_identity(&left), &without_identity(&alone))
    });
}
