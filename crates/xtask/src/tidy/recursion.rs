//! Recursive functions, direct or through others of their file, and what bounds their depth. Input
//! that nests deeper than expected (a request, an image, a directory) must not overflow the stack,
//! which would end the process. So every file with a recursive function is listed in
//! `recursion.txt` with its bound. Calls are followed by name: `name(…)`, `Self::name(…)` and
//! `self.name(…)`. A method that is called on another value is not followed, as its type is not
//! known here.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprCall, ExprMethodCall, FnArg, ImplItemFn, ItemFn, ItemMod, Local, Pat,
    Signature,
};

use super::files::Source;
use crate::finding::Finding;

/// The known files: `PATH BOUND`, the bounds being explained at its top.
pub(super) const BOUNDS: &str = "crates/xtask/recursion.txt";

pub(super) fn check(sources: &[Source], bounds: &str) -> Vec<Finding> {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut findings = Vec::new();
    for line in bounds
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.split_once(' ') {
            Some((path, bound)) if !bound.trim().is_empty() => drop(known.insert(path)),
            _ => findings.push(Finding::new(
                BOUNDS,
                format!("cannot read {line:?}"),
                "write PATH BOUND",
            )),
        }
    }

    for source in sources.iter().filter(|source| is_product(&source.path)) {
        let functions = recursive_functions(&source.text);
        if !functions.is_empty() && !known.remove(source.path.as_str()) {
            let wrong = format!("these functions call themselves: {}", functions.join(", "));
            let remedy = format!("use an explicit stack, or add to {BOUNDS} what bounds the depth");
            findings.push(Finding::new(&source.path, wrong, remedy));
        }
    }

    let gone = "remove its line: nothing there calls itself";
    findings.extend(
        known
            .into_iter()
            .map(|path| Finding::new(BOUNDS, path.to_owned(), gone)),
    );

    findings
}

/// Whether a file is part of the product, not of tests.
fn is_product(path: &str) -> bool {
    let is_test =
        path.contains("/tests/") || path.ends_with("tests.rs") || path.ends_with("testing.rs");
    let is_tool = ["crates/xtask/", "crates/testkit/"]
        .iter()
        .any(|tool| path.starts_with(tool));
    path.starts_with("crates/") && path.contains("/src/") && !is_test && !is_tool
}

/// The functions of a file from which a call leads back to them.
fn recursive_functions(text: &str) -> Vec<String> {
    // Syntax errors are reported by the compiler.
    let Ok(file) = syn::parse_file(text) else {
        return Vec::new();
    };
    let mut calls = Calls::default();
    calls.visit_file(&file);
    let recursive = calls
        .of
        .keys()
        .filter(|function| calls.lead_back_to(function));

    recursive
        .map(|function| function.name().to_owned())
        .collect()
}

/// A function of a file, or a function of one of its types, which may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Function {
    Free(String),
    OfType(String),
}

impl Function {
    fn name(&self) -> &str {
        match self {
            Function::Free(name) | Function::OfType(name) => name,
        }
    }
}

/// Which functions of a file call which others.
#[derive(Default)]
struct Calls {
    of: BTreeMap<Function, BTreeSet<Function>>,
    /// The current function, and the names that shadow functions within it.
    within: Option<Function>,
    hidden: BTreeSet<String>,
}

impl Calls {
    fn lead_back_to(&self, function: &Function) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![function];
        while let Some(from) = open.pop() {
            let called = self.of.get(from).into_iter().flatten();
            for next in called.filter(|next| seen.insert(*next)) {
                if next == function {
                    return true;
                }
                open.push(next);
            }
        }

        false
    }

    fn called(&mut self, function: Function) {
        if let Some(within) = &self.within {
            self.of.entry(within.clone()).or_default().insert(function);
        }
    }

    fn function(
        &mut self,
        function: Function,
        signature: &Signature,
        body: impl FnOnce(&mut Self),
    ) {
        self.of.entry(function.clone()).or_default();
        let hidden = signature.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(typed) => name_of(&typed.pat),
            FnArg::Receiver(_) => None,
        });
        let hidden = hidden.collect();

        let outer = (
            self.within.replace(function),
            std::mem::replace(&mut self.hidden, hidden),
        );

        body(self);
        (self.within, self.hidden) = outer;
    }
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            let function = Function::Free(item.sig.ident.to_string());
            self.function(function, &item.sig, |calls| {
                visit::visit_block(calls, &item.block)
            });
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        let function = Function::OfType(item.sig.ident.to_string());
        self.function(function, &item.sig, |calls| {
            visit::visit_block(calls, &item.block)
        });
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        // A closure or value of that name hides the function.
        self.hidden.extend(name_of(&local.pat));
        visit::visit_local(self, local);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let names: Vec<String> = path
                .path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect();

            match names.as_slice() {
                [name] if !self.hidden.contains(name) => self.called(Function::Free(name.clone())),
                [first, name] if first == "Self" => self.called(Function::OfType(name.clone())),
                _ => {}
            }
        }

        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident("self")) {
            self.called(Function::OfType(call.method.to_string()));
        }
        visit::visit_expr_method_call(self, call);
    }
}

fn name_of(pattern: &Pat) -> Option<String> {
    match pattern {
        Pat::Ident(pattern) => Some(pattern.ident.to_string()),
        _ => None,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|path| path.is_ident("test"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_code(code: &str, expected: &[&str]) {
        assert_eq!(recursive_functions(code), expected, "{code}");
    }

    #[test]
    fn functions_that_call_themselves_are_found() {
        check_code("fn walk(n: u8) { walk(n - 1); }", &["walk"]);
        check_code("fn a() { b() } fn b() { c() } fn c() { b() }", &["b", "c"]);
        check_code("impl T { fn walk(&self) { self.walk() } }", &["walk"]);
        check_code("impl T { fn make() { Self::make() } }", &["make"]);
        check_code(
            "impl T { fn one(&self) { self.two() } fn two(&self) { self.one() } }",
            &["one", "two"],
        );

        check_code(
            "impl T { fn value(&self) { let value = self.value(); } }",
            &["value"],
        );

        check_code(
            "fn walk() { items.iter().for_each(|item| walk(item)); }",
            &["walk"],
        );
    }

    #[test]
    fn what_only_has_the_same_name_is_not() {
        check_code("fn open() { File::open() }", &[]);
        check_code("impl T { fn len(&self) { self.items.len() } }", &[]);
        check_code("fn apply(apply: impl Fn()) { apply() }", &[]);
        check_code("fn run() { let run = || 1; run(); }", &[]);
        check_code("#[cfg(test)] mod tests { fn walk() { walk() } }", &[]);
        check_code("fn a() { b() } fn b() {}", &[]);
        check_code("fn show() {} impl T { fn show(&self) { show() } }", &[]);
    }

    #[test]
    fn every_file_has_its_bound_and_no_other_does() {
        let sources = [
            Source::new("crates/api/src/a.rs", "fn walk() { walk() }"),
            Source::new("crates/api/src/b.rs", "fn walk() {}"),
            Source::new("crates/api/tests/c.rs", "fn walk() { walk() }"),
        ];
        assert_eq!(check(&sources, "# why\ncrates/api/src/a.rs tree\n"), []);

        assert_eq!(check(&sources, "").len(), 1);
        assert_eq!(
            check(
                &sources,
                "crates/api/src/a.rs tree\ncrates/api/src/b.rs tree\n"
            )
            .len(),
            1
        );

        assert_eq!(check(&sources, "crates/api/src/a.rs\n").len(), 2);
    }
}
