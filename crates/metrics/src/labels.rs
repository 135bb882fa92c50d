//! The values of labels: the keys of a family.

use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;

/// Values of the labels of a family, in the order in which its names are declared.
pub trait Labels: Clone + Eq + Hash + Send + Sync + 'static {
    fn values(&self) -> Vec<Cow<'_, str>>;
}

/// The value of one label.
pub trait LabelValue: Clone + Eq + Hash + Send + Sync + 'static {
    fn text(&self) -> Cow<'_, str>;
}

macro_rules! values {
    ($($kind:ty: $value:ident => $text:expr;)*) => {
        $(
            impl LabelValue for $kind {
                fn text(&self) -> Cow<'_, str> {
                    let $value = self;
                    $text.into()
                }
            }

            impl Labels for $kind {
                fn values(&self) -> Vec<Cow<'_, str>> {
                    vec![self.text()]
                }
            }
        )*
    };
}

values! {
    &'static str: text => *text;
    String: text => text.as_str();
    Arc<str>: text => &**text;
    bool: value => if *value { "true" } else { "false" };
    u16: number => number.to_string();
    i32: number => number.to_string();
}

macro_rules! tuples {
    ($(($($kind:ident $place:tt),*))*) => {
        $(
            impl<$($kind: LabelValue),*> Labels for ($($kind,)*) {
                fn values(&self) -> Vec<Cow<'_, str>> {
                    vec![$(self.$place.text()),*]
                }
            }
        )*
    };
}

tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
