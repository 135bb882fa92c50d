//! Compares what this crate finds with what upstream answers: errors, type, costs, value.

use coracle_cel::cost::Range;
use coracle_cel::env::Checked;
use coracle_cel::eval::EvalError;
use coracle_cel::value::Value as CelValue;
use serde_json::{Map, Value, json};

use crate::oracle::Oracle;

/// Answers to a question, in the members of the oracle's answers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer(Map<String, Value>);

/// What is compared, where upstream says it.
const COMPARED: [&str; 8] = [
    "errors", "compile", "program", "type", "est", "cost", "value", "err",
];

impl Answer {
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Answer {
        self.0.insert(name.into(), value.into());
        self
    }

    pub(crate) fn and_checked(self, checked: &Checked, estimated: Range) -> Answer {
        self.with("type", checked.output().to_string())
            .with("est", json!([estimated.min, estimated.max]))
    }

    /// `cost`: where upstream counts the same.
    pub(crate) fn evaluated(
        self,
        result: Result<&CelValue<'_>, &EvalError>,
        cost: Option<u64>,
    ) -> Answer {
        let answer = match cost {
            Some(cost) => self.with("cost", cost),
            None => self,
        };
        match result {
            Ok(value) => answer.with("value", text(value)),
            Err(error) => answer.with("err", error.to_string()),
        }
    }
}

/// As the oracle writes values.
fn text(value: &CelValue<'_>) -> String {
    match value {
        CelValue::Null => "null".into(),
        CelValue::Bool(flag) => flag.to_string(),
        CelValue::Int(number) => number.to_string(),
        CelValue::Uint(number) => format!("{number}u"),
        // The shortest digits, as `1.5e0`.
        CelValue::Double(number) => format!("{number:e}"),
        CelValue::String(text) => json!(**text).to_string(),
        CelValue::Type(name) => format!("type({})", &**name),
        CelValue::Duration(span) => format!("duration({})", span.as_nanos()),
        CelValue::Timestamp(_) => {
            let at = value.to_json().unwrap();
            format!("timestamp({})", at.as_str().unwrap())
        }
        CelValue::Optional(None) => "optional.none".into(),
        CelValue::Optional(Some(value)) => format!("optional({})", text(value)),
        CelValue::Extra(extra) => {
            let name = extra.type_name();
            let name = name.rsplit('.').next().unwrap_or(name).to_lowercase();
            format!("{name}({extra})")
        }
        CelValue::List(list) => {
            let items = list.iter().map(|item| match item {
                Ok(item) => text(&item),
                Err(error) => format!("error({error})"),
            });
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        CelValue::Map(map) => {
            let entries = (0..map.len()).filter_map(|index| map.entry(index));
            let mut entries: Vec<_> = entries
                .map(|(key, value)| format!("{}: {}", text(&key), text(&value.unwrap())))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        CelValue::Object(object) if &*object.name == "JSONPatch" => {
            let field = |name: &str| {
                let found = object.fields.iter().find(|(field, _)| **field == *name);
                found.map(|(_, value)| text(value))
            };
            let string = |name: &str| field(name).unwrap_or_else(|| "\"\"".to_owned());
            format!(
                "JSONPatch{{op: {}, path: {}, from: {}, value: {}}}",
                string("op"),
                string("path"),
                string("from"),
                field("value").unwrap_or_else(|| "<nil>".to_owned())
            )
        }
        other => match other.to_json() {
            Ok(json) => format!(
                "{}{}",
                coracle_cel::value::type_text(other),
                coracle_api::codec::json::to_string(&json)
            ),
            Err(error) => error,
        },
    }
}

/// Asks all questions, and fails with those that are answered differently.
pub(crate) fn compare(questions: &[Value], ours: &[Answer]) {
    assert_eq!(questions.len(), ours.len());
    let mut wrong = Vec::new();
    for ((question, answer), ours) in questions
        .iter()
        .zip(Oracle::start().ask(questions))
        .zip(ours)
    {
        let mut theirs = Answer::default();
        for name in COMPARED {
            if name == "cost" && !question["variables"].is_null() {
                continue;
            }
            if let Some(value) = answer.get(name) {
                theirs = theirs.with(name, value.clone());
            }
        }
        if !answer["bad"].is_null() || theirs != *ours {
            wrong.push(format!(
                "{question}\n  upstream: {answer}\n  ours:     {}",
                Value::Object(ours.0.clone())
            ));
        }
    }

    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        questions.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}
