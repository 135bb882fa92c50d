//! Tokens, as the lexer of cel-go's grammar makes them: always the longest that matches.

mod scan;

use std::sync::Arc;

use crate::source::Source;

/// Kinds of tokens, numbered as in the grammar: sets of expected tokens are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    Eof,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclam,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Whitespace,
    Comment,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
}

impl Kind {
    /// In the order of the grammar.
    pub(crate) const ALL: [Self; 38] = [
        Self::Eof,
        Self::Equals,
        Self::NotEquals,
        Self::In,
        Self::Less,
        Self::LessEquals,
        Self::GreaterEquals,
        Self::Greater,
        Self::And,
        Self::Or,
        Self::LeftBracket,
        Self::RightBracket,
        Self::LeftBrace,
        Self::RightBrace,
        Self::LeftParen,
        Self::RightParen,
        Self::Dot,
        Self::Comma,
        Self::Minus,
        Self::Exclam,
        Self::Question,
        Self::Colon,
        Self::Plus,
        Self::Star,
        Self::Slash,
        Self::Percent,
        Self::True,
        Self::False,
        Self::Null,
        Self::Whitespace,
        Self::Comment,
        Self::Float,
        Self::Int,
        Self::Uint,
        Self::String,
        Self::Bytes,
        Self::Identifier,
        Self::EscapedIdentifier,
    ];

    /// How messages name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Eof => "<EOF>",
            Self::Equals => "'=='",
            Self::NotEquals => "'!='",
            Self::In => "'in'",
            Self::Less => "'<'",
            Self::LessEquals => "'<='",
            Self::GreaterEquals => "'>='",
            Self::Greater => "'>'",
            Self::And => "'&&'",
            Self::Or => "'||'",
            Self::LeftBracket => "'['",
            Self::RightBracket => "']'",
            Self::LeftBrace => "'{'",
            Self::RightBrace => "'}'",
            Self::LeftParen => "'('",
            Self::RightParen => "')'",
            Self::Dot => "'.'",
            Self::Comma => "','",
            Self::Minus => "'-'",
            Self::Exclam => "'!'",
            Self::Question => "'?'",
            Self::Colon => "':'",
            Self::Plus => "'+'",
            Self::Star => "'*'",
            Self::Slash => "'/'",
            Self::Percent => "'%'",
            Self::True => "'true'",
            Self::False => "'false'",
            Self::Null => "'null'",
            Self::Whitespace => "WHITESPACE",
            Self::Comment => "COMMENT",
            Self::Float => "NUM_FLOAT",
            Self::Int => "NUM_INT",
            Self::Uint => "NUM_UINT",
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Identifier => "IDENTIFIER",
            Self::EscapedIdentifier => "ESC_IDENTIFIER",
        }
    }

    /// The parser does not see it.
    pub(crate) const fn is_hidden(self) -> bool {
        matches!(self, Self::Whitespace | Self::Comment)
    }
}

/// A token: its kind and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Bytes.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Of `start`, in characters.
    pub(crate) offset: u32,
}

/// Text that is no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unrecognized {
    pub(crate) offset: u32,
    pub(crate) text: String,
}

/// Reads tokens one after the other; the last is [`Kind::Eof`], again and again.
#[derive(Debug)]
pub(crate) struct Lexer {
    source: Arc<Source>,
    /// Bytes.
    at: usize,
    /// Characters.
    offset: u32,
}

impl Lexer {
    pub(crate) fn new(source: &Arc<Source>) -> Self {
        Self {
            source: Arc::clone(source),
            at: 0,
            offset: 0,
        }
    }

    /// The next token, hidden ones too. What is no token is skipped: up to and with the character
    /// at which no token could go on.
    pub(crate) fn next(&mut self, unrecognized: &mut Vec<Unrecognized>) -> Token {
        let source = Arc::clone(&self.source);
        let text = source.text();

        loop {
            let (start, offset) = (self.at, self.offset);
            let rest = &text[start..];
            if rest.is_empty() {
                return token(Kind::Eof, start, start, offset);
            }

            match scan::longest(rest.as_bytes()) {
                Ok((kind, length)) => {
                    self.advance(&rest[..length]);
                    return token(kind, start, self.at, offset);
                }
                Err(failed) => {
                    let stuck = rest[failed..].chars().next().map_or(0, char::len_utf8);
                    let skipped = &rest[..failed + stuck];
                    unrecognized.push(Unrecognized {
                        offset,
                        text: skipped.into(),
                    });
                    self.advance(skipped);
                }
            }
        }
    }

    fn advance(&mut self, over: &str) {
        self.at += over.len();
        self.offset += u32::try_from(over.chars().count()).expect("the source is limited");
    }
}

fn token(kind: Kind, start: usize, end: usize, offset: u32) -> Token {
    let narrow = |at: usize| u32::try_from(at).expect("the source is limited");
    Token {
        kind,
        start: narrow(start),
        end: narrow(end),
        offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)], unrecognized: &[&str]) {
        let source = Arc::new(Source::new(text));
        let mut lexer = Lexer::new(&source);
        let mut errors = Vec::new();
        let mut found = Vec::new();

        loop {
            let token = lexer.next(&mut errors);
            if token.kind == Kind::Eof {
                break;
            }
            let of = &text[token.start as usize..token.end as usize];
            found.push((token.kind.name(), of));
        }

        assert_eq!(found, expected, "{text}");
        let texts: Vec<&str> = errors.iter().map(|error| error.text.as_str()).collect();
        assert_eq!(texts, unrecognized, "{text}");
    }

    #[test]
    fn the_longest_token_wins() {
        check("1.5e3", &[("NUM_FLOAT", "1.5e3")], &[]);
        check(
            "1.x",
            &[("NUM_INT", "1"), ("'.'", "."), ("IDENTIFIER", "x")],
            &[],
        );
        check("0xfu", &[("NUM_UINT", "0xfu")], &[]);
        check("0xg", &[("NUM_INT", "0"), ("IDENTIFIER", "xg")], &[]);
        check("1e", &[("NUM_INT", "1"), ("IDENTIFIER", "e")], &[]);

        check(".5", &[("NUM_FLOAT", ".5")], &[]);
        check(
            "inx in",
            &[("IDENTIFIER", "inx"), ("WHITESPACE", " "), ("'in'", "in")],
            &[],
        );
        check("''''''", &[("STRING", "''''''")], &[]);
        check("r'\\'", &[("STRING", "r'\\'")], &[]);
        check("bR\"x\"", &[("BYTES", "bR\"x\"")], &[]);
        check("rb''", &[("IDENTIFIER", "rb"), ("STRING", "''")], &[]);
        check("'\\x4é'", &[], &["'\\x4é", "'"]);
        check("`a-b/c.d e`", &[("ESC_IDENTIFIER", "`a-b/c.d e`")], &[]);
    }

    #[test]
    fn what_is_no_token_is_skipped_with_the_character_that_failed() {
        check(
            "a & b",
            &[
                ("IDENTIFIER", "a"),
                ("WHITESPACE", " "),
                ("IDENTIFIER", "b"),
            ],
            &["& "],
        );
        check("'abc", &[], &["'abc"]);
        check("\"\"\"a", &[("STRING", "\"\"")], &["\"a"]);
        check("ä", &[], &["ä"]);
        check("=", &[], &["="]);
        check("b'", &[("IDENTIFIER", "b")], &["'"]);
    }
}
