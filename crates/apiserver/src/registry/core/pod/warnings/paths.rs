//! Warnings about files of a volume that would stand in the same place, or one below the other.

use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Volume, VolumeProjection};

use crate::registry::validate::{items, text};

/// A file and where it comes from; where that goes without saying, nothing.
#[derive(PartialEq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> File {
        File { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
    }

    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => Quoted(&self.path).to_string(),
            source => format!("{} ({source})", Quoted(&self.path)),
        }
    }

    /// Whether both cannot be there.
    fn collides(&self, other: &File) -> bool {
        let below = |inner: &str, outer: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (below(&self.path, &other.path) || below(&other.path, &self.path))
    }
}

pub(super) fn overlapping(volumes: &[Volume], warnings: &mut Vec<String>) {
    for volume in volumes {
        if let Some(source) = &volume.config_map {
            let of = format!("ConfigMap {}", Quoted(&source.name));
            collisions(volume, &of, &keys(items(&source.items), ""), warnings);
        }
        if let Some(source) = &volume.secret {
            let of = format!("Secret {}", Quoted(text(&source.secret_name)));
            collisions(volume, &of, &keys(items(&source.items), ""), warnings);
        }
        if let Some(source) = &volume.downward_api {
            collisions(volume, "DownwardAPI", &fields(items(&source.items), ""), warnings);
        }
        if let Some(projected) = &volume.projected {
            let sources = items(&projected.sources);
            for _ in sources.iter().filter(|source| **source == VolumeProjection::default()) {
                let name = Quoted(&volume.name);
                warnings.push(format!("volume {name} (Projected) has no sources provided"));
            }
            let files: Vec<File> = sources.iter().flat_map(projection).collect();
            collisions(volume, "Projected", &files, warnings);
        }
    }
}

fn collisions(volume: &Volume, of: &str, files: &[File], warnings: &mut Vec<String>) {
    for (index, file) in files.iter().enumerate() {
        for other in files[..index].iter().filter(|other| file.collides(other)) {
            let name = Quoted(&volume.name);
            let (file, other) = (file.shown(), other.shown());
            warnings.push(format!("volume {name} ({of}): overlapping paths: {file} with {other}"));
        }
    }
}

fn keys(keys: &[KeyToPath], source: &str) -> Vec<File> {
    keys.iter().map(|item| File::new(&item.path, source)).collect()
}

fn fields(files: &[DownwardAPIVolumeFile], source: &str) -> Vec<File> {
    files.iter().map(|file| File::new(&file.path, source)).collect()
}

/// The files of one source; of several in one, the first counts.
fn projection(source: &VolumeProjection) -> Vec<File> {
    if let Some(source) = source.config_map.as_ref().filter(|source| source.items.is_some()) {
        keys(items(&source.items), &format!("ConfigMap {}", Quoted(&source.name)))
    } else if let Some(source) = source.secret.as_ref().filter(|source| source.items.is_some()) {
        keys(items(&source.items), &format!("Secret {}", Quoted(&source.name)))
    } else if let Some(source) = source.downward_api.as_ref().filter(|source| source.items.is_some()) {
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
    fn files_collide_where_one_is_the_other_or_below_it() {
        let check = |one: &str, other: &str, collide: bool| {
            assert_eq!(File::new(one, "").collides(&File::new(other, "")), collide, "{one} {other}");
        };
        check("a", "a", true);
        check("a", "a/b", true);
        check("a/b/", "a", true);
        check("a", "ab", false);
        check("a/b", "a/c", false);
        check("", "a", false);
    }
}
