//! Texts that may be empty, ranges of ports, patterns of `--vmodule`, and whole parts of a file.

use std::ops::RangeInclusive;

use coracle_api::go_text::Quoted;
use coracle_api::{Map, Value};

use super::{Element, Field, mismatch};

/// A text that is none only where the setting is not given. An empty one, as of an unset variable of a
/// script, is a text, so that it can be refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionalText(pub Option<String>);

impl Field for OptionalText {
    fn kind(&self) -> &'static str {
        String::KIND
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.0 = Some(text.to_string());
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        self.0 = Some(String::from_value(value)?);
        Ok(())
    }

    fn value(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, String::to_value)
    }
}

/// A range of ports: `a-b`, inclusive, or `a+n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl Default for PortRange {
    fn default() -> PortRange {
        PortRange(1..=u16::MAX)
    }
}

impl Field for PortRange {
    fn kind(&self) -> &'static str {
        "portRange"
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        let number = |text: &str| {
            text.trim()
                .parse::<u32>()
                .map_err(|_| format!("{} is not a valid range of ports", Quoted(text)))
        };

        let (first, last) = match (text.split_once('-'), text.split_once('+')) {
            (Some((first, last)), _) => (number(first)?, number(last)?),
            (None, Some((first, more))) => {
                (number(first)?, number(first)?.saturating_add(number(more)?))
            }
            (None, None) => (number(text)?, number(text)?),
        };

        let port = |number: u32| u16::try_from(number).ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => self.0 = first..=last,
            _ => {
                return Err(format!(
                    "not a valid port range, must be FIRST-LAST within 1-65535: {text}"
                ));
            }
        }

        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        let text = value.as_str().ok_or_else(|| mismatch("a string", value))?;
        self.set(text)
    }

    fn value(&self) -> Value {
        Value::from(format!("{}-{}", self.0.start(), self.0.end()))
    }
}

/// A log level of some source files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The name of a file without its ending; `*` and `?` match as in a shell.
    pub file: String,
    pub level: i32,
}

impl Pattern {
    /// Whether the pattern matches the whole name of a file.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.file.as_bytes(), name.as_bytes());
        let (mut at, mut matched) = (0, 0);
        // The last `*`, and how much of the name it has taken.
        let mut star: Option<(usize, usize)> = None;
        while matched < name.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, matched));
                    at += 1;
                }
                Some(letter) if *letter == b'?' || *letter == name[matched] => {
                    at += 1;
                    matched += 1;
                }
                _ => {
                    let Some((position, taken)) = star else {
                        return false;
                    };
                    star = Some((position, taken + 1));
                    at = position + 1;
                    matched = taken + 1;
                }
            }
        }

        pattern[at..].iter().all(|letter| *letter == b'*')
    }
}

/// The patterns of `--vmodule`: `scheduler*=4,queue=6`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns(pub Vec<Pattern>);

impl Field for Patterns {
    fn kind(&self) -> &'static str {
        "pattern=N,..."
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.0.clear();
        self.add(text)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let pattern = || {
                let (file, level) = part.split_once('=')?;
                let file = Some(file).filter(|file| !file.is_empty())?.to_string();
                let level = i32::parse(level).ok()?;
                Some(Pattern { file, level })
            };
            let syntax = || format!("syntax error: {} is not pattern=N", Quoted(part));
            self.0.push(pattern().ok_or_else(syntax)?);
        }

        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        let items = value.as_array().ok_or_else(|| mismatch("a list", value))?;
        self.0.clear();
        for item in items {
            let file = item.get("filePattern").and_then(Value::as_str);
            let level = item.get("verbosity").and_then(Value::as_int);
            let level = level.and_then(|level| i32::try_from(level).ok());
            let (Some(file), Some(level)) = (file, level) else {
                return Err(String::from("expected filePattern and verbosity"));
            };
            let file = file.to_string();
            self.0.push(Pattern { file, level });
        }

        Ok(())
    }

    fn value(&self) -> Value {
        let pattern = |pattern: &Pattern| {
            let mut map = Map::new();
            map.insert("filePattern", pattern.file.as_str());
            map.insert("verbosity", pattern.level);
            Value::Object(map)
        };
        Value::Array(self.0.iter().map(pattern).collect())
    }

    fn text(&self) -> String {
        let patterns = self.0.iter();
        let patterns = patterns.map(|pattern| format!("{}={}", pattern.file, pattern.level));
        patterns.collect::<Vec<_>>().join(",")
    }
}

/// A part of a file that the program reads itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree(pub Option<Value>);

impl Field for Tree {
    fn kind(&self) -> &'static str {
        "object"
    }

    fn set(&mut self, _: &str) -> Result<(), String> {
        Err(String::from("can be set in the configuration file only"))
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        self.0 = Some(value.clone());
        Ok(())
    }

    fn value(&self) -> Value {
        self.0.clone().unwrap_or(Value::Null)
    }
}
