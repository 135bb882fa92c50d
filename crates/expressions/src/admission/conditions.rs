//! Match conditions: what must hold of a request so that a policy or webhook sees it.

use super::evaluation::{CONDITIONS_BUDGET, Compiled, Evaluation, Stopped};
use super::{Compiler, Inputs, Returns, Variables, Visible};

/// The match conditions of a policy or webhook, compiled.
#[derive(Debug, Default)]
pub struct Conditions(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    name: String,
    compiled: Compiled,
}

/// What match conditions say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matched {
    Yes,
    /// The condition of this name does not hold.
    No(String),
    /// None is false, and some cannot be evaluated. With a failure policy of Ignore that is a no;
    /// otherwise the request is refused with this text.
    Failed(String),
}

impl Conditions {
    /// Compiles names and expressions.
    pub fn compile<'t>(
        compiler: &Compiler,
        conditions: impl IntoIterator<Item = (&'t str, &'t str)>,
        visible: Visible,
    ) -> Conditions {
        let compiled = conditions.into_iter().map(|(name, text)| Condition {
            name: name.to_owned(),
            compiled: Compiled {
                text: text.to_owned(),
                expression: compiler.compile(text, visible, Returns::Bool),
            },
        });
        Conditions(compiled.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether they hold. One that is false decides, wherever it is, even where others fail.
    ///
    /// # Errors
    /// The authorizer must be asked first: never [`Stopped::OutOfBudget`], which is a failure.
    pub fn hold(&self, inputs: &Inputs<'_>, variables: &Variables) -> Result<Matched, Stopped> {
        if self.is_empty() {
            return Ok(Matched::Yes);
        }

        let mut evaluation = Evaluation::new(*inputs, variables, CONDITIONS_BUDGET);
        let mut failures = Vec::new();
        let mut wrong = None;
        for condition in &self.0 {
            match evaluation.evaluate(&condition.compiled) {
                Ok(Ok(value)) if value.as_bool() == Some(false) => {
                    wrong.get_or_insert_with(|| condition.name.clone());
                }
                Ok(Ok(_)) => {}
                Ok(Err(failure)) => failures.push(failure.to_string()),
                Err(out @ Stopped::OutOfBudget) => return Ok(Matched::Failed(out.to_string())),
                Err(pending) => return Err(pending),
            }
        }

        if let Some(name) = wrong {
            return Ok(Matched::No(name));
        }
        Ok(match failures.is_empty() {
            true => Matched::Yes,
            false => Matched::Failed(aggregate(failures)),
        })
    }
}

/// Several errors in one text, as upstream has them.
fn aggregate(mut errors: Vec<String>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
