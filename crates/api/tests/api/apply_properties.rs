//! Properties of applied configurations of every kind.

use std::cell::Cell;
use std::collections::HashSet;

use coracle_api::apply::{
    ApplyError, Element, FieldPath, Owner, Owners, Set, Tracker, Type, only_version,
};
use coracle_api::catalog::{BUILTIN, Kind};
use coracle_api::codec::{canonical, json};
use coracle_api::fuzz::objects::{self, Seeded};
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};

const SEEDS: u64 = 12;
const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

/// Runs `check` on two generated configurations of every stored kind; a failure reports kind and
/// seed.
fn for_every_kind(check: impl Fn(&Fixture<'_>, &Value, &Value) -> Result<(), String>) {
    let mut checked = 0;
    for resource in BUILTIN
        .resources()
        .iter()
        .filter(|resource| resource.storage.is_some())
    {
        let kind = BUILTIN
            .kind(&resource.group, &resource.version, &resource.kind)
            .unwrap();
        let api_version = kind.api_version();

        let of = Type::of_kind(&api_version, &kind.name).unwrap();
        let world = Fixture {
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
            let [ours, other] = [(); 2].map(|()| world.config(&mut random));

            // Every other pair has much in common, and differs in the details.
            let theirs = if seed % 2 == 0 {
                other
            } else {
                mixed(&ours, &other, &mut random)
            };

            // Lists of generated objects may have duplicate elements.
            if [&ours, &theirs]
                .into_iter()
                .any(|config| world.apply(None, config, "try", true).is_err())
            {
                continue;
            }

            checked += 1;

            if let Err(error) = check(&world, &ours, &theirs) {
                let texts = [&ours, &theirs].map(json::to_string);
                panic!(
                    "{api_version} {} seed {seed}: {error}\n{}\n{}",
                    kind.name, texts[0], texts[1]
                );
            }
        }
    }

    assert!(
        checked > 400,
        "only {checked} configurations were good enough"
    );
}

/// A configuration with parts of both, and some other values.
fn mixed(ours: &Value, other: &Value, random: &mut Seeded) -> Value {
    match ours {
        Value::Object(map) => {
            let mut mixed = other.as_object().cloned().unwrap_or_default();
            for (name, value) in map.iter() {
                if !random.one_in(4) {
                    let other = mixed.remove(name).unwrap_or_default();
                    mixed.insert(name, self::mixed(value, &other, random));
                }
            }
            Value::Object(mixed)
        }
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| mixed(item, &Value::Null, random))
                .collect(),
        ),
        Value::Int(number) if random.one_in(3) => Value::Int(number ^ 1),
        other => other.clone(),
    }
}

struct Fixture<'a> {
    kind: &'a Kind,
    tracker: Tracker<'a>,
}

impl Fixture<'_> {
    fn config(&self, random: &mut Seeded) -> Value {
        let mut config = normalized(&objects::value(BUILTIN.root(self.kind).node(), random));
        let members = config.as_object_mut().unwrap();
        members.insert("apiVersion", self.kind.api_version());
        members.insert("kind", self.kind.name.clone());
        let metadata = members.object_mut("metadata");
        metadata.remove("managedFields");
        metadata.insert("name", "x");
        config
    }

    /// The object with a configuration applied, in the form in which it would be stored.
    fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApplyError> {
        let applied = self.tracker.apply(live, config, manager, force, NOON)?;
        let node = BUILTIN.root(self.kind).node();
        let mut kept = json::decode(&json::to_vec(&applied), Some(node))
            .unwrap()
            .value;
        canonical::canonicalize(&mut kept, node);
        Ok(kept)
    }

    fn force(&self, live: Option<&Value>, config: &Value, manager: &str) -> Value {
        self.apply(live, config, manager, true)
            .unwrap_or_else(|error| panic!("{}: {error}", self.kind.name))
    }
}

fn owners(object: &Value) -> Vec<Owner> {
    Owners::decode(object).unwrap().iter().cloned().collect()
}

fn owned_by(object: &Value, manager: &str) -> Set {
    let owner = owners(object)
        .into_iter()
        .find(|owner| owner.manager.name == manager);
    owner.map(|owner| owner.fields).unwrap_or_default()
}

/// Without nulls and empty lists, and with raw texts as trees.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Raw(raw) => normalized(&json::parse(raw.as_str().as_bytes()).unwrap()),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .filter(|item| !item.is_null())
                .map(normalized)
                .collect(),
        ),
        Value::Object(map) => {
            let kept = map
                .iter()
                .map(|(name, value)| (name.into(), normalized(value)));
            let empty = |value: &Value| {
                value.is_null() || value.as_array().is_some_and(<[Value]>::is_empty)
            };
            Value::Object(kept.filter(|(_, value)| !empty(value)).collect::<Map>())
        }
        other => other.clone(),
    }
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{what}\n found {}\n wanted {}",
        json::to_string(found),
        json::to_string(expected)
    ))
}

#[test]
fn applying_twice_is_applying_once() {
    for_every_kind(|world, ours, theirs| {
        let once = world.force(None, ours, "us");
        same("alone", &world.force(Some(&once), ours, "us"), &once)?;
        let once = world.force(Some(&world.force(None, theirs, "them")), ours, "us");
        let twice = world
            .apply(Some(&once), ours, "us", false)
            .map_err(|error| error.to_string())?;
        same("among others", &twice, &once)
    });
}

