//! An address as in mail headers: `a@b.c`, `"x y"@[::1]`, `Some Name <a@b.c> (comment)`, a group of
//! one.

use std::net::IpAddr;

pub(super) fn is_email(text: &str) -> bool {
    let mut reader = Reader(text);
    let count = reader.address(true);
    count == Some(1) && reader.skip_comments() && reader.0.is_empty()
}

/// The rest of the text. Every parsing function returns whether it matched.
#[derive(Clone, Copy)]
struct Reader<'t>(&'t str);

impl Reader<'_> {
    /// Parses an address and returns the number of mailboxes: a group may have several, or none.
    fn address(&mut self, group: bool) -> Option<usize> {
        self.skip_space();
        let start = *self;

        if self.mailbox() {
            self.skip_space();
            let commented = !self.consume('(') || self.comment();
            return commented.then_some(1);
        }

        *self = start;

        if !self.0.starts_with('<') && !self.phrase() {
            return None;
        }

        self.skip_space();

        if group && self.consume(':') {
            return self.group();
        }

        (self.consume('<') && self.mailbox() && self.consume('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();

        if self.consume(';') {
            return Some(0);
        }

        let mut count = 0;
        loop {
            count += self.address(false)?;

            if !self.skip_comments() {
                return None;
            }
            if self.consume(';') {
                return Some(count);
            }
            if !self.consume(',') {
                return None;
            }
        }
    }

    /// `local@domain`.
    fn mailbox(&mut self) -> bool {
        self.skip_space();
        let local = match self.0.starts_with('"') {
            true => self.quoted().is_some_and(|length| length > 0),
            false => self.atom().is_some_and(is_well_dotted),
        };

        if !local || !self.consume('@') {
            return false;
        }

        self.skip_space();

        if self.consume('[') {
            let Some((inside, rest)) = self.0.split_once(']') else {
                return false;
            };
            self.0 = rest;
            return inside.parse::<IpAddr>().is_ok();
        }

        self.atom().is_some_and(is_well_dotted)
    }

    /// One word or more.
    fn phrase(&mut self) -> bool {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return false;
            }

            self.skip_space();
            let start = *self;
            let word = match self.0.starts_with('"') {
                true => self.quoted().is_some(),
                false => self.atom().is_some(),
            };

            if !word {
                *self = start;
                // Upstream accepts an empty phrase at the end, too; what must follow it is missing
                // then.
                return words > 0 || self.0.is_empty();
            }

            words += 1;
        }
    }

    fn atom(&mut self) -> Option<&str> {
        let end = self
            .0
            .find(|character| !is_atom(character))
            .unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        self.0 = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// The length of a quoted string.
    fn quoted(&mut self) -> Option<usize> {
        let mut length = 0;
        let mut escaped = false;
        for (at, character) in self.0.char_indices().skip(1) {
            match character {
                '"' if !escaped => {
                    self.0 = &self.0[at + 1..];
                    return Some(length);
                }
                '\\' if !escaped => escaped = true,
                ' ' | '\t' => (length, escaped) = (length + 1, false),
                _ if is_visible(character) => (length, escaped) = (length + 1, false),
                _ => return None,
            }
        }

        None
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.consume('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// The rest of a comment, whose bracket has been read. Comments nest.
    fn comment(&mut self) -> bool {
        let mut depth = 1;
        let mut escaped = false;
        for (at, character) in self.0.char_indices() {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }

            if depth == 0 {
                self.0 = &self.0[at + 1..];
                return true;
            }
        }

        self.0 = "";

        false
    }

    fn consume(&mut self, character: char) -> bool {
        match self.0.strip_prefix(character) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

fn is_well_dotted(atom: &str) -> bool {
    !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..")
}

fn is_atom(character: char) -> bool {
    is_visible(character) && !"()[];@\\,\"<>:".contains(character)
}

fn is_visible(character: char) -> bool {
    matches!(character, '!'..='~') || !character.is_ascii()
}
