//! Semantic versions.

mod table;
mod version;

pub(super) use table::FUNCTIONS;
pub use version::Semver;

mod run {
    use super::version::Semver;
    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::{extra, flag, made, text};
    use crate::value::{Extra, Value};

    fn version<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v Semver, EvalError> {
        match extra(args, index)? {
            Extra::Semver(version) => Ok(version),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn parse(args: &[Value<'_>]) -> Result<Result<Semver, String>, EvalError> {
        let normalizes = args.len() > 1 && flag(args, 1)?;
        let text = text(args, 0)?;
        Ok(if normalizes {
            Semver::parse_short(text)
        } else {
            Semver::parse(text)
        })
    }

    fn number<'a>(number: u64) -> NativeResult<'a> {
        Ok(Value::Int(number.cast_signed()))
    }

    pub(super) fn semver<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        parse(args)?
            .map(|version| made(Extra::Semver(version)))
            .map_err(EvalError::failed)
    }

    pub(super) fn is_semver<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(parse(args)?.is_ok()))
    }

    pub(super) fn major<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        number(version(args, 0)?.major)
    }

    pub(super) fn minor<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        number(version(args, 0)?.minor)
    }

    pub(super) fn patch<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        number(version(args, 0)?.patch)
    }

    fn order(args: &[Value<'_>]) -> Result<i64, EvalError> {
        Ok(version(args, 0)?.cmp(version(args, 1)?) as i64)
    }

    pub(super) fn compare_to<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Int(order(args)?))
    }

    pub(super) fn is_greater_than<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(order(args)? > 0))
    }

    pub(super) fn is_less_than<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(order(args)? < 0))
    }
}
