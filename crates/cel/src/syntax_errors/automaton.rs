//! The grammar's automaton: states of each rule, and how they follow each other.
//!
//! Its shape is that of ANTLR's, as far as recovery and prediction depend on it: where loops and
//! alternatives begin and end, and what follows the call of a rule.

use std::sync::LazyLock;

use super::grammar::{self, Body, Item, Label, RULES, Rule};
use super::set::Set;
use crate::lex::Kind;

pub(super) type StateId = u16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    Basic,
    RuleStop,
    /// Of alternatives, an optional part, or the inside of a loop.
    BlockStart,
    BlockEnd,
    LoopEntry,
    LoopBack,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Transition {
    /// To a state; out of a rule that recurses to the left, if it was called anew: that rule.
    Empty(StateId, Option<Rule>),
    Call {
        rule: Rule,
        follow: StateId,
    },
    Tokens(Set, StateId),
    /// Only if operators that bind so strongly may follow.
    Precedence(u8, StateId),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) kind: StateKind,
    pub(super) rule: Rule,
    pub(super) transitions: Vec<Transition>,
    /// Of the beginning of a block in a loop: its end.
    pub(super) block_end: StateId,
    /// What can come next, without leaving the rule.
    pub(super) next: Set,
}

/// What a rule does, step by step, with the states it is in.
#[derive(Debug)]
pub(super) enum Step {
    Token(StateId, Kind, Label),
    Tokens(StateId, Set, Label),
    Call(StateId, Rule, u8, Label),
    Optional(StateId, Set, Vec<Step>),
    Loop(Loop),
}

#[derive(Debug)]
pub(super) struct Loop {
    /// Runs at least once.
    pub(super) plus: bool,
    pub(super) entry: StateId,
    pub(super) back: StateId,
    /// The tokens it begins with, if one token decides.
    pub(super) decides: Option<Set>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) enum Program {
    Plain(Vec<Step>),
    Choice {
        state: StateId,
        /// The tokens that alternatives begin with, if one token decides.
        decides: Option<Vec<Set>>,
        alternatives: Vec<Vec<Step>>,
    },
    Recursive {
        first: Vec<Step>,
        entry: StateId,
        back: StateId,
        block: StateId,
        operators: Vec<Vec<Step>>,
    },
}

#[derive(Debug)]
pub(super) struct Automaton {
    pub(super) states: Vec<State>,
    starts: Vec<StateId>,
    stops: Vec<StateId>,
    pub(super) programs: Vec<Program>,
}

impl Automaton {
    pub(super) fn get() -> &'static Self {
        static AUTOMATON: LazyLock<Automaton> = LazyLock::new(build);
        &AUTOMATON
    }

    pub(super) fn state(&self, id: StateId) -> &State {
        &self.states[usize::from(id)]
    }

    pub(super) fn start(&self, rule: Rule) -> StateId {
        self.starts[rule as usize]
    }

    pub(super) fn program(&self, rule: Rule) -> &Program {
        &self.programs[rule as usize]
    }

    /// What follows the call that is made in `state`.
    pub(super) fn follow(&self, state: StateId) -> Option<StateId> {
        match self.state(state).transitions.first() {
            Some(Transition::Call { follow, .. }) => Some(*follow),
            _ => None,
        }
    }

    /// Whether a loop's entry is that of the operators of a rule that recurses to the left.
    pub(super) fn is_operator_loop(&self, state: StateId) -> bool {
        let rule = self.state(state).rule;
        matches!(self.program(rule), Program::Recursive { entry, .. } if *entry == state)
    }

    fn add(&mut self, kind: StateKind, rule: Rule) -> StateId {
        let id = StateId::try_from(self.states.len()).expect("the grammar is small");
        self.states.push(State {
            kind,
            rule,
            transitions: Vec::new(),
            block_end: 0,
            next: Set::EMPTY,
        });
        id
    }

    fn connect(&mut self, from: StateId, to: StateId) {
        self.push(from, Transition::Empty(to, None));
    }

    /// From the end of a part to what follows it. A token or a call leads there directly, so that
    /// calls at the ends of alternatives return to the same place.
    fn lead(&mut self, part: &Part, to: StateId) {
        if part.simple {
            match self.states[usize::from(part.left)].transitions.first_mut() {
                Some(Transition::Tokens(_, target)) => *target = to,
                Some(Transition::Call { follow, .. }) => *follow = to,
                _ => {}
            }
        } else {
            self.connect(part.right, to);
        }
    }

    fn push(&mut self, from: StateId, transition: Transition) {
        self.states[usize::from(from)].transitions.push(transition);
    }
}

