//! Calls, and which overloads fit.

use super::names::qualified_name;
use super::{Checker, unify};
use crate::ast::{Expr, NodeId, operators};
use crate::env::{Reference, Signature};
use crate::types::{Type, same};

/// How a call is written.
struct Call<'a> {
    node: NodeId,
    function: &'a str,
    target: Option<NodeId>,
    args: &'a [NodeId],
}

impl Checker<'_> {
    pub(super) fn check_call(&mut self, node: NodeId) {
        let Expr::Call {
            function,
            target,
            args,
        } = self.ast.expr(node).clone()
        else {
            return;
        };
        if *function == *operators::OPTIONAL_SELECT {
            return self.check_optional_select(node, &args);
        }
        for arg in &args {
            self.check(*arg);
        }
        match target {
            None => self.check_global(node, &function, &args),
            Some(target) => self.check_member(node, &function, target, &args),
        }
    }

    /// A function by its name, which may have a leading dot.
    fn signatures<'f>(&self, function: &'f str) -> Option<(&'f str, &[Signature])> {
        let name = function.strip_prefix('.').unwrap_or(function);
        self.env
            .functions()
            .get(name)
            .map(|signatures| (name, signatures))
    }

    fn check_global(&mut self, node: NodeId, function: &str, args: &[NodeId]) {
        let Some((name, _)) = self.signatures(function) else {
            self.report_undeclared(node, function);
            return self.set_type(node, Type::Error);
        };
        self.name_function(node, name, args);
        self.resolve_call(&Call {
            node,
            function: name,
            target: None,
            args,
        });
    }

    /// `a.b.c(…)` is the function `a.b.c` if there is one, else `c` of `a.b`.
    fn check_member(&mut self, node: NodeId, function: &str, target: NodeId, args: &[NodeId]) {
        let qualified =
            qualified_name(&self.ast, target).map(|prefix| format!("{prefix}.{function}"));
        if let Some(qualified) = &qualified
            && let Some((name, _)) = self.signatures(qualified)
        {
            self.name_function(node, name, args);
            return self.resolve_call(&Call {
                node,
                function: name,
                target: None,
                args,
            });
        }

        self.check(target);
        if self.signatures(function).is_none() {
            self.set_type(node, Type::Error);
            return self.report_undeclared(node, function);
        }
        self.resolve_call(&Call {
            node,
            function,
            target: Some(target),
            args,
        });
    }

    /// Makes `node` a call of the function by its full name, without a target.
    fn name_function(&mut self, node: NodeId, name: &str, args: &[NodeId]) {
        let call = Expr::Call {
            function: name.into(),
            target: None,
            args: args.to_vec(),
        };
        self.ast.replace(node, call);
    }

    fn resolve_call(&mut self, call: &Call<'_>) {
        let args: Vec<Type> = call
            .target
            .iter()
            .chain(call.args)
            .map(|arg| self.type_of(*arg))
            .collect();

        let resolved = match call.function {
            operators::LOGICAL_AND | operators::LOGICAL_OR => self.resolve_logic(call, &args),
            _ => self.resolve_overloads(call, &args),
        };
        match resolved {
            Some((of, reference)) => {
                self.set_type(call.node, of);
                self.set_reference(call.node, reference);
            }
            None => self.set_type(call.node, Type::Error),
        }
    }

    fn resolve_logic(&mut self, call: &Call<'_>, args: &[Type]) -> Option<(Type, Reference)> {
        let mut fits = true;
        for (arg, of) in call.args.iter().zip(args) {
            if !self.unifier.assign(of, &Type::Bool) {
                self.report_mismatch(*arg, &Type::Bool, of);
                fits = false;
            }
        }
        let overloads = self.env.overloads(call.function).take(1).collect();
        fits.then_some((Type::Bool, Reference::Overloads(overloads)))
    }

    /// All overloads that fit are kept. If their results differ, the result is `dyn`.
    fn resolve_overloads(&mut self, call: &Call<'_>, args: &[Type]) -> Option<(Type, Reference)> {
        let env = self.env;
        let signatures = env.functions().get(call.function).unwrap_or_default();
        let mut overloads = Vec::new();
        let mut result: Option<Type> = None;

        for signature in signatures {
            if signature.overload.receiver != call.target.is_some() {
                continue;
            }
            let Some(found) = self.fit(signature, args) else {
                continue;
            };
            overloads.push(signature.overload);
            result = Some(match result {
                None => found,
                Some(known @ (Type::Dyn | Type::Any)) => known,
                Some(known) if same(&found, &known) => known,
                Some(_) => Type::Dyn,
            });
        }

        if result.is_none() {
            self.report_no_overload(call, args);
        }
        Some((result?, Reference::Overloads(overloads)))
    }

    /// The result of an overload, if the arguments fit.
    fn fit(&mut self, signature: &Signature, args: &[Type]) -> Option<Type> {
        if signature.variables.is_empty() {
            let fits = self.unifier.assign_all(args, &signature.args);
            return fits.then(|| signature.result.clone());
        }
        let fresh: Vec<Type> = signature
            .variables
            .iter()
            .map(|_| self.unifier.new_variable())
            .collect();
        let instantiate = |of: &Type| unify::instantiate(of, &signature.variables, &fresh);
        let expected: Vec<Type> = signature.args.iter().map(instantiate).collect();
        let fits = self.unifier.assign_all(args, &expected);
        fits.then(|| self.unifier.substitute(&instantiate(&signature.result)))
    }

    fn report_no_overload(&mut self, call: &Call<'_>, args: &[Type]) {
        let texts: Vec<String> = args
            .iter()
            .map(|arg| self.unifier.finish(arg).message())
            .collect();
        let signature = match call.target {
            None => format!("({})", texts.join(", ")),
            Some(_) => format!("{}.({})", texts[0], texts[1..].join(", ")),
        };
        let function = call.function;
        let message =
            format!("found no matching overload for '{function}' applied to '{signature}'");
        self.report(call.node, message);
    }
}
