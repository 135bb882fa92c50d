//! What to say about a text that is not right, and how to go on after it.
//!
//! cel-go's parser is made by ANTLR. Its errors, and which ones follow from an error, depend on
//! how ANTLR recovers: where a token may be left out or is missing, what is skipped, and which
//! alternative is tried. So a text that the parser of [`crate::parse`] refuses is read once more
//! in here, by a small interpreter ([`Parser`]) of the grammar's automaton ([`automaton`], built
//! from [`grammar`]), with ANTLR's prediction ([`predict`]) and recovery ([`recover`]). The
//! result is a tree with gaps ([`nodes`]), of which more errors may be found.

mod automaton;
mod grammar;
mod nodes;
mod predict;
mod recover;
mod report;
mod set;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

use automaton::{Automaton, Loop, Program, StateId, Step};
use grammar::{Label, Rule};
use nodes::{Frame, RuleResult};
use predict::{Decision, Failure, Predictor};
use recover::Recovery;
use report::Reporter;
use tokens::Tokens;

use crate::parse::depth::{self, Depth};
use crate::parse::tree::{Forest, Leaf, TreeId};
use crate::source::{Issues, Source};

/// Reads `source` with recovery. `None` where reading stopped for good; else what was understood.
pub(crate) fn parse(
    source: &Arc<Source>,
    forest: &mut Forest,
    issues: &mut Issues,
) -> Option<Option<TreeId>> {
    let mut parser = Parser {
        automaton: Automaton::get(),
        tokens: Tokens::new(source),
        reporter: Reporter::new(source, issues),
        forest,
        predictor: Predictor::default(),
        recovery: Recovery::default(),
        depth: Depth::default(),
        state: 0,
        callers: Vec::new(),
        least: Vec::new(),
    };
    let made = parser.rule(Rule::Start, 0);
    if parser.reporter.halted() {
        return None;
    }
    made.ok().map(RuleResult::tree)
}

/// Why a rule is left before its end.
#[derive(Debug)]
enum Fault {
    /// The next token does not fit.
    Mismatch,
    /// No alternative goes on with the token so far ahead.
    NoViable(usize),
    /// Reading stops for good; why is reported.
    Halt,
}

/// Reading stops for good.
#[derive(Debug)]
struct Halt;

impl From<Halt> for Fault {
    fn from(_: Halt) -> Self {
        Self::Halt
    }
}

type Read<T = ()> = Result<T, Fault>;

struct Parser<'a> {
    automaton: &'static Automaton,
    tokens: Tokens,
    reporter: Reporter<'a>,
    forest: &'a mut Forest,
    predictor: Predictor,
    recovery: Recovery,
    depth: Depth,
    /// The automaton's.
    state: StateId,
    /// The states in which the rules around were called.
    callers: Vec<StateId>,
    /// How strongly operators must bind, in each rule that recurses to the left.
    least: Vec<u8>,
}

