//! Computes the difference of two objects, as a patch.

use super::diff_lists::{self, ListDiff};
use super::schema::Schema;
use super::{DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, Error, RETAIN_KEYS};
use crate::fuzz::steps;
use crate::patch::opened;
use crate::{Map, Text, Value};

/// Which differences to include.
#[derive(Clone, Copy, Debug)]
pub(super) struct Diff {
    /// `$setElementOrder` for lists that changed.
    pub(super) element_order: bool,
    /// What the modified object has and the original lacks, or has otherwise.
    pub(super) changes: bool,
    /// What the original has and the modified object lacks.
    pub(super) removals: bool,
    /// The members of this object exclude each other: `$retainKeys` lists those that stay.
    pub(super) retain_keys: bool,
}

impl Diff {
    pub(super) fn objects(
        self,
        original: &Map,
        modified: &Map,
        schema: Schema<'_>,
    ) -> Result<Map, Error> {
        let mut patch: Vec<(Text, Value)> = Vec::new();
        for (name, wanted) in modified.iter() {
            steps::count(1);

            match original.get(name) {
                Some(found) => {
                    self.member(
                        name,
                        opened(found).as_ref(),
                        opened(wanted).as_ref(),
                        schema,
                        &mut patch,
                    )?;
                }
                None if self.changes => patch.push((Text::new(name), wanted.clone())),
                None => {}
            }
        }

        let gone = || {
            original
                .iter()
                .filter(|(name, _)| !modified.contains_key(name))
        };

        if self.removals {
            patch.extend(gone().map(|(name, _)| (Text::new(name), Value::Null)));
        }

        if self.retain_keys && (!patch.is_empty() || gone().any(|(_, value)| !value.is_null())) {
            let kept = modified.iter().filter(|(_, value)| !value.is_null());
            let kept: Vec<Value> = kept.map(|(name, _)| Value::string(name)).collect();
            if !kept.is_empty() {
                patch.push((Text::const_new(RETAIN_KEYS), Value::Array(kept)));
            }
        }

        Ok(Map::from_members(patch))
    }

    fn member(
        self,
        name: &str,
        found: &Value,
        wanted: &Value,
        schema: Schema<'_>,
        patch: &mut Vec<(Text, Value)>,
    ) -> Result<(), Error> {
        if name == DIRECTIVE {
            return directive(found, wanted, patch);
        }

        match (found, wanted) {
            (Value::Object(found), Value::Object(wanted)) => {
                self.object_member(name, found, wanted, schema, patch)
            }
            (Value::Array(found), Value::Array(wanted)) => {
                self.list_member(name, found, wanted, schema, patch)
            }
            _ => {
                if self.changes && found != wanted {
                    patch.push((Text::new(name), wanted.clone()));
                }
                Ok(())
            }
        }
    }

    fn object_member(
        self,
        name: &str,
        found: &Map,
        wanted: &Map,
        schema: Schema<'_>,
        patch: &mut Vec<(Text, Value)>,
    ) -> Result<(), Error> {
        let member = match schema.object(name) {
            Ok(member) => member,
            // The type does not matter if nothing changed.
            Err(_) if found == wanted => return Ok(()),
            Err(unknown) => return Err(unknown),
        };

        if member.patch.replace {
            if self.changes {
                patch.push((Text::new(name), Value::Object(wanted.clone())));
            }
            return Ok(());
        }

        let below = Diff {
            retain_keys: member.patch.retain_keys,
            ..self
        };

        let change = below.objects(found, wanted, member.schema)?;
        if !change.is_empty() {
            patch.push((Text::new(name), Value::Object(change)));
        }

        Ok(())
    }

    fn list_member(
        self,
        name: &str,
        found: &[Value],
        wanted: &[Value],
        schema: Schema<'_>,
        patch: &mut Vec<(Text, Value)>,
    ) -> Result<(), Error> {
        let member = match schema.list(name) {
            Ok(member) => member,
            Err(_) if found == wanted => return Ok(()),
            Err(unknown) => return Err(unknown),
        };

        if !member.patch.merge {
            if self.changes && found != wanted {
                patch.push((Text::new(name), Value::Array(wanted.to_vec())));
            }
            return Ok(());
        }

        let below = Diff {
            retain_keys: member.patch.retain_keys,
            ..self
        };

        let ListDiff {
            changes,
            deletions,
            order,
        } = diff_lists::between(below, found, wanted, &member)?;

        for (name, list) in [
            (Text::new(name), changes),
            (Text::from(format!("{DELETE_FROM_LIST}/{name}")), deletions),
            (Text::from(format!("{ELEMENT_ORDER}/{name}")), order),
        ] {
            if !list.is_empty() {
                patch.push((name, Value::Array(list)));
            }
        }

        Ok(())
    }
}

/// Both objects are patches themselves.
fn directive(found: &Value, wanted: &Value, patch: &mut Vec<(Text, Value)>) -> Result<(), Error> {
    let (Some(before), Some(after)) = (found.as_str(), wanted.as_str()) else {
        return Err(Error::DirectiveIsNoText);
    };
    if before != after {
        patch.push((Text::const_new(DIRECTIVE), wanted.clone()));
    }
    Ok(())
}
