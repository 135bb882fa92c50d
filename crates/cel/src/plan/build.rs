//! From a checked tree to its plan.

use std::sync::Arc;

use coracle_api::schema::{Pattern, PatternError};

use super::fold::{Scope, Scopes};
use super::{
    Attribute, Call, Construction, Element, Entry, Fold, Key, Kind, Node, Plan, Qualifier, Root,
    Search, Set,
};
use crate::ast::{Expr, Literal, NodeId};
use crate::declare::{CostClass, Overload, Run};
use crate::env::{Checked, Reference};
use crate::eval::{Context, EvalError};
use crate::library::{Functions, functions};
use crate::types::Type;
use crate::value::{Extra, List, Map, Value, go_type};

/// Why there is no program. The texts are upstream's.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PlanError {
    /// A constant cannot be converted.
    #[error(transparent)]
    Constant(#[from] EvalError),
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error("invalid qualifier type: {0}")]
    Qualifier(&'static str),
    #[error("reference to undefined type: {0}")]
    UndefinedType(Arc<str>),
    #[error("no such overload: {0}")]
    NoFunction(Arc<str>),
}

pub(crate) fn plan(checked: &Checked) -> Result<Plan, PlanError> {
    let mut planner = Planner {
        checked,
        functions: functions(),
        variables: Vec::new(),
        scopes: Scopes::default(),
    };
    let root = planner.plan(checked.ast.root())?;
    Ok(Plan {
        root,
        variables: planner.variables,
        slots: planner.scopes.most(),
    })
}

struct Planner<'c> {
    checked: &'c Checked,
    functions: &'static Functions,
    variables: Vec<Arc<str>>,
    scopes: Scopes,
}

