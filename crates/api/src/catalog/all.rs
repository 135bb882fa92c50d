//! The built-in page and those added at run time, as one catalogue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{BUILTIN, Kind, Page, Resource, ServedApis, Struct};
use crate::Text;

/// Every kind that exists at some moment. An immutable snapshot that is cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Which built-in resources are served. All built-in kinds are known.
    served: ServedApis,
    /// By the names that their owners gave them.
    added: Arc<BTreeMap<Text, Arc<Page>>>,
}

impl Catalog {
    /// The built-in kinds alone.
    pub fn builtin() -> Catalog {
        Catalog::default()
    }

    /// The built-in kinds, of which some resources are served, and those of these pages, by the names
    /// that their owners gave them.
    pub fn with_all(
        served: ServedApis,
        pages: impl IntoIterator<Item = (Text, Arc<Page>)>,
    ) -> Catalog {
        Catalog {
            served,
            added: Arc::new(pages.into_iter().collect()),
        }
    }

    /// With a page added, or replaced if there is one of that name.
    pub fn with(&self, name: &str, page: Arc<Page>) -> Catalog {
        let mut added = BTreeMap::clone(&self.added);
        added.insert(Text::new(name), page);
        Catalog {
            served: self.served.clone(),
            added: Arc::new(added),
        }
    }

    /// Without the page of that name.
    pub fn without(&self, name: &str) -> Catalog {
        let mut added = BTreeMap::clone(&self.added);
        added.remove(name);
        Catalog {
            served: self.served.clone(),
            added: Arc::new(added),
        }
    }

    /// The built-in page first: nothing that is added can take its place.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        std::iter::once(&BUILTIN).chain(self.added.values().map(Arc::as_ref))
    }

    /// The built-in resources that are served.
    pub fn served(&self) -> &ServedApis {
        &self.served
    }

    /// Every resource that is served.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        let added = self.added.values().flat_map(|page| page.resources());
        let own = self
            .served
            .resources()
            .map(|resource| -> &Resource { resource });
        own.chain(added)
    }

    /// The pages that only one of two catalogues has, or that differ.
    pub fn difference<'a>(&'a self, other: &'a Catalog) -> impl Iterator<Item = &'a Page> {
        let same = Arc::ptr_eq(&self.added, &other.added);
        let only = move |a: &'a Catalog, b: &'a Catalog| {
            let missing = move |(name, page): &(&Text, &Arc<Page>)| {
                !same
                    && b.added
                        .get(*name)
                        .is_none_or(|other| !Arc::ptr_eq(page, other))
            };

            a.added
                .iter()
                .filter(missing)
                .map(|(_, page)| page.as_ref())
        };

        only(self, other).chain(only(other, self))
    }

    pub fn kind(&self, group: &str, version: &str, name: &str) -> Option<(&Kind, Struct<'_>)> {
        self.pages().find_map(|page| {
            page.kind(group, version, name)
                .map(|kind| (kind, page.root(kind)))
        })
    }

    /// The kind of an object with this apiVersion and kind.
    pub fn kind_of(&self, api_version: &str, kind: &str) -> Option<(&Kind, Struct<'_>)> {
        let (group, version) = super::split_api_version(api_version);
        self.kind(group, version, kind)
    }

    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.pages()
            .find_map(|page| page.resource(group, version, plural))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::PageBuilder;
    use crate::codec::json;

    fn widgets() -> Page {
        let mut page = PageBuilder::new();
        let root = page.custom_root(BUILTIN.type_named("meta.v1.ObjectMeta").unwrap());
        page.add_kind("example.com", "v1", "Widget", root);
        page.finish()
    }

    #[test]
    fn a_kind_added_at_run_time_is_found_like_any_other() {
        let catalog = Catalog::builtin().with("widgets.example.com", Arc::new(widgets()));
        let (kind, root) = catalog.kind_of("example.com/v1", "Widget").unwrap();
        assert_eq!(kind.api_version(), "example.com/v1");
        assert!(root.field("metadata").is_some());
        assert!(catalog.kind_of("v1", "Pod").is_some());
        let without = catalog.without("widgets.example.com");
        assert!(without.kind_of("example.com/v1", "Widget").is_none());
        // The old snapshot still has it.
        assert!(catalog.kind_of("example.com/v1", "Widget").is_some());
    }

    #[test]
    fn metadata_is_typed_and_the_rest_is_unchanged() {
        let page = widgets();
        let root = page.root(page.kind("example.com", "v1", "Widget").unwrap());
        let decode = |text: &str| json::decode(text.as_bytes(), Some(root.node()));

        let text = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","foo":1},"spec":{"b":1,"a":[{"x":1.5}]}}"#;
        let decoded = decode(text).unwrap();
        assert_eq!(decoded.strict, ["unknown field \"metadata.foo\""]);
        assert_eq!(
            json::to_string(&decoded.value),
            r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"a":[{"x":1.5}],"b":1}}"#
        );

        let error = decode(r#"{"metadata":{"ownerReferences":[{"uid":7}]}}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "json: cannot unmarshal number into Go struct field OwnerReference.metadata.ownerReferences.uid of type types.UID"
        );
    }
}
