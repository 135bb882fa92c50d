//! Asks this crate what the oracle is asked, and answers as it does.

use std::cell::RefCell;
use std::collections::HashMap;

use coracle_cel::cost::estimate;
use coracle_cel::env::Env;
use coracle_cel::eval::Budget;
use coracle_cel::program::{Activation, Program};
use coracle_cel::types::Type;
use coracle_cel::value::{Extra, List, Map, Moment, Value};

use crate::answer::Answer;
use crate::question::Question;
use crate::values::{double, hex, quote};

/// A panic is an answer, too: a wrong one.
pub(crate) fn answer(question: &Question) -> Answer {
    std::panic::catch_unwind(|| attempt(question)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Answer {
            bad: format!("panic: {}", text.unwrap_or_default()),
            ..Answer::default()
        }
    })
}

fn attempt(question: &Question) -> Answer {
    let env = environment(question);
    let mut answer = Answer::default();
    let checked = match env.compile(&question.expr) {
        Ok(checked) => checked,
        Err(issues) => {
            answer.errors = issues.to_string();
            return answer;
        }
    };
    answer.kind = checked.output().to_string();
    answer.ast = checked.ast.debug_text();
    let range = estimate(&checked, &|_| None);
    answer.est = Some([range.min, range.max]);

    let program = match Program::new(&checked) {
        Ok(program) => program,
        Err(error) => {
            answer.program = error.to_string();
            return answer;
        }
    };
    let mut activation = Activation::default();
    for (name, text) in &question.lets {
        activation = activation.with(name, value_of(text));
    }
    let outcome = program.eval(&activation, Budget::default());
    answer.cost = Some(outcome.cost);
    match outcome.result {
        Ok(value) => {
            answer.rtype = type_name(&value);
            answer.value = text(&value);
        }
        Err(error) => answer.err = error.to_string(),
    }
    answer
}

fn environment(question: &Question) -> Env {
    let mut env = Env::base();
    for (name, of) in &question.vars {
        env = env.with_variable(name, parse_type(of));
    }
    env
}

/// The value of an expression of the base environment. There are few, and they are kept.
fn value_of(text: &str) -> Value<'static> {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Value<'static>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(value) = known.get(text) {
            return value.clone();
        }
        let checked = Env::base().compile(text).expect("the value compiles");
        let program = Program::new(&checked).expect("the value is a program");
        let program: &'static Program = Box::leak(Box::new(program));
        let outcome = program.eval(&Activation::default(), Budget::default());
        let value = outcome.result.expect("the value evaluates");
        known.insert(text.to_owned(), value.clone());
        value
    })
}

/// The name of the type that a value has at run time.
fn type_name(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null_type".into(),
        Value::Bool(_) => "bool".into(),
        Value::Int(_) => "int".into(),
        Value::Uint(_) => "uint".into(),
        Value::Double(_) => "double".into(),
        Value::String(_) => "string".into(),
        Value::Bytes(_) => "bytes".into(),
        Value::Timestamp(_) => "google.protobuf.Timestamp".into(),
        Value::Duration(_) => "google.protobuf.Duration".into(),
        Value::List(_) => "list".into(),
        Value::Map(_) => "map".into(),
        Value::Object(object) => object.name.to_string(),
        Value::Optional(_) => "optional_type".into(),
        Value::Type(_) => "type".into(),
        Value::Extra(extra) => extra.type_name().into(),
        Value::Opaque(_) => "opaque".into(),
        Value::Failed(_) => "error".into(),
    }
}

/// A type as messages print it.
pub(crate) fn parse_type(text: &str) -> Type {
    let text = text.trim();
    if let Some((name, rest)) = text.split_once('(') {
        let inner = rest.strip_suffix(')').expect("a closing parenthesis");
        return match name {
            "list" => Type::list(parse_type(inner)),
            "optional_type" => Type::optional(parse_type(inner)),
            "map" => {
                let (key, value) = inner.split_once(',').expect("two types");
                Type::map(parse_type(key), parse_type(value))
            }
            _ => panic!("unknown type {text}"),
        };
    }
    match text {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null" => Type::Null,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "dyn" => Type::Dyn,
        "any" => Type::Any,
        name if name.starts_with("net.") => Type::opaque(name),
        name if name.starts_with("kubernetes.") => Type::object(name),
        _ => panic!("unknown type {text}"),
    }
}

/// As the oracle's `value`.
pub(crate) fn text(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => format!("{number}u"),
        Value::Double(number) => double(*number),
        Value::String(text) => quote(text),
        Value::Bytes(bytes) => format!("b\"{}\"", hex(bytes)),
        Value::Timestamp(at) => format!("timestamp({})", rfc3339(*at)),
        Value::Duration(span) => format!("duration({})", span.as_nanos()),
        Value::List(items) => list(items),
        Value::Map(entries) => map(entries),
        Value::Object(object) => object_text(object),
        Value::Optional(None) => "optional.none".into(),
        Value::Optional(Some(value)) => format!("optional({})", text(value)),
        Value::Type(name) => format!("type({})", &**name),
        Value::Extra(extra) => extra_text(extra),
        Value::Opaque(_) => "opaque".into(),
        Value::Failed(error) => format!("error({error})"),
    }
}

fn list(items: &List<'_>) -> String {
    let items: Vec<_> = items
        .iter()
        .map(|item| text(&item.expect("an element of a result")))
        .collect();
    format!("[{}]", items.join(", "))
}

fn map(entries: &Map<'_>) -> String {
    let mut parts: Vec<_> = (0..entries.len())
        .filter_map(|index| entries.entry(index))
        .map(|(key, value)| {
            format!(
                "{}: {}",
                text(&key),
                text(&value.expect("a value of a result"))
            )
        })
        .collect();
    parts.sort();
    format!("{{{}}}", parts.join(", "))
}

fn object_text(object: &coracle_cel::value::Object<'_>) -> String {
    let fields: Vec<_> = object
        .fields
        .iter()
        .map(|(name, value)| format!("{}: {}", &**name, text(value)))
        .collect();
    format!("{}{{{}}}", &*object.name, fields.join(", "))
}

fn extra_text(extra: &Extra) -> String {
    match extra {
        Extra::Ip(_) => format!("ip({extra})"),
        Extra::Cidr(_) => format!("cidr({extra})"),
        Extra::Url(_) => format!("url({extra})"),
        Extra::Quantity(..) => format!("quantity({extra})"),
        Extra::Semver(_) => format!("semver({extra})"),
        Extra::Format(format) => format!("format({format:?})").to_lowercase(),
        _ => extra.to_string(),
    }
}

/// In UTC, with as many digits after the point as there are.
pub(crate) fn rfc3339(at: Moment) -> String {
    let days = at.seconds.div_euclid(86_400);
    let second = at.seconds.rem_euclid(86_400);
    let (year, month, day) = civil(days);
    let mut fraction = String::new();
    if at.nanos > 0 {
        fraction = format!(".{:09}", at.nanos);
        fraction.truncate(fraction.trim_end_matches('0').len());
    }
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{fraction}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The date that is so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}