impl Planner<'_> {
    fn plan(&mut self, id: NodeId) -> Result<Node, PlanError> {
        let checked = self.checked;
        match checked.ast.expr(id) {
            Expr::Literal(literal) => Ok(Node::Const(constant(literal))),
            Expr::Ident(name) => self.plan_ident(id, name),
            Expr::Select {
                operand,
                field,
                test_only,
            } => self.plan_select(id, *operand, field, *test_only),
            Expr::Call {
                function,
                target,
                args,
            } => self.plan_call(id, function, *target, args),
            Expr::List { elements, optional } => self.plan_list(elements, optional),
            Expr::Map { entries } => self.plan_map(entries),
            Expr::Struct { name, fields } => self.plan_object(name, fields),
            Expr::Comprehension(fold) => self.plan_fold(fold),
            Expr::Unspecified => Err(PlanError::NoFunction("".into())),
        }
    }

    fn plan_ident(&mut self, id: NodeId, name: &Arc<str>) -> Result<Node, PlanError> {
        match self.checked.reference(id) {
            Some(Reference::Ident { name, value }) => self.plan_name(id, name, value.as_ref()),
            _ => self.plan_name(id, name, None),
        }
    }

    fn plan_name(
        &mut self,
        id: NodeId,
        name: &Arc<str>,
        value: Option<&Literal>,
    ) -> Result<Node, PlanError> {
        if let Some(value) = value {
            return Ok(Node::Const(constant(value)));
        }
        if matches!(self.checked.type_of(id), Type::Type(_)) && self.scopes.find(name).is_none() {
            if is_undefined(name) {
                return Err(PlanError::UndefinedType(Arc::clone(name)));
            }
            return Ok(Node::Const(Value::Type(String::from(&**name).into())));
        }
        let root = match self.scopes.find(name) {
            Some(slot) => Root::Local(slot),
            None => Root::Global(self.variable(name)),
        };
        Ok(Node::Attribute(Box::new(Attribute::new(root))))
    }

    fn variable(&mut self, name: &Arc<str>) -> u32 {
        let known = self.variables.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.variables.push(Arc::clone(name));
            self.variables.len() - 1
        });
        u32::try_from(index).expect("fewer variables than characters in a source")
    }

    fn plan_select(
        &mut self,
        id: NodeId,
        operand: NodeId,
        field: &Arc<str>,
        test_only: bool,
    ) -> Result<Node, PlanError> {
        if let Some(Reference::Ident { name, value }) = self.checked.reference(id) {
            return self.plan_name(id, name, value.as_ref());
        }

        let mut attribute = into_attribute(self.plan(operand)?);
        let key = Key::Const(Value::string(field));
        attribute.qualify(key, false);
        attribute.tests = test_only;
        Ok(Node::Attribute(attribute))
    }

    fn plan_call(
        &mut self,
        id: NodeId,
        function: &Arc<str>,
        target: Option<NodeId>,
        args: &[NodeId],
    ) -> Result<Node, PlanError> {
        if let Some(append) = self.plan_append(function, args)? {
            return Ok(append);
        }

        let mut planned = Vec::with_capacity(args.len() + 1);
        for arg in target.iter().chain(args) {
            planned.push(self.plan(*arg)?);
        }

        let overloads = self.checked.overloads(id);
        match (&**function, planned.len()) {
            ("_&&_", _) => Ok(Node::And(planned.into())),
            ("_||_", _) => Ok(Node::Or(planned.into())),
            ("_?_:_", 3) => Ok(plan_conditional(planned)),
            ("_==_", 2) => Ok(Node::Equal(pair(planned), true)),
            ("_!=_", 2) => Ok(Node::Equal(pair(planned), false)),
            ("_[_]", 2) => plan_index(planned, false),
            ("_?._" | "_[?_]", 2) => plan_index(planned, true),
            ("@not_strictly_false", 1) => {
                let arg = planned.pop().expect("there is one");
                Ok(Node::NotStrictlyFalse(Box::new(arg)))
            }
            ("or", 2) if is_only(overloads, "optional_or_optional") => {
                Ok(Node::OptionalOr(pair(planned)))
            }
            ("orValue", 2) if is_only(overloads, "optional_orValue_value") => {
                Ok(Node::OptionalOrValue(pair(planned)))
            }
            ("@in", 2) if is_exactly(overloads, "in_list") => self.plan_in(id, function, planned),
            _ => self.plan_function(function, overloads, planned),
        }
    }

    /// `@result + x` in a step, or an insertion: the accumulator need not be copied.
    fn plan_append(
        &mut self,
        function: &Arc<str>,
        args: &[NodeId],
    ) -> Result<Option<Node>, PlanError> {
        let Some((first, rest)) = args.split_first() else {
            return Ok(None);
        };
        let Expr::Ident(name) = self.checked.ast.expr(*first) else {
            return Ok(None);
        };
        let Some(slot) = self.scopes.accumulator(name) else {
            return Ok(None);
        };
        match (&**function, self.checked.type_of(*first), rest) {
            ("_+_", Type::List(_), [more]) => {
                let more = self.plan(*more)?;
                Ok(Some(Node::Append(slot, Box::new(more))))
            }
            ("cel.@mapInsert", _, [_] | [_, _]) => {
                let mut planned = Vec::with_capacity(rest.len());
                for arg in rest {
                    planned.push(self.plan(*arg)?);
                }
                Ok(Some(Node::Insert(slot, planned.into())))
            }
            _ => Ok(None),
        }
    }

    fn plan_in(
        &mut self,
        id: NodeId,
        function: &Arc<str>,
        args: Vec<Node>,
    ) -> Result<Node, PlanError> {
        if let Node::Const(Value::List(list)) = &args[1] {
            if list.is_empty() {
                return Ok(Node::Const(Value::Bool(false)));
            }
            if let Some(set) = Set::of(list) {
                let mut args = args;
                args.truncate(1);
                let arg = args.pop().expect("there were two");
                return Ok(Node::InSet(Box::new((arg, set))));
            }
        }
        self.plan_function(function, self.checked.overloads(id), args)
    }

    fn plan_function(
        &mut self,
        function: &Arc<str>,
        overloads: &[&'static Overload],
        args: Vec<Node>,
    ) -> Result<Node, PlanError> {
        let known = self.functions.overloads(function);
        let only = match overloads {
            [overload] => Some(*overload),
            _ => None,
        };
        let Some(first) = only.or_else(|| known.first().copied()) else {
            return Err(PlanError::NoFunction(Arc::clone(function)));
        };

        if is_conversion(function)
            && let [Node::Const(value)] = args.as_slice()
        {
            return Ok(Node::Const(convert_constant(function, only, known, value)?));
        }
        if let Some(kind) = plan_pattern(function, &args)? {
            return Ok(call(function, kind, cost_of(only, first), args));
        }

        let kind = match (only, first.run) {
            (_, Run::Single(native)) => Kind::Single(native),
            (Some(overload), Run::Strict(_) | Run::Early(_)) => match overload.run {
                Run::Strict(native) => Kind::Strict(overload, native),
                Run::Early(native) => Kind::Early(overload, native),
                _ => return Err(PlanError::NoFunction(Arc::clone(function))),
            },
            _ => Kind::Dispatch(known.into()),
        };
        Ok(call(function, kind, cost_of(only, first), args))
    }

    fn plan_list(&mut self, elements: &[NodeId], optional: &[u32]) -> Result<Node, PlanError> {
        let mut planned = Vec::with_capacity(elements.len());
        for (index, element) in (0u32..).zip(elements) {
            planned.push(Element {
                value: self.plan(*element)?,
                optional: optional.contains(&index),
            });
        }

        let constants: Option<Vec<Value<'static>>> = planned
            .iter()
            .map(|element| element.value.constant().filter(|_| !element.optional))
            .map(|value| value.cloned())
            .collect();
        Ok(match constants {
            Some(values) => Node::Const(Value::List(List::from(values))),
            None => Node::List(planned.into()),
        })
    }

    fn plan_map(&mut self, entries: &[crate::ast::Entry]) -> Result<Node, PlanError> {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push(Entry {
                key: self.plan(entry.key)?,
                value: self.plan(entry.value)?,
                optional: entry.optional,
            });
        }

        let mut constants = crate::value::Entries::default();
        for entry in &planned {
            match (entry.key.constant(), entry.value.constant()) {
                (Some(key), Some(value)) if !entry.optional && is_hashable(key) => {
                    constants.insert(key.clone(), value.clone());
                }
                _ => return Ok(Node::Map(planned.into())),
            }
        }
        Ok(Node::Const(Value::Map(Map::from(constants))))
    }

    fn plan_object(
        &mut self,
        name: &Arc<str>,
        fields: &[crate::ast::Field],
    ) -> Result<Node, PlanError> {
        let mut planned = Vec::with_capacity(fields.len());
        for field in fields {
            let element = Element {
                value: self.plan(field.value)?,
                optional: field.optional,
            };
            planned.push((Arc::clone(&field.name), element));
        }
        let name: Arc<str> = name.strip_prefix('.').unwrap_or(name).into();
        Ok(Node::Object(Box::new(Construction {
            name,
            fields: planned,
        })))
    }

    fn plan_fold(&mut self, fold: &crate::ast::Comprehension) -> Result<Node, PlanError> {
        let init = self.plan(fold.accu_init)?;
        let range = self.plan(fold.iter_range)?;

        let slot = self.scopes.enter(Scope {
            accumulator: Arc::clone(&fold.accu_var),
            variable: Some(Arc::clone(&fold.iter_var)),
            second: fold.iter_var2.clone(),
        });
        let condition = self.plan(fold.loop_condition)?;
        let step = self.plan(fold.loop_step)?;
        self.scopes.hide_variables();
        let result = self.plan(fold.result)?;
        self.scopes.leave();

        Ok(Node::Fold(Box::new(Fold {
            range,
            init,
            condition,
            step,
            result,
            slot,
            pairs: fold.iter_var2.is_some(),
        })))
    }
}

