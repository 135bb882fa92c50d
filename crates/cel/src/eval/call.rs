//! Calls of functions.

use std::sync::Arc;

use super::{Context, EvalError, Evaluator, Outcome, cost};
use crate::declare::{Native, Overload, Run, Sig};
use crate::library::searches;
use crate::plan::{Call, Kind, Search};
use crate::value::{List, Map, Value, type_name};

/// Most functions have no more arguments, so that no vector is needed for them.
const FEW: usize = 4;

impl<'a> Evaluator<'a, '_> {
    pub(super) fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        let mut outcomes: [Outcome<'a>; FEW] = std::array::from_fn(|_| Ok(Value::Null));
        let args = outcomes
            .get_mut(..call.args.len())
            .ok_or(EvalError::NoSuchOverload)?;
        let early = match call.kind {
            Kind::Single(_) | Kind::Strict(..) => false,
            Kind::Early(..) | Kind::Dispatch(_) | Kind::Pattern(..) => true,
        };

        for (index, node) in call.args.iter().enumerate() {
            args[index] = self.operand(node)?;
            if early && args[index].is_err() {
                // Only if it is the last argument are the values of all known.
                if index + 1 == call.args.len() {
                    let cost = cost::before(call.cost, args, &mut self.context.work)?;
                    let cost = cost.unwrap_or_else(|| cost::after(call.cost, &args[index]));
                    self.charge(cost)?;
                }
                return std::mem::replace(&mut args[index], Ok(Value::Null));
            }
        }

        if let Some(cost) = cost::before(call.cost, args, &mut self.context.work)? {
            self.charge(cost)?;
            return self.run(call, args);
        }
        let result = self.run(call, args);
        match &result {
            Err(error) if error.is_final() => return result,
            _ => self.charge(cost::after(call.cost, &result))?,
        }
        result
    }

    fn run(&mut self, call: &'a Call, args: &mut [Outcome<'a>]) -> Outcome<'a> {
        if let Some(failed) = args.iter_mut().find(|arg| arg.is_err()) {
            return std::mem::replace(failed, Ok(Value::Null));
        }
        let mut values: [Value<'a>; FEW] = std::array::from_fn(|_| Value::Null);
        for (value, arg) in values.iter_mut().zip(args.iter_mut()) {
            if let Ok(arg) = arg {
                *value = std::mem::replace(arg, Value::Null);
            }
        }
        let values = &values[..args.len()];

        let context = &mut self.context;
        match &call.kind {
            Kind::Single(native) => match native(context, values) {
                Err(EvalError::NotSupported) => Err(no_function(call, values)),
                outcome => outcome,
            },
            Kind::Strict(overload, native) | Kind::Early(overload, native) => {
                guarded(&call.function, overload, *native, context, values)
            }
            Kind::Dispatch(overloads) => dispatch(&call.function, overloads, context, values),
            Kind::Pattern(pattern, search) => match search {
                Search::Matches => searches::matches_pattern(context, pattern, values),
                Search::Find => searches::find_pattern(context, pattern, values),
                Search::FindAll => searches::find_all_pattern(context, pattern, values),
            },
        }
    }
}

/// Upstream's text where the operand has no such operator. Some types are asked once more by name.
fn no_function(call: &Call, values: &[Value<'_>]) -> EvalError {
    match values.first() {
        Some(Value::String(_) | Value::Duration(_) | Value::Timestamp(_)) => {
            EvalError::NoSuchOverload
        }
        _ => EvalError::NoSuchFunction(Arc::clone(&call.function)),
    }
}

fn guarded<'a>(
    function: &str,
    overload: &Overload,
    native: Native,
    context: &mut Context<'_>,
    values: &[Value<'a>],
) -> Outcome<'a> {
    if takes(overload, values) {
        native(context, values)
    } else {
        Err(no_overload(function, values))
    }
}

/// Calls the first overload that takes these values.
pub(crate) fn dispatch<'a>(
    function: &str,
    overloads: &[&'static Overload],
    context: &mut Context<'_>,
    values: &[Value<'a>],
) -> Outcome<'a> {
    let found = overloads.iter().find(|overload| takes(overload, values));
    match found.map(|overload| overload.run) {
        Some(Run::Strict(native) | Run::Early(native) | Run::Single(native)) => {
            native(context, values)
        }
        _ => Err(no_overload(function, values)),
    }
}

fn no_overload(function: &str, values: &[Value<'_>]) -> EvalError {
    let names: Vec<&str> = values.iter().map(type_name).collect();
    EvalError::NoSuchFunction(format!("{function}({})", names.join(", ")).into())
}

fn takes(overload: &Overload, values: &[Value<'_>]) -> bool {
    overload.args.len() == values.len()
        && overload
            .args
            .iter()
            .zip(values)
            .all(|(sig, value)| fits(sig, value))
}

/// Whether a value is of a signature's type. Of lists and maps the first element decides, as
/// upstream does it.
fn fits(sig: &Sig, value: &Value<'_>) -> bool {
    match (sig, value) {
        (Sig::Dyn | Sig::Param(_), _)
        | (Sig::Bool, Value::Bool(_))
        | (Sig::Int, Value::Int(_))
        | (Sig::Uint, Value::Uint(_))
        | (Sig::Double, Value::Double(_))
        | (Sig::String, Value::String(_))
        | (Sig::Bytes, Value::Bytes(_))
        | (Sig::Null, Value::Null)
        | (Sig::Timestamp, Value::Timestamp(_))
        | (Sig::Duration, Value::Duration(_))
        | (Sig::Optional(_), Value::Optional(_))
        | (Sig::Type(_), Value::Type(_)) => true,
        (Sig::List(element), Value::List(list)) => fits_list(element, list),
        (Sig::Map(key, of), Value::Map(map)) => fits_map(key, of, map),
        (Sig::Opaque(name) | Sig::Object(name), value) => type_name(value) == *name,
        _ => false,
    }
}

fn fits_list(element: &Sig, list: &List<'_>) -> bool {
    if list.is_empty() || matches!(element, Sig::Dyn | Sig::Param(_)) {
        return true;
    }
    list.get(0).is_ok_and(|first| fits(element, &first))
}

fn fits_map(key: &Sig, of: &Sig, map: &Map<'_>) -> bool {
    if map.is_empty() {
        return true;
    }
    match map.entry(0) {
        None => true,
        Some((first, Ok(value))) => fits(key, &first) && fits(of, &value),
        Some((_, Err(_))) => false,
    }
}
