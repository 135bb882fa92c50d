//! Logs of containers: links to them, which collectors follow, and how large they may get
//! ([`rotation`]).

pub(crate) mod rotation;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::layout::Layout;

/// Longest name of a file.
const LONGEST_NAME: usize = 255;

/// The name of the link to the log of a container.
pub(crate) fn link_name(pod: &str, namespace: &str, container: &str, id: &str) -> String {
    let mut name = format!("{pod}_{namespace}_{container}-{id}");
    name.truncate(LONGEST_NAME - ".log".len());
    name + ".log"
}

/// Links to a log; where somebody has taken the folder of links away, it is made again.
pub(crate) fn link(log: &Path, link: &Path) -> io::Result<()> {
    match symlink(log, link) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            link.parent().map_or(Ok(()), fs::create_dir_all)?;
            symlink(log, link)
        }
        done => done,
    }
}

/// Removes the links to logs of one pod, whose folder is this.
pub(crate) fn remove_links(
    layout: &Layout,
    pod: &str,
    namespace: &str,
    logs: &Path,
) -> io::Result<()> {
    let prefix = link_name(pod, namespace, "", "");
    let prefix = prefix.trim_end_matches(".log").trim_end_matches('-');
    remove(layout, |name, target| {
        // Another pod may have had this name.
        name.starts_with(prefix) && target().is_some_and(|target| target.starts_with(logs))
    })
}

/// Removes links that lead nowhere.
pub(crate) fn remove_dangling(layout: &Layout) -> io::Result<()> {
    // Of a container whose log was moved aside a moment ago the folder is still there.
    remove(layout, |_, target| {
        !target().is_some_and(|target| target.parent().is_some_and(Path::exists))
    })
}

/// Removes those of which this is so: by name, and by what they lead to.
fn remove(
    layout: &Layout,
    is_to_go: impl Fn(&str, &dyn Fn() -> Option<PathBuf>) -> bool,
) -> io::Result<()> {
    let entries = match fs::read_dir(layout.container_links()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };

    for entry in entries {
        let entry = entry?;
        let target = || fs::read_link(entry.path()).ok();
        if is_to_go(&entry.file_name().to_string_lossy(), &target) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_log_has_a_name_that_fits() {
        assert_eq!(link_name("p", "ns", "c", "id"), "p_ns_c-id.log");
        let long = link_name(&"p".repeat(253), "ns", "c", "id");
        assert_eq!(long.len(), 255);
        assert!(long.ends_with(".log"));
    }

    #[test]
    fn a_pod_takes_its_links_and_leaves_those_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::below(folder.path());
        let logs = |uid: &str| layout.pod_logs().join(format!("ns_p_{uid}"));

        let there = || {
            let entries = fs::read_dir(layout.container_links()).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };

        let long = "p".repeat(253);
        for (pod, container, id, uid) in [
            ("p", "c", "1", "old"),
            ("p", "c", "2", "new"),
            ("p2", "c", "3", "new"),
            (&long, "c", "4", "new"),
        ] {
            let name = link_name(pod, "ns", container, id);
            link(
                &logs(uid).join("c/0.log"),
                &layout.container_links().join(name),
            )
            .unwrap();
        }

        remove_links(&layout, "p", "ns", &logs("old")).unwrap();
        assert_eq!(there().len(), 3);
        assert!(!there().contains(&"p_ns_c-1.log".to_owned()));

        remove_links(&layout, &long, "ns", &logs("new")).unwrap();
        assert_eq!(there(), ["p2_ns_c-3.log", "p_ns_c-2.log"]);

        fs::create_dir_all(logs("new").join("c")).unwrap();
        remove_dangling(&layout).unwrap();
        assert_eq!(there().len(), 2);

        fs::remove_dir_all(logs("new")).unwrap();
        remove_dangling(&layout).unwrap();
        assert!(there().is_empty());
    }
}
