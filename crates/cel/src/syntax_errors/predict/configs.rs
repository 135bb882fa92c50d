//! Sets of configurations: where each alternative may be.

use std::collections::HashMap;

use super::super::automaton::{Automaton, StateId, StateKind};
use super::stacks::{StackId, Stacks};

/// Where an alternative may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Config {
    pub(super) state: StateId,
    /// From 1.
    pub(super) alternative: u8,
    pub(super) stack: StackId,
    /// How strongly operators must be allowed to bind at least, if this is asked.
    pub(super) precedence: Option<u8>,
    /// It left the rule of the decision, into any of its callers.
    pub(super) left_rule: bool,
    /// It left a rule that recurses to the left.
    pub(super) unfiltered: bool,
}

type Key = (StateId, u8, Option<u8>);

#[derive(Clone, Debug, Default)]
pub(super) struct Configs {
    all: Vec<Config>,
    index: HashMap<Key, usize>,
    /// Callers are looked at.
    pub(super) full: bool,
}

impl Configs {
    pub(super) fn new(full: bool) -> Self {
        Self {
            full,
            ..Self::default()
        }
    }

    pub(super) fn all(&self) -> &[Config] {
        &self.all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn add(&mut self, config: Config, stacks: &mut Stacks) {
        let key = (config.state, config.alternative, config.precedence);
        let Some(index) = self.index.get(&key) else {
            self.index.insert(key, self.all.len());
            self.all.push(config);
            return;
        };
        let known = &mut self.all[*index];
        known.stack = stacks.merge(known.stack, config.stack, !self.full);
        known.left_rule |= config.left_rule;
        known.unfiltered |= config.unfiltered;
    }

    /// The alternative, if there is only one.
    pub(super) fn unique(&self) -> Option<u8> {
        let first = self.all.first()?.alternative;
        self.all
            .iter()
            .all(|config| config.alternative == first)
            .then_some(first)
    }

    /// The alternatives of each state and stack, as bits.
    pub(super) fn subsets(&self) -> Vec<u16> {
        let mut subsets: HashMap<(StateId, StackId), u16> = HashMap::new();
        for config in &self.all {
            *subsets.entry((config.state, config.stack)).or_default() |= 1 << config.alternative;
        }
        subsets.into_values().collect()
    }

    /// Whether the alternatives cannot be told apart without looking at callers.
    pub(super) fn conflict(&self, automaton: &Automaton) -> bool {
        if self.all.iter().all(|config| stops(automaton, config)) {
            return true;
        }
        let mut by_state: HashMap<StateId, u16> = HashMap::new();
        for config in &self.all {
            *by_state.entry(config.state).or_default() |= 1 << config.alternative;
        }
        let several = |alternatives: &u16| alternatives.count_ones() > 1;
        self.subsets().iter().any(several) && by_state.values().all(several)
    }

    /// The least alternative, if it is the same in all subsets.
    pub(super) fn single_viable(&self) -> Option<u8> {
        let subsets = self.subsets();
        let least = subsets.first()?.trailing_zeros();
        subsets
            .iter()
            .all(|subset| subset.trailing_zeros() == least)
            .then(|| u8::try_from(least).expect("there are few alternatives"))
    }

    /// The least alternative that reached the end of the rule of the decision.
    pub(super) fn finished(&self, automaton: &Automaton, stacks: &Stacks) -> Option<u8> {
        self.all
            .iter()
            .filter(|config| {
                config.left_rule || stops(automaton, config) && stacks.has_empty(config.stack)
            })
            .map(|config| config.alternative)
            .min()
    }

    /// All there is to tell two sets apart.
    pub(super) fn key(&self) -> Vec<Config> {
        self.all.clone()
    }
}

pub(super) fn stops(automaton: &Automaton, config: &Config) -> bool {
    automaton.state(config.state).kind == StateKind::RuleStop
}
