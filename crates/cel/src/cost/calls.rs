//! What a call costs, rule by rule.

use super::range::Range;
use super::walk::{CallCost, Operand, Walk};
use crate::ast::{Expr, Literal, NodeId};
use crate::declare::CostClass;
use crate::types::Type;

/// Of going once through a text, per character.
const TRAVERSAL: f64 = 0.1;
/// Of a regular expression, per character.
const PATTERN: f64 = 0.25;
const ONE: Range = Range::exactly(1);
/// A call that makes a list.
const NEW_LIST: Range = Range::exactly(11);
/// The bytes of an address, of either family.
const ADDRESS: Range = Range { min: 4, max: 16 };
/// What formats' names can be long.
const FORMAT_NAME: Range = Range { min: 1, max: 64 };
/// How long the pattern of a format can be.
const FORMAT_PATTERN: f64 = 128.0;

/// The cost of calling an overload of the rule `class`, arguments included.
pub(super) fn cost(
    walk: &mut Walk<'_>,
    node: NodeId,
    class: CostClass,
    target: Option<&Operand>,
    args: &[Operand],
    costs: &[Range],
) -> CallCost {
    let arguments = costs.iter().fold(Range::ZERO, |sum, cost| sum.plus(*cost));
    let special = match class {
        CostClass::Logical => logical(costs),
        CostClass::Conditional => conditional(walk, node, args, costs),
        _ => None,
    };
    if let Some(call) = special {
        return call;
    }

    let call = library(walk, class, target, args)
        .or_else(|| language(walk, node, class, target, args))
        .unwrap_or(CallCost {
            cost: ONE,
            result: None,
        });
    CallCost {
        cost: call.cost.plus(arguments),
        result: call.result,
    }
}

/// The second operand may not be evaluated.
fn logical(costs: &[Range]) -> Option<CallCost> {
    let [left, right] = costs else { return None };
    Some(CallCost {
        cost: Range {
            min: left.min,
            max: left.plus(*right).max,
        },
        result: None,
    })
}

fn conditional(
    walk: &mut Walk<'_>,
    node: NodeId,
    args: &[Operand],
    costs: &[Range],
) -> Option<CallCost> {
    let ([_, yes, no], [condition, yes_cost, no_cost]) = (args, costs) else {
        return None;
    };
    walk.join_entries(node, yes.node, no.node);
    Some(CallCost {
        cost: condition.plus(yes_cost.union(*no_cost)),
        result: Some(yes.size().union(no.size())),
    })
}

/// The rules of the language itself, which know only computed sizes.
fn language(
    walk: &mut Walk<'_>,
    node: NodeId,
    class: CostClass,
    target: Option<&Operand>,
    args: &[Operand],
) -> Option<CallCost> {
    let call = match (class, target, args) {
        (CostClass::Format, Some(target), _) => costs(target.size().scaled(TRAVERSAL)),
        (CostClass::StringToBytes, _, [text]) => sized(
            text.size().scaled(TRAVERSAL),
            Range {
                min: text.size().min,
                // A character is at most four bytes. Wraps, as upstream's does.
                max: text.size().max.wrapping_mul(4),
            },
        ),
        (CostClass::BytesToString, _, [bytes]) => sized(
            bytes.size().scaled(TRAVERSAL),
            Range {
                min: bytes.size().min / 4,
                max: bytes.size().max,
            },
        ),
        (CostClass::Quote, _, [text]) => sized(
            text.size().scaled(TRAVERSAL),
            Range {
                min: text.size().min.wrapping_add(2),
                max: text.size().max.wrapping_mul(2).wrapping_add(2),
            },
        ),
        (CostClass::Affix, _, [affix]) => costs(affix.size().scaled(TRAVERSAL)),
        (CostClass::InList, _, [_, list]) => costs(list.size().scaled(1.0)),
        (CostClass::Matches, Some(target), [pattern]) => {
            costs(pattern_cost(target.size(), pattern.size()))
        }
        (CostClass::Contains, Some(target), [part]) => costs(
            target
                .size()
                .scaled(TRAVERSAL)
                .times(part.size().scaled(TRAVERSAL)),
        ),
        (CostClass::AddText, _, [left, right]) => {
            let size = left.size().plus(right.size());
            walk.join_entries(node, left.node, right.node);
            sized(size.scaled(TRAVERSAL), size)
        }
        (CostClass::AddList, _, [left, right]) => {
            walk.join_entries(node, left.node, right.node);
            sized(ONE, left.size().plus(right.size()))
        }
        (CostClass::Compare | CostClass::Equal, _, [left, right]) => {
            let most = left.size().max.min(right.size().max);
            costs(
                Range {
                    min: u64::from(most > 0),
                    max: most,
                }
                .scaled(TRAVERSAL),
            )
        }
        _ => return None,
    };
    Some(call)
}

