//! How large each ReplicaSet of a Deployment should be. Pure.
//!
//! Sizes change by a rollout, step by step or all at once, and by scaling the Deployment, which is
//! distributed proportionally among the ReplicaSets during a rollout and neither speeds it up nor
//! delays it.

use crate::views::{Deployment, ReplicaSet, Rollout};

use super::revision::{DESIRED, MAXIMUM, Set, age, annotation_number};

/// A ReplicaSet that gets another size, or at least new size annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// The ReplicaSet.
    pub set: Set,
    /// The new size.
    pub to: i64,
}

/// The desired size of a ReplicaSet.
pub fn size(set: &ReplicaSet) -> i64 {
    i64::try_from(set.replicas()).unwrap_or(i64::MAX)
}

/// How many of its pods are certainly available and stay. If it was scaled down since its status
/// was written, and perhaps up again, some of the counted pods may be gone: until they are counted
/// again, which a change of size always causes, none can be relied on. (Upstream relies on the old
/// count, and can end up without a pod when a template changes back.)
fn available(set: &ReplicaSet) -> i64 {
    if set.is_counted() {
        set.counted("availableReplicas").min(size(set))
    } else {
        0
    }
}

/// How many of its pods are certainly unavailable.
fn unavailable(set: &ReplicaSet, size: i64) -> i64 {
    if set.is_counted() {
        (size - available(set)).max(0)
    } else {
        0
    }
}

fn total(sets: &[&Set]) -> i64 {
    sets.iter().map(|set| size(set)).sum()
}

/// The size of the newest ReplicaSet, if it has `now` pods and the others have `others` together.
pub fn of_newest(deployment: &Deployment, now: i64, others: i64) -> i64 {
    let wanted = deployment.replicas();
    match deployment.rollout() {
        Rollout::Rolling { surge, .. } if now < wanted => {
            let room = wanted + surge - others - now;
            now + room.min(wanted - now).max(0)
        }
        _ => wanted,
    }
}

/// The next step of a rolling update: either the newest grows, or the others shrink.
pub fn rolling(deployment: &Deployment, newest: &Set, others: &[&Set]) -> Vec<Resize> {
    let to = of_newest(deployment, size(newest), total(others));
    if to != size(newest) {
        return vec![Resize {
            set: newest.clone(),
            to,
        }];
    }

    let least = deployment.replicas() - deployment.unavailable();
    let not_yet = size(newest) - available(newest);
    let spare = total(others) + size(newest) - least - not_yet;
    if spare <= 0 || total(others) == 0 {
        return Vec::new();
    }

    let mut by_age: Vec<(&Set, i64)> = others.iter().map(|set| (*set, size(set))).collect();
    by_age.sort_by(|(a, _), (b, _)| age(a).cmp(&age(b)));

    // Unavailable pods are removed first, so that a rollout that hangs can proceed.
    shrink(&mut by_age, spare, unavailable);
    let up: i64 = available(newest) + others.iter().map(|set| available(set)).sum::<i64>();
    shrink(&mut by_age, up - least, |_, size| size);
    let changed = by_age.into_iter().filter(|(set, to)| size(set) != *to);

    changed
        .map(|(set, to)| Resize {
            set: set.clone(),
            to,
        })
        .collect()
}

/// Removes up to `most` pods, from the oldest ReplicaSet on, and from each no more than `from`
/// returns.
fn shrink(sets: &mut [(&Set, i64)], most: i64, from: impl Fn(&ReplicaSet, i64) -> i64) {
    let mut left = most.max(0);
    for (set, size) in sets.iter_mut().filter(|(_, size)| *size > 0) {
        let taken = from(set, *size).min(left);
        *size -= taken;
        left -= taken;
    }
}

/// Scales all but the newest to zero.
pub fn emptied(others: &[&Set]) -> Vec<Resize> {
    let full = others.iter().filter(|set| size(set) > 0);
    full.map(|set| Resize {
        set: (*set).clone(),
        to: 0,
    })
    .collect()
}

