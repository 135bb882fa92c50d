//! The functions of an environment, by name.

use std::collections::HashMap;

use crate::declare::{Function, Overload};
use crate::types::Type;

/// The types of an overload.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) overload: &'static Overload,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// The names of the variables in it.
    pub(crate) variables: Vec<Type>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Functions(HashMap<&'static str, Vec<Signature>>);

impl Functions {
    pub(crate) fn new(functions: impl Iterator<Item = &'static Function>) -> Self {
        let mut all = Self::default();
        for function in functions {
            all.add(function);
        }
        all
    }

    pub(crate) fn extend(&mut self, functions: &'static [Function]) {
        for function in functions {
            self.add(function);
        }
    }

    fn add(&mut self, function: &'static Function) {
        let signatures = self.0.entry(function.name).or_default();
        for overload in function.overloads {
            // Two libraries may declare the same overload.
            if !signatures
                .iter()
                .any(|known| known.overload.id == overload.id)
            {
                signatures.push(Signature::new(overload));
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&[Signature]> {
        self.0.get(name).map(Vec::as_slice)
    }
}

impl Signature {
    fn new(overload: &'static Overload) -> Self {
        let args: Vec<Type> = overload
            .args
            .iter()
            .map(crate::declare::Sig::resolve)
            .collect();
        let result = overload.result.resolve();
        let mut variables = Vec::new();
        collect_variables(&result, &mut variables);
        for arg in &args {
            collect_variables(arg, &mut variables);
        }
        Self {
            overload,
            args,
            result,
            variables,
        }
    }
}

fn collect_variables(of: &Type, variables: &mut Vec<Type>) {
    if matches!(of, Type::Param(_)) && !variables.contains(of) {
        variables.push(of.clone());
    }
    for parameter in of.parameters().into_iter().flatten() {
        collect_variables(parameter, variables);
    }
}
