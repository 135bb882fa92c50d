//! ANTLR's recovery, as its Go runtime 4.13.0 has it.
//!
//! Where a token does not fit, one is left out if the next fits, or assumed if the present one may
//! follow it. Otherwise the rule is left, and tokens are skipped to one that may follow any of the
//! rules around. After an error nothing is reported until a token fits.

use std::collections::HashSet;

use super::automaton::{StateId, StateKind};
use super::set::Set;
use super::{Fault, Halt, Parser, Read};
use crate::lex::{Kind, Token};
use crate::parse::tree::Leaf;

/// How often a text may be recovered.
const MOST_ATTEMPTS: usize = 30;

/// How many tokens one recovery may skip.
const MOST_SKIPPED: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// No token fitted since the last error.
    active: bool,
    /// Where the last recovery stopped, and in which states since then.
    last: Option<(usize, HashSet<StateId>)>,
    attempts: usize,
}

impl Recovery {
    /// A token fitted.
    pub(super) fn end(&mut self) {
        self.active = false;
        self.last = None;
    }
}

impl Parser<'_> {
    /// What may come next, here or after the rules around.
    fn expected(&self) -> Set {
        let mut following = self.automaton.state(self.state).next;
        let mut expected = following.without_end();
        for caller in self.callers.iter().rev() {
            if !following.can_end() {
                break;
            }
            let Some(follow) = self.automaton.follow(*caller) else {
                break;
            };
            following = self.automaton.state(follow).next;
            expected = expected.with(following.without_end());
        }
        if following.can_end() {
            expected = expected.with(Set::one(Kind::Eof));
        }
        expected
    }

    /// What may follow any of the rules around.
    fn recovery_set(&self) -> Set {
        self.callers
            .iter()
            .filter_map(|caller| self.automaton.follow(*caller))
            .fold(Set::EMPTY, |set, follow| {
                set.with(self.automaton.state(follow).next)
            })
            .without_end()
    }

    /// Called where something optional or repeated begins or goes on.
    pub(super) fn sync(&mut self) -> Read {
        if self.recovery.active {
            return Ok(());
        }
        let state = self.automaton.state(self.state);
        let kind = self.next().kind;
        if state.next.can_end() || state.next.contains(kind) {
            return Ok(());
        }
        match state.kind {
            StateKind::BlockStart | StateKind::LoopEntry => {
                if self.delete_token() {
                    Ok(())
                } else {
                    Err(Fault::Mismatch)
                }
            }
            StateKind::LoopBack => {
                self.report_unwanted();
                let wanted = self.expected().with(self.recovery_set());
                self.skip_to(wanted, usize::MAX).map_err(Fault::from)
            }
            _ => Ok(()),
        }
    }

    /// Leaves out the next token if the one after it is expected.
    fn delete_token(&mut self) -> bool {
        let after = self.tokens.ahead(1).kind;
        self.report_unrecognized();
        if !self.expected().contains(after) {
            return false;
        }
        self.report_unwanted();
        self.tokens.consume();
        self.recovery.end();
        true
    }

    /// Called where a token does not fit: one is left out or assumed.
    pub(super) fn recover_inline(&mut self) -> Read<Leaf> {
        self.count_attempt()?;
        if self.delete_token() {
            let token = self.next();
            self.tokens.consume();
            let mut leaf = Leaf::from(token);
            leaf.offset = self.tokens.offset(token);
            return Ok(leaf);
        }
        if self.may_be_assumed() {
            self.report_missing();
            return Ok(self.assumed());
        }
        Err(Fault::Mismatch)
    }

    /// Whether the next token may follow the one that is missing.
    fn may_be_assumed(&mut self) -> bool {
        use super::automaton::Transition;
        let kind = self.next().kind;
        let Some(Transition::Tokens(_, after)) =
            self.automaton.state(self.state).transitions.first()
        else {
            return false;
        };
        let mut following = self.automaton.state(*after).next;
        let mut callers = self.callers.iter().rev();

        loop {
            if following.contains(kind) {
                return true;
            }
            if !following.can_end() {
                return false;
            }
            match callers
                .next()
                .and_then(|caller| self.automaton.follow(*caller))
            {
                None => return kind == Kind::Eof,
                Some(follow) => following = self.automaton.state(follow).next,
            }
        }
    }

    fn assumed(&mut self) -> Leaf {
        let next = self.next();
        let place = match self.tokens.before() {
            Some(before) if next.kind == Kind::Eof => before,
            _ => next,
        };
        Leaf {
            kind: self.expected().kinds().next().unwrap_or(Kind::Eof),
            start: place.start,
            end: place.start,
            offset: self.tokens.offset(place),
            missing: true,
        }
    }

    /// Called after a rule was left: skips to what may go on.
    pub(super) fn recover(&mut self) -> Result<(), Halt> {
        self.count_attempt()?;
        let mut skipped = 0;
        let position = self.tokens.position();
        let stuck = matches!(&self.recovery.last, Some((last, states)) if *last == position && states.contains(&self.state));
        if stuck {
            // Here again: at least one token must go.
            self.tokens.consume();
            skipped += 1;
        }

        let position = self.tokens.position();
        let mut states = self
            .recovery
            .last
            .take()
            .map(|(_, states)| states)
            .unwrap_or_default();
        states.insert(self.state);
        self.recovery.last = Some((position, states));
        let wanted = self.recovery_set();
        self.skip_to(wanted, MOST_SKIPPED - skipped)
    }

    fn skip_to(&mut self, wanted: Set, most: usize) -> Result<(), Halt> {
        let mut skipped = 0;
        loop {
            let kind = self.next().kind;
            if kind == Kind::Eof || wanted.contains(kind) {
                return Ok(());
            }
            if skipped == most {
                return Err(self.halt("error recovery token lookahead limit exceeded: 256"));
            }
            self.tokens.consume();
            skipped += 1;
        }
    }

    fn count_attempt(&mut self) -> Result<(), Halt> {
        if self.recovery.attempts == MOST_ATTEMPTS {
            let message = format!("error recovery attempt limit exceeded: {MOST_ATTEMPTS}");
            let token = self.next();
            self.reporter.syntax(self.tokens.offset(token), &message);
            self.reporter.stop();
            return Err(Halt);
        }
        self.recovery.attempts += 1;
        Ok(())
    }

    /// Text that is no token is reported when it is read, whatever else is going on.
    pub(super) fn report_unrecognized(&mut self) {
        for found in std::mem::take(&mut self.tokens.unrecognized) {
            let offset = i32::try_from(found.offset).unwrap_or(i32::MAX);
            let message = format!("token recognition error at: '{}'", found.text);
            self.reporter.syntax(offset, &message);
        }
    }

    pub(super) fn report_fault(&mut self, fault: &Fault) {
        let message = match fault {
            Fault::Halt => return,
            Fault::Mismatch => {
                let token = self.next();
                format!(
                    "mismatched input {} expecting {}",
                    self.shown(token),
                    self.expected()
                )
            }
            Fault::NoViable(ahead) => {
                let input = self.tokens.text_to(*ahead);
                format!("no viable alternative at input {}", quote(&input))
            }
        };
        let ahead = match fault {
            Fault::NoViable(ahead) => *ahead,
            _ => 0,
        };
        self.report(ahead, &message);
    }

    fn report_unwanted(&mut self) {
        let token = self.next();
        let message = format!(
            "extraneous input {} expecting {}",
            self.shown(token),
            self.expected()
        );
        self.report(0, &message);
    }

    fn report_missing(&mut self) {
        let token = self.next();
        let message = format!("missing {} at {}", self.expected(), self.shown(token));
        self.report(0, &message);
    }

    fn report(&mut self, ahead: usize, message: &str) {
        if std::mem::replace(&mut self.recovery.active, true) {
            return;
        }
        let token = self.tokens.ahead(ahead);
        self.reporter.syntax(self.tokens.offset(token), message);
    }

    fn shown(&self, token: Token) -> String {
        quote(self.tokens.text(token))
    }
}

fn quote(text: &str) -> String {
    let text = text
        .replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\r', "\\r");
    format!("'{text}'")
}
