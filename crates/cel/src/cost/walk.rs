//! The walk over the tree: what each node costs, and what is known of the sizes of values.

use std::collections::HashMap;
use std::sync::Arc;

use super::path::Path;
use super::range::Range;
use super::{SizeHints, calls};
use crate::ast::{Comprehension, Entry, Expr, Literal, NodeId};
use crate::declare::CostClass;
use crate::env::{Checked, Reference};
use crate::types::Type;

/// Reading a variable or a field.
const READ: Range = Range::exactly(1);
const LIST: Range = Range::exactly(10);
const MAP: Range = Range::exactly(30);
const STRUCT: Range = Range::exactly(40);

pub(super) struct Walk<'a> {
    pub(super) checked: &'a Checked,
    hints: &'a SizeHints<'a>,
    paths: Vec<Path>,
    sizes: Vec<Option<Range>>,
    entries: Vec<Option<Entries>>,
    locals: HashMap<Arc<str>, Vec<Local>>,
}

/// What is known of the entries of a list or a map.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    of_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn union(self, other: Self) -> Self {
        Self {
            of_list: self.of_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// A variable of a comprehension, or a bound one.
struct Local {
    path: Path,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// An operand, with what was known of it when it had been walked.
pub(super) struct Operand {
    pub(super) node: NodeId,
    path: Path,
    /// Its size, where one is known.
    pub(super) computed: Option<Range>,
}

impl Operand {
    pub(super) fn size(&self) -> Range {
        self.computed.unwrap_or(Range::UNKNOWN)
    }
}

/// What a call costs, and the size of what it returns.
pub(super) struct CallCost {
    pub(super) cost: Range,
    pub(super) result: Option<Range>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(checked: &'a Checked, hints: &'a SizeHints<'a>) -> Self {
        let nodes = checked.ast.len();
        Self {
            checked,
            hints,
            paths: vec![Path::default(); nodes],
            sizes: vec![None; nodes],
            entries: vec![None; nodes],
            locals: HashMap::new(),
        }
    }

    pub(super) fn cost(&mut self, node: NodeId) -> Range {
        let checked = self.checked;
        match checked.ast.expr(node) {
            Expr::Literal(_) | Expr::Unspecified => Range::ZERO,
            Expr::Ident(name) => self.ident(node, name),
            Expr::Select {
                operand,
                field,
                test_only,
            } => self.select(node, *operand, field, *test_only),
            Expr::Call {
                function,
                target,
                args,
            } => self.call(node, function, *target, args),
            Expr::List { elements, .. } => self.list(node, elements),
            Expr::Map { entries } => self.map(node, entries),
            Expr::Struct { fields, .. } => fields
                .iter()
                .fold(STRUCT, |sum, field| sum.plus(self.cost(field.value))),
            Expr::Comprehension(fold) if self.binds(fold) => self.bind(node, fold),
            Expr::Comprehension(fold) => self.comprehension(node, fold),
        }
    }

    fn ident(&mut self, node: NodeId, name: &Arc<str>) -> Range {
        self.paths[node.index()] = match self.local(name) {
            Some(local) => local.path.clone(),
            None => Path::of(name),
        };
        READ
    }

    fn select(&mut self, node: NodeId, operand: NodeId, field: &Arc<str>, test: bool) -> Range {
        let cost = self.cost(operand);
        if test {
            return cost;
        }

        self.paths[node.index()] = self.path(operand).append(Arc::clone(field));
        match self.checked.type_of(operand) {
            Type::Map(..) | Type::Object(_) | Type::Param(_) => cost.plus(READ),
            _ => cost,
        }
    }

    fn call(
        &mut self,
        node: NodeId,
        function: &str,
        target: Option<NodeId>,
        args: &[NodeId],
    ) -> Range {
        if function == "dyn"
            && let Some(argument) = args.first()
        {
            let cost = self.cost(*argument);
            self.copy_sizes(node, *argument);
            return cost.plus(READ);
        }

        let mut costs = Vec::with_capacity(args.len());
        let mut operands = Vec::with_capacity(args.len());
        for argument in args {
            costs.push(self.cost(*argument));
            operands.push(self.operand(*argument));
        }
        let checked = self.checked;
        let Some(Reference::Overloads(overloads)) = checked.reference(node) else {
            return Range::ZERO;
        };
        let mut target_cost = Range::ZERO;
        let target = target.map(|target| {
            target_cost = self.cost(target);
            self.operand(target)
        });

        let mut widest = Range::NOTHING;
        let mut result: Option<Range> = None;
        for overload in overloads {
            let class = overload.cost;
            let call = calls::cost(self, node, class, target.as_ref(), &operands, &costs);
            widest = widest.union(call.cost);
            if let Some(size) = call.result {
                result = Some(result.map_or(size, |known| known.union(size)));
            }
            if let Some(step) = element_step(class)
                && let Some(container) = args.first()
            {
                result = self.entries(*container).map(|entries| entries.value);
                self.paths[node.index()] = self.path(*container).append(step.into());
            }
            if result.is_none() {
                result = self.size(node);
            }
        }

        self.set_size(node, result);
        target_cost.plus(widest)
    }

    fn list(&mut self, node: NodeId, elements: &[NodeId]) -> Range {
        let mut cost = LIST;
        let mut value = first_union(elements.is_empty());
        for element in elements {
            cost = cost.plus(self.cost(*element));
            value = value.union(self.size(*element).unwrap_or(Range::UNKNOWN));
        }
        self.entries[node.index()] = Some(Entries {
            of_list: true,
            key: Range::exactly(1),
            value,
        });
        cost
    }

    fn map(&mut self, node: NodeId, entries: &[Entry]) -> Range {
        let mut cost = MAP;
        let mut key = first_union(entries.is_empty());
        let mut value = key;
        for entry in entries {
            cost = cost.plus(self.cost(entry.key));
            cost = cost.plus(self.cost(entry.value));
            key = key.union(self.size(entry.key).unwrap_or(Range::UNKNOWN));
            value = value.union(self.size(entry.value).unwrap_or(Range::UNKNOWN));
        }
        self.entries[node.index()] = Some(Entries {
            of_list: false,
            key,
            value,
        });
        cost
    }

    /// Whether it only gives a value a name, as `cel.bind` and `optMap` do.
    fn binds(&self, fold: &Comprehension) -> bool {
        let ast = &self.checked.ast;
        matches!(ast.expr(fold.iter_range), Expr::List { elements, .. } if elements.is_empty())
            && *ast.expr(fold.loop_condition) == Expr::Literal(Literal::Bool(false))
            && &*fold.accu_var != "__result__"
    }

    fn bind(&mut self, node: NodeId, fold: &Comprehension) -> Range {
        let mut cost = self.cost(fold.iter_range);
        cost = cost.plus(self.cost(fold.accu_init));
        self.push_value(&fold.accu_var, fold.accu_init);
        cost = cost.plus(self.cost(fold.result));
        self.pop(&fold.accu_var);

        self.copy_sizes(node, fold.result);
        cost
    }

    fn comprehension(&mut self, node: NodeId, fold: &Comprehension) -> Range {
        let mut cost = self.cost(fold.iter_range);
        cost = cost.plus(self.cost(fold.accu_init));
        self.push_value(&fold.accu_var, fold.accu_init);
        match &fold.iter_var2 {
            Some(second) => {
                self.push_key(&fold.iter_var, fold.iter_range);
                self.push_element(second, fold.iter_range);
            }
            None if self.is_list(fold.iter_range) => {
                self.push_element(&fold.iter_var, fold.iter_range);
            }
            None => self.push_single_key(&fold.iter_var, fold.iter_range),
        }

        let condition = self.cost(fold.loop_condition);
        let step = self.cost(fold.loop_step);
        self.pop(&fold.iter_var);
        if let Some(second) = &fold.iter_var2 {
            self.pop(second);
        }
        cost = cost.plus(self.cost(fold.result));
        self.pop(&fold.accu_var);

        // Asked for only now, after the loop: see `path`.
        let count = self.size(fold.iter_range).unwrap_or(Range::UNKNOWN);
        cost = cost.plus(count.times(step.plus(condition)));
        match self.checked.ast.expr(fold.accu_init) {
            Expr::Literal(_) => {
                let size = self.size(fold.accu_init);
                self.set_size(node, size);
            }
            Expr::List { .. } | Expr::Map { .. } => {
                self.set_size(node, Some(count));
                let entries = self.entries(fold.loop_step);
                self.set_entries(node, entries);
            }
            _ => {}
        }
        cost
    }

    fn is_list(&self, range: NodeId) -> bool {
        match self.entries(range) {
            Some(entries) => entries.of_list,
            None => matches!(self.checked.type_of(range), Type::List(_)),
        }
    }

    fn push_key(&mut self, name: &Arc<str>, range: NodeId) {
        let step = if self.is_list(range) {
            "@indices"
        } else {
            "@keys"
        };
        let size = self.entries(range).map(|entries| entries.key);
        self.push_step(name, range, step, size);
    }

    /// The only variable over what is no list: the key.
    fn push_single_key(&mut self, name: &Arc<str>, range: NodeId) {
        let size = self.entries(range).map(|entries| entries.key);
        self.push_step(name, range, "@keys", size);
    }

    fn push_element(&mut self, name: &Arc<str>, range: NodeId) {
        let step = if self.is_list(range) {
            "@items"
        } else {
            "@values"
        };
        let size = self.entries(range).map(|entries| entries.value);
        self.push_step(name, range, step, size);
    }

    fn push_step(&mut self, name: &Arc<str>, range: NodeId, step: &str, size: Option<Range>) {
        let path = self.path(range).append(step.into());
        self.push(
            name,
            Local {
                path,
                size,
                entries: None,
            },
        );
    }

    fn push_value(&mut self, name: &Arc<str>, value: NodeId) {
        let local = Local {
            path: self.path(value),
            entries: self.entries(value),
            size: self.size(value),
        };
        self.push(name, local);
    }

    fn push(&mut self, name: &Arc<str>, local: Local) {
        self.locals.entry(Arc::clone(name)).or_default().push(local);
    }

    fn pop(&mut self, name: &str) {
        if let Some(stack) = self.locals.get_mut(name) {
            stack.pop();
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name)?.last()
    }

    fn local_of(&self, node: NodeId) -> Option<&Local> {
        match self.checked.ast.expr(node) {
            Expr::Ident(name) => self.local(name),
            _ => None,
        }
    }

    fn path(&self, node: NodeId) -> Path {
        match self.local_of(node) {
            Some(local) => local.path.clone(),
            None => self.paths[node.index()].clone(),
        }
    }

    fn operand(&mut self, node: NodeId) -> Operand {
        let path = self.path(node);
        let of_accumulator = path
            .names()
            .first()
            .is_some_and(|name| matches!(&**name, "@result" | "__result__"));
        Operand {
            node,
            path: if of_accumulator {
                Path::default()
            } else {
                path
            },
            computed: self.size(node),
        }
    }

    /// The size of a value, from all that is known of it.
    pub(super) fn size(&mut self, node: NodeId) -> Option<Range> {
        if let Some(size) = self.sizes[node.index()] {
            return Some(size);
        }
        if let Some(size) = literal_size(self.checked.ast.expr(node)) {
            return Some(size);
        }
        if let Some(size) = (self.hints)(&self.path(node).names()) {
            self.sizes[node.index()] = Some(size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(node)) {
            return Some(Range::exactly(1));
        }
        self.local_of(node).and_then(|local| local.size)
    }

    /// The size of an operand whose size was unknown a moment ago: its path may say another thing
    /// by now.
    pub(super) fn hinted_size(&self, operand: &Operand) -> Range {
        operand
            .computed
            .or_else(|| (self.hints)(&operand.path.names()))
            .unwrap_or(Range::UNKNOWN)
    }

    /// The size of the elements of a list, and their type; `None` if it is of no type with
    /// elements.
    pub(super) fn element(&self, list: &Operand) -> Option<(&'a Type, Range)> {
        let element = self.checked.type_of(list.node).parameters()[0]?;
        let mut names = list.path.names();
        if !names.is_empty() {
            names.push("@items".into());
        }
        let size = (self.hints)(&names).unwrap_or(Range::UNKNOWN);
        Some((element, size))
    }

    pub(super) fn entries(&self, node: NodeId) -> Option<Entries> {
        self.entries[node.index()].or_else(|| self.local_of(node).and_then(|local| local.entries))
    }

    /// What is known of the entries of one or the other.
    pub(super) fn join_entries(&mut self, node: NodeId, one: NodeId, other: NodeId) {
        if let (Some(one), Some(other)) = (self.entries(one), self.entries(other)) {
            self.entries[node.index()] = Some(one.union(other));
        }
    }

    fn copy_sizes(&mut self, to: NodeId, from: NodeId) {
        let size = self.size(from);
        self.set_size(to, size);
        let entries = self.entries(from);
        self.set_entries(to, entries);
    }

    fn set_size(&mut self, node: NodeId, size: Option<Range>) {
        if size.is_some() {
            self.sizes[node.index()] = size;
        }
    }

    fn set_entries(&mut self, node: NodeId, entries: Option<Entries>) {
        if entries.is_some() {
            self.entries[node.index()] = entries;
        }
    }
}

/// The step that indexing is in a path.
fn element_step(class: CostClass) -> Option<&'static str> {
    match class {
        CostClass::IndexList => Some("@items"),
        CostClass::IndexMap => Some("@values"),
        _ => None,
    }
}

fn first_union(empty: bool) -> Range {
    if empty { Range::ZERO } else { Range::NOTHING }
}

fn literal_size(expr: &Expr) -> Option<Range> {
    let size = match expr {
        Expr::Literal(Literal::String(text)) => text.chars().count(),
        Expr::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Expr::Literal(_) => 1,
        Expr::List { elements, .. } => elements.len(),
        Expr::Map { entries } => entries.len(),
        _ => return None,
    };
    Some(Range::exactly(size as u64))
}

/// Whether all values of a type have the same size.
fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Wrapper(scalar) => is_scalar(&scalar.unwrapped()),
        Type::Optional(value) => is_scalar(value),
        _ => false,
    }
}
