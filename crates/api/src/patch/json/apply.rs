//! Applies the operations of a patch, one after the other.

use super::pointer::{self, Target};
use super::{Error, MAX_COPIED_BYTES, MAX_OPERATIONS, Operation, Patch};
use crate::codec::json::{MAX_TREE_DEPTH, to_vec};
use crate::fuzz::steps;
use crate::patch::{open, opened};
use crate::{Text, Value};

impl Patch {
    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies all operations, or none: returns the patched tree, or the first error.
    pub fn apply(&self, mut document: Value) -> Result<Value, Error> {
        if self.len() > MAX_OPERATIONS {
            return Err(Error::TooManyOperations(self.len()));
        }

        let mut totals = Totals {
            copied: 0,
            depth: depth(&document),
        };

        for operation in &self.operations {
            steps::count(1);
            operation.apply(&mut document, &mut totals)?;
            if totals.depth > MAX_PATCHED_DEPTH {
                totals.depth = depth(&document);
            }
            if totals.depth > MAX_PATCHED_DEPTH {
                return Err(Error::TooDeep);
            }
        }

        Ok(document)
    }
}

/// Maximum nesting of a tree while it is being patched. No decoder accepts so deep a result; the
/// limit protects code that recurses.
const MAX_PATCHED_DEPTH: usize = 3 * MAX_TREE_DEPTH;

/// Accumulated limits of the operations so far.
struct Totals {
    /// Bytes of JSON that were copied.
    copied: usize,
    /// Upper bound of the tree's depth.
    depth: usize,
}

impl Totals {
    /// Accounts for a value of at most `depth` levels at `path`.
    fn grow(&mut self, path: &str, depth: usize) {
        self.depth = self.depth.max(path.matches('/').count() + depth);
    }
}

/// The depth of a tree, including raw texts in it.
fn depth(value: &Value) -> usize {
    steps::count(1);
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Raw(raw) if matches!(raw.type_name(), "object" | "array") => MAX_TREE_DEPTH,
        _ => 0,
    }
}

impl Operation {
    fn apply(&self, document: &mut Value, totals: &mut Totals) -> Result<(), Error> {
        match self.kind.as_str() {
            "add" => self.add(document, totals),
            "remove" => self.remove(document),
            "replace" => self.replace(document, totals),
            "move" => self.move_(document, totals),
            "copy" => self.copy(document, totals),
            "test" => self.test(document),
            _ => Err(Error::UnexpectedKind(self.kind.clone())),
        }
    }

    /// The value to write; null if it was not given.
    fn value(&self) -> Value {
        self.value.clone().unwrap_or_default()
    }

    fn add(&self, document: &mut Value, totals: &mut Totals) -> Result<(), Error> {
        let path = self
            .path
            .as_ref()
            .map_err(|_| Error::no_path("add", "path"))?;
        let place = find(document, path, Error::AddToMissing)?;
        totals.grow(path, MAX_TREE_DEPTH);
        place
            .add(self.value())
            .map_err(|why| Error::Add(path.clone(), why))
    }

    fn remove(&self, document: &mut Value) -> Result<(), Error> {
        let path = self
            .path
            .as_ref()
            .map_err(|_| Error::no_path("remove", "path"))?;
        let place = find(document, path, Error::RemoveFromMissing)?;
        place
            .remove()
            .map(drop)
            .map_err(|why| Error::Remove(path.clone(), why))
    }

    fn replace(&self, document: &mut Value, totals: &mut Totals) -> Result<(), Error> {
        let path = self
            .path
            .as_ref()
            .map_err(|why| Error::unreadable("replace", "path", *why))?;

        if path.is_empty() {
            let mut whole = self.value();
            open(&mut whole);
            if !matches!(whole, Value::Object(_) | Value::Array(_)) {
                return Err(Error::ReplaceByScalar);
            }
            totals.depth = depth(&whole);
            *document = whole;
            return Ok(());
        }

        let place = find(document, path, Error::ReplaceInMissing)?;
        totals.grow(path, MAX_TREE_DEPTH);

        place
            .replace(self.value())
            .map_err(|_| Error::ReplaceMissing(path.clone()))
    }

    fn move_(&self, document: &mut Value, totals: &mut Totals) -> Result<(), Error> {
        let from = self
            .from
            .as_ref()
            .map_err(|why| Error::unreadable("move", "from", *why))?;
        let source = find(document, from, Error::MoveFromMissing)?;
        let key = source.key().clone();
        let value = source.remove().map_err(|why| Error::Move(key, why))?;

        let path = self
            .path
            .as_ref()
            .map_err(|why| Error::unreadable("move", "path", *why))?;
        let target = find(document, path, Error::MoveToMissing)?;

        totals.grow(path, totals.depth);

        target
            .add(value)
            .map_err(|why| Error::Move(path.clone(), why))
    }

    fn copy(&self, document: &mut Value, totals: &mut Totals) -> Result<(), Error> {
        let from = self
            .from
            .as_ref()
            .map_err(|why| Error::unreadable("copy", "from", *why))?;
        let source = find(document, from, Error::CopyFromMissing)?;
        let value = source
            .get()
            .map_err(|why| Error::CopyFrom(from.clone(), why))?
            .cloned();

        let path = self
            .path
            .as_ref()
            .map_err(|_| Error::no_path("copy", "path"))?;
        let target = find(document, path, Error::CopyToMissing)?;

        totals.grow(path, totals.depth);
        totals.copied += value
            .as_ref()
            .filter(|value| !value.is_null())
            .map_or(0, |value| to_vec(value).len());

        if totals.copied > MAX_COPIED_BYTES {
            return Err(Error::CopiedTooMuch(totals.copied));
        }

        target.add(value.unwrap_or_default()).map_err(Error::CopyTo)
    }

    fn test(&self, document: &mut Value) -> Result<(), Error> {
        let path = self
            .path
            .as_ref()
            .map_err(|why| Error::unreadable("test", "path", *why))?;

        let wanted = self.value.as_ref().unwrap_or(&Value::Null);
        let passes = if path.is_empty() {
            same(document, wanted)
        } else {
            let place = find(document, path, Error::TestOfMissing)?;
            let found = place.get().map_err(|why| Error::Test(path.clone(), why))?;
            same(found.unwrap_or(&Value::Null), wanted)
        };

        if passes {
            Ok(())
        } else {
            Err(Error::TestFailed(path.clone()))
        }
    }
}

fn find<'v>(
    document: &'v mut Value,
    path: &Text,
    missing: fn(Text) -> Error,
) -> Result<Target<'v>, Error> {
    pointer::find(document, path).ok_or_else(|| missing(path.clone()))
}

/// Whether two values are equal. Scalars are compared in their notation.
fn same(found: &Value, wanted: &Value) -> bool {
    steps::count(1);

    match (opened(found).as_ref(), opened(wanted).as_ref()) {
        (Value::Object(found), Value::Object(wanted)) => {
            let mut pairs = found.iter().zip(wanted.iter());
            found.len() == wanted.len()
                && pairs.all(|(found, wanted)| found.0 == wanted.0 && same(found.1, wanted.1))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| same(found, wanted))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => false,
        (found, wanted) => to_vec(found) == to_vec(wanted),
    }
}
