//! Lists as sets.

mod table;

pub(super) use table::FUNCTIONS;

mod run {
    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::list;
    use crate::library::standard::list_contains;
    use crate::value::{List, Value};

    fn contains_all(
        context: &mut Context<'_>,
        all: &List<'_>,
        some: &List<'_>,
    ) -> Result<bool, EvalError> {
        for item in some.iter() {
            if !list_contains(context, all, &item?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn sets_contains<'a>(
        context: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        contains_all(context, list(args, 0)?, list(args, 1)?).map(Value::Bool)
    }

    pub(super) fn sets_intersects<'a>(
        context: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        let (first, second) = (list(args, 0)?, list(args, 1)?);
        for item in first.iter() {
            match list_contains(context, second, &item?) {
                Ok(true) => return Ok(Value::Bool(true)),
                Err(error) if error.is_final() => return Err(error),
                _ => {}
            }
        }
        Ok(Value::Bool(false))
    }

    pub(super) fn sets_equivalent<'a>(
        context: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        let (first, second) = (list(args, 0)?, list(args, 1)?);
        let same = contains_all(context, first, second)? && contains_all(context, second, first)?;
        Ok(Value::Bool(same))
    }
}
