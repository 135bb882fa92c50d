//! The order of names in printed YAML: letters last, numbers by value.

use crate::value::{Map, Value};

/// The members of a map in print order.
pub(super) fn sorted(map: &Map) -> Vec<(&str, &Value)> {
    let members: Vec<_> = map.iter().collect();
    if members.is_sorted_by(|a, b| less(a.0, b.0)) {
        members
    } else {
        merge_sort(members)
    }
}

/// Upstream's order is not transitive: `10` < `1a` < `2a` < `10`. The standard library's sort may
/// panic at that.
fn merge_sort<'v>(mut members: Vec<(&'v str, &'v Value)>) -> Vec<(&'v str, &'v Value)> {
    let mut width = 1;
    while width < members.len() {
        let mut merged = Vec::with_capacity(members.len());
        for pair in members.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let (Some(a), Some(b)) = (left.first(), right.first()) {
                let from = if less(b.0, a.0) {
                    &mut right
                } else {
                    &mut left
                };
                merged.push(from[0]);
                *from = &from[1..];
            }

            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }

        members = merged;
        width *= 2;
    }

    members
}

fn less(a: &str, b: &str) -> bool {
    let differs = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
    let Some(((offset, first_a), first_b)) = differs else {
        return a.len() < b.len();
    };
    match (first_a.is_alphabetic(), first_b.is_alphabetic()) {
        (true, true) => return first_a < first_b,
        (false, false) => {}
        (_, b_is_letter) => return b_is_letter,
    }

    // A differing zero may be inside a number: then the digits before it count.
    let inside_number = (first_a == '0' || first_b == '0')
        && a[..offset]
            .bytes()
            .rev()
            .take_while(u8::is_ascii_digit)
            .any(|digit| digit != b'0');
    let (number_a, digits_a) = number(&a[offset..], inside_number);

    let (number_b, digits_b) = number(&b[offset..], inside_number);
    (number_a, digits_a, first_a) < (number_b, digits_b, first_b)
}

/// The value and length of the digits at the beginning of a text.
fn number(text: &str, inside_number: bool) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((i64::from(inside_number), 0), |(number, count), digit| {
        (
            number
                .wrapping_mul(10)
                .wrapping_add(i64::from(digit - b'0')),
            count + 1,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Text;

    #[test]
    fn numbers_in_names_sort_by_value_and_letters_come_last() {
        let names = [
            "a10", "a2", "a1b", "a1", "a", "A", "_", "-", "1", "10", "9", "a01", "a.b", "ab",
            "a-b", "é",
        ];

        let map: Map = names
            .iter()
            .map(|name| (Text::new(name), Value::Null))
            .collect();
        let sorted: Vec<_> = sorted(&map).into_iter().map(|(name, _)| name).collect();

        let expected = [
            "-", "_", "1", "9", "10", "A", "a", "a-b", "a.b", "a1", "a1b", "a01", "a2", "a10",
            "ab", "é",
        ];
        assert_eq!(sorted, expected);
    }

    #[test]
    fn a_cyclic_order_does_not_panic() {
        let map: Map = (0..200u8)
            .map(|n| (Text::from(format!("{n:x}{n:o}a")), Value::Null))
            .collect();
        assert_eq!(sorted(&map).len(), map.len());
    }
}
