//! Paths of JSON patches.

mod table;

use crate::value::{Text, Value};

pub(super) use table::FUNCTIONS;

mod run {
    use crate::declare::NativeResult;
    use crate::eval::Context;
    use crate::library::args::text;
    use crate::value::{Text, Value};

    pub(super) fn escape_key<'a>(
        context: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        let key = text(args, 0)?;
        context.work.allocate(2 * key.len())?;
        let escaped = key.replace('~', "~0").replace('/', "~1");
        Ok(Value::String(Text::from(escaped)))
    }
}

/// What a field of an object type is that was not set: the texts of a `JSONPatch` are empty then, and
/// what an apply configuration does not have is null.
pub(crate) fn unset(object: &str, field: &str) -> Option<Value<'static>> {
    if is_text_of_patch(object, field) {
        return Some(Value::String(Text::Borrowed("")));
    }
    is_configuration(object).then_some(Value::Null)
}

/// Whether expressions can make objects of this type; others only describe data, as upstream.
pub(crate) fn is_made(object: &str) -> bool {
    object == "JSONPatch" || is_configuration(object)
}

fn is_configuration(object: &str) -> bool {
    object == "Object" || object.starts_with("Object.")
}

/// A text that counts as not set where it is empty.
pub(crate) fn is_text_of_patch(object: &str, field: &str) -> bool {
    object == "JSONPatch" && matches!(field, "op" | "path" | "from")
}
