//! The libraries of v1.36, one folder each. A library is data: what it declares, in the order in
//! which upstream does. That order decides which overload evaluates `dyn` arguments, and the
//! types that messages name.

mod args;
pub(crate) mod authz;
mod authz_selectors;
mod cidr;
pub(crate) mod format;
mod index;
mod insert;
mod ip;
mod jsonpatch;
mod list_ext;
mod lists;
mod names;
mod optional;
mod quantity;
mod regex;
pub(crate) mod searches;
pub(crate) mod semver;
mod sets;
mod standard;
mod strings;
mod two_var;
pub(crate) mod urls;

pub(crate) use index::{Functions, functions};
pub(crate) use insert::insert;
pub(crate) use jsonpatch::{is_made, is_text_of_patch, unset};
pub(crate) use standard::{add, text_of};

use crate::declare::{Expansion, Library, Macro};

/// All libraries of the base environment, in the order in which upstream adds them.
pub static LIBRARIES: &[Library] = &[
    library("cel.lib.std", 0, standard::OPERATORS, STANDARD_MACROS),
    library("cel.lib.std.conversions", 0, standard::CONVERSIONS, &[]),
    library("cel.lib.std.text", 0, standard::TEXT, &[]),
    library("cel.lib.std.time", 0, standard::TIME, &[]),
    library("kubernetes.urls", 0, urls::FUNCTIONS, &[]),
    library("kubernetes.regex", 0, regex::FUNCTIONS, &[]),
    library("kubernetes.lists", 0, lists::FUNCTIONS, &[]),
    library("kubernetes.authz", 27, authz::FUNCTIONS, &[]),
    library("cel.lib.optional", 28, optional::FUNCTIONS, OPTIONAL_MACROS),
    library("kubernetes.quantity", 28, quantity::FUNCTIONS, &[]),
    library("cel.lib.ext.strings", 29, strings::FUNCTIONS, &[]),
    library("cel.lib.ext.sets", 29, sets::FUNCTIONS, &[]),
    library("kubernetes.net.ip", 30, ip::FUNCTIONS, &[]),
    library("kubernetes.net.cidr", 30, cidr::FUNCTIONS, &[]),
    library("kubernetes.format", 31, format::FUNCTIONS, &[]),
    library(
        "kubernetes.authzSelectors",
        31,
        authz_selectors::FUNCTIONS,
        &[],
    ),
    library(
        "cel.lib.ext.comprev2",
        32,
        two_var::FUNCTIONS,
        TWO_VARIABLE_MACROS,
    ),
    library("kubernetes.Semver", 33, semver::FUNCTIONS, &[]),
    library("cel.lib.ext.lists", 34, list_ext::FUNCTIONS, LIST_MACROS),
];

/// `jsonpatch.escapeKey`, which only expressions of mutating policies have.
pub static JSON_PATCH: Library = library("kubernetes.jsonpatch", 32, jsonpatch::FUNCTIONS, &[]);

/// `cel.bind`, which only selectors of devices have.
pub static BINDINGS: Library = library("cel.lib.ext.cel.bindings", 31, &[], BINDING_MACROS);

const fn library(
    name: &'static str,
    since: u32,
    functions: &'static [crate::declare::Function],
    macros: &'static [Macro],
) -> Library {
    Library {
        name,
        since,
        functions,
        macros,
    }
}

const STANDARD_MACROS: &[Macro] = &[
    Macro {
        name: "has",
        receiver: false,
        args: 1,
        expansion: Expansion::Has,
    },
    receiver("all", 2, Expansion::All),
    receiver("exists", 2, Expansion::Exists),
    receiver("exists_one", 2, Expansion::ExistsOne),
    receiver("map", 2, Expansion::Map),
    receiver("map", 3, Expansion::Map),
    receiver("filter", 2, Expansion::Filter),
];

const OPTIONAL_MACROS: &[Macro] = &[
    receiver("optMap", 2, Expansion::OptMap),
    receiver("optFlatMap", 2, Expansion::OptFlatMap),
];

const TWO_VARIABLE_MACROS: &[Macro] = &[
    receiver("all", 3, Expansion::All2),
    receiver("exists", 3, Expansion::Exists2),
    receiver("existsOne", 3, Expansion::ExistsOne2),
    receiver("exists_one", 3, Expansion::ExistsOne2),
    receiver("transformList", 3, Expansion::TransformList),
    receiver("transformList", 4, Expansion::TransformList),
    receiver("transformMap", 3, Expansion::TransformMap),
    receiver("transformMap", 4, Expansion::TransformMap),
    receiver("transformMapEntry", 3, Expansion::TransformMapEntry),
    receiver("transformMapEntry", 4, Expansion::TransformMapEntry),
];

const LIST_MACROS: &[Macro] = &[receiver("sortBy", 2, Expansion::SortBy)];

/// The receiver is the name `cel`.
const BINDING_MACROS: &[Macro] = &[receiver("bind", 3, Expansion::Bind)];

const fn receiver(name: &'static str, args: usize, expansion: Expansion) -> Macro {
    Macro {
        name,
        receiver: true,
        args,
        expansion,
    }
}
