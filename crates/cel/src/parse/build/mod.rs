//! From syntax to the tree of the expression: literals are read, macros expanded, ids counted.
//!
//! A text with syntax errors is built too, as far as it goes: cel-go reports what is wrong with
//! the parts that it could read (reserved words, bad literals, arguments of macros) beside the
//! syntax errors. Ids are counted in cel-go's order, which is that of the calls in here.

mod containers;
mod literals;

use std::sync::Arc;

use super::tree::{FieldName, Forest, Leaf, Tree, TreeId};
use crate::ast::{Ast, Expr, ExprId, Literal, NodeId, operators};
use crate::declare::Macro;
use crate::lex::Kind;
use crate::macros;
use crate::source::{Issues, Location, Source};

/// How deep operators, selections and calls may be nested in the tree.
const DEEPEST: u32 = 250;

/// Macros may copy what they are applied to, so a short text can make a large tree.
const MOST_NODES: usize = 500_000;

/// An id that no node has, where the text lacks what would have it.
pub(crate) const NO_ID: ExprId = 0;

const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The reason is already in the issues.
#[derive(Debug)]
pub(crate) struct Abort;

pub(crate) type Built<T = NodeId> = Result<T, Abort>;

/// Builds the tree of `root`; what is wrong goes to `issues`.
pub(crate) fn build(
    forest: &Forest,
    root: Option<TreeId>,
    source: &Arc<Source>,
    macros: &[Macro],
    issues: &mut Issues,
) -> Ast {
    let mut builder = Builder {
        forest,
        source,
        macros,
        issues,
        ast: Ast::new(Arc::clone(source)),
        offsets: vec![None],
        depth: 0,
    };

    if let Ok(node) = builder.visit(root) {
        builder.ast.set_root(node);
    }
    let Builder {
        mut ast, offsets, ..
    } = builder;
    ast.set_offsets(offsets);
    ast
}

pub(crate) struct Builder<'a> {
    forest: &'a Forest,
    source: &'a Arc<Source>,
    macros: &'a [Macro],
    issues: &'a mut Issues,
    ast: Ast,
    /// Of each id; −1 where an id was given out for nothing in the text.
    offsets: Vec<Option<i32>>,
    depth: u32,
}

