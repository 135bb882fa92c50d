//! A reader of the text format of protocol buffers, as much of it as the conformance tests use.

use std::iter::Peekable;
use std::str::Chars;

/// The fields of a message, in order; one that repeats is there several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Message(pub(crate) Vec<(String, Node)>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A number, a name or an enumerator.
    Word(String),
    Text(Vec<u8>),
    Message(Message),
}

impl Message {
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.0
            .iter()
            .filter(move |(field, _)| field == name)
            .map(|(_, node)| node)
    }

    pub(crate) fn message<'a>(&'a self, name: &'a str) -> Option<&'a Self> {
        self.messages(name).next()
    }

    pub(crate) fn messages<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.all(name).filter_map(|node| match node {
            Node::Message(message) => Some(message),
            _ => None,
        })
    }

    /// A text or a word.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.all(name).find_map(|node| match node {
            Node::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Node::Word(word) => Some(word.clone()),
            Node::Message(_) => None,
        })
    }
}

/// # Panics
/// If the text is not well-formed: it is a file of upstream.
pub(crate) fn parse(text: &str) -> Message {
    let mut reader = Reader(text.chars().peekable());
    let message = reader.message();
    assert_eq!(reader.next(), None, "text after the message");
    message
}

struct Reader<'a>(Peekable<Chars<'a>>);

impl Reader<'_> {
    fn message(&mut self) -> Message {
        let mut fields = Vec::new();
        while let Some(next) = self.next() {
            match next {
                '}' | '>' => break,
                ',' | ';' => drop(self.0.next()),
                _ => {
                    let name = self.name();
                    if self.next() == Some(':') {
                        self.0.next();
                    }
                    self.values(&name, &mut fields);
                }
            }
        }
        Message(fields)
    }

    fn values(&mut self, name: &str, fields: &mut Vec<(String, Node)>) {
        if self.next() != Some('[') {
            fields.push((name.into(), self.value()));
            return;
        }
        self.0.next();
        while let Some(next) = self.next() {
            match next {
                ']' => {
                    self.0.next();
                    return;
                }
                ',' => drop(self.0.next()),
                _ => fields.push((name.into(), self.value())),
            }
        }
    }

    fn value(&mut self) -> Node {
        match self.next().expect("a value") {
            '{' | '<' => {
                self.0.next();
                let message = self.message();
                self.0.next();
                Node::Message(message)
            }
            '"' | '\'' => {
                let mut bytes = Vec::new();
                while let Some(quote @ ('"' | '\'')) = self.next() {
                    self.0.next();
                    self.string(quote, &mut bytes);
                }
                Node::Text(bytes)
            }
            _ => Node::Word(self.word()),
        }
    }

    /// A name, or `[type.googleapis.com/…]`.
    fn name(&mut self) -> String {
        if self.next() != Some('[') {
            return self.word();
        }
        self.0
            .by_ref()
            .take_while(|c| *c != ']')
            .collect::<String>()
            + "]"
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.0.peek().copied() {
            if !(c.is_alphanumeric() || "_-+.".contains(c)) {
                break;
            }
            word.push(c);
            self.0.next();
        }
        assert!(!word.is_empty(), "unexpected {:?}", self.0.peek());
        word
    }

    fn string(&mut self, quote: char, bytes: &mut Vec<u8>) {
        while let Some(c) = self.0.next() {
            match c {
                '\\' => self.escape(bytes),
                _ if c == quote => return,
                _ => bytes.extend(c.to_string().bytes()),
            }
        }
        panic!("a string without end");
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) {
        let c = self.0.next().expect("an escape");
        let byte = match c {
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'v' => 11,
            'x' | 'X' => self.digits(16, 2, None),
            '0'..='7' => self.digits(8, 3, Some(c)),
            'u' | 'U' => {
                let count = if c == 'u' { 4 } else { 8 };
                let hex: String = self.0.by_ref().take(count).collect();
                let code = u32::from_str_radix(&hex, 16).expect("hexadecimal digits");
                let c = char::from_u32(code).expect("a character");
                bytes.extend(c.to_string().bytes());
                return;
            }
            other => {
                bytes.extend(other.to_string().bytes());
                return;
            }
        };
        bytes.push(byte);
    }

    fn digits(&mut self, radix: u32, most: usize, first: Option<char>) -> u8 {
        let mut digits: String = first.into_iter().collect();
        while digits.len() < most
            && let Some(c) = self.0.next_if(|c| c.is_digit(radix))
        {
            digits.push(c);
        }
        u8::from_str_radix(&digits, radix).expect("the digits of a byte")
    }

    /// The next character that is neither blank nor of a comment.
    fn next(&mut self) -> Option<char> {
        loop {
            let c = self.0.peek().copied()?;
            if c == '#' {
                self.0.by_ref().find(|c| *c == '\n');
            } else if c.is_whitespace() {
                self.0.next();
            } else {
                return Some(c);
            }
        }
    }
}

#[test]
fn text_format_is_read() {
    let message = parse("a: 1 # one\nb { c: 'x' \"y\\n\\101\" }, b: { d: [1, -inf] }");
    assert_eq!(message.text("a").as_deref(), Some("1"));
    let parts: Vec<_> = message.messages("b").collect();
    assert_eq!(parts[0].text("c").as_deref(), Some("xy\nA"));
    assert_eq!(parts[1].all("d").count(), 2);
}
