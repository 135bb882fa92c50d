//! What is known of an expression, and how it is printed.

use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_cel::cost::Range;
use coracle_cel::env::Checked;
use coracle_cel::failure::{self, Part};
use coracle_cel::program::Program;
use coracle_cel::source::{Issue, Issues, Source};
use coracle_cel::value::Value as CelValue;

use super::CelError;
use super::literal::literal;

/// An expression that was compiled, and perhaps evaluated.
pub(super) struct Report {
    found: Result<Compiled, Issues>,
}

struct Compiled {
    type_name: String,
    estimated: Range,
    /// `None`: more than the budget.
    cost: Option<u64>,
    result: Result<Shown, Issues>,
}

/// A value, printed before what it refers to is gone.
pub(super) struct Shown {
    literal: String,
    /// `None`: JSON has no such value.
    json: Option<Value>,
}

/// What an evaluation came to.
pub(super) struct Evaluated {
    pub(super) result: Result<Shown, String>,
    pub(super) cost: Option<u64>,
}

impl Shown {
    pub(super) fn of(value: &CelValue<'_>) -> Shown {
        Shown {
            literal: literal(value),
            json: value.to_json().ok(),
        }
    }
}

impl Report {
    /// For an expression that was refused.
    pub(super) fn refused(issues: Issues) -> Report {
        Report { found: Err(issues) }
    }

    /// Evaluates an expression.
    pub(super) fn of(
        checked: &Checked,
        estimated: Range,
        evaluate: &dyn Fn(Program) -> Evaluated,
    ) -> Result<Report, CelError> {
        let program = Program::new(checked).map_err(CelError::Program)?;
        let Evaluated { result, cost } = evaluate(program);
        let result = result.map_err(|error| placed(checked, error, evaluate));
        Ok(Report {
            found: Ok(Compiled {
                type_name: checked.output().to_string(),
                estimated,
                cost,
                result,
            }),
        })
    }

    /// Its errors are not part of the text: they are the command's.
    pub(super) fn text(&self) -> String {
        let Ok(compiled) = &self.found else {
            return String::new();
        };
        let mut lines = Vec::new();
        if let Ok(shown) = &compiled.result {
            lines.push(format!("result: {}", shown.literal));
        }

        lines.push(format!("type: {}", compiled.type_name));
        let Range { min, max } = compiled.estimated;
        lines.push(match min == max {
            true => format!("estimated cost: {min}"),
            false => format!("estimated cost: {min} to {max}"),
        });
        lines.push(match compiled.cost {
            Some(cost) => format!("actual cost: {cost}"),
            None => "actual cost: more than the budget".to_string(),
        });
        lines.join("\n") + "\n"
    }

    pub(super) fn json(&self) -> String {
        let mut report = Map::new();
        match &self.found {
            Err(issues) => {
                report.insert("errors", errors(issues));
            }
            Ok(compiled) => compiled.add_to(&mut report),
        }
        json::to_pretty(&Value::Object(report))
    }

    pub(super) fn into_result(self) -> Result<(), CelError> {
        let compiled = self.found.map_err(CelError::Compile)?;
        compiled.result.map(drop).map_err(CelError::Evaluate)
    }
}

impl Compiled {
    fn add_to(&self, report: &mut Map) {
        report.insert("type", self.type_name.as_str());
        let mut estimated = Map::new();
        estimated.insert("min", number(self.estimated.min));
        estimated.insert("max", number(self.estimated.max));
        report.insert("estimatedCost", estimated);
        if let Some(cost) = self.cost {
            report.insert("cost", number(cost));
        }

        match &self.result {
            Ok(shown) => {
                report.insert("text", shown.literal.as_str());
                if let Some(json) = &shown.json {
                    report.insert("result", json.clone());
                }
            }
            Err(issues) => {
                report.insert("errors", errors(issues));
            }
        }
    }
}

/// The error of an evaluation, with its place.
fn placed(checked: &Checked, error: String, evaluate: &dyn Fn(Program) -> Evaluated) -> Issues {
    let part = |program: Program| match evaluate(program).result {
        Ok(shown) if shown.literal == "true" => Part::True,
        Ok(_) => Part::Value,
        Err(error) => Part::Error(error),
    };
    let source: &Arc<Source> = checked.ast.source();
    let mut issues = Issues::new(source);
    issues.report(failure::place(checked, &part), error);
    issues
}

fn errors(issues: &Issues) -> Vec<Value> {
    let error = |issue: &Issue| {
        let mut error = Map::new();
        error.insert("line", Value::Int(issue.location.line.into()));
        error.insert("column", Value::Int(i64::from(issue.location.column) + 1));
        error.insert("message", issue.message.as_str());
        Value::Object(error)
    };
    issues.sorted().into_iter().map(error).collect()
}

/// Numbers that JSON readers could not keep are texts.
fn number(number: u64) -> Value {
    match i64::try_from(number) {
        Ok(small) => Value::Int(small),
        Err(_) => Value::string(number.to_string()),
    }
}