fn build() -> Automaton {
    let mut automaton = Automaton {
        states: Vec::new(),
        starts: Vec::new(),
        stops: Vec::new(),
        programs: Vec::new(),
    };
    for rule in RULES {
        let start = automaton.add(StateKind::Basic, rule);
        let stop = automaton.add(StateKind::RuleStop, rule);
        automaton.starts.push(start);
        automaton.stops.push(stop);
    }
    for rule in RULES {
        let program = build_rule(&mut automaton, rule);
        automaton.programs.push(program);
    }

    connect_returns(&mut automaton);
    compute_next(&mut automaton);
    fill_decisions(&mut automaton);
    automaton
}

fn build_rule(automaton: &mut Automaton, rule: Rule) -> Program {
    let (start, stop) = (
        automaton.starts[rule as usize],
        automaton.stops[rule as usize],
    );
    match grammar::body(rule) {
        Body::Plain(items) => {
            let (left, last, steps) = sequence(automaton, rule, items);
            automaton.connect(start, left);
            automaton.connect(last.right, stop);
            Program::Plain(steps)
        }
        Body::Choice(alternatives, ahead) => {
            let block = automaton.add(StateKind::BlockStart, rule);
            let end = automaton.add(StateKind::BlockEnd, rule);
            automaton.connect(start, block);
            let mut all = Vec::new();
            for items in alternatives {
                let (left, last, steps) = sequence(automaton, rule, items);
                automaton.connect(block, left);
                automaton.lead(&last, end);
                all.push(steps);
            }
            automaton.connect(end, stop);
            Program::Choice {
                state: block,
                decides: (!ahead).then(Vec::new),
                alternatives: all,
            }
        }
        Body::Recursive(first, operators) => {
            let (left, last, first) = sequence(automaton, rule, first);
            automaton.connect(start, left);
            let shape = loop_shape(automaton, rule);
            automaton.lead(&last, shape.entry);

            let mut all = Vec::new();
            for (strength, items) in operators {
                let guard = automaton.add(StateKind::Basic, rule);
                let (left, last, steps) = sequence(automaton, rule, items);
                automaton.connect(shape.block, guard);
                automaton.push(guard, Transition::Precedence(strength, left));
                automaton.lead(&last, shape.block_end);
                all.push(steps);
            }
            automaton.connect(shape.exit, stop);
            Program::Recursive {
                first,
                entry: shape.entry,
                back: shape.back,
                block: shape.block,
                operators: all,
            }
        }
    }
}

struct LoopShape {
    entry: StateId,
    block: StateId,
    block_end: StateId,
    back: StateId,
    exit: StateId,
}

fn loop_shape(automaton: &mut Automaton, rule: Rule) -> LoopShape {
    let shape = LoopShape {
        entry: automaton.add(StateKind::LoopEntry, rule),
        block: automaton.add(StateKind::BlockStart, rule),
        block_end: automaton.add(StateKind::BlockEnd, rule),
        back: automaton.add(StateKind::LoopBack, rule),
        exit: automaton.add(StateKind::Basic, rule),
    };
    automaton.connect(shape.entry, shape.block);
    automaton.connect(shape.entry, shape.exit);
    automaton.connect(shape.block_end, shape.back);
    automaton.connect(shape.back, shape.entry);
    automaton.states[usize::from(shape.block)].block_end = shape.block_end;
    shape
}

/// The states of a part of a rule: the first one, and the one after the last.
#[derive(Clone, Copy)]
struct Part {
    left: StateId,
    right: StateId,
    /// A token or a call.
    simple: bool,
}

