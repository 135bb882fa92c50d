//! The parser for texts that are right: one pass, no recovery.
//!
//! It accepts what cel-go's grammar accepts. Where a text is wrong it stops without a word;
//! [`crate::syntax_errors`] then finds out what to say.

use super::depth::{Depth, TooDeep};
use super::tree::{
    Element, FieldName, Forest, Leaf, MapParts, StructField, StructParts, Tree, TreeId,
};
use crate::lex::{Kind, Token};

/// There is no tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal;

impl From<TooDeep> for Refusal {
    fn from(_: TooDeep) -> Self {
        Self
    }
}

type Parsed<T> = Result<T, Refusal>;

/// Parses `tokens`, of which none is hidden and the last is the end.
pub(crate) fn parse(tokens: &[Token], forest: &mut Forest) -> Parsed<TreeId> {
    let mut parser = Parser {
        tokens,
        at: 0,
        forest,
        depth: Depth::default(),
    };
    let root = parser.expr()?;
    parser.expect(Kind::Eof)?;
    Ok(root)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    forest: &'a mut Forest,
    depth: Depth,
}

impl Parser<'_> {
    fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    fn kind_after(&self, tokens: usize) -> Kind {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + tokens).min(last)].kind
    }

    fn start(&self) -> i32 {
        Leaf::from(self.tokens[self.at]).offset
    }

    fn take(&mut self) -> Leaf {
        let token = self.tokens[self.at];
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token.into()
    }

    fn take_if(&mut self, kind: Kind) -> Option<Leaf> {
        (self.kind() == kind).then(|| self.take())
    }

    fn expect(&mut self, kind: Kind) -> Parsed<Leaf> {
        self.take_if(kind).ok_or(Refusal)
    }

    fn expr(&mut self) -> Parsed<TreeId> {
        self.depth.enter_expr()?;
        let condition = self.logic(Kind::Or)?;
        let result = match self.take_if(Kind::Question) {
            None => condition,
            Some(operator) => {
                let then = self.logic(Kind::Or)?;
                self.expect(Kind::Colon)?;
                let otherwise = self.expr()?;
                self.forest.add(Tree::Ternary {
                    condition: Some(condition),
                    operator,
                    then: Some(then),
                    otherwise: Some(otherwise),
                })
            }
        };
        self.depth.leave_expr();
        Ok(result)
    }

    fn logic(&mut self, operator: Kind) -> Parsed<TreeId> {
        let first = self.logic_operand(operator)?;
        if self.kind() != operator {
            return Ok(first);
        }
        let (mut operators, mut rest) = (Vec::new(), Vec::new());
        while let Some(leaf) = self.take_if(operator) {
            operators.push(leaf);
            rest.push(Some(self.logic_operand(operator)?));
        }
        Ok(self.forest.add(Tree::Logic {
            first: Some(first),
            operators,
            rest,
        }))
    }

    fn logic_operand(&mut self, operator: Kind) -> Parsed<TreeId> {
        match operator {
            Kind::Or => self.logic(Kind::And),
            _ => self.relation(),
        }
    }

    fn relation(&mut self) -> Parsed<TreeId> {
        self.depth.relation.enter()?;
        let mut left = self.calc(0)?;
        while is_relation(self.kind()) {
            self.depth.relation.again()?;
            let operator = self.take();
            // The right operand is a relation of its own, without operators.
            self.depth.relation.enter()?;
            let right = self.calc(0)?;
            self.depth.relation.leave();
            left = self.binary(left, operator, right);
        }
        self.depth.relation.leave();
        Ok(left)
    }

    /// A calculation of operators that bind at least as strongly as `least`.
    fn calc(&mut self, least: u8) -> Parsed<TreeId> {
        self.depth.calc.enter()?;
        let mut left = self.unary()?;
        while let Some(strength) = strength(self.kind())
            && strength >= least
        {
            self.depth.calc.again()?;
            let operator = self.take();
            let right = self.calc(strength + 1)?;
            left = self.binary(left, operator, right);
        }
        self.depth.calc.leave();
        Ok(left)
    }

    fn binary(&mut self, left: TreeId, operator: Leaf, right: TreeId) -> TreeId {
        self.forest.add(Tree::Binary {
            left: Some(left),
            operator,
            right: Some(right),
        })
    }

    fn unary(&mut self) -> Parsed<TreeId> {
        let kind = self.kind();
        // One minus before a number is the number's.
        let number = matches!(self.kind_after(1), Kind::Int | Kind::Float);
        if !(kind == Kind::Exclam || kind == Kind::Minus && !number) {
            return self.member();
        }
        let mut operators = Vec::new();
        while let Some(operator) = self.take_if(kind) {
            operators.push(operator);
        }
        let operand = Some(self.member()?);
        Ok(self.forest.add(Tree::Prefix { operators, operand }))
    }

    fn member(&mut self) -> Parsed<TreeId> {
        let start = self.start();
        let mut operand = self.primary()?;
        loop {
            operand = match self.kind() {
                Kind::Dot => self.select(start, operand)?,
                Kind::LeftBracket => self.index(start, operand)?,
                _ => return Ok(operand),
            };
        }
    }

    fn select(&mut self, start: i32, operand: TreeId) -> Parsed<TreeId> {
        let dot = self.take();
        let optional = self.take_if(Kind::Question).is_some();
        let plain = self.kind() == Kind::Identifier;
        let field = self.field_name()?;

        if !optional && self.kind() == Kind::LeftParen && plain {
            let open = self.take();
            let args = self.args()?;
            return Ok(self.forest.add(Tree::MemberCall {
                start,
                operand: Some(operand),
                name: field.name,
                open: Some(open),
                args,
            }));
        }

        Ok(self.forest.add(Tree::Select {
            start,
            operand: Some(operand),
            dot: Some(dot),
            optional,
            field: Some(field),
        }))
    }

    fn field_name(&mut self) -> Parsed<FieldName> {
        if !matches!(self.kind(), Kind::Identifier | Kind::EscapedIdentifier) {
            return Err(Refusal);
        }
        let name = self.take();
        Ok(FieldName {
            start: name.offset,
            name: Some(name),
        })
    }

    fn index(&mut self, start: i32, operand: TreeId) -> Parsed<TreeId> {
        let open = self.take();
        let optional = self.take_if(Kind::Question).is_some();
        let index = self.expr()?;
        self.expect(Kind::RightBracket)?;
        Ok(self.forest.add(Tree::Index {
            start,
            operand: Some(operand),
            open: Some(open),
            optional,
            index: Some(index),
        }))
    }

    fn primary(&mut self) -> Parsed<TreeId> {
        match self.kind() {
            Kind::Dot | Kind::Identifier => self.named(),
            Kind::LeftParen => {
                self.take();
                let nested = self.expr()?;
                self.expect(Kind::RightParen)?;
                Ok(nested)
            }
            Kind::LeftBracket => self.list(),
            Kind::LeftBrace => self.map(),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Parsed<TreeId> {
        let start = self.start();
        let negative = self.take_if(Kind::Minus).is_some();
        let fits = match self.kind() {
            Kind::Int | Kind::Float => true,
            Kind::Uint | Kind::String | Kind::Bytes | Kind::True | Kind::False | Kind::Null => {
                !negative
            }
            _ => false,
        };
        if !fits {
            return Err(Refusal);
        }
        let token = self.take();
        Ok(self.forest.add(Tree::Literal {
            start,
            negative,
            token,
        }))
    }

    /// A name, a call, or a struct whose name may have dots.
    fn named(&mut self) -> Parsed<TreeId> {
        let start = self.start();
        let leading_dot = self.take_if(Kind::Dot).is_some();
        let name = self.expect(Kind::Identifier)?;

        if let Some(open) = self.take_if(Kind::LeftParen) {
            let args = self.args()?;
            return Ok(self.forest.add(Tree::GlobalCall {
                start,
                leading_dot,
                name: Some(name),
                open: Some(open),
                args,
            }));
        }
        if self.names_a_struct() {
            return self.construct(leading_dot, name);
        }

        Ok(self.forest.add(Tree::Ident {
            start,
            leading_dot,
            name: Some(name),
        }))
    }

    /// Whether names and dots lead to a brace from here.
    fn names_a_struct(&self) -> bool {
        let mut ahead = 0;
        while self.kind_after(ahead) == Kind::Dot && self.kind_after(ahead + 1) == Kind::Identifier
        {
            ahead += 2;
        }
        self.kind_after(ahead) == Kind::LeftBrace
    }

    fn construct(&mut self, leading_dot: bool, first: Leaf) -> Parsed<TreeId> {
        let mut names = vec![first];
        while self.take_if(Kind::Dot).is_some() {
            names.push(self.expect(Kind::Identifier)?);
        }
        let open = Some(self.expect(Kind::LeftBrace)?);
        let fields = self.fields()?;
        Ok(self.forest.add(Tree::Struct {
            leading_dot,
            names,
            open,
            fields,
        }))
    }

    fn fields(&mut self) -> Parsed<Option<StructParts>> {
        if self.closes(Kind::RightBrace) {
            return Ok(None);
        }
        let mut parts = StructParts {
            start: self.start(),
            fields: Vec::new(),
            colons: Vec::new(),
            values: Vec::new(),
        };
        loop {
            parts.fields.push(StructField {
                optional: self.take_if(Kind::Question).is_some(),
                name: Some(self.field_name()?),
            });
            parts.colons.push(self.expect(Kind::Colon)?);
            parts.values.push(Some(self.expr()?));
            if self.ends(Kind::RightBrace)? {
                return Ok(Some(parts));
            }
        }
    }

    fn map(&mut self) -> Parsed<TreeId> {
        let open = Some(self.take());
        let mut entries = None;
        if !self.closes(Kind::RightBrace) {
            let parts = entries.insert(MapParts::default());
            loop {
                parts.keys.push(self.element()?);
                parts.colons.push(self.expect(Kind::Colon)?);
                parts.values.push(Some(self.expr()?));
                if self.ends(Kind::RightBrace)? {
                    break;
                }
            }
        }
        Ok(self.forest.add(Tree::Map { open, entries }))
    }

    fn list(&mut self) -> Parsed<TreeId> {
        let open = Some(self.take());
        let mut elements = Vec::new();
        if !self.closes(Kind::RightBracket) {
            loop {
                elements.push(self.element()?);
                if self.ends(Kind::RightBracket)? {
                    break;
                }
            }
        }
        Ok(self.forest.add(Tree::List { open, elements }))
    }

    fn element(&mut self) -> Parsed<Element> {
        Ok(Element {
            optional: self.take_if(Kind::Question).is_some(),
            value: Some(self.expr()?),
        })
    }

    /// Takes what closes something empty, in which there may be a comma.
    fn closes(&mut self, close: Kind) -> bool {
        let comma = usize::from(self.kind() == Kind::Comma);
        let closes = self.kind_after(comma) == close;
        if closes {
            self.at += comma + 1;
        }
        closes
    }

    /// Takes what follows an element: a comma, the end, or both.
    fn ends(&mut self, close: Kind) -> Parsed<bool> {
        if self.take_if(close).is_some() {
            return Ok(true);
        }
        self.expect(Kind::Comma)?;
        Ok(self.take_if(close).is_some())
    }

    fn args(&mut self) -> Parsed<Vec<Option<TreeId>>> {
        let mut args = Vec::new();
        if self.take_if(Kind::RightParen).is_some() {
            return Ok(args);
        }
        loop {
            args.push(Some(self.expr()?));
            if self.take_if(Kind::RightParen).is_some() {
                return Ok(args);
            }
            self.expect(Kind::Comma)?;
        }
    }
}

pub(crate) fn is_relation(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Equals
            | Kind::NotEquals
            | Kind::In
            | Kind::Less
            | Kind::LessEquals
            | Kind::GreaterEquals
            | Kind::Greater
    )
}

/// How strongly an operator of calculations binds.
pub(crate) fn strength(kind: Kind) -> Option<u8> {
    match kind {
        Kind::Plus | Kind::Minus => Some(1),
        Kind::Star | Kind::Slash | Kind::Percent => Some(2),
        _ => None,
    }
}
