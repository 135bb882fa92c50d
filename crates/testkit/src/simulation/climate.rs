//! What goes wrong in one simulation: each seed has a climate of its own, so that together they try
//! all mixtures.

use std::time::Duration;

use super::dice::Dice;

/// What may go wrong all the time, and what is made to go wrong between two deeds.
pub(crate) struct Climate {
    /// The longest time that anything is on its way, in milliseconds.
    pub(crate) latency: usize,
    /// Of a hundred requests so many are lost, half of them after they were carried out.
    pub(crate) lost: usize,
    /// Before so many of a hundred changes of an object, somebody else changes it.
    pub(crate) conflicts: usize,
    troubles: Vec<Trouble>,
}

/// What is made to go wrong once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// What the server tells is on its way for long: what is held is old.
    StaleView(Duration),
    /// Every stream breaks off.
    Disconnect,
    /// Every stream breaks off, and the server does not know any more where it was: what happened
    /// meanwhile is missed.
    MissedEvents(Duration),
    /// The components under test die at one of their next writes: before it, or after.
    Crash { writes: usize },
    /// The next writes to the disk fail.
    FailingStore { syncs: u32 },
    /// The server's machine loses power.
    PowerCut,
}

impl Climate {
    /// Nothing goes wrong, and everything takes a moment.
    pub(crate) const FAIR: Climate = Climate {
        latency: 3,
        lost: 0,
        conflicts: 0,
        troubles: Vec::new(),
    };

    pub(crate) fn of(dice: &Dice) -> Climate {
        let or_none = |share: usize| if dice.percent(40) { share } else { 0 };
        let mut troubles = Vec::new();

        let millis =
            |bound: usize| Duration::from_millis(u64::try_from(dice.below(bound)).unwrap());
        for trouble in [
            Trouble::StaleView(millis(5000)),
            Trouble::Disconnect,
            Trouble::MissedEvents(Duration::from_secs(1) + millis(5000)),
            Trouble::Crash {
                writes: dice.below(6),
            },
            Trouble::FailingStore {
                syncs: 1 + u32::try_from(dice.below(3)).unwrap(),
            },
            Trouble::PowerCut,
        ] {
            if dice.percent(35) {
                troubles.push(trouble);
            }
        }

        Climate {
            latency: *dice.pick(&[0, 5, 5, 30, 300]).unwrap(),
            lost: or_none(8),
            conflicts: or_none(40),
            troubles,
        }
    }

    /// What goes wrong now, if anything does.
    pub(crate) fn trouble(&self, dice: &Dice) -> Option<Trouble> {
        if dice.percent(40) {
            dice.pick(&self.troubles).copied()
        } else {
            None
        }
    }
}
