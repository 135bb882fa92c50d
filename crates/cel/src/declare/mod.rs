//! What a library declares: data that the checker, the estimator, the planner and the meter read.

mod cost_class;

pub use cost_class::CostClass;

/// A type in a signature. [`Sig::resolve`] makes a type of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sig {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Timestamp,
    Duration,
    Dyn,
    List(&'static Sig),
    Map(&'static Sig, &'static Sig),
    Optional(&'static Sig),
    Type(&'static Sig),
    Opaque(&'static str),
    Object(&'static str),
    /// A variable: equal names in one overload are equal types.
    Param(&'static str),
}

impl Sig {
    #[must_use]
    pub fn resolve(&self) -> crate::types::Type {
        use crate::types::Type;
        match self {
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Uint => Type::Uint,
            Self::Double => Type::Double,
            Self::String => Type::String,
            Self::Bytes => Type::Bytes,
            Self::Null => Type::Null,
            Self::Timestamp => Type::Timestamp,
            Self::Duration => Type::Duration,
            Self::Dyn => Type::Dyn,
            Self::List(element) => Type::list(element.resolve()),
            Self::Map(key, value) => Type::map(key.resolve(), value.resolve()),
            Self::Optional(value) => Type::optional(value.resolve()),
            Self::Type(of) => Type::of_type(of.resolve()),
            Self::Opaque(name) => Type::opaque(name),
            Self::Object(name) => Type::object(name),
            Self::Param(name) => Type::Param((*name).into()),
        }
    }
}

/// A library: what one option of upstream's environment adds.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    pub name: &'static str,
    /// The minor version of Kubernetes 1.x that has it first.
    pub since: u32,
    pub functions: &'static [Function],
    pub macros: &'static [Macro],
}

/// A macro: a call of this name, form and number of arguments is replaced by what it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Macro {
    pub name: &'static str,
    /// Written `a.f(b)`.
    pub receiver: bool,
    /// How many arguments, without the receiver.
    pub args: usize,
    pub expansion: Expansion,
}

/// What a macro stands for; the module `macros` builds the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expansion {
    Has,
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    OptMap,
    OptFlatMap,
    All2,
    Exists2,
    ExistsOne2,
    TransformList,
    TransformMap,
    TransformMapEntry,
    SortBy,
    Bind,
}

/// A function and its overloads, in the order in which upstream declares them: errors and the
/// evaluation of `dyn` depend on it. Several libraries may add overloads to one function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    pub overloads: &'static [Overload],
}

/// One overload: a line of a library's table.
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    pub id: &'static str,
    /// Written `a.f(b)`; `a` is the first of `args`.
    pub receiver: bool,
    pub args: &'static [Sig],
    pub result: Sig,
    pub cost: CostClass,
    pub run: Run,
}

/// `f(a)`.
pub(crate) const fn global(
    id: &'static str,
    args: &'static [Sig],
    result: Sig,
    cost: CostClass,
    run: Run,
) -> Overload {
    Overload {
        id,
        receiver: false,
        args,
        result,
        cost,
        run,
    }
}

/// `a.f(b)`.
pub(crate) const fn method(
    id: &'static str,
    args: &'static [Sig],
    result: Sig,
    cost: CostClass,
    run: Run,
) -> Overload {
    Overload {
        receiver: true,
        ..global(id, args, result, cost, run)
    }
}

/// An implementation: it gets as many values as the overload has arguments.
pub type Native =
    for<'a> fn(&mut crate::eval::Context<'_>, &[crate::value::Value<'a>]) -> NativeResult<'a>;

/// What an implementation returns.
pub type NativeResult<'a> = Result<crate::value::Value<'a>, crate::eval::EvalError>;

/// How an overload is evaluated. The variants of a function's overloads are upstream's: they decide
/// what is evaluated, and charged, after an argument failed.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// The planner knows it: `&&`, `||`, `?:`, indexing, `in`, ….
    Planned,
    /// All arguments are evaluated, then their types are tested.
    Strict(Native),
    /// The first argument that fails ends the evaluation.
    Early(Native),
    /// One implementation of all overloads, which tests the types itself.
    Single(Native),
}
