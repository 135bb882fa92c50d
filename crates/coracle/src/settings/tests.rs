use std::fs;
use std::path::{Path, PathBuf};

use coracle_settings::document::{Standing, UpstreamFlag};
use serde_json::Value;

use super::declared::Declared;
use crate::{
    agent, dns, etcd, kube_apiserver, kube_controller_manager, kube_proxy, kube_scheduler, kubelet,
    server,
};

fn programs() -> Vec<Declared> {
    vec![
        server::declared(),
        agent::declared(),
        kube_apiserver::declared(),
        kube_controller_manager::declared(),
        kube_scheduler::declared(),
        kube_proxy::declared(),
        kubelet::declared(),
        etcd::declared(),
        dns::declared(),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A component of upstream.
struct Upstream {
    sections: Vec<String>,
    flags: Vec<UpstreamFlag>,
    /// By flag, spelled as in our declarations.
    defaults: Vec<String>,
}

fn upstream(component: &str) -> Option<Upstream> {
    let text = fs::read(root().join("tests/facts/flags.json")).unwrap();
    let facts: Value = serde_json::from_slice(&text).unwrap();
    let facts = facts.get(component)?;
    let text = |value: &Value| value.as_str().unwrap().to_string();

    let sections = facts["sections"].as_array().unwrap();
    let rows = facts["flags"].as_array().unwrap();
    let flags = rows.iter().map(|row| UpstreamFlag {
        name: text(&row[0]),
        section: text(&row[1]),
    });
    let defaults = rows.iter().map(|row| match row[3].as_str().unwrap() {
        "<nil>" => String::new(),
        default => default.trim_matches(['[', ']']).to_string(),
    });

    Some(Upstream {
        sections: sections.iter().map(text).collect(),
        flags: flags.collect(),
        defaults: defaults.collect(),
    })
}

/// Flags of our own in programs of upstream.
const OWN: [&str; 6] = [
    "cluster-cidr",
    "cni-bin-dir",
    "cni-conf-dir",
    "controllers",
    "data-dir",
    "node-lease-write-delay",
];

/// Flags whose default is ours: the kubelet has a container runtime of its own.
const OTHER_DEFAULT: [&str; 1] = ["container-runtime-endpoint"];

#[test]
fn defaults_and_sections_are_upstreams() {
    for program in programs() {
        assert!(
            program.duplicates.is_empty(),
            "{}: {:?}",
            program.name,
            program.duplicates
        );
        let Some(upstream) = upstream(program.name) else {
            continue;
        };

        let mut last = 0;
        for (section, settings) in &program.sections {
            if let Some(at) = upstream.sections.iter().position(|name| name == section) {
                assert!(
                    last <= at,
                    "{}: section {section} is too late",
                    program.name
                );
                last = at;
            }

            for (name, default) in settings {
                let at = upstream.flags.iter().position(|flag| flag.name == *name);
                let Some(at) = at else {
                    assert!(
                        OWN.contains(name),
                        "{}: {name} is not upstream's",
                        program.name
                    );
                    continue;
                };
                if !OTHER_DEFAULT.contains(name) {
                    assert_eq!(*default, upstream.defaults[at], "{}: {name}", program.name);
                }
                let flag = &upstream.flags[at];
                assert!(
                    flag.section.is_empty() || flag.section == *section,
                    "{}: {name} belongs to {}",
                    program.name,
                    flag.section
                );
            }
        }
    }
}

#[test]
fn every_flag_of_upstream_is_taken_or_has_a_reason() {
    for program in programs() {
        let Some(upstream) = upstream(program.name) else {
            continue;
        };
        for flag in &upstream.flags {
            let standing = (program.standing)(&flag.name);
            assert_ne!(
                standing,
                Standing::Unknown,
                "{}: {}",
                program.name,
                flag.name
            );
        }
        for name in &program.omitted {
            let is_upstreams = upstream.flags.iter().any(|flag| flag.name == *name);
            assert!(is_upstreams, "{}: {name} is not upstream's", program.name);
        }
    }
}

#[test]
fn the_help_has_headings_types_and_defaults() {
    let programs = programs();
    let help = |name: &str| {
        let program = programs.iter().find(|program| program.name == name);
        program.unwrap().help.clone()
    };

    let manager = help("kube-controller-manager");
    for part in [
        "Usage:\n  coracle kube-controller-manager [flags]\n",
        "\nSecure serving flags:\n",
        "\nNode-lifecycle-controller flags:\n",
        "\n  --leader-elect (default true)\n",
        "\n  --cluster-signing-duration duration (default 8760h0m0s)\n",
        "\n  -v, --v int32 (default 0)\n",
    ] {
        assert!(manager.contains(part), "no {part:?} in {manager}");
    }
    assert!(help("server").contains("\n  --no-node (default false)\n"));
}

fn page() -> String {
    let mut page = String::from(
        "# Flags\n\nMade from the declarations in `crates/coracle/src` by `make flags`; a test fails if it is not current.\n\
         [configuration.md](configuration.md) explains configuration files and the other commands.\n",
    );

    let programs = programs();
    for program in &programs {
        page.push_str(&format!(
            "\n## coracle {}\n\n{}",
            program.name, program.tables
        ));
    }

    page.push_str(
        "\n## Beside upstream\n\nWhat happens to the flags of Kubernetes v1.36. *No effect*: accepted, with a warning in the log.\n\
         *Only*: accepted with the values that describe what happens anyway.\n",
    );
    for program in &programs {
        let Some(upstream) = upstream(program.name) else {
            continue;
        };
        let (table, taken) = (program.comparison)(&upstream.flags);
        let all = upstream.flags.len();
        page.push_str(&format!(
            "\n### {}: {taken} of {all} taken\n\n{table}",
            program.name
        ));
    }

    page
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment asks to write the page"
)]
fn the_page_of_flags_is_current() {
    let file = root().join("docs/flags.md");
    let page = page();
    if std::env::var("WRITE_FLAGS").is_ok() {
        fs::write(&file, &page).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == page,
        "docs/flags.md is not current: run `make flags`"
    );
}
