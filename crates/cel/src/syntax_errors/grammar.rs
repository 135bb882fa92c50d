//! cel-go's grammar, as data.
//!
//! Alternatives and repetitions are marked where the next token does not decide: there cel-go's
//! parser looks ahead as far as it must, and says so when it finds nothing ("no viable
//! alternative").

use super::set::Set;
use crate::lex::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    Args,
    ListInit,
    FieldInit,
    OptField,
    MapInit,
    FieldName,
    Element,
    Literal,
}

pub(super) const RULES: [Rule; 17] = [
    Rule::Start,
    Rule::Expr,
    Rule::Or,
    Rule::And,
    Rule::Relation,
    Rule::Calc,
    Rule::Unary,
    Rule::Member,
    Rule::Primary,
    Rule::Args,
    Rule::ListInit,
    Rule::FieldInit,
    Rule::OptField,
    Rule::MapInit,
    Rule::FieldName,
    Rule::Element,
    Rule::Literal,
];

/// What a part of a rule is to the node that the rule makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Nothing,
    First,
    Operator,
    Then,
    Otherwise,
    Rest,
    Dot,
    Optional,
    Name,
    Open,
    Inner,
    Key,
    Colon,
    Value,
    Sign,
}

pub(super) enum Item {
    Token(Kind, Label),
    Tokens(Set, Label),
    /// A rule, and how strongly its operators must bind at least.
    Rule(Rule, u8, Label),
    /// `( … )?`
    Optional(Vec<Item>),
    /// `( … )*`; whether it needs more than the next token to decide.
    Star(Vec<Item>, bool),
    /// `( … )+`, with the same mark.
    Plus(Vec<Item>, bool),
}

pub(super) enum Body {
    Plain(Vec<Item>),
    /// Alternatives, and whether they need more than the next token to decide.
    Choice(Vec<Vec<Item>>, bool),
    /// What begins a rule that recurses to the left, and what goes on: with how strongly it binds.
    Recursive(Vec<Item>, Vec<(u8, Vec<Item>)>),
}

pub(super) fn body(rule: Rule) -> Body {
    use Item::{Optional, Plus, Star};
    use Label as L;

    match rule {
        Rule::Start => Body::Plain(vec![call(Rule::Expr, L::First), token(Kind::Eof)]),
        Rule::Expr => Body::Plain(vec![
            call(Rule::Or, L::First),
            Optional(vec![
                Item::Token(Kind::Question, L::Operator),
                call(Rule::Or, L::Then),
                token(Kind::Colon),
                call(Rule::Expr, L::Otherwise),
            ]),
        ]),
        Rule::Or => logic(Rule::And, Kind::Or),
        Rule::And => logic(Rule::Relation, Kind::And),
        Rule::Relation => Body::Recursive(
            vec![call(Rule::Calc, L::First)],
            vec![(1, operation(RELATIONS, Rule::Relation, 2))],
        ),
        Rule::Calc => Body::Recursive(
            vec![call(Rule::Unary, L::First)],
            vec![
                (2, operation(FACTORS, Rule::Calc, 3)),
                (1, operation(TERMS, Rule::Calc, 2)),
            ],
        ),
        Rule::Unary => Body::Choice(
            vec![
                vec![call(Rule::Member, L::First)],
                vec![
                    Plus(vec![Item::Token(Kind::Exclam, L::Operator)], false),
                    call(Rule::Member, L::First),
                ],
                vec![
                    Plus(vec![Item::Token(Kind::Minus, L::Operator)], true),
                    call(Rule::Member, L::First),
                ],
            ],
            true,
        ),
        Rule::Member => member(),
        Rule::Primary => primary(),
        Rule::Args => Body::Plain(vec![
            call(Rule::Expr, L::Inner),
            Star(vec![token(Kind::Comma), call(Rule::Expr, L::Inner)], false),
        ]),
        Rule::ListInit => Body::Plain(vec![
            call(Rule::Element, L::Inner),
            Star(
                vec![token(Kind::Comma), call(Rule::Element, L::Inner)],
                true,
            ),
        ]),
        Rule::FieldInit => pairs(Rule::OptField),
        Rule::MapInit => pairs(Rule::Element),
        Rule::OptField => Body::Plain(vec![question(), call(Rule::FieldName, L::Name)]),
        Rule::Element => Body::Plain(vec![question(), call(Rule::Expr, L::Value)]),
        Rule::FieldName => Body::Choice(
            vec![
                vec![Item::Token(Kind::Identifier, L::Name)],
                vec![Item::Token(Kind::EscapedIdentifier, L::Name)],
            ],
            false,
        ),
        Rule::Literal => literal(),
    }
}