impl Node {
    fn constant(&self) -> Option<&Value<'static>> {
        match self {
            Node::Const(value) => Some(value),
            _ => None,
        }
    }
}

impl Attribute {
    fn new(root: Root) -> Attribute {
        Attribute {
            root,
            qualifiers: Vec::new(),
            tests: false,
        }
    }

    fn qualify(&mut self, key: Key, optional: bool) {
        self.qualifiers.push(Qualifier { key, optional });
    }
}

/// Whether a call means this overload, or it is not known which.
fn is_only(overloads: &[&Overload], id: &str) -> bool {
    overloads.len() != 1 || is_exactly(overloads, id)
}

fn is_exactly(overloads: &[&Overload], id: &str) -> bool {
    matches!(overloads, [overload] if overload.id == id)
}

fn pair(nodes: Vec<Node>) -> Box<[Node; 2]> {
    let nodes: [Node; 2] = nodes.try_into().expect("the caller counted two");
    Box::new(nodes)
}

/// A node that can be qualified; after `has()` nothing can be added, so its result is.
fn into_attribute(node: Node) -> Box<Attribute> {
    match node {
        Node::Attribute(attribute) if !attribute.tests => attribute,
        other => Box::new(Attribute::new(Root::Result(other))),
    }
}

fn plan_conditional(nodes: Vec<Node>) -> Node {
    let [condition, truthy, falsy]: [Node; 3] = nodes.try_into().expect("the caller counted three");
    let branches = (condition, *into_attribute(truthy), *into_attribute(falsy));
    let root = Root::Conditional(Box::new(branches));
    Node::Attribute(Box::new(Attribute::new(root)))
}

