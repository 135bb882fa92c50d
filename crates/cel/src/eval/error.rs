//! Why an evaluation has no value. The texts are upstream's: users see them.

use std::sync::Arc;

use crate::value::Check;

#[derive(Clone, Debug, thiserror::Error)]
pub enum EvalError {
    #[error("no such overload")]
    NoSuchOverload,
    /// An operator or a function that this type does not have.
    #[error("no such overload: {0}")]
    NoSuchFunction(Arc<str>),
    /// An operand without the operator: the evaluator knows its name.
    #[error("no such overload")]
    NotSupported,
    #[error("no such key: {0}")]
    NoSuchKey(Arc<str>),
    #[error("index out of bounds: {0}")]
    IndexOutOfBounds(Arc<str>),
    #[error("no such attribute(s): {0}")]
    NoSuchAttribute(Arc<str>),
    #[error("division by zero")]
    DivisionByZero,
    #[error("modulus by zero")]
    ModulusByZero,
    #[error("integer overflow")]
    IntegerOverflow,
    #[error("unsigned integer overflow")]
    UnsignedOverflow,
    #[error("duration overflow")]
    DurationOverflow,
    #[error("timestamp overflow")]
    TimestampOverflow,
    #[error("NaN values cannot be ordered")]
    NanOrder,
    #[error("type conversion error from '{from}' to '{to}'")]
    Conversion { from: Arc<str>, to: &'static str },
    #[error("optional.none() dereference")]
    NoneDereferenced,
    /// What a function says of its arguments.
    #[error("{0}")]
    Failed(Arc<str>),
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    #[error("operation interrupted")]
    Interrupted,
    /// Where upstream's evaluator panics, and recovers.
    #[error("internal error: {0}")]
    Internal(Arc<str>),
    /// The authorizer needs time: evaluate again when it has answered. See [`crate::eval`].
    #[error("authorization check is not answered yet")]
    Pending(Arc<Check>),
}

impl EvalError {
    pub(crate) fn failed(text: impl Into<Arc<str>>) -> EvalError {
        EvalError::Failed(text.into())
    }

    /// Whether it ends the evaluation whatever other operands say.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            EvalError::CostLimit
                | EvalError::Interrupted
                | EvalError::Internal(_)
                | EvalError::Pending(_)
        )
    }
}
