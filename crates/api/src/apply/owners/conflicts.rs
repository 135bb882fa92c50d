//! Conflicts: fields of an applied configuration that other managers own.

use std::fmt;

use super::{Manager, Operation};
use crate::apply::element::FieldPath;
use crate::go_text::Quoted;

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub manager: Manager,
    pub path: FieldPath,
}

impl Conflict {
    /// The message of this conflict's cause in a Status: `conflict with "kubectl" using apps/v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", ManagerText(&self.manager))
    }
}

/// All conflicts of a configuration that is applied without force, by manager.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    /// Limit for the memory that the paths of conflicts take, in bytes.
    pub(in crate::apply) const MOST_BYTES: usize = 1024 * 1024;

    /// Whether there may be more conflicts than these.
    pub(in crate::apply) fn may_be_cut(&self) -> bool {
        self.0
            .iter()
            .map(|conflict| conflict.path.bytes())
            .sum::<usize>()
            >= Conflicts::MOST_BYTES
    }

    pub(in crate::apply) fn sort(&mut self) {
        // Stable: the fields of one manager keep their order.
        self.0
            .sort_by_cached_key(|conflict| conflict.manager.identifier());
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(
                out,
                "Apply failed with 1 conflict: {}: {}",
                only.message(),
                only.path
            );
        }

        write!(out, "Apply failed with {} conflicts: ", self.0.len())?;
        let groups = self.0.chunk_by(|a, b| a.manager == b.manager);
        for (index, group) in groups.enumerate() {
            let line = if index > 0 { "\n" } else { "" };
            write!(
                out,
                "{line}conflicts with {}:",
                ManagerText(&group[0].manager)
            )?;
            group
                .iter()
                .try_for_each(|conflict| write!(out, "\n- {}", conflict.path))?;
        }

        Ok(())
    }
}

impl std::error::Error for Conflicts {}

/// A manager as conflict messages print it.
struct ManagerText<'a>(&'a Manager);

impl fmt::Display for ManagerText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Manager {
            name,
            operation,
            api_version,
            subresource,
        } = self.0;
        write!(out, "{}", Quoted(name))?;

        if !subresource.is_empty() {
            write!(out, " with subresource {}", Quoted(subresource))?;
        }
        if *operation == Operation::Update {
            write!(out, " using {api_version}")?;
        }

        Ok(())
    }
}
