//! Properties of quantities and selectors for any input.

use std::cmp::Ordering;

use crate::quantity::Quantity;
use crate::selector::{FieldSelector, LabelSelector};

/// A text is no quantity, or its printed form is the same quantity and stable.
pub fn quantities(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(quantity) = text.parse::<Quantity>() else {
        return;
    };
    let printed = quantity.to_string();
    let again: Quantity = printed.parse().expect("what is printed can be read");
    assert_eq!(again, quantity, "{printed:?} is another quantity");

    // A binary amount that no binary suffix fits is printed bare, and parsed as a decimal one; then
    // it is stable.
    let settled = again.to_string();
    let once_more: Quantity = settled.parse().expect("what is printed can be read");
    assert_eq!(
        (&once_more, once_more.to_string()),
        (&quantity, settled),
        "the printed form settles"
    );

    let mut sum = quantity.clone();
    sum.add(&again);
    let mut double = quantity.clone();
    double.mul(2);
    assert_eq!(sum, double, "twice and plus itself are the same");

    let mut nothing = quantity.clone();
    nothing.sub(&again);
    assert!(
        nothing.is_zero(),
        "what is taken from itself leaves nothing"
    );

    let mut rounded = quantity.clone();
    rounded.round_up(0);

    let magnitudes = if quantity.signum() < 0 {
        quantity.cmp(&rounded)
    } else {
        rounded.cmp(&quantity)
    };
    assert_ne!(magnitudes, Ordering::Less, "rounding goes away from zero");

    assert_eq!(
        rounded.value(),
        quantity.value(),
        "the value is the rounded amount"
    );
}

/// A text is no selector, or its printed form selects the same and is stable.
pub fn selectors(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(selector) = text.parse::<LabelSelector>() {
        let printed = selector.to_string();
        let again: LabelSelector = printed.parse().expect("what is printed can be read");
        assert_eq!(again, selector, "{printed:?} is another selector");

        let labels = labels_for(&selector);
        let labels = labels.as_slice();
        let all = selector
            .requirements()
            .iter()
            .all(|requirement| requirement.matches(labels));

        assert_eq!(
            selector.matches(labels),
            all,
            "a selector is the sum of its requirements"
        );
    }

    if let Ok(selector) = text.parse::<FieldSelector>() {
        let printed = selector.to_string();
        let again: FieldSelector = printed.parse().expect("what is printed can be read");
        assert_eq!(
            again.to_string().len(),
            printed.len(),
            "the printed form is as long again"
        );

        let same = selector.transform(|field, value| Ok::<_, ()>((field.into(), value.into())));
        assert!(same.is_ok_and(|same| same.terms().len() <= selector.terms().len()));
    }
}

/// A few labels that the selector requires, so that matching is exercised on both sides.
fn labels_for(selector: &LabelSelector) -> Vec<(&str, &str)> {
    let few = selector.requirements().iter().take(8);
    few.map(|requirement| {
        (
            requirement.key(),
            requirement.values().last().map_or("1", |value| value),
        )
    })
    .collect()
}
