//! MutatingAdmissionPolicy: what a policy makes of an object.

use coracle_api::{Value, apply};

use super::evaluation::{Compiled, Evaluation, POLICY_BUDGET, Stopped};
use super::mutation::{apply_configuration, json_patch};
use super::{Compiler, Conditions, Inputs, Matched, Returns, Variables, Visible, pairs};

/// The expressions of a policy, compiled.
#[derive(Debug)]
pub struct MutatingPolicy {
    fails_open: bool,
    is_reinvoked: bool,
    variables: Variables,
    conditions: Conditions,
    mutations: Vec<Mutation>,
}

/// One mutation of a policy.
#[derive(Debug)]
struct Mutation {
    kind: PatchType,
    patch: Compiled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchType {
    ApplyConfiguration,
    JsonPatch,
}

/// What a mutation makes of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Mutated {
    /// An operation of the patch tests for something else.
    Unchanged,
    /// The object with the configuration.
    Configured(Value),
    /// The patched text of the object: it is to be decoded.
    Patched(Value),
}

impl MutatingPolicy {
    /// Compiles a policy. Errors are told when it is evaluated.
    #[must_use]
    pub fn compile(policy: &Value) -> MutatingPolicy {
        let spec = |name: &str| policy.at(&["spec", name]);
        let text = |name: &str| spec(name).and_then(Value::as_str).unwrap_or_default();
        let visible = Visible {
            params: spec("paramKind").is_some_and(|kind| !kind.is_null()),
            authorizer: true,
            patches: false,
        };

        let mut compiler = Compiler::with_variables();
        let variables = pairs(spec("variables"), "name", "expression");
        let variables = Variables::compile(&mut compiler, variables, visible);
        let conditions = pairs(spec("matchConditions"), "name", "expression");
        let conditions = Conditions::compile(&compiler, conditions, visible);

        let visible = Visible {
            patches: true,
            ..visible
        };
        let mutations = spec("mutations").and_then(Value::as_array);
        let mutations = mutations.unwrap_or_default().iter();
        MutatingPolicy {
            fails_open: text("failurePolicy") == "Ignore",
            is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
            mutations: mutations
                .filter_map(|mutation| Mutation::compile(mutation, &compiler, visible))
                .collect(),
            variables,
            conditions,
        }
    }

    /// Whether it is asked again when a later policy or plugin changes the object.
    #[must_use]
    pub fn is_reinvoked(&self) -> bool {
        self.is_reinvoked
    }

    /// How many mutations it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mutations.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// Whether there are conditions under which it applies.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Whether its match conditions hold. With a failure policy of Ignore, conditions that cannot be
    /// evaluated do not.
    ///
    /// # Errors
    /// The authorizer must be asked first.
    pub fn matches(&self, inputs: &Inputs<'_>) -> Result<Matched, Stopped> {
        let without_namespace = Inputs {
            namespace_object: None,
            ..*inputs
        };
        let matched = self.conditions.hold(&without_namespace, &self.variables)?;
        Ok(match matched {
            Matched::Failed(why) if self.fails_open => Matched::No(why),
            matched => matched,
        })
    }

    /// What the mutation at `index` makes of the object, or why it makes nothing. `of` is the type of
    /// the object, if its kind is described anywhere.
    ///
    /// # Errors
    /// The authorizer must be asked first.
    pub fn mutate(
        &self,
        index: usize,
        inputs: &Inputs<'_>,
        object: &Value,
        of: Option<apply::Type<'_>>,
    ) -> Result<Result<Mutated, String>, Stopped> {
        let mutation = &self.mutations[index];
        // Unlike elsewhere, the text says nothing but what the compiler said.
        if let Err(error) = &mutation.patch.expression {
            return Ok(Err(error.to_string()));
        }

        let mut evaluation = Evaluation::new(*inputs, &self.variables, POLICY_BUDGET);
        let made = match evaluation.evaluate(&mutation.patch) {
            Err(pending @ Stopped::Pending(_)) => return Err(pending),
            Err(out @ Stopped::OutOfBudget) => return Ok(Err(out.to_string())),
            Ok(Err(failure)) => return Ok(Err(failure.to_string())),
            Ok(Ok(made)) => made,
        };

        let mutated = match mutation.kind {
            PatchType::ApplyConfiguration => {
                apply_configuration(&made, object, of).map(Mutated::Configured)
            }
            PatchType::JsonPatch => json_patch(&made, object)
                .map(|patched| patched.map_or(Mutated::Unchanged, Mutated::Patched)),
        };
        Ok(mutated.map_err(|error| error.to_string()))
    }
}

impl Mutation {
    fn compile(mutation: &Value, compiler: &Compiler, visible: Visible) -> Option<Mutation> {
        let (kind, field, returns) = match mutation.get("patchType")?.as_str()? {
            "ApplyConfiguration" => (
                PatchType::ApplyConfiguration,
                "applyConfiguration",
                Returns::Object,
            ),
            "JSONPatch" => (PatchType::JsonPatch, "jsonPatch", Returns::JsonPatches),
            _ => return None,
        };

        let text = mutation.at(&[field, "expression"])?.as_str()?;
        let expression = compiler.compile(text, visible, returns);
        Some(Mutation {
            kind,
            patch: Compiled {
                text: text.to_owned(),
                expression,
            },
        })
    }
}