/// The states of `items`, one after the other: the first one, the last part, and the steps.
fn sequence(automaton: &mut Automaton, rule: Rule, items: Vec<Item>) -> (StateId, Part, Vec<Step>) {
    let mut steps = Vec::new();
    let mut parts: Option<(StateId, Part)> = None;
    for item in items {
        let (next, step) = part(automaton, rule, item);
        if let Some((_, last)) = &parts {
            automaton.lead(last, next.left);
        }
        parts = Some((parts.map_or(next.left, |(first, _)| first), next));
        steps.push(step);
    }
    let (first, last) = parts.expect("every rule has parts");
    (first, last, steps)
}

fn part(automaton: &mut Automaton, rule: Rule, item: Item) -> (Part, Step) {
    match item {
        Item::Token(kind, label) => {
            let (left, right) = tokens(automaton, rule, Set::one(kind));
            (simple(left, right), Step::Token(left, kind, label))
        }
        Item::Tokens(set, label) => {
            let (left, right) = tokens(automaton, rule, set);
            (simple(left, right), Step::Tokens(left, set, label))
        }
        Item::Rule(called, least, label) => {
            let left = automaton.add(StateKind::Basic, rule);
            let follow = automaton.add(StateKind::Basic, rule);
            automaton.push(
                left,
                Transition::Call {
                    rule: called,
                    follow,
                },
            );
            (simple(left, follow), Step::Call(left, called, least, label))
        }
        Item::Optional(items) => {
            let block = automaton.add(StateKind::BlockStart, rule);
            let end = automaton.add(StateKind::BlockEnd, rule);
            let (left, last, steps) = sequence(automaton, rule, items);
            automaton.connect(block, left);
            automaton.lead(&last, end);
            automaton.connect(block, end);
            (
                block_part(block, end),
                Step::Optional(block, Set::EMPTY, steps),
            )
        }
        Item::Star(items, ahead) => star(automaton, rule, items, ahead),
        Item::Plus(items, ahead) => plus(automaton, rule, items, ahead),
    }
}

const fn simple(left: StateId, right: StateId) -> Part {
    Part {
        left,
        right,
        simple: true,
    }
}

const fn block_part(left: StateId, right: StateId) -> Part {
    Part {
        left,
        right,
        simple: false,
    }
}

fn tokens(automaton: &mut Automaton, rule: Rule, set: Set) -> (StateId, StateId) {
    let left = automaton.add(StateKind::Basic, rule);
    let right = automaton.add(StateKind::Basic, rule);
    automaton.push(left, Transition::Tokens(set, right));
    (left, right)
}

fn star(automaton: &mut Automaton, rule: Rule, items: Vec<Item>, ahead: bool) -> (Part, Step) {
    let shape = loop_shape(automaton, rule);
    let (left, last, steps) = sequence(automaton, rule, items);
    automaton.connect(shape.block, left);
    automaton.lead(&last, shape.block_end);
    let step = Step::Loop(Loop {
        plus: false,
        entry: shape.entry,
        back: shape.back,
        decides: (!ahead).then_some(Set::EMPTY),
        steps,
    });
    (block_part(shape.entry, shape.exit), step)
}

fn plus(automaton: &mut Automaton, rule: Rule, items: Vec<Item>, ahead: bool) -> (Part, Step) {
    let block = automaton.add(StateKind::BlockStart, rule);
    let block_end = automaton.add(StateKind::BlockEnd, rule);
    let back = automaton.add(StateKind::LoopBack, rule);
    let exit = automaton.add(StateKind::Basic, rule);

    let (left, last, steps) = sequence(automaton, rule, items);
    automaton.connect(block, left);
    automaton.lead(&last, block_end);
    automaton.connect(block_end, back);
    automaton.connect(back, block);
    automaton.connect(back, exit);

    let step = Step::Loop(Loop {
        plus: true,
        entry: block,
        back,
        decides: (!ahead).then_some(Set::EMPTY),
        steps,
    });
    (block_part(block, exit), step)
}

