//! Expressions with large character classes, repeated many times: `[\pL]{0,200}`.
//!
//! The `regex` crate works on bytes, and needs hundreds of states for each copy of such a class.
//! Here a step is a character, as in Go, and all copies of a class share its ranges. All
//! alternatives are followed in parallel (a Thompson NFA), so a match takes time linear in the
//! text.

use std::collections::HashMap;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

#[derive(Clone, Debug)]
pub(super) struct Wide {
    steps: Vec<Step>,
    /// Sorted ranges of characters.
    classes: Vec<Box<[(char, char)]>>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Character(char),
    /// A character of the class at this index.
    Class(u32),
    /// Reads nothing and continues at both.
    Split(u32, u32),
    Look(Look),
    Matched,
}

/// A target that is not known yet.
const OPEN: u32 = u32::MAX;

impl Wide {
    /// Compiles the output of `translate`; `None`: it is too deep, or has more than `most` steps.
    pub(super) fn new(translated: &str, nesting: u32, most: usize) -> Option<Wide> {
        let hir = ParserBuilder::new()
            .nest_limit(nesting)
            .build()
            .parse(translated)
            .ok()?;

        let mut compiler = Compiler {
            steps: Vec::new(),
            classes: Vec::new(),
            known: HashMap::new(),
            most,
        };
        compiler.add(&hir)?;

        compiler.push(Step::Matched)?;

        Some(Wide {
            steps: compiler.steps,
            classes: compiler.classes,
        })
    }

    /// Whether it matches somewhere in `text`.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let mut run = Run {
            wide: self,
            seen: vec![0; self.steps.len()],
            round: 0,
            rest: Vec::new(),
        };

        let (mut now, mut next) = (Vec::new(), Vec::new());
        let mut before = None;
        for after in text.chars().map(Some).chain([None]) {
            run.begin();

            // Threads that continue, and the one that begins here.
            for at in next.drain(..).chain([0]) {
                if run.follow(at, before, after, &mut now) {
                    return true;
                }
            }

            let Some(character) = after else { return false };
            next.extend(
                now.drain(..)
                    .filter(|at| self.reads(*at, character))
                    .map(|at: u32| at + 1),
            );

            before = after;
        }

        false
    }

    fn reads(&self, at: u32, character: char) -> bool {
        match self.steps[at as usize] {
            Step::Character(wanted) => wanted == character,
            Step::Class(class) => {
                let ranges = &self.classes[class as usize];
                let index = ranges.partition_point(|(_, last)| *last < character);
                ranges
                    .get(index)
                    .is_some_and(|(first, _)| *first <= character)
            }
            Step::Split(..) | Step::Look(_) | Step::Matched => false,
        }
    }
}

/// A match in progress.
struct Run<'w> {
    wide: &'w Wide,
    /// The round in which a step was last reached.
    seen: Vec<u32>,
    round: u32,
    rest: Vec<u32>,
}

impl Run<'_> {
    fn begin(&mut self) {
        if self.round == u32::MAX {
            self.seen.fill(0);
            self.round = 0;
        }
        self.round += 1;
    }

    /// Adds the steps that can be reached from one without reading anything; true: the end is among
    /// them.
    fn follow(
        &mut self,
        from: u32,
        before: Option<char>,
        after: Option<char>,
        reached: &mut Vec<u32>,
    ) -> bool {
        self.rest.push(from);

        while let Some(at) = self.rest.pop() {
            if std::mem::replace(&mut self.seen[at as usize], self.round) == self.round {
                continue;
            }

            match self.wide.steps[at as usize] {
                Step::Matched => {
                    self.rest.clear();
                    return true;
                }
                Step::Split(one, other) => self.rest.extend([one, other]),
                Step::Look(look) if holds(look, before, after) => self.rest.push(at + 1),
                Step::Look(_) => {}
                Step::Character(_) | Step::Class(_) => reached.push(at),
            }
        }

        false
    }
}

