//! Selectors of devices in `resource.k8s.io`: which devices a class or a claim accepts.
//!
//! An expression sees `device`. Its attributes are of any type; how large they can be is known,
//! and an expression whose estimated cost is above a limit is refused.

use std::sync::{Arc, LazyLock};

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_cel::cost::{Range, estimate};
use coracle_cel::env::{Checked, Env};
use coracle_cel::library::BINDINGS;
use coracle_cel::program::{PlanError, Program};
use coracle_cel::source::Issues;
use coracle_cel::types::{Fields, ObjectType, ObjectTypes, Type};

/// The longest expression, in bytes.
const LONGEST: usize = 10 * 1024;

/// The most that evaluating a selector may cost, by estimate and for each device.
pub const MOST: u64 = 1_000_000;

const DEVICE: &str = "kubernetes.DRADevice";

/// The longest names, in bytes.
const LONGEST_DRIVER: u64 = 63;
const LONGEST_DOMAIN: u64 = 63;
const LONGEST_ID: u64 = 32;

/// The longest string or version of an attribute.
const LONGEST_ATTRIBUTE: u64 = 64;

/// The most attributes and capacities of a device.
const MOST_OF_A_DEVICE: u64 = 32;

/// A selector, compiled.
#[derive(Debug)]
pub struct DeviceSelector {
    /// Its result is a bool, or of any type where it is an attribute.
    pub program: Program,
    /// The most that it can cost, by estimate.
    pub cost: u64,
}

/// Why a selector cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SelectorError {
    #[error("compilation failed: {0}")]
    Issues(Issues),
    #[error("must evaluate to bool or the unknown type, not {0}")]
    Output(String),
    /// Upstream calls this an internal error.
    #[error("program instantiation failed: {0}")]
    Program(PlanError),
}

impl DeviceSelector {
    /// # Errors
    /// The expression does not compile, or returns something else.
    pub fn compile(text: &str) -> Result<DeviceSelector, SelectorError> {
        let checked = ENV.compile(text).map_err(SelectorError::Issues)?;
        let output = checked.output();
        if !matches!(output, Type::Bool | Type::Any) {
            return Err(SelectorError::Output(output.to_string()));
        }

        Ok(DeviceSelector {
            program: Program::new(&checked).map_err(SelectorError::Program)?,
            cost: cost(&checked),
        })
    }
}

/// What is wrong with the selector at `at`, the path of its `expression`.
#[must_use]
pub fn validate(text: &str, at: &Path<'_>) -> Option<FieldError> {
    if text.len() > LONGEST {
        return Some(FieldError::too_long(at, LONGEST));
    }

    match DeviceSelector::compile(text) {
        Ok(selector) if selector.cost > MOST => {
            let detail = "too complex, exceeds cost limit";
            Some(FieldError::forbidden(at, detail))
        }
        Ok(_) => None,
        Err(error @ SelectorError::Program(_)) => Some(FieldError::internal(at, error.to_string())),
        Err(error) => Some(FieldError::invalid_str(at, text, error.to_string())),
    }
}

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let by_name = |of| Type::map(Type::String, Type::map(Type::String, of));
    let fields = [
        ("driver", Type::String),
        ("allowMultipleAllocations", Type::Bool),
        ("attributes", by_name(Type::Any)),
        ("capacity", by_name(Type::object("kubernetes.Quantity"))),
    ];
    let fields = fields.map(|(name, of)| (name.into(), of));

    let mut objects = ObjectTypes::default();
    objects.insert(ObjectType {
        name: DEVICE.into(),
        fields: Fields::Named(fields.into()),
    });
    Env::base()
        .with_library(&BINDINGS)
        .with_objects(objects)
        .with_variable("device", Type::object(DEVICE))
});

fn cost(checked: &Checked) -> u64 {
    let hint = |path: &[Arc<str>]| {
        let max = largest_at(path)?;
        Some(Range { min: 0, max })
    };
    estimate(checked, &hint).max
}

