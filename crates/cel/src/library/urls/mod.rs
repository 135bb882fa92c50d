//! URLs.

mod parse;
mod table;

pub use parse::Url;
pub(super) use parse::request_error;
pub(super) use table::FUNCTIONS;

mod run {
    use super::parse::Url;
    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::{extra, made, text};
    use crate::value::{Entries, Extra, Map, Value};

    fn parsed<'v>(args: &'v [Value<'_>]) -> Result<&'v Url, EvalError> {
        match extra(args, 0)? {
            Extra::Url(url) => Ok(url),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    pub(super) fn url<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let text = text(args, 0)?;
        context.work.allocate(3 * text.len())?;
        Url::parse(text)
            .map(|url| made(Extra::Url(url)))
            .map_err(|why| {
                EvalError::failed(format!(
                    "URL parse error during conversion from string: {why}"
                ))
            })
    }

    pub(super) fn is_url<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(super::request_error(text(args, 0)?).is_none()))
    }

    pub(super) fn get_scheme<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::string(&parsed(args)?.scheme))
    }

    pub(super) fn get_host<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::string(&parsed(args)?.host))
    }

    pub(super) fn get_hostname<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::string(parsed(args)?.hostname()))
    }

    pub(super) fn get_port<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::string(parsed(args)?.port()))
    }

    pub(super) fn get_escaped_path<'a>(
        _: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        Ok(Value::string(&parsed(args)?.escaped_path()))
    }

    pub(super) fn get_query<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let mut entries = Entries::default();
        for (name, values) in parsed(args)?.query() {
            context.work.allocate_list(2 + values.len())?;
            let values = values.iter().map(|value| Value::string(value)).collect();
            entries.insert(Value::string(&name), Value::list(values));
        }
        Ok(Value::Map(Map::from(entries)))
    }
}
