//! Variables and what is selected of them.

use std::sync::Arc;

use super::{EvalError, Evaluator, Lazy, Outcome, Slot, borrow};
use crate::library::unset;
use crate::plan::{Attribute, Key, Qualifier, Root, is_qualifier};
use crate::value::{Extra, List, Map, Object, Text, Value, go_type, lossless_int, show, type_name};

/// Qualifiers, and those that follow them.
#[derive(Clone, Copy)]
struct Chain<'a, 'c> {
    qualifiers: &'a [Qualifier],
    next: Option<&'c Chain<'a, 'c>>,
    /// The last qualifier of all is only tested.
    tests: bool,
}

impl<'a> Evaluator<'a, '_> {
    /// An attribute as a step of its own.
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let outcome = self.resolve(attribute, None, attribute.tests);
        if let Err(error) = &outcome
            && error.is_final()
        {
            return outcome;
        }

        match (&attribute.root, attribute.tests) {
            (Root::Conditional(_), false) => {}
            // The test takes back what the attribute costs, and a condition costs nothing.
            (Root::Conditional(_), true) => self.charge(u64::MAX)?,
            (_, false) => self.charge(1)?,
            (_, true) => {}
        }

        match outcome? {
            Value::Optional(value) if attribute.tests => Ok(Value::Bool(value.is_some())),
            value => Ok(value),
        }
    }

    fn resolve(
        &mut self,
        attribute: &'a Attribute,
        next: Option<&Chain<'a, '_>>,
        tests: bool,
    ) -> Outcome<'a> {
        let chain = Chain {
            qualifiers: &attribute.qualifiers,
            next,
            tests,
        };
        match &attribute.root {
            Root::Global(index) => {
                let at = *index as usize;
                if let Some((_, lazy)) = self.lazy.filter(|(of, _)| *of == at) {
                    return self.lazy_member(lazy, chain);
                }
                match &self.globals[at] {
                    Some(value) => {
                        let value = value.clone();
                        self.qualify(value, chain)
                    }
                    None => Err(EvalError::NoSuchAttribute(self.names[at].clone())),
                }
            }
            Root::Local(slot) => {
                let value = self.local(*slot)?;
                self.qualify(value, chain)
            }
            Root::Result(node) => {
                let value = self.eval(node)?;
                self.qualify(value, chain)
            }
            Root::Conditional(parts) => {
                let branch = match self.eval(&parts.0)? {
                    Value::Bool(true) => &parts.1,
                    Value::Bool(false) => &parts.2,
                    _ => return Err(EvalError::NoSuchOverload),
                };
                self.resolve(branch, Some(&chain), tests)
            }
        }
    }

    /// A member of a lazy variable, and what is selected of it.
    fn lazy_member(&mut self, lazy: &Lazy<'a, '_>, chain: Chain<'a, '_>) -> Outcome<'a> {
        if chain.qualifiers.is_empty() && chain.next.is_none() {
            let name = Text::from(lazy.type_name.to_owned());
            let fields = Vec::new();
            return Ok(Value::Object(Arc::new(Object { name, fields })));
        }
        // The checker knows its members, so that nothing else can be selected.
        let key = chain.qualifiers.first().map(|first| &first.key);
        let Some(Key::Const(Value::String(name))) = key else {
            return Err(EvalError::NoSuchOverload);
        };
        let rest = &chain.qualifiers[1..];
        let is_last = rest.is_empty() && chain.next.is_none();

        let found = (lazy.member)(name).transpose();
        self.charge_selection(&found)?;
        if chain.tests && is_last {
            return found.map(|found| Value::Bool(found.is_some()));
        }

        let missing = || EvalError::NoSuchKey(Arc::from(&**name));
        let value = found?.ok_or_else(missing)?;
        if is_last {
            return Ok(value);
        }
        let rest = Chain {
            qualifiers: rest,
            ..chain
        };
        self.qualify(value, rest)
    }

    /// The value of a fold's variable.
    pub(super) fn local(&mut self, slot: u32) -> Outcome<'a> {
        let slot = slot as usize;
        if let Slot::Ready(outcome) = &self.slots[slot] {
            return outcome.clone();
        }
        let Slot::Init(node) = self.slots[slot] else {
            return Err(EvalError::Internal("a variable has no value".into()));
        };

        let outcome = self.operand(node)?;
        self.slots[slot] = Slot::Ready(outcome.clone());
        outcome
    }

    fn qualify(&mut self, value: Value<'a>, chain: Chain<'a, '_>) -> Outcome<'a> {
        // Most attributes are not qualified, and most values no optionals.
        if chain.qualifiers.is_empty() && chain.next.is_none() {
            return match value {
                Value::Optional(Some(inner)) => Ok(Value::some(native(&inner))),
                value => Ok(value),
            };
        }
        let mut optional = false;
        let mut unselected = None;
        let mut value = match value {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => {
                optional = true;
                let value = plain((*inner).clone());
                unselected = Some(inner);
                value
            }
            value => value,
        };

        let mut links = Some(&chain);
        while let Some(link) = links {
            links = link.next;
            for (index, qualifier) in link.qualifiers.iter().enumerate() {
                let tests = chain.tests && links.is_none() && index + 1 == link.qualifiers.len();
                optional = optional || qualifier.optional;
                let found = self.select(&value, qualifier, optional || tests);
                if tests && !optional {
                    self.charge_selection(&found)?;
                    return found.map(|found| Value::Bool(found.is_some()));
                }

                match found {
                    Ok(None) => return Ok(Value::Optional(None)),
                    Ok(Some(selected)) => {
                        self.charge(1)?;
                        value = selected;
                        unselected = None;
                    }
                    Err(error) => {
                        if !optional {
                            self.charge_selection(&Err(error.clone()))?;
                        }
                        return Err(error);
                    }
                }
            }
        }

        if let Some(inner) = unselected {
            return Ok(Value::some(native(&inner)));
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// A selection costs, also if it fails.
    fn charge_selection(
        &mut self,
        found: &Result<Option<Value<'a>>, EvalError>,
    ) -> Result<(), EvalError> {
        match found {
            Err(error) if error.is_final() => Ok(()),
            _ => self.charge(1),
        }
    }

    /// `None`: there is no such member, which is an error unless it is only tried.
    fn select(
        &mut self,
        value: &Value<'a>,
        qualifier: &'a Qualifier,
        tries: bool,
    ) -> Result<Option<Value<'a>>, EvalError> {
        match &qualifier.key {
            Key::Const(key) => select(value, &borrow(key), tries),
            Key::Attribute(attribute) => {
                let key = self.resolve(attribute, None, false)?;
                if !is_qualifier(&key) {
                    return Err(unqualified(native_type(&key)));
                }
                select(value, &key, tries)
            }
            Key::Result(node) => {
                let key = self.eval(node)?;
                if !is_qualifier(&key) {
                    return Err(unqualified(go_type(&key)));
                }
                select(value, &key, tries)
            }
        }
    }
}

/// What is in an optional that an attribute resolves to. Upstream converts it to a value of Go and
/// back, which not every value survives.
fn native<'a>(value: &Value<'a>) -> Value<'a> {
    let go_type = match value {
        Value::Type(name) => return Value::String(name.clone()),
        Value::Optional(None) => return Value::Null,
        Value::Optional(Some(inner)) => return native(inner),
        Value::Extra(extra) => match &**extra {
            Extra::Ip(_) => "netip.Addr",
            Extra::Cidr(_) => "netip.Prefix",
            Extra::Url(_) => "*url.URL",
            Extra::Quantity(..) => "*resource.Quantity",
            Extra::Semver(_) => "semver.Version",
            _ => return value.clone(),
        },
        other => return plain(other.clone()),
    };
    Value::Failed(Arc::new(EvalError::failed(format!(
        "unsupported conversion to ref.Val: ({go_type}){}",
        show(value)
    ))))
}