/// The size of what is at a path. An attribute may also be named in the path, as the members of no
/// other map are.
fn largest_at(path: &[Arc<str>]) -> Option<u64> {
    let mut steps = path.iter().map(AsRef::as_ref);
    if steps.next()? != "device" {
        return None;
    }
    let Some(field) = steps.next() else {
        return Some(0);
    };

    let below: Vec<&str> = steps.collect();
    match (field, below.as_slice()) {
        ("driver", []) => Some(LONGEST_DRIVER),
        ("allowMultipleAllocations", []) => Some(1),
        ("attributes" | "capacity", [] | ["@values" | "@items"]) => Some(MOST_OF_A_DEVICE),
        ("attributes" | "capacity", ["@keys"]) => Some(LONGEST_DOMAIN),
        ("attributes" | "capacity", ["@values" | "@items", "@keys"]) => Some(LONGEST_ID),
        ("attributes", ["@values" | "@items", _]) => Some(LONGEST_ATTRIBUTE),
        ("capacity", ["@values" | "@items", "@values" | "@items"]) => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The costs are those that upstream estimates.
    #[test]
    fn costs_are_estimated() {
        let check = |text: &str, expected: u64| {
            let selector = DeviceSelector::compile(text).unwrap();
            assert_eq!(selector.cost, expected, "{text}");
        };

        check("true", 0);
        check(r#"device.driver == """#, 2);
        check(r#"device.driver == "dra.example.com""#, 4);
        check("device.allowMultipleAllocations == true", 3);
        check(r#""no-such-domain" in device.attributes"#, 3);
        check(r#"device.attributes["dra.example.com"].name"#, 4);
        check(r#"device.attributes["dra.example.com"]["name"]"#, 4);
        check(r#"device.attributes["dra.example.com"].name > 0"#, 5);
        check(r#"device.attributes["dra.example.com"].name == "fish""#, 5);
        check(
            r#"device.attributes["dra.example.com"].name.isGreaterThan(semver("0.0.1"))"#,
            6,
        );
        check(
            r#"cel.bind(dra, device.attributes["dra.example.com"], dra.name)"#,
            15,
        );

        check(
            r#"device.capacity["dra.example.com"].name.isGreaterThan(quantity("1Ki"))"#,
            6,
        );
        check(
            r#"device.attributes.exists_one(x, x == "dra.example.com")"#,
            164,
        );
        check(
            r#"device.attributes["dra.example.com"].exists_one(x, x == "services")"#,
            133,
        );
        check(
            r#"device.capacity["dra.example.com"].exists_one(x, x == "memory")"#,
            133,
        );
        check(
            r#"device.attributes["dra.example.com"].services.split("example").size() >= 2"#,
            19,
        );
        check(
            r#"device.attributes["dra.example.com"].services.matches("[^a]?sym")"#,
            18,
        );
    }

    #[test]
    fn a_selector_is_validated() {
        let check = |text: &str, expected: &str| {
            let error = validate(text, &Path::Root.field("expression"));
            let found = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(found.starts_with(expected), "{text}: {found}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{text}: {found}");
        };

        check("dyn(1) == 1", "");
        check(r#"device.attributes["a"].b"#, "");
        check(
            r#"dyn(true)"#,
            r#"expression: Invalid value: "dyn(true)": must evaluate to bool or the unknown type, not dyn"#,
        );
        check(
            r#""a""#,
            r#"expression: Invalid value: "\"a\"": must evaluate to bool or the unknown type, not string"#,
        );
        check(
            "device.bogus == 1",
            r#"expression: Invalid value: "device.bogus == 1": compilation failed: ERROR: <input>:1:7: undefined field 'bogus'"#,
        );
        check(
            "object == null",
            r#"expression: Invalid value: "object == null": compilation failed: ERROR: <input>:1:1: undeclared reference to 'object'"#,
        );

        let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
        let dear = "abcdef".chars().fold("true".to_owned(), |inner, name| {
            format!("{ten}.all({name}, {inner})")
        });
        check(
            &dear,
            "expression: Forbidden: too complex, exceeds cost limit",
        );
        check(
            &"a".repeat(LONGEST + 1),
            "expression: Too long: may not be more than 10240 bytes",
        );
    }
}
