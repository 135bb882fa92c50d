//! A namespace in which the program `nft` makes the same changes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use coracle_netlink::nftables::Batch;

use super::Namespace;

pub(crate) struct Mirror {
    namespace: Namespace,
}

impl Mirror {
    pub(crate) fn new() -> Mirror {
        Mirror {
            namespace: Namespace::new(),
        }
    }

    /// Makes the changes, and compares all rules with those of the node.
    pub(crate) fn compare(&self, batch: &Batch, node: &Namespace) {
        let script = batch.to_string();
        self.namespace.inside(|| {
            let mut nft = Command::new("nft")
                .args(["-f", "-"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut input = nft.stdin.take().unwrap();
            input.write_all(script.as_bytes()).unwrap();
            drop(input);
            assert!(nft.wait().unwrap().success(), "{script}");
        });

        let by_text = blocks(&self.namespace.run("nft", "list ruleset"));
        let by_netlink = blocks(&node.run("nft", "list ruleset"));
        for (name, block) in &by_text {
            assert_eq!(by_netlink.get(name), Some(block), "{name}");
        }
        assert_eq!(by_netlink.len(), by_text.len());
    }
}

/// The sets and chains of a listing, by table and name. The kernel has the elements of a set in no
/// certain order, and packets add clients to the sets of these.
fn blocks(listed: &str) -> BTreeMap<String, Vec<String>> {
    let mut blocks = BTreeMap::new();
    let (mut table, mut block) = ("", String::new());
    for line in listed.lines() {
        if line.starts_with("table ") {
            table = line;
        } else if !line.starts_with("\t\t") && line.ends_with('{') {
            block = format!("{table}{}", line.trim());
            blocks.insert(block.clone(), String::new());
        } else if let Some(text) = blocks.get_mut(&block) {
            text.push_str(line);
            text.push('\n');
        }
    }

    let in_order = |(name, text): (String, String)| {
        let Some((head, elements)) = text.split_once("elements = {") else {
            return (name, vec![trimmed(&text)]);
        };
        let mut elements: Vec<String> = elements
            .trim_end_matches(['\n', '\t', ' ', '}'])
            .split(',')
            .map(|element| element.trim().to_owned())
            .collect();
        elements.sort();
        if name.contains("set clients/") {
            elements.clear();
        }
        elements.push(trimmed(head));
        (name, elements)
    };
    blocks.into_iter().map(in_order).collect()
}

/// A block without what closes it.
fn trimmed(text: &str) -> String {
    text.trim_end_matches(['\n', '\t', ' ', '}']).to_owned()
}