/// From the end of each rule to whatever follows one of its calls.
fn connect_returns(automaton: &mut Automaton) {
    let mut returns = Vec::new();
    for rule in RULES {
        collect_returns(steps_of(automaton.program(rule)), &mut returns);
    }
    for (state, called, least) in returns {
        let follow = automaton.follow(state).expect("a call has a follower");
        let recursive = matches!(automaton.program(called), Program::Recursive { .. });
        let outermost = (recursive && least == 0).then_some(called);
        let stop = automaton.stops[called as usize];
        automaton.push(stop, Transition::Empty(follow, outermost));
    }
}

fn steps_of(program: &Program) -> Vec<&[Step]> {
    match program {
        Program::Plain(steps) => vec![steps],
        Program::Choice { alternatives, .. } => alternatives.iter().map(Vec::as_slice).collect(),
        Program::Recursive {
            first, operators, ..
        } => std::iter::once(first)
            .chain(operators)
            .map(Vec::as_slice)
            .collect(),
    }
}

fn collect_returns(sequences: Vec<&[Step]>, returns: &mut Vec<(StateId, Rule, u8)>) {
    for step in sequences.into_iter().flatten() {
        match step {
            Step::Call(state, called, least, _) => returns.push((*state, *called, *least)),
            Step::Optional(_, _, steps) => collect_returns(vec![steps], returns),
            Step::Loop(inner) => collect_returns(vec![&inner.steps], returns),
            Step::Token(..) | Step::Tokens(..) => {}
        }
    }
}

/// No rule is empty, so what comes next in a state is found by going through it once.
fn compute_next(automaton: &mut Automaton) {
    let next: Vec<Set> = (0..automaton.states.len())
        .map(|state| {
            let mut seen = vec![false; automaton.states.len()];
            look(automaton, state, &mut seen)
        })
        .collect();
    for (state, next) in automaton.states.iter_mut().zip(next) {
        state.next = next;
    }
}

fn look(automaton: &Automaton, state: usize, seen: &mut [bool]) -> Set {
    if std::mem::replace(&mut seen[state], true) {
        return Set::EMPTY;
    }
    let state = &automaton.states[state];
    if state.kind == StateKind::RuleStop {
        return Set::END;
    }
    let mut next = Set::EMPTY;
    for transition in &state.transitions {
        next = next.with(match transition {
            Transition::Tokens(set, _) => *set,
            Transition::Empty(to, _) | Transition::Precedence(_, to) => {
                look(automaton, usize::from(*to), seen)
            }
            Transition::Call { rule, .. } => look(
                automaton,
                usize::from(automaton.starts[*rule as usize]),
                seen,
            )
            .without_end(),
        });
    }
    next
}

/// The tokens that decide are known only when all states are.
fn fill_decisions(automaton: &mut Automaton) {
    let states = std::mem::take(&mut automaton.states);
    for program in &mut automaton.programs {
        match program {
            Program::Plain(steps) => fill_steps(&states, steps),
            Program::Choice {
                decides,
                alternatives,
                ..
            } => {
                if let Some(sets) = decides {
                    *sets = alternatives
                        .iter()
                        .map(|steps| first_of(&states, steps))
                        .collect();
                }
                alternatives
                    .iter_mut()
                    .for_each(|steps| fill_steps(&states, steps));
            }
            Program::Recursive {
                first, operators, ..
            } => {
                fill_steps(&states, first);
                operators
                    .iter_mut()
                    .for_each(|steps| fill_steps(&states, steps));
            }
        }
    }
    automaton.states = states;
}

fn fill_steps(states: &[State], steps: &mut [Step]) {
    for step in steps {
        match step {
            Step::Optional(_, set, steps) => {
                *set = first_of(states, steps);
                fill_steps(states, steps);
            }
            Step::Loop(inner) => {
                inner.decides = inner.decides.map(|_| first_of(states, &inner.steps));
                fill_steps(states, &mut inner.steps);
            }
            Step::Token(..) | Step::Tokens(..) | Step::Call(..) => {}
        }
    }
}

fn first_of(states: &[State], steps: &[Step]) -> Set {
    let first = match &steps[0] {
        Step::Token(state, ..)
        | Step::Tokens(state, ..)
        | Step::Call(state, ..)
        | Step::Optional(state, ..) => *state,
        Step::Loop(inner) => inner.entry,
    };
    states[usize::from(first)].next.without_end()
}
