//! Rules in the words of `nft`, and handed to the kernel.
//!
//! A table per family, named after the instance, so that several clusters on one machine do not
//! meet. What does not depend on Services is written once (`skeleton.rs`); the rest are elements of
//! its maps (`elements.rs`) and a few chains (`chains.rs`). [`Writer`] puts what has changed into
//! one transaction (`transaction.rs`), which the kernel takes whole or not at all, also when it is
//! the very first and takes the place of an older table. Nothing of this needs the process to live
//! on.

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

/// How the tables are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The name of the tables.
    pub table: String,
    /// The families that the kernel has.
    pub families: Vec<Family>,
    /// The bit of a packet's mark that says "hide its source".
    pub masquerade_bit: u32,
    /// Hide the source of everything that goes to a cluster address.
    pub masquerade_all: bool,
    /// How packets of the node's own pods are recognized.
    pub pods: Pods,
}

/// How packets of the node's own pods are recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pods {
    /// Not at all: then nobody is taken for a stranger either.
    Unknown,
    /// By their source, in the families that are named.
    Ranges(Vec<Family>),
    /// By the interface that they come from.
    Interface(String),
    /// By how its name begins.
    InterfacePrefix(String),
}

impl Dialect {
    /// The bit as it is written.
    fn mark(&self) -> String {
        format!("{:#x}", 1_u32 << self.masquerade_bit.min(31))
    }

    /// Says "hide its source" of a packet.
    fn masquerade(&self) -> String {
        let mark = self.mark();
        format!("meta mark set meta mark or {mark}")
    }

    /// Whether a packet is of a pod here, or, with `not`, of anybody else; none where that is
    /// unknown.
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

/// The family as `nft` calls it.
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

/// Why the packet filter was not changed.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("cannot run `nft`, which Services need (Debian's package `nftables`)")]
    Run(#[source] io::Error),
    #[error("`nft` refused the rules of Services: {0}")]
    Refused(String),
}

/// Hands a script to the kernel, whole or not at all.
pub fn apply(script: &str) -> Result<(), FilterError> {
    run(&["-f", "-"], script).map(drop)
}

/// Takes a table away, if it is there. A kernel that does not have what it would need for it has
/// none.
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

/// Whether the kernel knows nothing of what was asked.
fn is_unsupported(said: &str) -> bool {
    [
        "Protocol not supported",
        "Operation not supported",
        "Address family not supported",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// Runs `nft`; the answer is what it prints.
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
        .expect("its input was asked for")
        .write_all(input.as_bytes());

    let output = nft.wait_with_output().map_err(FilterError::Run)?;
    if !output.status.success() {
        let said: String = String::from_utf8_lossy(&output.stderr)
            .trim()
            .chars()
            .take(SAID)
            .collect();
        return Err(FilterError::Refused(said));
    }

    sent.map_err(FilterError::Run)?;

    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// As much of a complaint is kept; it quotes the line that it is about, which may be long.
const SAID: usize = 2000;