/// Whether an assertion holds between two characters. Go's word boundaries are ASCII only.
fn holds(look: Look, before: Option<char>, after: Option<char>) -> bool {
    let is_word =
        |character: Option<char>| character.is_some_and(|c| c == '_' || c.is_ascii_alphanumeric());
    match look {
        Look::Start => before.is_none(),
        Look::End => after.is_none(),
        Look::StartLF => matches!(before, None | Some('\n')),
        Look::EndLF => matches!(after, None | Some('\n')),
        Look::WordAscii => is_word(before) != is_word(after),
        Look::WordAsciiNegate => is_word(before) == is_word(after),
        _ => false,
    }
}

struct Compiler {
    steps: Vec<Step>,
    classes: Vec<Box<[(char, char)]>>,
    known: HashMap<Box<[(char, char)]>, u32>,
    most: usize,
}

impl Compiler {
    fn push(&mut self, step: Step) -> Option<u32> {
        let index = u32::try_from(self.steps.len()).ok()?;
        (self.steps.len() < self.most).then(|| self.steps.push(step))?;
        Some(index)
    }

    fn here(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(OPEN)
    }

    /// Sets an open target.
    fn set_target(&mut self, split: u32, to: u32) {
        if let Step::Split(one, other) = &mut self.steps[split as usize] {
            let open = if *one == OPEN { one } else { other };
            *open = to;
        }
    }

    /// Appends the steps of an expression.
    fn add(&mut self, hir: &Hir) -> Option<()> {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                for character in std::str::from_utf8(&literal.0).ok()?.chars() {
                    self.push(Step::Character(character))?;
                }
            }
            HirKind::Class(class) => {
                let class = self.class(class)?;
                self.push(Step::Class(class))?;
            }
            HirKind::Look(look) => drop(self.push(Step::Look(*look))?),
            HirKind::Repetition(repetition) => self.repeat(repetition)?,
            HirKind::Capture(capture) => self.add(&capture.sub)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.add(part)?;
                }
            }
            HirKind::Alternation(branches) => self.alternate(branches)?,
        }

        Some(())
    }

    fn class(&mut self, class: &Class) -> Option<u32> {
        let ranges: Box<[(char, char)]> = match class {
            Class::Unicode(class) => class
                .ranges()
                .iter()
                .map(|range| (range.start(), range.end()))
                .collect(),
            Class::Bytes(class) => {
                let ranges = class.ranges().iter().filter(|range| range.end().is_ascii());
                ranges
                    .map(|range| (char::from(range.start()), char::from(range.end())))
                    .collect()
            }
        };

        if let Some(known) = self.known.get(&ranges) {
            return Some(*known);
        }

        let index = u32::try_from(self.classes.len()).ok()?;
        self.classes.push(ranges.clone());
        self.known.insert(ranges, index);

        Some(index)
    }

    fn repeat(&mut self, repetition: &Repetition) -> Option<()> {
        for _ in 0..repetition.min {
            self.add(&repetition.sub)?;
        }

        match repetition.max {
            None => {
                let split = self.push(Step::Split(OPEN, OPEN))?;
                self.set_target(split, split + 1);
                self.add(&repetition.sub)?;
                self.push(Step::Split(split, split))?;
                self.set_target(split, self.here());
            }
            Some(max) => {
                // Each of the rest may be the first that is omitted, with all after it.
                let mut ends = Vec::new();
                for _ in repetition.min..max {
                    let split = self.push(Step::Split(OPEN, OPEN))?;
                    self.set_target(split, split + 1);
                    ends.push(split);
                    self.add(&repetition.sub)?;
                }

                let end = self.here();
                ends.into_iter()
                    .for_each(|split| self.set_target(split, end));
            }
        }

        Some(())
    }

    fn alternate(&mut self, branches: &[Hir]) -> Option<()> {
        let mut ends = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let last = index + 1 == branches.len();
            let split = if last {
                None
            } else {
                Some(self.push(Step::Split(OPEN, OPEN))?)
            };

            if let Some(split) = split {
                self.set_target(split, split + 1);
            }

            self.add(branch)?;

            if let Some(split) = split {
                ends.push(self.push(Step::Split(OPEN, OPEN))?);
                self.set_target(split, self.here());
            }
        }

        let end = self.here();
        for split in ends {
            self.set_target(split, end);
            self.set_target(split, end);
        }

        Some(())
    }
}