/// What an optional's value is to its qualifiers: data without a schema.
fn plain(value: Value<'_>) -> Value<'_> {
    match value {
        Value::List(List::Tree(tree)) => Value::List(List::Tree(tree.plain())),
        Value::Map(Map::Tree(tree)) => Value::Map(Map::Tree(tree.plain())),
        Value::Optional(Some(inner)) => plain((*inner).clone()),
        other => other,
    }
}

fn unqualified(kind: &str) -> EvalError {
    EvalError::failed(format!("invalid qualifier type: {kind}"))
}

/// The type that upstream has for what an attribute is: data of objects are Go's own.
fn native_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::List(List::Tree(tree)) if tree.schema.is_none() => "[]interface {}",
        Value::Map(Map::Tree(tree)) if tree.schema.is_none() => "map[string]interface {}",
        other => go_type(other),
    }
}

fn select<'a>(
    value: &Value<'a>,
    key: &Value<'_>,
    tries: bool,
) -> Result<Option<Value<'a>>, EvalError> {
    match value {
        Value::Map(map) => match map.find(key)? {
            None if !tries => Err(EvalError::NoSuchKey(show(key))),
            found => Ok(found),
        },
        Value::List(list) => {
            let index = index_of(key)?;
            match usize::try_from(index) {
                Ok(at) if at < list.len() => {
                    let unsupported = list.schema().is_some() && !matches!(key, Value::Int(_));
                    if unsupported {
                        return Err(EvalError::failed(format!(
                            "unsupported index: {}",
                            show(key)
                        )));
                    }
                    list.get(at).map(Some)
                }
                _ if tries => Ok(None),
                _ => Err(EvalError::IndexOutOfBounds(show(key))),
            }
        }
        Value::Object(object) => {
            let name = key.as_str();
            match name.and_then(|name| object.field(name)) {
                None if !tries => {
                    let unset = name.and_then(|name| unset(&object.name, name));
                    unset
                        .map(Some)
                        .ok_or_else(|| EvalError::NoSuchKey(show(key)))
                }
                found => Ok(found.cloned()),
            }
        }
        _ if tries => Ok(None),
        _ => Err(EvalError::NoSuchKey(show(key))),
    }
}

/// The integer that an index is.
fn index_of(key: &Value<'_>) -> Result<i64, EvalError> {
    let index = match key {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) => lossless_int(*index),
        other => {
            return Err(EvalError::failed(format!(
                "unsupported index type '{}' in list",
                type_name(other)
            )));
        }
    };
    index.ok_or_else(|| EvalError::failed(format!("unsupported index value {} in list", show(key))))
}
