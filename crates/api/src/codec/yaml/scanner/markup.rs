//! Anchors, aliases, tags and directives.

use super::super::Error;
use super::super::cursor::Mark;
use super::super::token::Kind;
use super::Scanner;

impl<'a> Scanner<'a> {
    pub(super) fn fetch_anchor(&mut self) -> Result<(), Error> {
        self.note_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.cursor.mark();
        let alias = self.cursor.here() == b'*';

        self.cursor.skip();
        let name = self.scan_name();
        let ends = self.cursor.blank_or_end(0)
            || matches!(
                self.cursor.here(),
                b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'
            );

        if name.is_empty() || !ends {
            return Err(self.error(
                "did not find expected alphabetic or numeric character",
                mark,
            ));
        }

        self.push(
            if alias {
                Kind::Alias(name)
            } else {
                Kind::Anchor(name)
            },
            mark,
        );

        Ok(())
    }

    pub(super) fn fetch_tag(&mut self) -> Result<(), Error> {
        self.note_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.cursor.mark();
        let kind = if self.cursor.at(1) == b'<' {
            self.scan_verbatim_tag(mark)?
        } else {
            self.scan_tag(mark)?
        };

        if !self.cursor.blank_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break", mark));
        }

        self.push(kind, mark);

        Ok(())
    }

    fn scan_name(&mut self) -> &'a str {
        let from = self.cursor.offset();
        while self.cursor.name_character() {
            self.cursor.skip();
        }
        self.cursor.slice(from, self.cursor.offset())
    }

    /// `!<tag:yaml.org,2002:str>`.
    fn scan_verbatim_tag(&mut self, began: Mark) -> Result<Kind<'a>, Error> {
        self.cursor.skip_many(2);
        let suffix = self.scan_uri("", began)?;
        if self.cursor.here() != b'>' {
            return Err(self.error("did not find the expected '>'", began));
        }
        self.cursor.skip();
        Ok(Kind::Tag { handle: "", suffix })
    }

    /// `!!str`, `!handle!suffix`, `!local` or `!`.
    fn scan_tag(&mut self, began: Mark) -> Result<Kind<'a>, Error> {
        let handle = self.scan_tag_handle();
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = self.scan_uri("", began)?;
            return Ok(Kind::Tag { handle, suffix });
        }

        let suffix = self.scan_uri(handle, began)?;
        Ok(if suffix.is_empty() {
            Kind::Tag {
                handle: "",
                suffix: b"!".to_vec(),
            }
        } else {
            Kind::Tag {
                handle: "!",
                suffix,
            }
        })
    }

    /// `!`, `!!`, `!name!`, or the `!name` that a local tag begins with. Expects the cursor at a
    /// `!`.
    fn scan_tag_handle(&mut self) -> &'a str {
        let from = self.cursor.offset();
        self.cursor.skip();
        self.scan_name();
        if self.cursor.here() == b'!' {
            self.cursor.skip();
        }
        self.cursor.slice(from, self.cursor.offset())
    }

    /// The characters of a URI, after those of `head` without its `!`.
    fn scan_uri(&mut self, head: &str, began: Mark) -> Result<Vec<u8>, Error> {
        let mut uri = head.as_bytes().get(1..).unwrap_or_default().to_vec();
        let from = self.cursor.offset();

        loop {
            match self.cursor.here() {
                b'%' => self.scan_uri_escape(&mut uri, began)?,
                character
                    if self.cursor.name_character()
                        || b";/?:@&=+$,.!~*'()[]".contains(&character) =>
                {
                    uri.push(character);
                    self.cursor.skip();
                }
                _ => break,
            }
        }

        if head.is_empty() && self.cursor.offset() == from {
            return Err(self.error("did not find expected tag URI", began));
        }

        Ok(uri)
    }

    /// One character encoded as `%xx` octets of its UTF-8.
    fn scan_uri_escape(&mut self, uri: &mut Vec<u8>, began: Mark) -> Result<(), Error> {
        let first = self.scan_octet(began)?;
        let more = match first {
            0..=0x7F => 0,
            0xC0..=0xDF => 1,
            0xE0..=0xEF => 2,
            0xF0..=0xF7 => 3,
            _ => return Err(self.error("found an incorrect leading UTF-8 octet", began)),
        };

        uri.push(first);
        self.cursor.skip_many(3);

        for _ in 0..more {
            let octet = self.scan_octet(began)?;
            if octet & 0xC0 != 0x80 {
                return Err(self.error("found an incorrect trailing UTF-8 octet", began));
            }
            uri.push(octet);
            self.cursor.skip_many(3);
        }

        Ok(())
    }

    fn scan_octet(&self, began: Mark) -> Result<u8, Error> {
        match (
            self.cursor.here(),
            hex(self.cursor.at(1)),
            hex(self.cursor.at(2)),
        ) {
            (b'%', Some(high), Some(low)) => Ok(high << 4 | low),
            _ => Err(self.error("did not find URI escaped octet", began)),
        }
    }

    /// `%YAML 1.1` or `%TAG !handle! prefix`, to the end of the line.
    pub(super) fn scan_directive(&mut self) -> Result<Kind<'a>, Error> {
        let began = self.cursor.mark();
        self.cursor.skip();
        let name = self.scan_name();
        if name.is_empty() {
            return Err(self.error("could not find expected directive name", began));
        }
        if !self.cursor.blank_or_end(0) {
            return Err(self.error("found unexpected non-alphabetical character", began));
        }

        let kind = match name {
            "YAML" => self.scan_version(began)?,
            "TAG" => self.scan_tag_directive(began)?,
            _ => return Err(self.error("found unknown directive name", began)),
        };

        self.finish_line(began)?;

        Ok(kind)
    }

    /// Blanks, a comment, and the line break.
    pub(super) fn finish_line(&mut self, began: Mark) -> Result<(), Error> {
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.break_or_end(0) {
            return Err(self.error("did not find expected comment or line break", began));
        }
        self.cursor.skip_line_break();
        Ok(())
    }

    fn scan_version(&mut self, began: Mark) -> Result<Kind<'a>, Error> {
        self.cursor.skip_blanks();
        let major = self.scan_version_number(began)?;
        if self.cursor.here() != b'.' {
            return Err(self.error("did not find expected digit or '.' character", began));
        }
        self.cursor.skip();
        let minor = self.scan_version_number(began)?;
        Ok(Kind::VersionDirective { major, minor })
    }

    fn scan_version_number(&mut self, began: Mark) -> Result<u8, Error> {
        let mut number = 0;
        let mut digits = 0;
        while self.cursor.here().is_ascii_digit() {
            digits += 1;
            if digits > 2 {
                return Err(self.error("found extremely long version number", began));
            }
            number = number * 10 + (self.cursor.here() - b'0');
            self.cursor.skip();
        }

        if digits == 0 {
            return Err(self.error("did not find expected version number", began));
        }

        Ok(number)
    }

    fn scan_tag_directive(&mut self, began: Mark) -> Result<Kind<'a>, Error> {
        self.cursor.skip_blanks();

        if self.cursor.here() != b'!' {
            return Err(self.error("did not find expected '!'", began));
        }

        let handle = self.scan_tag_handle();
        if !handle.ends_with('!') {
            return Err(self.error("did not find expected '!'", began));
        }
        if !self.cursor.blank(0) {
            return Err(self.error("did not find expected whitespace", began));
        }

        self.cursor.skip_blanks();
        let prefix = self.scan_uri("", began)?;

        if !self.cursor.blank_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break", began));
        }

        Ok(Kind::TagDirective { handle, prefix })
    }
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