const RELATIONS: Set = Set::of(&[
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
]);
const FACTORS: Set = Set::of(&[Kind::Star, Kind::Slash, Kind::Percent]);
const TERMS: Set = Set::of(&[Kind::Plus, Kind::Minus]);

fn token(kind: Kind) -> Item {
    Item::Token(kind, Label::Nothing)
}

fn call(rule: Rule, label: Label) -> Item {
    Item::Rule(rule, 0, label)
}

fn question() -> Item {
    Item::Optional(vec![Item::Token(Kind::Question, Label::Optional)])
}

fn logic(operand: Rule, operator: Kind) -> Body {
    Body::Plain(vec![
        call(operand, Label::First),
        Item::Star(
            vec![
                Item::Token(operator, Label::Operator),
                call(operand, Label::Rest),
            ],
            false,
        ),
    ])
}

fn operation(operators: Set, operand: Rule, least: u8) -> Vec<Item> {
    vec![
        Item::Tokens(operators, Label::Operator),
        Item::Rule(operand, least, Label::Rest),
    ]
}

fn pairs(key: Rule) -> Body {
    let pair = || {
        vec![
            call(key, Label::Key),
            Item::Token(Kind::Colon, Label::Colon),
            call(Rule::Expr, Label::Value),
        ]
    };
    let mut items = pair();
    let mut more = pair();
    more.insert(0, token(Kind::Comma));
    items.push(Item::Star(more, true));
    Body::Plain(items)
}

fn arguments() -> [Item; 2] {
    [
        Item::Optional(vec![call(Rule::Args, Label::Inner)]),
        token(Kind::RightParen),
    ]
}

fn member() -> Body {
    let mut method = vec![
        Item::Token(Kind::Dot, Label::Dot),
        Item::Token(Kind::Identifier, Label::Name),
        Item::Token(Kind::LeftParen, Label::Open),
    ];
    method.extend(arguments());

    Body::Recursive(
        vec![call(Rule::Primary, Label::First)],
        vec![
            (
                3,
                vec![
                    Item::Token(Kind::Dot, Label::Dot),
                    question(),
                    call(Rule::FieldName, Label::Name),
                ],
            ),
            (2, method),
            (
                1,
                vec![
                    Item::Token(Kind::LeftBracket, Label::Open),
                    question(),
                    call(Rule::Expr, Label::Inner),
                    token(Kind::RightBracket),
                ],
            ),
        ],
    )
}

fn primary() -> Body {
    let dot = || Item::Optional(vec![Item::Token(Kind::Dot, Label::Dot)]);
    let name = || Item::Token(Kind::Identifier, Label::Name);
    let open = |kind| Item::Token(kind, Label::Open);
    let inner = |rule| Item::Optional(vec![call(rule, Label::Inner)]);
    let comma = || Item::Optional(vec![token(Kind::Comma)]);

    let mut function = vec![dot(), name(), open(Kind::LeftParen)];
    function.extend(arguments());
    let nested = vec![
        token(Kind::LeftParen),
        call(Rule::Expr, Label::Inner),
        token(Kind::RightParen),
    ];
    let list = vec![
        open(Kind::LeftBracket),
        inner(Rule::ListInit),
        comma(),
        token(Kind::RightBracket),
    ];
    let map = vec![
        open(Kind::LeftBrace),
        inner(Rule::MapInit),
        comma(),
        token(Kind::RightBrace),
    ];
    let message = vec![
        dot(),
        name(),
        Item::Star(vec![token(Kind::Dot), name()], false),
        open(Kind::LeftBrace),
        inner(Rule::FieldInit),
        comma(),
        token(Kind::RightBrace),
    ];

    let literal = vec![call(Rule::Literal, Label::Inner)];
    Body::Choice(
        vec![
            vec![dot(), name()],
            function,
            nested,
            list,
            map,
            message,
            literal,
        ],
        true,
    )
}

fn literal() -> Body {
    let sign = || Item::Optional(vec![Item::Token(Kind::Minus, Label::Sign)]);
    let value = |kind| Item::Token(kind, Label::Value);
    Body::Choice(
        vec![
            vec![sign(), value(Kind::Int)],
            vec![value(Kind::Uint)],
            vec![sign(), value(Kind::Float)],
            vec![value(Kind::String)],
            vec![value(Kind::Bytes)],
            vec![value(Kind::True)],
            vec![value(Kind::False)],
            vec![value(Kind::Null)],
        ],
        true,
    )
}