/// Whether a ReplicaSet with pods was last sized for another number than the Deployment's current
/// one.
pub fn is_due(deployment: &Deployment, sets: &[Set]) -> bool {
    let outdated = |set: &Set| {
        annotation_number(set, DESIRED).is_some_and(|then| then != deployment.replicas())
    };
    sets.iter().filter(|set| size(set) > 0).any(outdated)
}

/// The new sizes after the Deployment was scaled.
pub fn scaled(deployment: &Deployment, newest: Option<&Set>, others: &[&Set]) -> Vec<Resize> {
    let wanted = deployment.replicas();
    let mut with_pods: Vec<&Set> = others
        .iter()
        .copied()
        .chain(newest)
        .filter(|set| size(set) > 0)
        .collect();

    let only = match with_pods.as_slice() {
        [] => newest.or_else(|| others.iter().copied().max_by(|a, b| age(a).cmp(&age(b)))),
        [one] => Some(*one),
        _ => None,
    };

    if let Some(only) = only {
        // One that has the right size already must get the new annotation: until it has, scaling is
        // not finished and the rollout does not proceed. (Upstream leaves it, and can wait
        // forever.)
        let is_right = size(only) == wanted && !is_due(deployment, std::slice::from_ref(only));
        let resize = (!is_right).then(|| Resize {
            set: only.clone(),
            to: wanted,
        });

        return resize.into_iter().collect();
    }

    if newest.is_some_and(|newest| is_saturated(newest, wanted)) {
        return emptied(others);
    }

    let Rollout::Rolling { surge, .. } = deployment.rollout() else {
        // Recreate: the old ones are deleted next, and until then only annotations change.
        return with_pods
            .into_iter()
            .map(|set| Resize {
                set: set.clone(),
                to: size(set),
            })
            .collect();
    };
    let allowed = if wanted > 0 { wanted + surge } else { 0 };

    let more = allowed - total(&with_pods);
    with_pods.sort_by(|a, b| {
        let by_age = if more > 0 {
            age(b).cmp(&age(a))
        } else {
            age(a).cmp(&age(b))
        };
        size(b).cmp(&size(a)).then(by_age)
    });

    in_proportion(deployment, &with_pods, more)
}

fn is_saturated(newest: &ReplicaSet, wanted: i64) -> bool {
    size(newest) == wanted
        && annotation_number(newest, DESIRED) == Some(wanted)
        && available(newest) == wanted
}

/// Distributes `more` pods (fewer, if negative) in proportion to the current sizes; the largest
/// gets the remainder.
fn in_proportion(deployment: &Deployment, sets: &[&Set], more: i64) -> Vec<Resize> {
    let mut left = more;
    let mut sized: Vec<Resize> = sets
        .iter()
        .map(|set| {
            let share = share(deployment, set);
            let share = if more > 0 {
                share.min(left)
            } else {
                share.max(left)
            };
            let share = if left == 0 { 0 } else { share };
            left -= share;

            Resize {
                set: (*set).clone(),
                to: size(set) + share,
            }
        })
        .collect();

    if let Some(largest) = sized.first_mut() {
        largest.to = (largest.to + left).max(0);
    }

    sized
}

/// How many more pods a ReplicaSet gets if all grow proportionally.
fn share(deployment: &Deployment, set: &ReplicaSet) -> i64 {
    let now = size(set);
    if deployment.replicas() == 0 {
        return -now;
    }

    let before = annotation_number(set, MAXIMUM).filter(|before| *before != 0);

    let counted = || {
        deployment
            .status()
            .map_or(0, |status| status.int("replicas"))
    };

    let before = before.unwrap_or_else(counted);
    if before == 0 {
        return 0;
    }

    let scaled = now * (deployment.replicas() + deployment.surge());

    // Rounds half up; numbers of pods are never negative.
    (2 * scaled + before) / (2 * before) - now
}