impl Parser<'_> {
    /// Reads one rule, whatever its text is like.
    fn rule(&mut self, rule: Rule, least: u8) -> Result<RuleResult, Halt> {
        let caller = self.state;
        if rule != Rule::Start {
            self.callers.push(caller);
        }
        self.state = self.automaton.start(rule);
        let next = self.next();
        let mut frame = Frame::new(rule, self.tokens.offset(next));
        self.enter(rule)?;

        let read = match self.automaton.program(rule) {
            Program::Plain(steps) => self.steps(steps, &mut frame),
            Program::Choice {
                state,
                decides,
                alternatives,
            } => self.choice(*state, decides.as_deref(), alternatives, &mut frame),
            Program::Recursive { .. } => {
                self.least.push(least);
                let read = self.recursive(rule, &mut frame);
                self.least.pop();
                read
            }
        };
        match read {
            Ok(()) => {}
            Err(Fault::Halt) => return Err(Halt),
            Err(fault) => {
                self.report_fault(&fault);
                self.recover()?;
            }
        }

        self.leave(rule);
        if rule != Rule::Start {
            self.callers.pop();
        }
        self.state = caller;
        if self.reporter.halted() {
            return Err(Halt);
        }
        Ok(frame.finish(self.forest))
    }

    fn enter(&mut self, rule: Rule) -> Result<(), Halt> {
        let entered = match rule {
            Rule::Expr => self.depth.enter_expr(),
            Rule::Relation => self.depth.relation.enter(),
            Rule::Calc => self.depth.calc.enter(),
            _ => Ok(()),
        };
        entered.map_err(|_| self.halt(depth::MESSAGE))
    }

    fn again(&mut self, rule: Rule) -> Result<(), Halt> {
        let entered = match rule {
            Rule::Relation => self.depth.relation.again(),
            Rule::Calc => self.depth.calc.again(),
            _ => Ok(()),
        };
        entered.map_err(|_| self.halt(depth::MESSAGE))
    }

    fn leave(&mut self, rule: Rule) {
        match rule {
            Rule::Expr => self.depth.leave_expr(),
            Rule::Relation => self.depth.relation.leave(),
            Rule::Calc => self.depth.calc.leave(),
            _ => {}
        }
    }

    fn halt(&mut self, message: &str) -> Halt {
        self.reporter.halt(message);
        Halt
    }

    fn steps(&mut self, steps: &'static [Step], frame: &mut Frame) -> Read {
        steps.iter().try_for_each(|step| self.step(step, frame))
    }

    fn step(&mut self, step: &'static Step, frame: &mut Frame) -> Read {
        match step {
            Step::Token(state, kind, label) => {
                self.state = *state;
                let leaf = self.match_token(*kind)?;
                frame.leaf(*label, leaf);
                Ok(())
            }
            Step::Tokens(state, set, label) => {
                self.state = *state;
                let token = self.next();
                let leaf = if set.contains(token.kind) {
                    self.take()
                } else {
                    self.recover_inline()?
                };
                frame.leaf(*label, leaf);
                Ok(())
            }
            Step::Call(state, rule, least, label) => {
                self.state = *state;
                let made = self.rule(*rule, *least)?;
                frame.made(*label, made);
                Ok(())
            }
            Step::Optional(state, set, steps) => {
                self.state = *state;
                self.sync()?;
                if set.contains(self.next().kind) {
                    self.steps(steps, frame)
                } else {
                    Ok(())
                }
            }
            Step::Loop(inner) => self.repeat(inner, frame),
        }
    }

    fn repeat(&mut self, inner: &'static Loop, frame: &mut Frame) -> Read {
        self.state = inner.entry;
        self.sync()?;
        // One that runs at least once decides only after that.
        let mut goes_on = inner.plus || self.goes_on(inner, inner.entry)?;
        while goes_on {
            self.steps(&inner.steps, frame)?;
            self.state = inner.back;
            self.sync()?;
            let decision = if inner.plus { inner.back } else { inner.entry };
            goes_on = self.goes_on(inner, decision)?;
        }
        Ok(())
    }

    fn goes_on(&mut self, inner: &Loop, decision: StateId) -> Read<bool> {
        match inner.decides {
            Some(set) => Ok(set.contains(self.next().kind)),
            None => Ok(self.predict(decision)? == 1),
        }
    }

    fn choice(
        &mut self,
        state: StateId,
        decides: Option<&[set::Set]>,
        alternatives: &'static [Vec<Step>],
        frame: &mut Frame,
    ) -> Read {
        self.state = state;
        self.sync()?;
        let chosen = match decides {
            Some(sets) => {
                let kind = self.next().kind;
                let chosen = sets.iter().position(|set| set.contains(kind));
                chosen.ok_or(Fault::NoViable(0))?
            }
            None => usize::from(self.predict(state)?) - 1,
        };
        frame.alternative = Some(chosen);
        self.steps(&alternatives[chosen], frame)
    }

    fn recursive(&mut self, rule: Rule, frame: &mut Frame) -> Read {
        let Program::Recursive {
            first,
            entry,
            back,
            block,
            operators,
        } = self.automaton.program(rule)
        else {
            return Ok(());
        };
        self.steps(first, frame)?;

        self.state = *entry;
        self.sync()?;
        while self.predict(*entry)? == 1 {
            let mut chosen = 0;
            if operators.len() > 1 {
                self.state = *block;
                self.sync()?;
                chosen = usize::from(self.predict(*block)?) - 1;
            }
            self.again(rule)?;
            frame.nest(chosen, self.forest);
            self.steps(&operators[chosen], frame)?;
            self.state = *back;
            self.sync()?;
        }
        Ok(())
    }

    fn predict(&mut self, state: StateId) -> Read<u8> {
        let least = self.least.last().copied().unwrap_or(0);
        let decision = Decision { state, least };
        let tokens = &mut self.tokens;
        let result = self
            .predictor
            .predict(decision, &self.callers, |ahead| tokens.ahead(ahead).kind);
        self.report_unrecognized();

        result.map_err(|failure| match failure {
            Failure::NoViable(ahead) => Fault::NoViable(ahead),
            Failure::OutOfSteps => self
                .halt("expression is too complex to recover from its syntax errors")
                .into(),
        })
    }

    fn next(&mut self) -> crate::lex::Token {
        let token = self.tokens.ahead(0);
        self.report_unrecognized();
        token
    }

    /// Takes the next token, which is the one that was expected.
    fn take(&mut self) -> Leaf {
        let token = self.next();
        self.recovery.end();
        self.tokens.consume();
        let mut leaf = Leaf::from(token);
        leaf.offset = self.tokens.offset(token);
        leaf
    }

    fn match_token(&mut self, kind: crate::lex::Kind) -> Read<Leaf> {
        if self.next().kind == kind {
            Ok(self.take())
        } else {
            self.recover_inline()
        }
    }
}

/// A part of a rule that only guides the reader makes nothing.
fn is_shown(label: Label) -> bool {
    label != Label::Nothing
}