impl Builder<'_> {
    pub(crate) fn new_id(&mut self, offset: i32) -> ExprId {
        self.offsets.push(Some(offset));
        (self.offsets.len() - 1) as ExprId
    }

    fn id_of(&mut self, leaf: Option<Leaf>) -> ExprId {
        leaf.map_or(NO_ID, |leaf| self.new_id(leaf.offset))
    }

    /// Takes an id back; the last one is given out again.
    pub(crate) fn delete_id(&mut self, id: ExprId) {
        if id == NO_ID {
            return;
        }
        if self.index(id) + 1 == self.offsets.len() {
            self.offsets.pop();
        } else {
            let index = self.index(id);
            self.offsets[index] = None;
        }
    }

    #[expect(
        clippy::unused_self,
        reason = "ids are indices of this builder's offsets"
    )]
    fn index(&self, id: ExprId) -> usize {
        usize::try_from(id).expect("ids are indices")
    }

    pub(crate) fn offset(&self, id: ExprId) -> Option<i32> {
        self.offsets.get(self.index(id)).copied().flatten()
    }

    pub(crate) fn location(&self, id: ExprId) -> Location {
        match self.offset(id) {
            None => Location::NONE,
            Some(offset) => match u32::try_from(offset) {
                Ok(offset) => self.source.location(offset),
                Err(_) => Location {
                    line: 1,
                    column: -1,
                },
            },
        }
    }

    pub(crate) fn id(&self, node: NodeId) -> ExprId {
        self.ast.id(node)
    }

    pub(crate) fn expr(&self, node: NodeId) -> &Expr {
        self.ast.expr(node)
    }

    pub(crate) fn add(&mut self, id: ExprId, expr: Expr) -> Built {
        if self.ast.len() >= MOST_NODES {
            let message =
                format!("expression exceeds {MOST_NODES} nodes after expansion of macros");
            self.issues.report(Location::NONE, message);
            return Err(Abort);
        }
        Ok(self.ast.add(id, expr))
    }

    pub(crate) fn call(&mut self, id: ExprId, function: &str, args: Vec<NodeId>) -> Built {
        let function = function.into();
        let target = None;
        self.add(
            id,
            Expr::Call {
                function,
                target,
                args,
            },
        )
    }

    pub(crate) fn literal(&mut self, offset: i32, literal: Literal) -> Built {
        let id = self.new_id(offset);
        self.add(id, Expr::Literal(literal))
    }

    fn unspecified(&mut self, offset: i32) -> Built {
        let id = self.new_id(offset);
        self.add(id, Expr::Unspecified)
    }

    /// Reports an error at `offset`, with a node in the place of what is wrong.
    fn report(&mut self, offset: i32, message: impl Into<String>) -> Built {
        let node = self.unspecified(offset)?;
        let location = self.location(self.id(node));
        self.issues.report(location, message);
        Ok(node)
    }

    fn deeper<T>(&mut self, visit: impl FnOnce(&mut Self) -> Built<T>) -> Built<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.issues
                .report(Location::NONE, "max recursion depth exceeded");
            return Err(Abort);
        }
        let result = visit(self);
        self.depth -= 1;
        result
    }

    fn visit(&mut self, tree: Option<TreeId>) -> Built {
        // What the text lacks has no place.
        let Some(tree) = tree else {
            return self.unspecified(-1);
        };
        let forest = self.forest;
        let tree = forest.get(tree);
        match tree {
            Tree::Ternary { .. } => self.deeper(|builder| builder.ternary(tree)),
            Tree::Binary { .. } => self.deeper(|builder| builder.binary(tree)),
            Tree::Select { .. } => self.deeper(|builder| builder.select(tree)),
            Tree::MemberCall { .. } => self.deeper(|builder| builder.member_call(tree)),
            Tree::Index { .. } => self.deeper(|builder| builder.subscript(tree)),
            Tree::Logic { .. } => self.logic(tree),
            Tree::Prefix { .. } => self.prefix(tree),
            Tree::Ident { .. } => self.ident(tree),
            Tree::GlobalCall { .. } => self.global_call(tree),
            Tree::List { open, elements } => self.list(*open, elements),
            Tree::Map { open, entries } => self.map(*open, entries.as_ref()),
            Tree::Struct { .. } => self.construct(tree),
            Tree::Literal { .. } => self.read_literal(tree),
            Tree::BadOperand { start } => self.literal(*start, Literal::String("<<error>>".into())),
        }
    }

    fn visit_all(&mut self, trees: &[Option<TreeId>]) -> Built<Vec<NodeId>> {
        trees.iter().map(|tree| self.visit(*tree)).collect()
    }

    fn ternary(&mut self, tree: &Tree) -> Built {
        let Tree::Ternary {
            condition,
            operator,
            then,
            otherwise,
        } = tree
        else {
            return Err(Abort);
        };
        let condition = self.visit(*condition)?;
        let id = self.new_id(operator.offset);
        let then = self.visit(*then)?;
        let otherwise = self.visit(*otherwise)?;
        self.call_or_macro(id, operators::CONDITIONAL, vec![condition, then, otherwise])
    }

    fn binary(&mut self, tree: &Tree) -> Built {
        let Tree::Binary {
            left,
            operator,
            right,
        } = tree
        else {
            return Err(Abort);
        };
        let left = self.visit(*left)?;
        let id = self.new_id(operator.offset);
        let right = self.visit(*right)?;
        let function = operators::binary(operator.kind).unwrap_or_default();
        self.call_or_macro(id, function, vec![left, right])
    }

    fn logic(&mut self, tree: &Tree) -> Built {
        let Tree::Logic {
            first,
            operators,
            rest,
        } = tree
        else {
            return Err(Abort);
        };

        let mut terms = vec![self.visit(*first)?];
        let mut ids = Vec::with_capacity(operators.len());
        for (operator, term) in operators.iter().zip(rest) {
            terms.push(self.visit(*term)?);
            ids.push(self.new_id(operator.offset));
        }

        let function = match operators.first().map(|operator| operator.kind) {
            Some(Kind::And) => operators::LOGICAL_AND,
            _ => operators::LOGICAL_OR,
        };
        self.balanced(function, &terms, &ids)
    }

    /// Makes a tree of logarithmic depth; `ids` are those of the operators between the terms.
    fn balanced(&mut self, function: &str, terms: &[NodeId], ids: &[ExprId]) -> Built {
        let Some(middle) = ids.len().checked_sub(1).map(|last| last.div_ceil(2)) else {
            return Ok(terms[0]);
        };
        let left = self.balanced(function, &terms[..=middle], &ids[..middle])?;
        let right = self.balanced(function, &terms[middle + 1..], &ids[middle + 1..])?;
        self.call(ids[middle], function, vec![left, right])
    }

    fn prefix(&mut self, tree: &Tree) -> Built {
        let Tree::Prefix { operators, operand } = tree else {
            return Err(Abort);
        };
        if operators.len() % 2 == 0 {
            return self.visit(*operand);
        }
        let id = self.new_id(operators[0].offset);
        let operand = self.visit(*operand)?;
        let function = match operators[0].kind {
            Kind::Exclam => operators::LOGICAL_NOT,
            _ => operators::NEGATE,
        };
        self.call_or_macro(id, function, vec![operand])
    }

    fn select(&mut self, tree: &Tree) -> Built {
        let Tree::Select {
            start,
            operand,
            dot,
            optional,
            field,
        } = tree
        else {
            return Err(Abort);
        };
        let operand = self.visit(*operand)?;
        let (Some(field), Some(dot)) = (field, dot) else {
            return self.unspecified(*start);
        };

        let name = match self.field_name(Some(*field)) {
            Ok(name) => name,
            Err(message) => {
                self.report(field.start, message)?;
                "".into()
            }
        };
        if *optional {
            // Ids: the field's literal is made before the call.
            let literal = self.literal(field.start, Literal::String(name))?;
            let id = self.new_id(dot.offset);
            return self.call(id, operators::OPTIONAL_SELECT, vec![operand, literal]);
        }
        let id = self.new_id(dot.offset);
        let test_only = false;
        self.add(
            id,
            Expr::Select {
                operand,
                field: name,
                test_only,
            },
        )
    }

    fn field_name(&self, field: Option<FieldName>) -> Result<Arc<str>, &'static str> {
        match field.and_then(|field| field.name) {
            None => Err("unsupported ident kind"),
            Some(name) if name.kind == Kind::EscapedIdentifier => Err("unsupported syntax: '`'"),
            Some(name) => Ok(name.text(self.source.text()).into()),
        }
    }

    fn member_call(&mut self, tree: &Tree) -> Built {
        let Tree::MemberCall {
            start,
            operand,
            name,
            open,
            args,
        } = tree
        else {
            return Err(Abort);
        };
        let target = self.visit(*operand)?;
        let Some(name) = name else {
            return self.unspecified(*start);
        };

        let function = name.text(self.source.text());
        let id = self.id_of(*open);
        let args = self.visit_all(args)?;
        if let Some(expanded) = self.expand(id, function, Some(target), &args)? {
            return Ok(expanded);
        }
        let function = function.into();
        self.add(
            id,
            Expr::Call {
                function,
                target: Some(target),
                args,
            },
        )
    }

    fn subscript(&mut self, tree: &Tree) -> Built {
        let Tree::Index {
            start,
            operand,
            open,
            optional,
            index,
        } = tree
        else {
            return Err(Abort);
        };

        let target = self.visit(*operand)?;
        let Some(open) = open else {
            return self.unspecified(*start);
        };
        let id = self.new_id(open.offset);
        let index = self.visit(*index)?;
        let function = if *optional {
            operators::OPTIONAL_INDEX
        } else {
            operators::INDEX
        };
        self.call_or_macro(id, function, vec![target, index])
    }

    /// The name, unless it is a reserved word.
    fn plain_name(
        &mut self,
        start: i32,
        leading_dot: bool,
        name: Leaf,
    ) -> Built<Result<String, NodeId>> {
        let text = name.text(self.source.text());
        if RESERVED.contains(&text) {
            let message = format!("reserved identifier: {text}");
            return self.report(start, message).map(Err);
        }
        let dot = if leading_dot { "." } else { "" };
        Ok(Ok(format!("{dot}{text}")))
    }

    fn ident(&mut self, tree: &Tree) -> Built {
        let Tree::Ident {
            start,
            leading_dot,
            name,
        } = tree
        else {
            return Err(Abort);
        };
        let Some(name) = name else {
            return self.unspecified(*start);
        };
        match self.plain_name(*start, *leading_dot, *name)? {
            Err(error) => Ok(error),
            Ok(text) => {
                let id = self.new_id(name.offset);
                self.add(id, Expr::Ident(text.into()))
            }
        }
    }

    fn global_call(&mut self, tree: &Tree) -> Built {
        let Tree::GlobalCall {
            start,
            leading_dot,
            name,
            open,
            args,
        } = tree
        else {
            return Err(Abort);
        };
        let Some(name) = name else {
            return self.unspecified(*start);
        };
        match self.plain_name(*start, *leading_dot, *name)? {
            Err(error) => Ok(error),
            Ok(function) => {
                let id = self.id_of(*open);
                let args = self.visit_all(args)?;
                self.call_or_macro(id, &function, args)
            }
        }
    }

    fn call_or_macro(&mut self, id: ExprId, function: &str, args: Vec<NodeId>) -> Built {
        match self.expand(id, function, None, &args)? {
            Some(expanded) => Ok(expanded),
            None => self.call(id, function, args),
        }
    }

    /// Expands a call if it is a macro. Of a macro with bad arguments the result is an error's
    /// node.
    fn expand(
        &mut self,
        id: ExprId,
        function: &str,
        target: Option<NodeId>,
        args: &[NodeId],
    ) -> Built<Option<NodeId>> {
        let named = |found: &&Macro| {
            found.name == function && found.args == args.len() && found.receiver == target.is_some()
        };
        // A later library replaces the macro of an earlier one.
        let Some(found) = self.macros.iter().rev().find(named) else {
            return Ok(None);
        };

        match macros::expand(found.expansion, self, id, target, args)? {
            macros::Outcome::NotExpanded => Ok(None),
            macros::Outcome::Expanded(node) => {
                self.delete_id(id);
                Ok(Some(node))
            }
            macros::Outcome::Refused { at, message } => {
                let location = self.location(at);
                let offset = self.offset(at).unwrap_or(-1);
                self.delete_id(id);
                let node = self.unspecified(offset)?;
                self.issues.report(location, message);
                Ok(Some(node))
            }
        }
    }
}
