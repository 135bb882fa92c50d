//! Which alternative the next tokens can be, looking ahead as far as needed.
//!
//! All alternatives are followed at once, first without looking at who called the rule, where
//! anything may follow that follows it anywhere. If two of them cannot be told apart so, they are
//! followed again from the real callers. States found on the way are kept, so that a decision costs
//! a step per token when it comes again.

mod closure;
mod configs;
mod stacks;

use std::collections::HashMap;

use super::automaton::{Automaton, StateId, Transition};
use crate::lex::Kind;
use closure::Closure;
use configs::{Config, Configs, stops};
use stacks::{StackId, Stacks};

/// How many configurations may be followed in one text. What is right needs no prediction, and what
/// is wrong and short needs few.
const MOST_STEPS: usize = 20_000_000;

/// A decision in the grammar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) state: StateId,
    /// How strongly operators must bind at least, in the rule that is being read.
    pub(super) least: u8,
}

/// Why there is no alternative.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No alternative goes on with the token so far ahead; 0 is the next one.
    NoViable(usize),
    OutOfSteps,
}

#[derive(Debug, Default)]
pub(super) struct Predictor {
    stacks: Stacks,
    machines: HashMap<(StateId, u8), Machine>,
    steps: usize,
}

/// The states of one decision that were found so far.
#[derive(Debug, Default)]
struct Machine {
    states: Vec<Known>,
    index: HashMap<Vec<Config>, usize>,
}

#[derive(Debug)]
struct Known {
    configs: Configs,
    verdict: Verdict,
    edges: HashMap<Kind, Option<usize>>,
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Open,
    Is(u8),
    /// Callers must be looked at.
    Ambiguous,
}

impl Predictor {
    /// The alternative, from 1, that the tokens can be. `token` reads ahead: 0 is the next one.
    /// `callers` are the states in which the rules around were called, the innermost last.
    pub(super) fn predict(
        &mut self,
        decision: Decision,
        callers: &[StateId],
        mut token: impl FnMut(usize) -> Kind,
    ) -> Result<u8, Failure> {
        let automaton = Automaton::get();
        let operators = automaton.is_operator_loop(decision.state);
        let key = (decision.state, if operators { decision.least } else { 0 });
        let mut machine = self.machines.remove(&key).unwrap_or_default();
        let result = self.run(&mut machine, decision, operators, callers, &mut token);
        self.machines.insert(key, machine);
        result
    }

    fn run(
        &mut self,
        machine: &mut Machine,
        decision: Decision,
        operators: bool,
        callers: &[StateId],
        token: &mut impl FnMut(usize) -> Kind,
    ) -> Result<u8, Failure> {
        if machine.states.is_empty() {
            let mut start = self.start(decision, StackId::EMPTY, false);
            if operators {
                start = self.filter(&start, decision.least);
            }
            machine.add(start, Verdict::Open);
        }

        let (mut state, mut ahead) = (0, 0);
        loop {
            let kind = token(ahead);
            let edge = match machine.states[state].edges.get(&kind) {
                Some(edge) => *edge,
                None => self.step(machine, state, kind, decision)?,
            };
            let Some(next) = edge else {
                let configs = &machine.states[state].configs;
                return configs
                    .finished(Automaton::get(), &self.stacks)
                    .ok_or(Failure::NoViable(ahead));
            };
            match machine.states[next].verdict {
                Verdict::Is(alternative) => return Ok(alternative),
                Verdict::Ambiguous => return self.predict_fully(decision, callers, token),
                Verdict::Open => state = next,
            }
            if kind != Kind::Eof {
                ahead += 1;
            }
        }
    }

    /// Follows all configurations over one token.
    fn step(
        &mut self,
        machine: &mut Machine,
        state: usize,
        kind: Kind,
        decision: Decision,
    ) -> Result<Option<usize>, Failure> {
        let reached = self.reach(&machine.states[state].configs, kind, decision)?;
        let next = (!reached.is_empty()).then(|| {
            let verdict = match reached.unique() {
                Some(alternative) => Verdict::Is(alternative),
                None if reached.conflict(Automaton::get()) => Verdict::Ambiguous,
                None => Verdict::Open,
            };
            machine.add(reached, verdict)
        });
        machine.states[state].edges.insert(kind, next);
        Ok(next)
    }

