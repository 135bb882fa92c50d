//! The garbage collector: nothing is deleted that has an owner left, and in the end nothing is left
//! whose owners are deleted.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::owner::OwnerReference;
use coracle_client::{Access, DeleteOptions, Propagation};
use coracle_testkit::objects::config_map;
use coracle_testkit::simulation::actions::any;
use coracle_testkit::simulation::{History, Objects, Others, Process, Scenario};

use super::{begin, holds};

/// The resource of all objects.
const MAPS: &str = "configmaps";

struct Families;

fn maps(others: &Others) -> Access {
    others.of("", "v1", MAPS)
}

/// Creates an object with these owners.
async fn make(others: &Others, owners: &[Value]) {
    let mut map = config_map(&format!("m{}", others.rng.below(1000)), "1");
    let references = owners.iter().map(|owner| OwnerReference {
        api_version: "v1",
        kind: "ConfigMap",
        name: owner.meta().name(),
        uid: owner.meta().uid(),
        controller: false,
        block_owner_deletion: others.rng.percent(50),
    });
    map.meta_mut().set_owner_references(references);

    // Its owner may have been deleted in the meantime.
    drop(maps(others).create(&map).await);
}

fn owners(object: &Value) -> Vec<String> {
    object
        .meta()
        .owner_references()
        .map(|owner| owner.uid.to_string())
        .collect()
}

fn is_waiting(owner: &Value) -> bool {
    owner.meta().is_being_deleted() && owner.meta().has_finalizer("foregroundDeletion")
}

#[async_trait(?Send)]
impl Scenario for Families {
    fn begin(&self, process: &Process) {
        begin!(process, crate::garbage_collector::run);
    }

    async fn prepare(&self, others: &Others) {
        for _ in 0..1 + others.rng.below(3) {
            make(others, &[]).await;
        }
    }

    async fn act(&self, others: &Others) {
        let Some(one) = any(others, &maps(others)).await else {
            return make(others, &[]).await;
        };
        match others.rng.below(10) {
            0 => make(others, &[]).await,
            1..=4 => make(others, &[one]).await,
            5 => {
                let other = any(others, &maps(others))
                    .await
                    .filter(|other| other.meta().uid() != one.meta().uid());
                make(
                    others,
                    &[Some(one), other].into_iter().flatten().collect::<Vec<_>>(),
                )
                .await;
            }
            // Users delete only objects without owners: all other deletions are the collector's.
            _ if !owners(&one).is_empty() => {}
            choice => {
                let propagation = match choice {
                    6 => Propagation::Foreground,
                    7 => Propagation::Orphan,
                    _ => Propagation::Background,
                };

                let options = DeleteOptions {
                    propagation: Some(propagation),
                    ..DeleteOptions::default()
                };
                drop(maps(others).delete(one.meta().name(), &options).await);
            }
        }
    }

    fn always(&self, history: &History) -> Result<(), String> {
        history.replay(|change, objects| {
            let (Some(gone), None) = (&change.before, &change.after) else {
                return Ok(());
            };
            let is_there = |uid: &String| {
                objects
                    .of(MAPS)
                    .any(|owner| owner.meta().uid() == uid && !is_waiting(owner))
            };

            match owners(gone).iter().any(is_there) {
                true => Err(format!(
                    "{} is gone, and an owner of it is not",
                    gone.meta().name()
                )),
                false => Ok(()),
            }
        })
    }

    fn settled(&self, objects: &Objects) -> Result<(), String> {
        let is_there = |uid: &String| objects.of(MAPS).any(|owner| owner.meta().uid() == uid);
        for map in objects.of(MAPS) {
            let (name, owners) = (map.meta().name(), owners(map));
            if map.meta().is_being_deleted() {
                return Err(format!("{name} does not go"));
            }
            if !owners.is_empty() && !owners.iter().any(is_there) {
                return Err(format!("{name} is left, and its owners are not"));
            }
        }
        Ok(())
    }
}

#[test]
fn objects_with_an_owner_stay_and_all_others_are_deleted() {
    holds(&Families);
}
