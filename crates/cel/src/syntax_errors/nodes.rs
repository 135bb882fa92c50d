//! What a rule makes of its parts, of which some may be missing.

use super::grammar::{Label, Rule};
use super::is_shown;
use crate::parse::tree::{
    Element, FieldName, Forest, Leaf, MapParts, StructField, StructParts, Tree, TreeId,
};

/// What a rule made.
#[derive(Clone, Debug)]
pub(super) enum RuleResult {
    /// `None`: nothing that was understood.
    Tree(Option<TreeId>),
    Args(Vec<Option<TreeId>>),
    Elements(Vec<Element>),
    Element(Element),
    Map(MapParts),
    Fields(StructParts),
    Field(StructField),
    Name(FieldName),
}

impl RuleResult {
    pub(super) fn tree(self) -> Option<TreeId> {
        match self {
            Self::Tree(tree) => tree,
            _ => None,
        }
    }
}

/// A rule that is being read.
pub(super) struct Frame {
    rule: Rule,
    start: i32,
    /// Which alternative it is, once that is known.
    pub(super) alternative: Option<usize>,
    leaves: Vec<(Label, Leaf)>,
    made: Vec<(Label, RuleResult)>,
}

impl Frame {
    pub(super) fn new(rule: Rule, start: i32) -> Self {
        Self {
            rule,
            start,
            alternative: None,
            leaves: Vec::new(),
            made: Vec::new(),
        }
    }

    pub(super) fn leaf(&mut self, label: Label, leaf: Leaf) {
        if is_shown(label) {
            self.leaves.push((label, leaf));
        }
    }

    pub(super) fn made(&mut self, label: Label, made: RuleResult) {
        self.made.push((label, made));
    }

    /// Begins an operator after what was read so far, which becomes its first operand.
    pub(super) fn nest(&mut self, operator: usize, forest: &mut Forest) {
        let outer = Self::new(self.rule, self.start);
        let inner = std::mem::replace(self, outer);
        let operand = inner.finish(forest);
        self.alternative = Some(operator);
        self.made(Label::First, operand);
    }

    fn token(&self, label: Label) -> Option<Leaf> {
        self.leaves
            .iter()
            .find(|(found, _)| *found == label)
            .map(|(_, leaf)| *leaf)
    }

    fn tokens(&self, label: Label) -> Vec<Leaf> {
        let labelled = self.leaves.iter().filter(|(found, _)| *found == label);
        labelled.map(|(_, leaf)| *leaf).collect()
    }

    fn all(&self, label: Label) -> impl Iterator<Item = &RuleResult> {
        let labelled = self.made.iter().filter(move |(found, _)| *found == label);
        labelled.map(|(_, made)| made)
    }

    fn tree(&self, label: Label) -> Option<TreeId> {
        self.all(label).next().and_then(|made| made.clone().tree())
    }

    fn trees(&self, label: Label) -> Vec<Option<TreeId>> {
        self.all(label).map(|made| made.clone().tree()).collect()
    }

    fn name(&self) -> Option<FieldName> {
        self.all(Label::Name).find_map(|made| match made {
            RuleResult::Name(name) => Some(*name),
            _ => None,
        })
    }

    fn args(&self) -> Vec<Option<TreeId>> {
        let args = self.all(Label::Inner).find_map(|made| match made {
            RuleResult::Args(args) => Some(args.clone()),
            _ => None,
        });
        args.unwrap_or_default()
    }

    /// What the rule makes of what was read of it.
    pub(super) fn finish(self, forest: &mut Forest) -> RuleResult {
        match self.rule {
            Rule::Start => RuleResult::Tree(self.tree(Label::First)),
            Rule::Expr => self.finish_expr(forest),
            Rule::Or | Rule::And => self.finish_logic(forest),
            Rule::Relation | Rule::Calc => self.finish_binary(forest),
            Rule::Unary => self.finish_unary(forest),
            Rule::Member => self.finish_member(forest),
            Rule::Primary => self.finish_primary(forest),
            Rule::Args => RuleResult::Args(self.trees(Label::Inner)),
            Rule::ListInit => RuleResult::Elements(elements(self.all(Label::Inner))),
            Rule::Element => RuleResult::Element(Element {
                optional: self.token(Label::Optional).is_some(),
                value: self.tree(Label::Value),
            }),
            Rule::MapInit => RuleResult::Map(MapParts {
                keys: elements(self.all(Label::Key)),
                colons: self.tokens(Label::Colon),
                values: self.trees(Label::Value),
            }),
            Rule::FieldInit => RuleResult::Fields(StructParts {
                start: self.start,
                fields: fields(self.all(Label::Key)),
                colons: self.tokens(Label::Colon),
                values: self.trees(Label::Value),
            }),
            Rule::OptField => RuleResult::Field(StructField {
                optional: self.token(Label::Optional).is_some(),
                name: self.name(),
            }),
            Rule::FieldName => RuleResult::Name(FieldName {
                start: self.start,
                name: self.token(Label::Name),
            }),
            Rule::Literal => RuleResult::Tree(self.token(Label::Value).map(|token| {
                forest.add(Tree::Literal {
                    start: self.start,
                    negative: self.token(Label::Sign).is_some(),
                    token,
                })
            })),
        }
    }

