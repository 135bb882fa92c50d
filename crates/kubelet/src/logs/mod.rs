//! Container logs: the links that log collectors follow, and [`rotation`].

pub(crate) mod rotation;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::layout::Layout;

/// Longest file name.
const LONGEST_NAME: usize = 255;

/// The name of the link to the log of a container.
pub(crate) fn link_name(pod: &str, namespace: &str, container: &str, id: &str) -> String {
    let mut name = format!("{pod}_{namespace}_{container}-{id}");
    name.truncate(LONGEST_NAME - ".log".len());
    name + ".log"
}

/// Creates a link to a log, and its directory if it is missing.
pub(crate) fn link(log: &Path, link: &Path) -> io::Result<()> {
    match symlink(log, link) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            link.parent().map_or(Ok(()), fs::create_dir_all)?;
            symlink(log, link)
        }
        done => done,
    }
}

/// Removes the links to the logs of one pod, which are in `logs`.
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

/// Removes links without a target.
pub(crate) fn remove_dangling(layout: &Layout) -> io::Result<()> {
    // During rotation the log is missing for a moment, but its directory is not.
    remove(layout, |_, target| {
        !target().is_some_and(|target| target.parent().is_some_and(Path::exists))
    })
}

/// Removes links selected by name and target.
fn remove(
    layout: &Layout,
    is_selected: impl Fn(&str, &dyn Fn() -> Option<PathBuf>) -> bool,
) -> io::Result<()> {
    let entries = match fs::read_dir(layout.container_links()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };

    for entry in entries {
        let entry = entry?;
        let target = || fs::read_link(entry.path()).ok();
        if is_selected(&entry.file_name().to_string_lossy(), &target) {
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
    fn only_the_links_of_the_pod_are_removed() {
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
