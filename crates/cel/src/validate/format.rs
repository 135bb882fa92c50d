//! Calls of `format` on a literal with a list of arguments.

use super::Validator;
use crate::ast::{Expr, Literal, NodeId};
use crate::types::{Scalar, Type};

const STRING: &str = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
                      types, durations, and timestamps";

/// What is wrong, and with which argument.
struct Fault {
    argument: Option<NodeId>,
    message: String,
}

fn fault(message: impl Into<String>) -> Fault {
    Fault {
        argument: None,
        message: message.into(),
    }
}

impl Validator<'_> {
    pub(super) fn format(&mut self, node: NodeId) {
        let Expr::Call {
            function,
            target: Some(target),
            args,
        } = self.expr(node)
        else {
            return;
        };
        let (Expr::Literal(Literal::String(text)), [list]) = (self.expr(*target), args.as_slice())
        else {
            return;
        };
        let Expr::List { elements, .. } = self.expr(*list) else {
            return;
        };
        if **function != *"format" {
            return;
        }

        match self.clauses(text, elements) {
            Err(Fault { argument, message }) => self.report(argument.unwrap_or(node), message),
            Ok(used) if elements.len() > used => {
                let given = elements.len();
                let message = format!(
                    "too many arguments supplied to string.format (expected {used}, got {given})"
                );
                self.report(node, message);
            }
            Ok(_) => {}
        }
    }

    /// How many arguments the clauses of `text` use.
    fn clauses(&self, text: &str, args: &[NodeId]) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        let (mut at, mut used) = (0, 0);
        while at < bytes.len() {
            if bytes[at] != b'%' {
                at += 1;
            } else if bytes.get(at + 1) == Some(&b'%') {
                at += 2;
            } else {
                let clause = &bytes[at + 1..];
                if clause.is_empty() {
                    return Err(fault("unexpected end of string"));
                }
                let Some(arg) = args.get(used) else {
                    return Err(fault(format!("index {used} out of range")));
                };
                at += 1 + self.clause(clause, *arg)?;
                used += 1;
            }
        }
        Ok(used)
    }

    /// How long the clause is.
    fn clause(&self, clause: &[u8], arg: NodeId) -> Result<usize, Fault> {
        let unparsed = |error: String| fault(format!("could not parse formatting clause: {error}"));
        let precision = precision(clause)
            .map_err(|error| unparsed(format!("error while parsing precision: {error}")))?;
        let letter = clause[precision];
        let checked = match letter {
            b's' => self.is_shown(arg).map_err(|argument| (argument, STRING)),
            _ => {
                let (fits, message) = requirement(letter).ok_or_else(|| {
                    unparsed(format!(
                        "unrecognized formatting clause \"{}\"",
                        char::from(letter)
                    ))
                })?;
                let of = self.checked.type_of(arg);
                if *of == Type::Dyn || fits(&unwrapped(of)) {
                    Ok(())
                } else {
                    Err((arg, message))
                }
            }
        };

        checked.map_err(|(argument, message)| {
            let given = self.checked.type_of(argument).name();
            Fault {
                argument: Some(argument),
                message: format!("error during formatting: {message}, was given {given}"),
            }
        })?;
        Ok(precision + 1)
    }

    /// Whether `%s` takes `arg`; if not, which part of it is wrong.
    fn is_shown(&self, arg: NodeId) -> Result<(), NodeId> {
        let of = unwrapped(self.checked.type_of(arg));
        let shown = !matches!(
            of,
            Type::Object(_) | Type::Opaque(_) | Type::Optional(_) | Type::Any | Type::Error
        );
        if !shown {
            return Err(arg);
        }
        match self.expr(arg) {
            Expr::List { elements, .. } => elements
                .iter()
                .try_for_each(|element| self.is_shown(*element)),
            Expr::Map { entries } => entries.iter().try_for_each(|entry| {
                self.is_shown(entry.key)?;
                self.is_shown(entry.value)
            }),
            _ => Ok(()),
        }
    }
}

/// A scalar that may be null is formatted as the scalar.
fn unwrapped(of: &Type) -> Type {
    match of {
        Type::Wrapper(scalar) => Scalar::unwrapped(*scalar),
        _ => of.clone(),
    }
}

/// What a clause takes.
type Takes = fn(&Type) -> bool;

/// What a clause takes, and what is said where it does not.
fn requirement(letter: u8) -> Option<(Takes, &'static str)> {
    use Type::{Bool, Bytes, Double, Int, String, Uint};
    Some(match letter {
        b'd' => (
            |of| matches!(of, Int | Uint),
            "decimal clause can only be used on integers",
        ),
        b'f' => (
            |of| matches!(of, Double | String),
            "fixed-point clause can only be used on doubles",
        ),
        b'e' => (
            |of| matches!(of, Double | String),
            "scientific clause can only be used on doubles",
        ),
        b'b' => (
            |of| matches!(of, Int | Uint | Bool),
            "only integers and bools can be formatted as binary",
        ),
        b'x' | b'X' => (
            |of| matches!(of, Int | Uint | String | Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        b'o' => (
            |of| matches!(of, Int | Uint),
            "octal clause can only be used on integers",
        ),
        _ => return None,
    })
}

/// How long the precision at the beginning of a clause is; something follows it.
fn precision(clause: &[u8]) -> Result<usize, String> {
    let Some(rest) = clause.strip_prefix(b".") else {
        return Ok(0);
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == rest.len() {
        return Err("could not find end of precision specifier".into());
    }
    let text = String::from_utf8_lossy(&rest[..digits]);
    let reason = match text.parse::<i64>() {
        Ok(_) => return Ok(digits + 1),
        Err(_) if text.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(format!(
        "error while converting precision to integer: strconv.Atoi: parsing \"{text}\": {reason}"
    ))
}