#[test]
fn a_forced_apply_owns_exactly_the_fields_of_the_configuration() {
    for_every_kind(|world, ours, theirs| {
        let alone = owned_by(&world.force(None, ours, "us"), "us");
        let there = world.force(None, theirs, "them");
        let forced = owned_by(&world.force(Some(&there), ours, "us"), "us");
        if forced != alone {
            return Err(format!("{forced:?} instead of {alone:?}"));
        }

        // Nothing more: whatever is owned is present. Nothing less: whatever is present is owned,
        // or part of what is.
        let mut owned = HashSet::new();
        for path in forced.paths() {
            let place = resolve(ours, &path).ok_or_else(|| format!("{path} is nowhere"))?;
            owned.insert(place);
        }

        let mut all = Vec::new();
        leaves(ours, &mut Vec::new(), &mut all);

        let is_owned = |leaf: &Vec<Step>| (1..=leaf.len()).any(|end| owned.contains(&leaf[..end]));
        match all
            .iter()
            .find(|leaf| !is_identity(leaf) && !is_owned(leaf))
        {
            None => Ok(()),
            Some(leaf) => Err(format!("no manager owns {leaf:?}")),
        }
    });
}

#[test]
fn after_a_forced_apply_two_managers_share_a_field_only_with_equal_values() {
    let shared = Cell::new(0);
    let taken = Cell::new(0);
    for_every_kind(|world, ours, theirs| {
        let there = world.force(None, theirs, "them");
        let before = owned_by(&there, "them");
        let kept = normalized(&there);
        let forced = world.force(Some(&there), ours, "us");

        let (us, them) = (owned_by(&forced, "us"), owned_by(&forced, "them"));
        for path in before.leaves().intersection(&us.leaves()).paths() {
            // Theirs as stored: without zeros that are omitted, and with those that are written.
            let [our, their] = [ours, &kept].map(|object| value_at(object, &path));
            let our = our.ok_or_else(|| format!("{path} is owned, but not there"))?;
            if our.as_object().is_some_and(Map::is_empty) {
                // It is owned without a value.
                continue;
            }

            match (them.has(&path.0), their == Some(our)) {
                (true, true) => shared.set(shared.get() + 1),
                (false, false) => taken.set(taken.get() + 1),
                (true, false) => return Err(format!("both own {path}, with different values")),
                // What is owned as a whole may be stored with more zeros than were given.
                (false, true) if matches!(our, Value::Array(_) | Value::Object(_)) => {}
                (false, true) => {
                    return Err(format!(
                        "{path} was taken from a manager with the same value"
                    ));
                }
            }
        }

        Ok(())
    });

    assert!(
        shared.get() > 100 && taken.get() > 100,
        "{} were shared, {} taken",
        shared.get(),
        taken.get()
    );
}

/// A step down a tree: a member's name, or an element's index.
type Step = String;

/// Resolves a path in an object.
fn resolve(object: &Value, path: &FieldPath) -> Option<Vec<Step>> {
    let mut at = object;
    let mut place = Vec::new();
    for element in &path.0 {
        let items = at.as_array().unwrap_or_default();
        let index = match element {
            Element::Field(name) => {
                at = at.get(name)?;
                place.push(name.to_string());
                continue;
            }
            Element::Key(key) => {
                let fits = |item: &Value, if_absent: bool| {
                    key.iter().all(|(name, value)| {
                        item.get(name).map_or(if_absent, |found| found == value)
                    })
                };
                // An omitted key is the default; an element that has it explicitly comes first.
                let exact = items.iter().position(|item| fits(item, false));
                exact.or_else(|| items.iter().position(|item| fits(item, true)))?
            }
            Element::Value(value) => items.iter().position(|item| item == value)?,
            Element::Index(_) => return None,
        };
        at = &items[index];

        place.push(index.to_string());
    }

    Some(place)
}

fn value_at<'v>(object: &'v Value, path: &FieldPath) -> Option<&'v Value> {
    resolve(object, path)?
        .iter()
        .try_fold(object, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
}

/// The paths of all leaves.
fn leaves(value: &Value, at: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    let below: Vec<(Step, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };

    if below.is_empty() {
        found.push(at.clone());
    }

    for (step, value) in below {
        at.push(step);
        leaves(value, at, found);
        at.pop();
    }
}

/// Identifies the object, or is set by the server: never owned.
fn is_identity(place: &[Step]) -> bool {
    match place {
        [top] => matches!(top.as_str(), "apiVersion" | "kind"),
        [top, field, ..] => top == "metadata" && UNTRACKED.contains(&field.as_str()),
        [] => true,
    }
}

const UNTRACKED: [&str; 8] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "resourceVersion",
    "managedFields",
];

#[test]
fn leaving_everything_out_leaves_what_the_others_own() {
    for_every_kind(|world, ours, theirs| {
        let alone = world.force(None, theirs, "them");
        let both = world.force(Some(&world.force(None, ours, "us")), theirs, "them");
        let mut nothing = Value::object();
        let members = nothing.as_object_mut().unwrap();
        members.insert("apiVersion", world.tracker.api_version);
        members.insert("kind", world.tracker.kind);

        let left = world
            .apply(Some(&both), &nothing, "us", false)
            .map_err(|error| error.to_string())?;
        if owned_by(&left, "them") != owned_by(&alone, "them") || owners(&left).len() > 1 {
            return Err(format!("the owners are {:?}", owners(&left)));
        }

        // Untracked fields stay as they are.
        let without_identity = |object: &Value| {
            let mut object = object.clone();
            object
                .meta_mut()
                .members()
                .retain(|name, _| !UNTRACKED.contains(&name));
            normalized(&object)
        };

        same(
            "left over",
            &without_identity(&left),
            &without_identity(&alone),
        )
    });
}
