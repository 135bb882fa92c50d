//! What is reached without a token.

use std::collections::HashSet;

use super::super::automaton::{Automaton, StateId, StateKind, Transition};
use super::Decision;
use super::configs::{Config, Configs, stops};
use super::stacks::{NO_RETURN, StackId, Stacks};
use crate::lex::Kind;

pub(super) struct Closure<'a> {
    pub(super) automaton: &'static Automaton,
    pub(super) stacks: &'a mut Stacks,
    pub(super) decision: Decision,
    /// What was reached.
    pub(super) configs: Configs,
    /// Whether how strongly operators bind is asked: at the beginning of a decision.
    pub(super) collect: bool,
    /// The end of the text is passed over.
    pub(super) at_end: bool,
    pub(super) seen: HashSet<Config>,
    pub(super) steps: &'a mut usize,
}

impl Closure<'_> {
    /// Follows a configuration. `depth` counts calls; it is negative outside of the decision's
    /// rule.
    pub(super) fn add(&mut self, config: Config, depth: i32) {
        let mut left = vec![config];
        let mut visited = HashSet::new();
        while let Some(config) = left.pop() {
            *self.steps += 1;
            if !visited.insert(config) {
                continue;
            }
            if stops(self.automaton, &config) {
                if config.stack != StackId::EMPTY {
                    self.return_to_callers(config, depth, &mut left);
                    continue;
                }
                if self.configs.full {
                    self.configs.add(config, self.stacks);
                    continue;
                }
            }
            self.follow(config, depth);
        }
    }

    fn return_to_callers(&mut self, config: Config, depth: i32, left: &mut Vec<Config>) {
        for (state, below) in self.stacks.tops(config.stack).to_vec() {
            if state == NO_RETURN && self.configs.full {
                let config = Config {
                    stack: StackId::EMPTY,
                    ..config
                };
                self.configs.add(config, self.stacks);
            } else if state == NO_RETURN {
                self.follow(config, depth);
            } else {
                left.push(Config {
                    state,
                    stack: below,
                    unfiltered: false,
                    ..config
                });
            }
        }
    }

    fn follow(&mut self, config: Config, depth: i32) {
        let automaton = self.automaton;
        let state = automaton.state(config.state);
        if state
            .transitions
            .iter()
            .any(|transition| matches!(transition, Transition::Tokens(..)))
        {
            self.configs.add(config, self.stacks);
        }
        for (index, transition) in state.transitions.iter().enumerate() {
            if index == 0 && self.enters_loop_in_vain(&config) {
                continue;
            }
            let Some(mut next) = self.over(&config, *transition, depth) else {
                continue;
            };
            let mut next_depth = depth;
            if state.kind == StateKind::RuleStop {
                if let Transition::Empty(_, Some(outermost)) = transition
                    && automaton.is_operator_loop(self.decision.state)
                    && *outermost == automaton.state(self.decision.state).rule
                {
                    next.unfiltered = true;
                }
                next.left_rule = true;
                if !self.seen.insert(next) {
                    continue;
                }
                next_depth -= 1;
            } else if matches!(transition, Transition::Call { .. }) && depth >= 0 {
                next_depth += 1;
            }
            self.add(next, next_depth);
        }
    }

    /// What a transition without a token leads to.
    fn over(&mut self, config: &Config, transition: Transition, depth: i32) -> Option<Config> {
        let (state, stack, precedence) = match transition {
            Transition::Empty(to, _) => (to, config.stack, config.precedence),
            Transition::Call { rule, follow } => {
                let stack = self.stacks.push(config.stack, follow);
                (self.automaton.start(rule), stack, config.precedence)
            }
            Transition::Precedence(strength, to) if self.collect && depth == 0 => {
                if self.configs.full && strength < self.decision.least {
                    return None;
                }
                let asked = (!self.configs.full).then_some(strength);
                (to, config.stack, asked)
            }
            Transition::Precedence(_, to) => (to, config.stack, config.precedence),
            Transition::Tokens(set, to) if self.at_end && set.contains(Kind::Eof) => {
                (to, config.stack, config.precedence)
            }
            Transition::Tokens(..) => return None,
        };
        Some(Config {
            state,
            stack,
            precedence,
            ..*config
        })
    }

    /// Whether the loop of operators is entered right after one of them, in the rule itself: the
    /// caller's loop does the same.
    fn enters_loop_in_vain(&self, config: &Config) -> bool {
        let automaton = self.automaton;
        let entry = automaton.state(config.state);
        if entry.kind != StateKind::LoopEntry
            || !automaton.is_operator_loop(config.state)
            || self.stacks.has_empty(config.stack)
        {
            return false;
        }
        let Some(Transition::Empty(block, _)) = entry.transitions.first() else {
            return false;
        };
        let block_end = automaton.state(*block).block_end;
        self.stacks.tops(config.stack).iter().all(|(state, _)| {
            let returns = automaton.state(*state);
            returns.rule == entry.rule
                && (*state == block_end || leads_to(&returns.transitions, block_end))
        })
    }
}

fn leads_to(transitions: &[Transition], target: StateId) -> bool {
    matches!(transitions, [Transition::Empty(to, _)] if *to == target)
}
