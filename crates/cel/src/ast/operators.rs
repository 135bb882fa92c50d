//! Operators, named as cel-go names them.

use crate::lex::Kind;

pub const CONDITIONAL: &str = "_?_:_";
pub const LOGICAL_AND: &str = "_&&_";
pub const LOGICAL_OR: &str = "_||_";
pub const LOGICAL_NOT: &str = "!_";
pub const NEGATE: &str = "-_";
pub const EQUALS: &str = "_==_";
pub const ADD: &str = "_+_";
pub const INDEX: &str = "_[_]";
pub const OPTIONAL_INDEX: &str = "_[?_]";
pub const OPTIONAL_SELECT: &str = "_?._";
pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";

/// The operator that a token between two operands is.
pub(crate) fn binary(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Equals => EQUALS,
        Kind::NotEquals => "_!=_",
        Kind::In => "@in",
        Kind::Less => "_<_",
        Kind::LessEquals => "_<=_",
        Kind::GreaterEquals => "_>=_",
        Kind::Greater => "_>_",
        Kind::Plus => ADD,
        Kind::Minus => "_-_",
        Kind::Star => "_*_",
        Kind::Slash => "_/_",
        Kind::Percent => "_%_",
        _ => return None,
    })
}