    /// The same again, from the real callers.
    fn predict_fully(
        &mut self,
        decision: Decision,
        callers: &[StateId],
        token: &mut impl FnMut(usize) -> Kind,
    ) -> Result<u8, Failure> {
        let automaton = Automaton::get();
        let mut stack = StackId::EMPTY;
        for caller in callers {
            if let Some(follow) = automaton.follow(*caller) {
                stack = self.stacks.push(stack, follow);
            }
        }

        let mut configs = self.start(decision, stack, true);
        let mut ahead = 0;
        loop {
            let kind = token(ahead);
            let reached = self.reach(&configs, kind, decision)?;
            if reached.is_empty() {
                return configs
                    .finished(automaton, &self.stacks)
                    .ok_or(Failure::NoViable(ahead));
            }
            if let Some(alternative) = reached.unique().or_else(|| reached.single_viable()) {
                return Ok(alternative);
            }
            configs = reached;
            if kind != Kind::Eof {
                ahead += 1;
            }
        }
    }

    fn closure(
        &mut self,
        decision: Decision,
        configs: Configs,
        collect: bool,
        at_end: bool,
    ) -> Closure<'_> {
        Closure {
            automaton: Automaton::get(),
            stacks: &mut self.stacks,
            decision,
            configs,
            collect,
            at_end,
            seen: std::collections::HashSet::new(),
            steps: &mut self.steps,
        }
    }

    fn start(&mut self, decision: Decision, stack: StackId, full: bool) -> Configs {
        let automaton = Automaton::get();
        let mut configs = Configs::new(full);
        for (index, transition) in (1..).zip(&automaton.state(decision.state).transitions) {
            let Transition::Empty(to, _) = transition else {
                continue;
            };
            let config = Config {
                state: *to,
                alternative: index,
                stack,
                precedence: None,
                left_rule: false,
                unfiltered: false,
            };
            let mut closure = self.closure(decision, configs, true, false);
            closure.add(config, 0);
            configs = closure.configs;
        }
        configs
    }

    /// Of an operator that may not follow here, and of leaving the rule where an operator may
    /// follow, nothing remains.
    fn filter(&mut self, start: &Configs, least: u8) -> Configs {
        let mut kept = Configs::new(start.full);
        let mut first = HashMap::new();
        for config in start.all().iter().filter(|config| config.alternative == 1) {
            if config.precedence.is_some_and(|strength| strength < least) {
                continue;
            }
            first.insert(config.state, config.stack);
            let config = Config {
                precedence: None,
                ..*config
            };
            kept.add(config, &mut self.stacks);
        }
        for config in start.all().iter().filter(|config| config.alternative != 1) {
            if config.unfiltered || first.get(&config.state) != Some(&config.stack) {
                kept.add(*config, &mut self.stacks);
            }
        }
        kept
    }

    fn reach(
        &mut self,
        from: &Configs,
        kind: Kind,
        decision: Decision,
    ) -> Result<Configs, Failure> {
        let automaton = Automaton::get();
        let at_end = kind == Kind::Eof;
        let mut moved = Configs::new(from.full);
        let mut stopped = Vec::new();
        for config in from.all() {
            if stops(automaton, config) {
                if from.full || at_end {
                    stopped.push(*config);
                }
                continue;
            }
            for transition in &automaton.state(config.state).transitions {
                if let Transition::Tokens(set, to) = transition
                    && set.contains(kind)
                {
                    let config = Config {
                        state: *to,
                        ..*config
                    };
                    moved.add(config, &mut self.stacks);
                }
            }
        }

        let decided = moved.all().len() == 1 || moved.unique().is_some();
        let mut reached = if stopped.is_empty() && !at_end && decided {
            moved
        } else {
            let mut closure = self.closure(decision, Configs::new(from.full), false, at_end);
            for config in moved.all() {
                closure.add(*config, 0);
            }
            closure.configs
        };
        if self.steps > MOST_STEPS {
            return Err(Failure::OutOfSteps);
        }

        if at_end {
            reached = self.only_stopped(&reached);
        }
        if !stopped.is_empty()
            && (!from.full || !reached.all().iter().any(|config| stops(automaton, config)))
        {
            for config in stopped {
                reached.add(config, &mut self.stacks);
            }
        }
        Ok(reached)
    }

    /// At the end of the text only what can end counts.
    fn only_stopped(&mut self, configs: &Configs) -> Configs {
        let automaton = Automaton::get();
        let mut stopped = Configs::new(configs.full);
        for config in configs
            .all()
            .iter()
            .filter(|config| stops(automaton, config))
        {
            stopped.add(*config, &mut self.stacks);
        }
        stopped
    }
}

impl Machine {
    fn add(&mut self, configs: Configs, verdict: Verdict) -> usize {
        let key = configs.key();
        if let Some(known) = self.index.get(&key) {
            return *known;
        }
        self.index.insert(key, self.states.len());
        self.states.push(Known {
            configs,
            verdict,
            edges: HashMap::new(),
        });
        self.states.len() - 1
    }
}
