//! Named formats of strings.

mod named;
mod table;

pub use named::NamedFormat;
pub(super) use table::FUNCTIONS;

mod run {
    use super::named::NamedFormat;
    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::{extra, made, text};
    use crate::value::{Extra, Value};

    pub(super) fn format_named<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(match NamedFormat::named(text(args, 0)?) {
            Some(format) => Value::some(made(Extra::Format(format))),
            None => Value::Optional(None),
        })
    }

    pub(super) fn validate<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let Extra::Format(format) = extra(args, 0)? else {
            return Err(EvalError::NoSuchOverload);
        };
        let text = text(args, 1)?;
        context.work.spend_bytes(16 * text.len())?;
        let messages = format.validate(text);
        if messages.is_empty() {
            return Ok(Value::Optional(None));
        }
        let messages = messages.iter().map(|message| Value::string(message));
        Ok(Value::some(Value::list(messages.collect())))
    }

    macro_rules! constants {
        ($($name:ident = $format:ident;)*) => {$(
            pub(super) fn $name<'a>(_: &mut Context<'_>, _: &[Value<'a>]) -> NativeResult<'a> {
                Ok(made(Extra::Format(NamedFormat::$format)))
            }
        )*};
    }

    constants! {
        format_dns1123_label = Dns1123Label;
        format_dns1123_subdomain = Dns1123Subdomain;
        format_dns1035_label = Dns1035Label;
        format_qualified_name = QualifiedName;
        format_dns1123_label_prefix = Dns1123LabelPrefix;
        format_dns1123_subdomain_prefix = Dns1123SubdomainPrefix;
        format_dns1035_label_prefix = Dns1035LabelPrefix;
        format_label_value = LabelValue;
        format_uri = Uri;
        format_uuid = Uuid;
        format_byte = Byte;
        format_date = Date;
        format_datetime = Datetime;
    }
}