/// The rules of libraries, for which hints of sizes are asked again.
fn library(
    walk: &Walk<'_>,
    class: CostClass,
    target: Option<&Operand>,
    args: &[Operand],
) -> Option<CallCost> {
    let size = |operand: &Operand| walk.hinted_size(operand);
    let call = match (class, target, args) {
        (CostClass::AuthorizerCheck, ..) => costs(Range::exactly(350_000)),
        (CostClass::Selector, _, [selector]) => costs(selector_cost(size(selector))),
        (CostClass::ParseSized, _, [text]) => sized(size(text).scaled(TRAVERSAL), size(text)),
        (CostClass::Parse, _, [text, ..]) => costs(size(text).scaled(TRAVERSAL)),
        (CostClass::Canonical, _, [text, ..]) => costs(size(text).scaled(2.0 * TRAVERSAL)),
        (CostClass::Find, Some(target), [pattern, ..]) => sized(
            pattern_cost(size(target), size(pattern)),
            Range {
                min: 0,
                max: size(target).max,
            },
        ),
        (CostClass::ContainsIp, _, [_, ..]) => costs(comparing_addresses()),
        (CostClass::ContainsIpText, _, [text, ..]) => {
            costs(comparing_addresses().plus(size(text).scaled(TRAVERSAL)))
        }
        (CostClass::ContainsCidr, _, [_, ..]) => costs(comparing_networks()),
        (CostClass::ContainsCidrText, _, [text, ..]) => {
            costs(comparing_networks().plus(size(text).scaled(TRAVERSAL)))
        }
        (CostClass::Validate, _, [text, ..]) => costs(
            size(text)
                .scaled(TRAVERSAL)
                .scaled(FORMAT_PATTERN * PATTERN),
        ),
        (CostClass::Equal, _, [left, right]) => costs(equality(walk, left, right)?),
        _ => {
            return strings(walk, class, target, args).or_else(|| lists(walk, class, target, args));
        }
    };
    Some(call)
}

fn strings(
    walk: &Walk<'_>,
    class: CostClass,
    target: Option<&Operand>,
    args: &[Operand],
) -> Option<CallCost> {
    let target = target?;
    let size = walk.hinted_size(target);
    let call = match (class, args) {
        (CostClass::TransformText, _) => sized(size.scaled(TRAVERSAL), size),
        (CostClass::Replace, [old, new, ..]) => sized(
            size.scaled(2.0 * TRAVERSAL),
            replaced(size, walk.hinted_size(old), walk.hinted_size(new)),
        ),
        (CostClass::Split, _) => {
            let limit = args.get(1).and_then(|limit| integer(walk, limit));
            let max = limit.map_or(size.max, i64::cast_unsigned);
            sized(size.scaled(2.0 * TRAVERSAL), Range { min: 0, max })
        }
        (CostClass::Join, _) => {
            let mut joined = walk
                .element(target)
                .map_or(Range::ZERO, |(_, element)| size.times(element));
            if let Some(separator) = args.first() {
                let separators = Range {
                    min: size.min.saturating_sub(1),
                    max: size.max.saturating_sub(1),
                };
                joined = joined.plus(walk.hinted_size(separator).times(separators));
            }
            sized(joined.scaled(TRAVERSAL), joined)
        }
        (CostClass::Traverse, _) => costs(match walk.element(target) {
            Some((Type::String | Type::Bytes, element)) => {
                size.times(ONE.plus(element.scaled(TRAVERSAL)))
            }
            Some(_) => size,
            None => size.scaled(TRAVERSAL),
        }),
        _ => return None,
    };
    Some(call)
}

