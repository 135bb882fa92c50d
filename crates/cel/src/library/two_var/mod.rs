//! What the macros with two variables need.

mod table;

pub(super) use table::FUNCTIONS;

mod run {
    use crate::declare::NativeResult;
    use crate::eval::Context;
    use crate::library::insert;
    use crate::value::Value;

    /// An entry, or the entries of a map, added to a copy of a map.
    pub(super) fn map_insert<'a>(
        context: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        let (map, more) = (args[0].clone(), &args[1..]);
        insert(context, map, more)
    }
}
