//! An answer, and how two differ.

use std::fmt::Write as _;

use serde::Deserialize;

/// As the oracle writes it; see its README.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    pub(crate) bad: String,
    pub(crate) errors: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) ast: String,
    pub(crate) est: Option<[u64; 2]>,
    pub(crate) program: String,
    pub(crate) cost: Option<u64>,
    pub(crate) value: String,
    pub(crate) rtype: String,
    pub(crate) err: String,
}

impl Answer {
    /// The members in which `self` (ours) is not as `upstream`; empty if they are the same.
    pub(crate) fn difference(&self, upstream: &Self) -> String {
        // Of the earliest stage that differs: later ones follow from it.
        for (ours, theirs) in [
            (&self.bad, &upstream.bad),
            (&self.errors, &upstream.errors),
            (&self.ast, &upstream.ast),
            (&self.program, &upstream.program),
        ] {
            if ours != theirs {
                return format!(
                    "    ours:   {}\n    theirs: {}\n",
                    indent(ours),
                    indent(theirs)
                );
            }
        }

        let mut out = String::new();
        let mut compare = |name: &str, ours: &str, theirs: &str| {
            if ours != theirs {
                writeln!(
                    out,
                    "  {name}\n    ours:   {}\n    theirs: {}",
                    indent(ours),
                    indent(theirs)
                )
                .expect("a string takes all");
            }
        };

        compare("type", &self.kind, &upstream.kind);
        compare(
            "est",
            &format!("{:?}", self.est),
            &format!("{:?}", upstream.est),
        );
        compare("value", &self.value, &upstream.value);
        compare("rtype", &self.rtype, &upstream.rtype);
        compare("err", &self.err, &upstream.err);
        compare(
            "cost",
            &format!("{:?}", self.cost),
            &format!("{:?}", upstream.cost),
        );
        out
    }
}

fn indent(text: &str) -> String {
    let text = text.replace('\n', "\n            ");
    match text.char_indices().nth(3000) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
