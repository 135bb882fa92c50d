//! Searches with regular expressions.

mod table;

pub(super) use table::FUNCTIONS;

mod run {
    use std::sync::Arc;

    use coracle_api::schema::Pattern;

    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::{args, searches};
    use crate::value::Value;

    fn pattern(context: &mut Context<'_>, values: &[Value<'_>]) -> Result<Arc<Pattern>, EvalError> {
        context.pattern(args::text(values, 1)?, |error| {
            EvalError::failed(format!("Illegal regex: {error}"))
        })
    }

    pub(super) fn find<'a>(context: &mut Context<'_>, values: &[Value<'a>]) -> NativeResult<'a> {
        let pattern = pattern(context, values)?;
        searches::find_pattern(context, &pattern, values)
    }

    pub(super) fn find_all<'a>(
        context: &mut Context<'_>,
        values: &[Value<'a>],
    ) -> NativeResult<'a> {
        let pattern = pattern(context, values)?;
        searches::find_all_pattern(context, &pattern, values)
    }
}