fn lists(
    walk: &Walk<'_>,
    class: CostClass,
    target: Option<&Operand>,
    args: &[Operand],
) -> Option<CallCost> {
    let size = |operand: &Operand| walk.hinted_size(operand);
    let compared = |operand: &Operand, factor: f64| {
        let size = size(operand);
        new_list(factor, size.times(size))
    };
    let call = match (class, target, args) {
        (CostClass::Slice, Some(target), [start, end]) => {
            let start = index(walk, start).unwrap_or(0);
            let end = index(walk, end).unwrap_or_else(|| size(target).max);
            // Wraps, as upstream's does.
            new_list(1.0, Range::exactly(end.wrapping_sub(start)))
        }
        (CostClass::Range, None, [end]) => {
            new_list(1.0, Range::exactly(index(walk, end).unwrap_or(u64::MAX)))
        }
        (CostClass::Reverse, Some(target), []) => new_list(1.0, size(target)),
        (CostClass::Flatten, Some(target), [] | [_]) => {
            let depth = args
                .first()
                .map_or(1, |depth| index(walk, depth).unwrap_or(u64::MAX));
            new_list(float(depth), size(target))
        }
        (CostClass::Distinct | CostClass::Sort, Some(target), []) => compared(target, 2.0),
        (CostClass::SortText, Some(target), []) => compared(target, 2.0 + TRAVERSAL),
        (CostClass::SortBy, Some(_), [keys]) => compared(keys, 2.0),
        (CostClass::SortByText, Some(_), [keys]) => compared(keys, 2.0 + TRAVERSAL),
        (CostClass::Sets, _, [left, right]) => {
            costs(size(left).times(size(right)).scaled(1.0).plus(ONE))
        }
        (CostClass::SetsEquivalent, _, [left, right]) => {
            costs(size(left).times(size(right)).scaled(2.0).plus(ONE))
        }
        _ => return None,
    };
    Some(call)
}

fn costs(cost: Range) -> CallCost {
    CallCost { cost, result: None }
}

fn sized(cost: Range, size: Range) -> CallCost {
    CallCost {
        cost,
        result: Some(size),
    }
}

fn new_list(factor: f64, size: Range) -> CallCost {
    sized(size.scaled(factor).plus(NEW_LIST), size)
}

/// An empty text still costs what its pattern is long.
fn pattern_cost(text: Range, pattern: Range) -> Range {
    text.plus(ONE)
        .scaled(TRAVERSAL)
        .times(pattern.scaled(PATTERN))
}

/// A selector is a list of requirements, each a struct and a list, and at least two characters.
fn selector_cost(size: Range) -> Range {
    let requirements = size.scaled(0.5).scaled(50.0);
    Range::exactly(10)
        .plus(size.scaled(TRAVERSAL))
        .plus(requirements)
}

fn comparing_addresses() -> Range {
    ADDRESS.plus(ADDRESS).scaled(TRAVERSAL)
}

/// The network is masked first.
fn comparing_networks() -> Range {
    comparing_addresses()
        .plus(ADDRESS.scaled(TRAVERSAL))
        .plus(ONE)
}

/// What `==` costs for Kubernetes' own types.
fn equality(walk: &Walk<'_>, left: &Operand, right: &Operand) -> Option<Range> {
    let of = walk.checked.type_of(left.node);
    if of.name() != walk.checked.type_of(right.node).name() {
        return None;
    }

    match of {
        Type::Opaque(name) if matches!(&**name, "net.IP" | "net.CIDR") => Some(ONE),
        Type::Object(name) => match &**name {
            "kubernetes.Quantity"
            | "kubernetes.Semver"
            | "kubernetes.authorization.Authorizer"
            | "kubernetes.authorization.PathCheck"
            | "kubernetes.authorization.GroupCheck"
            | "kubernetes.authorization.ResourceCheck"
            | "kubernetes.authorization.Decision" => Some(ONE),
            "kubernetes.NamedFormat" => Some(FORMAT_NAME.scaled(TRAVERSAL)),
            "kubernetes.URL" => {
                let max = right.computed.map_or(1, |size| size.max);
                Some(Range { min: 1, max }.scaled(TRAVERSAL))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The size of a text in which `old` was replaced by `new`, as upstream bounds it.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let (most, kept_most) = if old.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if new.max <= old.min {
        (0, text.max)
    } else {
        (quotient(text.max, old.min), 0)
    };
    let (least, kept_least) = if old.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if old.max <= new.min {
        (0, text.min)
    } else {
        (quotient(text.min, old.max), 0)
    };

    let count = Range {
        min: least,
        max: most,
    };
    let kept = Range {
        min: kept_least,
        max: kept_most,
    };
    count.times(new).plus(kept)
}

/// A quotient of floats, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "neither is negative; the cast saturates"
)]
fn quotient(dividend: u64, divisor: u64) -> u64 {
    (float(dividend) / float(divisor)).ceil() as u64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "upstream computes costs with 64-bit floats"
)]
fn float(n: u64) -> f64 {
    n as f64
}

/// The value of a literal integer.
fn integer(walk: &Walk<'_>, operand: &Operand) -> Option<i64> {
    match walk.checked.ast.expr(operand.node) {
        Expr::Literal(Literal::Int(value)) => Some(*value),
        _ => None,
    }
}

/// The same where a negative one counts as 0.
fn index(walk: &Walk<'_>, operand: &Operand) -> Option<u64> {
    integer(walk, operand).map(|value| u64::try_from(value).unwrap_or(0))
}
