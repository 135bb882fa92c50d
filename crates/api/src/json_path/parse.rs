//! Parses the text of a path into its steps.

use super::{Comparison, Filter, JsonPath, JsonPathError, Operand, Step};
use crate::{Text, Value};

pub(super) fn path(text: &str) -> Result<JsonPath, JsonPathError> {
    let mut reader = Reader {
        rest: text,
        filters: 0,
    };
    let steps = reader.steps()?;
    match reader.rest {
        "" => Ok(JsonPath { steps }),
        rest => Err(error(&format!("unexpected {rest:?}"))),
    }
}

fn error(why: &str) -> JsonPathError {
    JsonPathError(why.to_owned())
}

/// Maximum nesting of filters within filters.
const MOST_FILTERS: usize = 16;

struct Reader<'t> {
    rest: &'t str,
    /// Nesting of the filters being parsed.
    filters: usize,
}

impl Reader<'_> {
    fn steps(&mut self) -> Result<Vec<Step>, JsonPathError> {
        let mut steps = Vec::new();
        loop {
            if self.consume("..") {
                steps.push(Step::Deep);
                self.member(&mut steps);
            } else if self.consume(".") {
                self.member(&mut steps);
            } else if self.consume("[") {
                steps.push(self.brackets()?);
            } else {
                return Ok(steps);
            }
        }
    }

    fn consume(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A name up to its terminator; a backslash escapes the next character.
    fn member(&mut self, steps: &mut Vec<Step>) {
        let mut name = String::new();
        let mut signs = self.rest.char_indices();

        let mut end = self.rest.len();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' => name.extend(signs.next().map(|(_, kept)| kept)),
                '.' | '[' | ']' | ')' | '=' | '!' | '<' | '>' | ' ' => {
                    end = at;
                    break;
                }
                sign => name.push(sign),
            }
        }

        self.rest = &self.rest[end..];

        match name.as_str() {
            "" => {}
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Member(Text::new(name))),
        }
    }

    /// The content of brackets, up to the closing one.
    fn brackets(&mut self) -> Result<Step, JsonPathError> {
        let step = if self.consume("?(") {
            if self.filters == MOST_FILTERS {
                return Err(error(&format!(
                    "filters are nested more than {MOST_FILTERS} deep"
                )));
            }

            self.filters += 1;
            let filter = self.filter()?;
            self.filters -= 1;

            Step::Filter(filter)
        } else if self.rest.starts_with(['\'', '"']) {
            Step::Member(Text::new(self.quoted()?))
        } else {
            let end = self
                .rest
                .find(']')
                .ok_or_else(|| error("unterminated array"))?;
            let (inside, rest) = self.rest.split_at(end);
            self.rest = rest;
            index_or_slice(inside.trim())?
        };

        match self.consume("]") {
            true => Ok(step),
            false => Err(error("unterminated array")),
        }
    }

    fn quoted(&mut self) -> Result<String, JsonPathError> {
        let mut signs = self.rest.char_indices();
        let (_, quote) = signs
            .next()
            .ok_or_else(|| error("unterminated quoted string"))?;

        let mut text = String::new();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' => text.extend(signs.next().map(|(_, kept)| kept)),
                sign if sign == quote => {
                    self.rest = &self.rest[at + quote.len_utf8()..];
                    return Ok(text);
                }
                sign => text.push(sign),
            }
        }

        Err(error("unterminated quoted string"))
    }

    fn filter(&mut self) -> Result<Filter, JsonPathError> {
        let left = self.operand()?;
        self.rest = self.rest.trim_start();

        let comparison = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let found = comparison.into_iter().find(|(text, _)| self.consume(text));
        let compared = match found {
            Some((_, comparison)) => Some((comparison, self.operand()?)),
            None => None,
        };

        self.rest = self.rest.trim_start();

        match self.consume(")") {
            true => Ok(Filter { left, compared }),
            false => Err(error("unterminated filter")),
        }
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        self.rest = self.rest.trim_start();

        if self.consume("@") || self.rest.starts_with('.') {
            return Ok(Operand::Path(JsonPath {
                steps: self.steps()?,
            }));
        }

        if self.rest.starts_with(['\'', '"']) {
            return Ok(Operand::Literal(Value::string(self.quoted()?)));
        }

        let end = self
            .rest
            .find([')', ' ', '=', '!', '<', '>'])
            .unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;

        match (text, text.parse::<i64>(), text.parse::<f64>()) {
            ("true" | "false", ..) => Ok(Operand::Literal(Value::Bool(text == "true"))),
            (_, Ok(number), _) => Ok(Operand::Literal(Value::Int(number))),
            (_, _, Ok(number)) => Ok(Operand::Literal(Value::Float(number))),
            _ => Err(error(&format!("unrecognized {text:?} in a filter"))),
        }
    }
}

/// `*`, an index, or a slice.
fn index_or_slice(inside: &str) -> Result<Step, JsonPathError> {
    if inside == "*" {
        return Ok(Step::All);
    }

    let number = |text: &str| {
        text.trim()
            .parse::<i64>()
            .map_err(|_| error(&format!("invalid array index {inside}")))
    };

    let parts: Vec<&str> = inside.split(':').collect();
    let bound = |place: usize| match parts.get(place).map(|part| part.trim()) {
        None | Some("") => Ok(None),
        Some(text) => number(text).map(Some),
    };

    match parts.len() {
        1 => Ok(Step::Element(number(inside)?)),
        2 | 3 => Ok(Step::Slice {
            from: bound(0)?,
            to: bound(1)?,
            by: bound(2)?,
        }),
        _ => Err(error(&format!("invalid array index {inside}"))),
    }
}
