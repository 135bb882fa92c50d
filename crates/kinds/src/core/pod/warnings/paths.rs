//! Warnings about files of a volume whose paths collide: equal, or one below the other.

use std::collections::HashMap;

use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Volume, VolumeProjection};

use crate::validate::{items, text};
use crate::warnings::Gathered;

/// A file and its source; empty where the source is obvious.
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> File {
        File {
            path: path.trim_end_matches('/').to_owned(),
            source: source.to_owned(),
        }
    }

    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => Quoted(&self.path).to_string(),
            source => format!("{} ({source})", Quoted(&self.path)),
        }
    }
}

pub(super) fn overlapping(volumes: &[Volume], warnings: &mut Gathered) {
    for volume in volumes {
        if let Some(source) = &volume.config_map {
            let of = format!("ConfigMap {}", Quoted(&source.name));
            warn_collisions(volume, &of, &keys(items(&source.items), ""), warnings);
        }

        if let Some(source) = &volume.secret {
            let of = format!("Secret {}", Quoted(text(&source.secret_name)));
            warn_collisions(volume, &of, &keys(items(&source.items), ""), warnings);
        }

        if let Some(source) = &volume.downward_api {
            warn_collisions(
                volume,
                "DownwardAPI",
                &fields(items(&source.items), ""),
                warnings,
            );
        }

        if let Some(projected) = &volume.projected {
            let sources = items(&projected.sources);
            for _ in sources
                .iter()
                .filter(|source| **source == VolumeProjection::default())
            {
                let name = Quoted(&volume.name);
                warnings.push(format!("volume {name} (Projected) has no sources provided"));
            }

            let files: Vec<File> = sources.iter().flat_map(projection).collect();
            warn_collisions(volume, "Projected", &files, warnings);
        }
    }
}

/// Two files collide where their paths are equal, or one is below the other.
fn warn_collisions(volume: &Volume, of: &str, files: &[File], warnings: &mut Gathered) {
    let mut seen = Folders::new();
    for (index, file) in files
        .iter()
        .enumerate()
        .filter(|(_, file)| !file.path.is_empty())
    {
        if warnings.is_full() {
            return;
        }

        for other in seen.colliding(&file.path) {
            if warnings.is_full() {
                return;
            }
            let name = Quoted(&volume.name);
            let (file, other) = (file.shown(), files[other].shown());
            warnings.push(format!(
                "volume {name} ({of}): overlapping paths: {file} with {other}"
            ));
        }

        seen.add(&file.path, index);
    }
}

/// The files so far, as a tree of folders in a flat list, so that depth needs no recursion.
struct Folders<'f> {
    folders: Vec<Folder>,
    /// The folder of a name within another.
    named: HashMap<(usize, &'f str), usize>,
}

#[derive(Default)]
struct Folder {
    /// The files with exactly this path.
    files: Vec<usize>,
    folders: Vec<usize>,
}

impl<'f> Folders<'f> {
    fn new() -> Folders<'f> {
        Folders {
            folders: vec![Folder::default()],
            named: HashMap::new(),
        }
    }

    fn add(&mut self, path: &'f str, file: usize) {
        let mut at = 0;
        for part in path.split('/') {
            let next = self.folders.len();
            let below = *self.named.entry((at, part)).or_insert(next);
            if below == next {
                self.folders.push(Folder::default());
                self.folders[at].folders.push(below);
            }
            at = below;
        }
        self.folders[at].files.push(file);
    }

    /// The files above, at and below a path, in the order in which they were added.
    fn colliding(&self, path: &'f str) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = Some(0);
        for part in path.split('/') {
            let Some(above) = at else { break };
            found.extend(&self.folders[above].files);
            at = self.named.get(&(above, part)).copied();
        }

        let mut rest: Vec<usize> = at.into_iter().collect();
        while let Some(folder) = rest.pop() {
            found.extend(&self.folders[folder].files);
            rest.extend(&self.folders[folder].folders);
        }

        found.sort_unstable();

        found
    }
}

fn keys(keys: &[KeyToPath], source: &str) -> Vec<File> {
    keys.iter()
        .map(|item| File::new(&item.path, source))
        .collect()
}

fn fields(files: &[DownwardAPIVolumeFile], source: &str) -> Vec<File> {
    files
        .iter()
        .map(|file| File::new(&file.path, source))
        .collect()
}

/// The files of one source; of several in one, the first counts.
fn projection(source: &VolumeProjection) -> Vec<File> {
    if let Some(source) = source
        .config_map
        .as_ref()
        .filter(|source| source.items.is_some())
    {
        keys(
            items(&source.items),
            &format!("ConfigMap {}", Quoted(&source.name)),
        )
    } else if let Some(source) = source
        .secret
        .as_ref()
        .filter(|source| source.items.is_some())
    {
        keys(
            items(&source.items),
            &format!("Secret {}", Quoted(&source.name)),
        )
    } else if let Some(source) = source
        .downward_api
        .as_ref()
        .filter(|source| source.items.is_some())
    {
        fields(items(&source.items), "DownwardAPI")
    } else if let Some(token) = &source.service_account_token {
        vec![File::new(&token.path, "ServiceAccountToken")]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_collide_if_equal_or_one_is_below_the_other() {
        let check = |one: &str, other: &str, collide: bool| {
            let volume = Volume {
                name: "v".to_owned(),
                ..Volume::default()
            };

            let mut warnings = Gathered::default();
            warn_collisions(
                &volume,
                "Secret",
                &[File::new(one, ""), File::new(other, "")],
                &mut warnings,
            );

            assert_eq!(!warnings.into_texts().is_empty(), collide, "{one} {other}");
        };

        check("a", "a", true);
        check("a", "a/b", true);
        check("a/b/", "a", true);
        check("a", "ab", false);
        check("a/b", "a/c", false);
        check("", "a", false);
    }

    #[test]
    fn files_are_listed_in_their_order() {
        let files = ["a/b", "c", "a", "a/b/c", "a/b"].map(|path| File::new(path, ""));
        let mut warnings = Gathered::default();
        warn_collisions(
            &Volume {
                name: "v".to_owned(),
                ..Volume::default()
            },
            "Secret",
            &files,
            &mut warnings,
        );

        let pairs = [
            ("a", "a/b"),
            ("a/b/c", "a/b"),
            ("a/b/c", "a"),
            ("a/b", "a/b"),
            ("a/b", "a"),
            ("a/b", "a/b/c"),
        ];

        let expected = pairs.map(|(file, other)| {
            format!("volume \"v\" (Secret): overlapping paths: \"{file}\" with \"{other}\"")
        });
        assert_eq!(warnings.into_texts(), expected);
    }
}
