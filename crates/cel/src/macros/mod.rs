//! What macros stand for: folds with a hidden accumulator.
//!
//! The trees are cel-go's, node for node, because costs follow from their shape; ids are counted in
//! the order in which cel-go makes the nodes, arguments before the call.

mod copy;
mod factory;
mod fold;
mod two_variables;

use crate::ast::{Expr, ExprId, NodeId, operators};
use crate::declare::Expansion;
use crate::parse::build::{Builder, Built};
use factory::Factory;

/// The accumulator of a fold, which no expression can name.
pub(crate) const ACCUMULATOR: &str = "@result";

/// What the accumulator was called before; still not to be used as a variable.
const OLD_ACCUMULATOR: &str = "__result__";

/// The variable of a fold over nothing, which only binds its accumulator.
pub(crate) const UNUSED: &str = "#unused";

/// The variable in which `sortBy` keeps its list.
const SORT_BY_INPUT: &str = "@__sortBy_input__";

const OVERWRITES: &str = "iteration variable overwrites accumulator variable";

/// What became of a call that looks like a macro.
pub(crate) enum Outcome {
    Expanded(NodeId),
    /// It is an ordinary call after all.
    NotExpanded,
    /// The arguments do not fit.
    Refused {
        at: ExprId,
        message: String,
    },
}

type Expanded<T = NodeId> = Result<T, Stop>;

/// Why there is no expansion.
enum Stop {
    Abort(crate::parse::build::Abort),
    Refused { at: ExprId, message: String },
}

impl From<crate::parse::build::Abort> for Stop {
    fn from(abort: crate::parse::build::Abort) -> Self {
        Self::Abort(abort)
    }
}

/// Expands the call `id` of a macro.
pub(crate) fn expand(
    expansion: Expansion,
    builder: &mut Builder<'_>,
    id: ExprId,
    target: Option<NodeId>,
    args: &[NodeId],
) -> Built<Outcome> {
    let mut factory = Factory::new(builder, id);
    let f = &mut factory;
    let result = match (expansion, target) {
        (Expansion::Has, _) => has(f, args[0]),
        (Expansion::Bind, Some(target)) => {
            if !matches!(f.expr(target), Expr::Ident(name) if **name == *"cel") {
                return Ok(Outcome::NotExpanded);
            }
            bind(f, args)
        }
        (_, None) => return Ok(Outcome::NotExpanded),
        (Expansion::All | Expansion::Exists | Expansion::ExistsOne, Some(target)) => {
            fold::quantify(f, expansion, target, args)
        }
        (Expansion::Map, Some(target)) => fold::map(f, target, args),
        (Expansion::Filter, Some(target)) => fold::filter(f, target, args),
        (Expansion::OptMap, Some(target)) => opt_map(f, target, args, false),
        (Expansion::OptFlatMap, Some(target)) => opt_map(f, target, args, true),
        (Expansion::SortBy, Some(target)) => sort_by(f, target, args),
        (_, Some(target)) => two_variables::expand(f, expansion, target, args),
    };
    match result {
        Ok(node) => Ok(Outcome::Expanded(node)),
        Err(Stop::Refused { at, message }) => Ok(Outcome::Refused { at, message }),
        Err(Stop::Abort(abort)) => Err(abort),
    }
}

fn has(f: &mut Factory<'_, '_>, arg: NodeId) -> Expanded {
    let Expr::Select { operand, field, .. } = f.expr(arg) else {
        return Err(f.refuse(arg, "invalid argument to has() macro"));
    };
    let (operand, field) = (*operand, field.clone());
    f.presence_test(operand, field)
}

fn bind(f: &mut Factory<'_, '_>, args: &[NodeId]) -> Expanded {
    let Expr::Ident(name) = f.expr(args[0]) else {
        return Err(f.refuse(
            args[0],
            "cel.bind() variable names must be simple identifiers",
        ));
    };
    let name = name.clone();
    let range = f.list(vec![])?;
    let condition = f.bool(false)?;
    let step = f.ident(&name)?;
    f.bind(range, &name, args[1], condition, step, args[2])
}

/// `target.hasValue() ? optional.of(bind name = target.value() in args[1]) : optional.none()`; the
/// flat one without `optional.of`.
fn opt_map(f: &mut Factory<'_, '_>, target: NodeId, args: &[NodeId], flat: bool) -> Expanded {
    let Expr::Ident(name) = f.expr(args[0]) else {
        let name = if flat { "optFlatMap" } else { "optMap" };
        return Err(f.refuse(
            args[0],
            format!("{name}() variable name must be a simple identifier"),
        ));
    };
    let name = name.clone();

    let has_value = f.member_call("hasValue", target, vec![])?;
    let range = f.list(vec![])?;
    let copied = f.copy(target)?;
    let value = f.member_call("value", copied, vec![])?;
    let condition = f.bool(false)?;
    let step = f.ident(&name)?;
    let bound = f.bind(range, &name, value, condition, step, args[1])?;
    let some = if flat {
        bound
    } else {
        f.call("optional.of", vec![bound])?
    };
    let none = f.call("optional.none", vec![])?;

    f.call(operators::CONDITIONAL, vec![has_value, some, none])
}

/// Binds the list, and sorts it by the keys that a map over it gives.
fn sort_by(f: &mut Factory<'_, '_>, target: NodeId, args: &[NodeId]) -> Expanded {
    const REFUSAL: &str = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";

    let variable = f.ident(SORT_BY_INPUT)?;
    let sortable = matches!(
        f.expr(target),
        Expr::List { .. }
            | Expr::Select { .. }
            | Expr::Ident(_)
            | Expr::Comprehension(_)
            | Expr::Call { .. }
    );
    if !sortable {
        return Err(f.refuse(target, REFUSAL));
    }

    let mapped = f.copy(variable)?;
    let keys = fold::map(f, mapped, args)?;
    let sorted = f.copy(variable)?;
    let call = f.member_call("@sortByAssociatedKeys", sorted, vec![keys])?;
    let range = f.list(vec![])?;
    let condition = f.bool(false)?;
    f.bind(range, SORT_BY_INPUT, target, condition, variable, call)
}