    fn finish_expr(self, forest: &mut Forest) -> RuleResult {
        let condition = self.tree(Label::First);
        let Some(operator) = self.token(Label::Operator) else {
            return RuleResult::Tree(condition);
        };
        RuleResult::Tree(Some(forest.add(Tree::Ternary {
            condition,
            operator,
            then: self.tree(Label::Then),
            otherwise: self.tree(Label::Otherwise),
        })))
    }

    fn finish_logic(self, forest: &mut Forest) -> RuleResult {
        let first = self.tree(Label::First);
        let operators = self.tokens(Label::Operator);
        if operators.is_empty() {
            return RuleResult::Tree(first);
        }
        RuleResult::Tree(Some(forest.add(Tree::Logic {
            first,
            operators,
            rest: self.trees(Label::Rest),
        })))
    }

    fn finish_binary(self, forest: &mut Forest) -> RuleResult {
        let left = self.tree(Label::First);
        let Some(operator) = self.token(Label::Operator) else {
            return RuleResult::Tree(left);
        };
        RuleResult::Tree(Some(forest.add(Tree::Binary {
            left,
            operator,
            right: self.tree(Label::Rest),
        })))
    }

    fn finish_unary(self, forest: &mut Forest) -> RuleResult {
        let operand = self.tree(Label::First);
        match self.alternative {
            None => RuleResult::Tree(Some(forest.add(Tree::BadOperand { start: self.start }))),
            Some(0) => RuleResult::Tree(operand),
            Some(_) => RuleResult::Tree(Some(forest.add(Tree::Prefix {
                operators: self.tokens(Label::Operator),
                operand,
            }))),
        }
    }

    fn finish_member(self, forest: &mut Forest) -> RuleResult {
        let operand = self.tree(Label::First);
        let start = self.start;
        let optional = self.token(Label::Optional).is_some();

        let tree = match self.alternative {
            None => return RuleResult::Tree(operand),
            Some(0) => Tree::Select {
                start,
                operand,
                dot: self.token(Label::Dot),
                optional,
                field: self.name(),
            },
            Some(1) => Tree::MemberCall {
                start,
                operand,
                name: self.token(Label::Name),
                open: self.token(Label::Open),
                args: self.args(),
            },
            Some(_) => Tree::Index {
                start,
                operand,
                open: self.token(Label::Open),
                optional,
                index: self.tree(Label::Inner),
            },
        };

        RuleResult::Tree(Some(forest.add(tree)))
    }

    fn finish_primary(self, forest: &mut Forest) -> RuleResult {
        let start = self.start;
        let leading_dot = self.token(Label::Dot).is_some();
        let name = self.token(Label::Name);
        let open = self.token(Label::Open);
        let inner = self.all(Label::Inner).next().cloned();

        let tree = match (self.alternative, inner) {
            (Some(0), _) => Tree::Ident {
                start,
                leading_dot,
                name,
            },
            (Some(1), _) => Tree::GlobalCall {
                start,
                leading_dot,
                name,
                open,
                args: self.args(),
            },
            (Some(3), inner) => Tree::List {
                open,
                elements: match inner {
                    Some(RuleResult::Elements(elements)) => elements,
                    _ => Vec::new(),
                },
            },
            (Some(4), inner) => Tree::Map {
                open,
                entries: match inner {
                    Some(RuleResult::Map(entries)) => Some(entries),
                    _ => None,
                },
            },
            (Some(5), inner) => Tree::Struct {
                leading_dot,
                names: self.tokens(Label::Name),
                open,
                fields: match inner {
                    Some(RuleResult::Fields(fields)) => Some(fields),
                    _ => None,
                },
            },
            _ => return RuleResult::Tree(self.tree(Label::Inner)),
        };

        RuleResult::Tree(Some(forest.add(tree)))
    }
}

fn elements<'a>(made: impl Iterator<Item = &'a RuleResult>) -> Vec<Element> {
    let element = |made: &RuleResult| match made {
        RuleResult::Element(element) => Some(*element),
        _ => None,
    };
    made.filter_map(element).collect()
}

fn fields<'a>(made: impl Iterator<Item = &'a RuleResult>) -> Vec<StructField> {
    let field = |made: &RuleResult| match made {
        RuleResult::Field(field) => Some(*field),
        _ => None,
    };
    made.filter_map(field).collect()
}
