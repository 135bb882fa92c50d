//! Images as text.

use std::collections::HashMap;

use coracle_cri::v1::Image;
use coracle_runtime::images::Reference;
use serde_json::{Value, json};

/// Image ids, one per line.
pub(super) fn ids(images: &[Image]) -> String {
    images
        .iter()
        .map(|image| format!("{}\n", image.id))
        .collect()
}

/// A table with one line per name; an image without a name has one line too.
pub(super) fn table(images: &[Image]) -> String {
    let mut lines: Vec<[String; 4]> = images.iter().flat_map(lines_of).collect();
    lines.sort();
    lines.insert(0, ["IMAGE", "TAG", "IMAGE ID", "SIZE"].map(str::to_owned));

    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].len())
            .max()
            .unwrap_or(0)
            + 3
    };

    let widths = [width(0), width(1), width(2)];
    let text = lines.iter().map(|[image, tag, id, size]| {
        format!(
            "{image:<0$}{tag:<1$}{id:<2$}{size}\n",
            widths[0], widths[1], widths[2]
        )
    });

    text.collect()
}

fn lines_of(image: &Image) -> Vec<[String; 4]> {
    let id = image
        .id
        .trim_start_matches("sha256:")
        .chars()
        .take(13)
        .collect::<String>();

    let line = |name: &str, tag: &str| {
        [
            name.to_owned(),
            tag.to_owned(),
            id.clone(),
            size(image.size),
        ]
    };

    let tags = image
        .repo_tags
        .iter()
        .filter_map(|tag| tag.rsplit_once(':'));

    let mut lines: Vec<_> = tags.map(|(name, tag)| line(name, tag)).collect();
    if lines.is_empty() {
        let digest = image
            .repo_digests
            .first()
            .and_then(|name| name.parse::<Reference>().ok());
        lines.push(line(
            &digest.map_or("<none>".to_owned(), |name| name.name()),
            "<none>",
        ));
    }

    lines
}

/// A size in human-readable units.
pub(super) fn size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{}{name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes}B"),
    }
}

/// An image as JSON. Values of the CRI `info` map are often JSON themselves.
pub(super) fn json(image: &Image, info: &HashMap<String, String>) -> String {
    let info_values: serde_json::Map<String, Value> = info
        .iter()
        .map(|(name, text)| {
            (
                name.clone(),
                serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            )
        })
        .collect();

    let all = json!({
        "id": image.id,
        "repoTags": image.repo_tags,
        "repoDigests": image.repo_digests,
        "size": image.size,
        "uid": image.uid.as_ref().map(|uid| uid.value),
        "username": image.username,
        "pinned": image.pinned,
        "info": info_values,
    });

    serde_json::to_string_pretty(&all).expect("a tree of texts and numbers is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_line() {
        let image = |id: char, tags: &[&str], digests: &[&str], size: u64| Image {
            id: format!("sha256:{}", id.to_string().repeat(64)),
            repo_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            repo_digests: digests.iter().map(|name| (*name).to_owned()).collect(),
            size,
            ..Image::default()
        };

        let digest = format!("h.io/x@sha256:{}", "0".repeat(64));
        let images = [
            image('b', &["h.io:5000/b:v1", "h.io:5000/b:v2"], &[], 1_234_567),
            image('a', &[], &[&digest], 12),
        ];

        let expected = "\
IMAGE         TAG      IMAGE ID        SIZE
h.io/x        <none>   aaaaaaaaaaaaa   12B
h.io:5000/b   v1       bbbbbbbbbbbbb   1.2MB
h.io:5000/b   v2       bbbbbbbbbbbbb   1.2MB
";
        assert_eq!(table(&images), expected);
    }
}
