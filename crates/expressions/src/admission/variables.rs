//! The variables of a policy, compiled.

use super::{CompileError, Compiler, Expression, Visible};

/// Named expressions; later ones may use earlier ones.
#[derive(Debug, Default)]
pub struct Variables(Vec<Variable>);

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) compiled: Result<Expression, CompileError>,
}

impl Variables {
    /// Compiles names and expressions, in their order. What is compiled afterwards sees them.
    pub fn compile<'t>(
        compiler: &mut Compiler,
        variables: impl IntoIterator<Item = (&'t str, &'t str)>,
        visible: Visible,
    ) -> Variables {
        let compiled = variables.into_iter().map(|(name, text)| Variable {
            name: name.to_owned(),
            compiled: compiler.add_variable(name, text, visible),
        });
        Variables(compiled.collect())
    }

    /// Those that do not compile: an expression that selects one fails.
    pub fn errors(&self) -> impl Iterator<Item = (&str, &CompileError)> {
        self.0.iter().filter_map(|variable| {
            let error = variable.compiled.as_ref().err()?;
            Some((variable.name.as_str(), error))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Of several with one name, the last.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().rposition(|variable| variable.name == name)
    }

    pub(super) fn at(&self, place: usize) -> &Variable {
        &self.0[place]
    }
}
