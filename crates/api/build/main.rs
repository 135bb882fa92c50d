//! Compiles the catalogue: `catalog/**/*.cat` (see `catalog/README.md` for the format) becomes
//! static tables.
//!
//! `parse` reads each page into plain structs and reports mistakes with file and line; `emit`
//! resolves names across pages and writes `OUT_DIR/tables.rs`, which `src/catalog/builtin.rs`
//! includes. `descriptions` takes field descriptions from `k8s-openapi`, then from
//! `catalog/descriptions.txt`.

mod descriptions;
mod emit;
mod parse;

use std::path::{Path, PathBuf};
use std::{env, fs};

#[expect(
    clippy::print_stdout,
    reason = "this is how a build script talks to cargo"
)]
#[expect(
    clippy::disallowed_methods,
    reason = "and this is how cargo talks to a build script"
)]
fn main() {
    println!("cargo::rerun-if-changed=catalog");
    println!("cargo::rerun-if-changed=build");

    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("catalog");
    let mut files = Vec::new();
    pages(&root, &mut files);
    files.sort();
    let pages: Vec<parse::Page> = files
        .iter()
        .map(|file| parse::page(&file.display().to_string(), &read(file)))
        .collect();

    let gates = parse::gates(&read(&root.join("gates.txt")));
    let groups = parse::groups(&read(&root.join("groups.txt")));
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("tables.rs"), emit::tables(&pages, &gates, &groups))
        .expect("OUT_DIR is writable");
    let own = descriptions::Own::parse(&read(&root.join("descriptions.txt")));
    let (texts, spans) = descriptions::tables(&pages, &descriptions::published(), &own);
    fs::write(out.join("descriptions.txt"), texts).expect("OUT_DIR is writable");
    fs::write(out.join("descriptions.rs"), spans).expect("OUT_DIR is writable");
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("catalog folder is readable") {
        let path = entry.expect("catalog folder is readable").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "cat") {
            found.push(path);
        }
    }
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
