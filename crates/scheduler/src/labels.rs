//! The labels of a node, a pod or a namespace, stored compactly.

use coracle_api::selector::Lookup;
use coracle_api::{Map, Text, Value};

/// Pairs sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Vec<(Text, Text)>);

impl Labels {
    /// The labels of an object; a value that is no string is empty.
    pub fn from_map(labels: Option<&Map>) -> Labels {
        let pair = |(key, value): (&str, &Value)| {
            (
                Text::new(key),
                Text::new(value.as_str().unwrap_or_default()),
            )
        };
        Labels(
            labels
                .map(|labels| labels.iter().map(pair).collect())
                .unwrap_or_default(),
        )
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        let index = self
            .0
            .binary_search_by(|(own, _)| own.as_str().cmp(key))
            .ok()?;
        Some(&self.0[index].1)
    }

    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl Lookup for Labels {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Labels {
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .map(|(key, value)| (Text::new(key), Text::new(value)))
            .collect();
        pairs.sort_unstable();
        pairs.dedup_by(|one, other| one.0 == other.0);
        Labels(pairs)
    }
}