fn plan_index(nodes: Vec<Node>, optional: bool) -> Result<Node, PlanError> {
    let [operand, index] = *pair(nodes);
    let mut attribute = into_attribute(operand);
    let key = match index {
        Node::Const(value) => {
            if !is_qualifier(&value) {
                return Err(PlanError::Qualifier(go_type(&value)));
            }
            Key::Const(value)
        }
        Node::Attribute(index) if !index.tests => Key::Attribute(*index),
        other => Key::Result(other),
    };
    attribute.qualify(key, optional);
    Ok(Node::Attribute(attribute))
}

/// Whether something can be selected by this value.
pub(crate) fn is_qualifier(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_)
    )
}

/// Whether Go's maps can have this key.
pub(crate) fn is_hashable(value: &Value<'_>) -> bool {
    match value {
        Value::Bytes(_) => false,
        // These have slices and functions in them.
        Value::Extra(extra) => !matches!(**extra, Extra::Semver(_) | Extra::Format(_)),
        _ => true,
    }
}

/// Protocol buffer types that can be made, but have no value of their own.
fn is_undefined(name: &str) -> bool {
    let known = ["Timestamp", "Duration"];
    name.strip_prefix("google.protobuf.")
        .is_some_and(|name| !known.contains(&name))
}

fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "dyn"
            | "duration"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

fn convert_constant(
    function: &Arc<str>,
    only: Option<&'static Overload>,
    known: &[&'static Overload],
    value: &Value<'static>,
) -> Result<Value<'static>, EvalError> {
    let mut context = Context::new(None);
    let args = [value.clone()];
    match only.map(|overload| overload.run) {
        Some(Run::Strict(native) | Run::Early(native) | Run::Single(native)) => {
            native(&mut context, &args)
        }
        _ => crate::eval::dispatch(function, known, &mut context, &args),
    }
}

fn call(function: &Arc<str>, kind: Kind, cost: CostClass, args: Vec<Node>) -> Node {
    Node::Call(Box::new(Call {
        function: Arc::clone(function),
        kind,
        args: args.into(),
        cost,
    }))
}

/// A constant regular expression is compiled with the program.
fn plan_pattern(function: &str, args: &[Node]) -> Result<Option<Kind>, PlanError> {
    let search = match function {
        "matches" => Search::Matches,
        "find" => Search::Find,
        "findAll" => Search::FindAll,
        _ => return Ok(None),
    };
    let Some(Node::Const(Value::String(text))) = args.get(1) else {
        return Ok(None);
    };
    let pattern = Pattern::new(text)?;
    Ok(Some(Kind::Pattern(pattern, search)))
}

fn cost_of(only: Option<&'static Overload>, first: &'static Overload) -> CostClass {
    match only {
        Some(overload) => overload.cost,
        None if first.cost == CostClass::ContainsIpText => CostClass::ContainsIp,
        None if first.cost == CostClass::ContainsCidrText => CostClass::ContainsCidr,
        None if first.cost.is_of_function() => first.cost,
        None => CostClass::One,
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(crate::value::Text::Shared(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}
