//! A constant list of scalars as a set.

use std::collections::HashSet;

use crate::eval::EvalError;
use crate::value::{List, Text, Value, go_type};

/// The elements by type. Integers are in it as every number type that has their value.
#[derive(Debug, Default)]
pub(crate) struct Set {
    bools: [bool; 2],
    ints: HashSet<i64>,
    uints: HashSet<u64>,
    /// By bits.
    doubles: HashSet<u64>,
    strings: HashSet<Box<str>>,
}

impl Set {
    /// A set of these elements; `None`: some are no scalars.
    pub(crate) fn of(list: &List<'_>) -> Option<Set> {
        let mut set = Set::default();
        for item in list.iter() {
            set.add(&item.ok()?)?;
        }
        Some(set)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion that does not fit is tested by converting back"
    )]
    fn add(&mut self, value: &Value<'_>) -> Option<()> {
        match value {
            Value::Bool(flag) => self.bools[usize::from(*flag)] = true,
            Value::String(text) => {
                self.strings.insert((**text).into());
            }
            Value::Int(number) => {
                self.ints.insert(*number);
                self.add_double(*number as f64);
                self.uints.extend(u64::try_from(*number));
            }
            Value::Uint(number) => {
                self.uints.insert(*number);
                self.add_double(*number as f64);
                self.ints.extend(i64::try_from(*number));
            }
            Value::Double(number) => {
                self.add_double(*number);
                let int = *number as i64;
                if int as f64 == *number && int != i64::MAX {
                    self.ints.insert(int);
                }
                let uint = *number as u64;
                if uint as f64 == *number && uint != u64::MAX {
                    self.uints.insert(uint);
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn add_double(&mut self, number: f64) {
        // NaN is not equal to itself, so nothing finds it; the two zeros are equal.
        if !number.is_nan() {
            self.doubles.insert((number + 0.0).to_bits());
        }
    }

    pub(crate) fn contains(&self, value: &Value<'_>) -> Result<bool, EvalError> {
        Ok(match value {
            Value::Bool(flag) => self.bools[usize::from(*flag)],
            Value::Int(number) => self.ints.contains(number),
            Value::Uint(number) => self.uints.contains(number),
            Value::Double(number) => self.doubles.contains(&(number + 0.0).to_bits()),
            Value::String(Text::Borrowed(text)) => self.strings.contains(*text),
            Value::String(Text::Shared(text)) => self.strings.contains(&**text),
            value if !super::is_hashable(value) => {
                return Err(EvalError::Internal(
                    format!("runtime error: hash of unhashable type {}", go_type(value)).into(),
                ));
            }
            _ => false,
        })
    }
}
