//! Renders rules for `nft`, and applies them.
//!
//! One table per family, named after the instance, so that several clusters on one machine do not
//! conflict. The part that does not depend on Services is static (`skeleton.rs`); the rest are
//! elements of its maps (`elements.rs`) and a few chains (`chains.rs`). [`Writer`] renders changes
//! as one transaction (`transaction.rs`), which is atomic, also when the first one replaces an
//! older table. The rules work without the process.

mod chains;
mod elements;
mod skeleton;
mod sys;
mod transaction;
mod watch;

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

pub use transaction::Writer;
pub(crate) use watch::Watch;

use crate::rules::Family;

/// How the tables are rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The name of the tables.
    pub table: String,
    /// The kernel's families.
    pub families: Vec<Family>,
    /// The mark bit of packets to masquerade.
    pub masquerade_bit: u32,
    /// Masquerade all traffic to cluster IPs.
    pub masquerade_all: bool,
    /// How traffic of local pods is detected.
    pub pods: Pods,
}

/// How traffic of local pods is detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pods {
    /// Not at all; then no traffic counts as external either.
    Unknown,
    /// By source, in these families.
    Ranges(Vec<Family>),
    /// By the input interface.
    Interface(String),
    /// By the prefix of the input interface's name.
    InterfacePrefix(String),
}

impl Dialect {
    /// The mark in hexadecimal.
    fn mark(&self) -> String {
        format!("{:#x}", 1_u32 << self.masquerade_bit.min(31))
    }

    /// The statement that marks a packet for masquerading.
    fn masquerade(&self) -> String {
        let mark = self.mark();
        format!("meta mark set meta mark or {mark}")
    }

    /// Matches packets of local pods, or, with `not`, all others; none if unknown.
    fn of_pod(&self, family: Family, not: bool) -> Option<String> {
        let not = if not { "!= " } else { "" };
        match &self.pods {
            Pods::Unknown => None,
            Pods::Ranges(families) => families
                .contains(&family)
                .then(|| format!("{} saddr {not}@pod-ranges", word(family))),
            Pods::Interface(name) => Some(format!("iifname {not}\"{name}\"")),
            Pods::InterfacePrefix(prefix) => Some(format!("iifname {not}\"{prefix}*\"")),
        }
    }
}

/// `nft`'s name of the family.
fn word(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

/// The type of its addresses.
fn address(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4_addr",
        Family::V6 => "ipv6_addr",
    }
}

/// Why the rules were not applied.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("cannot run `nft`: Services need it; install the package `nftables`")]
    Run(#[source] io::Error),
    #[error("`nft` rejected the service rules: {0}")]
    Refused(String),
}

/// Applies a script atomically.
pub fn apply(script: &str) -> Result<(), FilterError> {
    run(&["-f", "-"], script).map(drop)
}

/// Deletes a table, if it exists. A kernel without nftables has none.
pub(crate) fn remove(family: Family, table: &str) -> Result<(), FilterError> {
    let listed = match run(&["list", "tables", word(family)], "") {
        Err(FilterError::Refused(said)) if is_unsupported(&said) => return Ok(()),
        listed => listed?,
    };
    let own = format!("table {} {table}", word(family));
    if !listed.lines().any(|line| line.trim() == own) {
        return Ok(());
    }
    apply(&format!("delete {own}\n"))
}

/// Whether the kernel lacks the feature.
fn is_unsupported(said: &str) -> bool {
    [
        "Protocol not supported",
        "Operation not supported",
        "Address family not supported",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// Runs `nft` and returns its output.
pub(crate) fn run(arguments: &[&str], input: &str) -> Result<String, FilterError> {
    let mut nft = Command::new("nft")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(FilterError::Run)?;

    let sent = nft
        .stdin
        .take()
        .expect("stdin was piped")
        .write_all(input.as_bytes());

    let output = nft.wait_with_output().map_err(FilterError::Run)?;
    if !output.status.success() {
        let message: String = String::from_utf8_lossy(&output.stderr)
            .trim()
            .chars()
            .take(MAX_ERROR)
            .collect();
        return Err(FilterError::Refused(message));
    }

    sent.map_err(FilterError::Run)?;

    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Error messages are truncated: they quote whole lines, which may be long.
const MAX_ERROR: usize = 2000;
