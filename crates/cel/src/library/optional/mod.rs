//! Optional values.

mod table;

pub(super) use table::FUNCTIONS;

mod run {
    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::list;
    use crate::value::{Value, is_zero, show};

    pub(super) fn optional_of<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::some(args[0].clone()))
    }

    pub(super) fn optional_of_non_zero_value<'a>(
        _: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        Ok(if is_zero(&args[0]) {
            Value::Optional(None)
        } else {
            Value::some(args[0].clone())
        })
    }

    pub(super) fn optional_none<'a>(_: &mut Context<'_>, _: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Optional(None))
    }

    pub(super) fn value<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        match &args[0] {
            Value::Optional(Some(value)) => value.taken(),
            Value::Optional(None) => Err(EvalError::NoneDereferenced),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    pub(super) fn has_value<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        match &args[0] {
            Value::Optional(value) => Ok(Value::Bool(value.is_some())),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    pub(super) fn first<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let items = list(args, 0)?;
        if items.is_empty() {
            return Ok(Value::Optional(None));
        }
        items.get(0).map(Value::some)
    }

    pub(super) fn last<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let items = list(args, 0)?;
        match items.len().checked_sub(1) {
            Some(at) => items.get(at).map(Value::some),
            None => Ok(Value::Optional(None)),
        }
    }

    pub(super) fn unwrap_all<'a>(
        context: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        let items = list(args, 0)?;
        context.work.allocate_list(items.len())?;
        let mut values = Vec::new();
        for item in items.iter() {
            match item? {
                Value::Optional(Some(value)) => values.push(value.taken()?),
                Value::Optional(None) => {}
                other => {
                    return Err(EvalError::failed(format!(
                        "value {} is not optional",
                        show(&other)
                    )));
                }
            }
        }
        Ok(Value::list(values))
    }
}
