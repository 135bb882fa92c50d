//! All functions by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{BINDINGS, JSON_PATCH, LIBRARIES};
use crate::declare::Overload;

/// The overloads of every function, those of several libraries together, in the order of their
/// declaration.
pub(crate) struct Functions(HashMap<&'static str, Vec<&'static Overload>>);

impl Functions {
    pub(crate) fn overloads(&self, function: &str) -> &[&'static Overload] {
        self.0.get(function).map_or(&[], Vec::as_slice)
    }
}

/// The functions of all libraries: what an expression may use was decided when it was checked.
pub(crate) fn functions() -> &'static Functions {
    static ALL: LazyLock<Functions> = LazyLock::new(|| {
        let mut all: HashMap<&'static str, Vec<&'static Overload>> = HashMap::new();
        for library in LIBRARIES.iter().chain([&JSON_PATCH, &BINDINGS]) {
            for function in library.functions {
                let overloads = all.entry(function.name).or_default();
                overloads.extend(function.overloads);
            }
        }
        Functions(all)
    });
    &ALL
}
