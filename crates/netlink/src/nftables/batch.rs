//! Changes that the kernel makes all at once, or not at all.

use super::rule::{Hook, Rule, Table};
use super::set::{Element, Set};

/// Changes in an order that is valid step by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    commands: Vec<(Table, Command)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Nothing, if it exists.
    AddTable,
    DeleteTable,
    /// Nothing, if it exists.
    AddChain {
        name: String,
        hook: Option<Hook>,
    },
    /// Deletes its rules.
    FlushChain {
        name: String,
    },
    DeleteChain {
        name: String,
    },
    /// Behind the chain's other rules.
    AddRule {
        chain: String,
        rule: Rule,
    },
    /// Before the chain's other rules.
    InsertRule {
        chain: String,
        rule: Rule,
    },
    DeleteRule {
        chain: String,
        handle: u64,
    },
    /// Nothing, if it exists.
    AddSet(Set),
    DeleteSet {
        name: String,
    },
    AddElements {
        set: String,
        elements: Vec<Element>,
    },
    DeleteElements {
        set: String,
        elements: Vec<Element>,
    },
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn push(&mut self, table: &Table, command: Command) {
        self.commands.push((table.clone(), command));
    }

    /// Creates a table, or empties it: it is deleted, and created again.
    pub fn replace_table(&mut self, table: &Table) {
        self.delete_table(table);
        self.push(table, Command::AddTable);
    }

    /// Deletes a table, if it exists: it is added first, so that the deletion does not fail.
    pub fn delete_table(&mut self, table: &Table) {
        self.push(table, Command::AddTable);
        self.push(table, Command::DeleteTable);
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub fn commands(&self) -> &[(Table, Command)] {
        &self.commands
    }
}
