//! Quantities.

mod table;

pub(super) use table::FUNCTIONS;

mod run {
    use coracle_api::quantity::{Format, Quantity};

    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::{extra, made, text};
    use crate::value::{Extra, Value};

    fn amount<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v Quantity, EvalError> {
        match extra(args, index)? {
            Extra::Quantity(quantity, _) => Ok(quantity),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn order(args: &[Value<'_>]) -> Result<i64, EvalError> {
        Ok(amount(args, 0)?.cmp(amount(args, 1)?) as i64)
    }

    pub(super) fn quantity<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let parsed: Result<Quantity, _> = text(args, 0)?.parse();
        match parsed {
            Ok(quantity) => Ok(made(Extra::Quantity(quantity, false))),
            Err(error) => Err(EvalError::failed(error.to_string())),
        }
    }

    pub(super) fn is_quantity<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(text(args, 0)?.parse::<Quantity>().is_ok()))
    }

    pub(super) fn sign<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Int(amount(args, 0)?.signum().into()))
    }

    pub(super) fn is_integer<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(amount(args, 0)?.as_i64().is_some()))
    }

    pub(super) fn as_integer<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let number = amount(args, 0)?.as_i64();
        number
            .map(Value::Int)
            .ok_or_else(|| EvalError::failed("cannot convert value to integer"))
    }

    pub(super) fn as_approximate_float<'a>(
        _: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        Ok(Value::Double(amount(args, 0)?.approximate_f64()))
    }

    pub(super) fn is_greater_than<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(order(args)? > 0))
    }

    pub(super) fn is_less_than<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(order(args)? < 0))
    }

    pub(super) fn compare_to<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Int(order(args)?))
    }

    /// The second operand: a quantity, or an integer.
    fn other(args: &[Value<'_>]) -> Result<Quantity, EvalError> {
        match &args[1] {
            Value::Int(number) => Ok(Quantity::new(*number, Format::DecimalExponent)),
            _ => amount(args, 1).cloned(),
        }
    }

    pub(super) fn add<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let mut sum = amount(args, 0)?.clone();
        sum.add(&other(args)?);
        Ok(made(Extra::Quantity(sum, true)))
    }

    pub(super) fn sub<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let mut rest = amount(args, 0)?.clone();
        rest.sub(&other(args)?);
        Ok(made(Extra::Quantity(rest, true)))
    }
}
