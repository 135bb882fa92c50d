//! The sections that the API is documented in: one for each group and version, and small ones for
//! the paths beside them.

use std::collections::BTreeSet;

use coracle_api::catalog::{BUILTIN, Catalog, Page};

use super::names;
use super::operation::{Model, Operation};
use super::resource;
use super::routes::group_version_path;

const JSON: &[&str] = &["application/json"];
const KEY_SET: &[&str] = &["application/jwk-set+json"];
const DISCOVERY: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// A document of version 3; all of them together are the document of version 2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    Group(String),
    GroupVersion {
        group: String,
        version: String,
    },
    /// `/version`
    Version,
    OpenIdKeys,
    OpenIdConfiguration,
}

impl Section {
    pub(super) fn all(catalog: &Catalog) -> Vec<Section> {
        let versions = group_versions(catalog);
        let groups: BTreeSet<&str> = versions.iter().map(|(group, _)| group.as_str()).collect();
        let named = groups.iter().filter(|group| !group.is_empty());

        let mut all = vec![Section::CoreVersions, Section::Groups, Section::Version];
        all.extend([Section::OpenIdKeys, Section::OpenIdConfiguration]);

        all.extend(named.map(|group| Section::Group(group.to_string())));
        all.extend(
            versions
                .iter()
                .map(|(group, version)| Section::GroupVersion {
                    group: group.clone(),
                    version: version.clone(),
                }),
        );

        all.sort_by_key(Section::path);

        all
    }

    /// Its name in the index, and its path below `/openapi/v3`: `apis/apps/v1`.
    pub(super) fn path(&self) -> String {
        match self {
            Section::CoreVersions => "api".to_string(),
            Section::Groups => "apis".to_string(),
            Section::Group(name) => format!("apis/{name}"),
            Section::GroupVersion { group, version } => {
                group_version_path(group, version)[1..].to_string()
            }
            Section::Version => "version".to_string(),
            Section::OpenIdKeys => "openid/v1/jwks".to_string(),
            Section::OpenIdConfiguration => ".well-known/openid-configuration".to_string(),
        }
    }

    /// The URL of its document, as in the index.
    pub(super) fn url(&self, hash: &str) -> String {
        format!("/openapi/v3/{}?hash={hash}", self.path())
    }

    pub(super) fn operations<'c>(&self, catalog: &'c Catalog) -> Vec<Operation<'c>> {
        let meta = |name| BUILTIN.type_named(name).map_or(Model::Text, Model::Type);
        let operation = match self {
            Section::CoreVersions => self.plain("getCoreAPIVersions", "get available API versions", "core"),
            Section::Groups => self.plain("getAPIVersions", "get available API versions", "apis"),
            Section::Group(name) => self.plain(
                &names::operation_id("get", name, "", "APIGroup"),
                "get information of a group",
                &names::tag(name, ""),
            ),
            Section::GroupVersion { group, version } => self.plain(
                &names::operation_id("get", group, version, "APIResources"),
                "get available resources",
                &names::tag(group, version),
            ),
            Section::Version => {
                self.plain("getCodeVersion", "get the version information for this server", "version")
            }
            Section::OpenIdKeys => self.plain(
                "getServiceAccountIssuerOpenIDKeyset",
                "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
                "openid",
            ),
            Section::OpenIdConfiguration => self.plain(
                "getServiceAccountIssuerOpenIDConfiguration",
                "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
                "WellKnown",
            ),
        };

        let (consumes, produces, answer) = match self {
            Section::CoreVersions => (DISCOVERY, DISCOVERY, meta("meta.v1.APIVersions")),
            Section::Groups => (DISCOVERY, DISCOVERY, meta("meta.v1.APIGroupList")),
            Section::Group(_) => (DISCOVERY, DISCOVERY, meta("meta.v1.APIGroup")),
            Section::GroupVersion { .. } => (DISCOVERY, DISCOVERY, meta("meta.v1.APIResourceList")),
            Section::Version => (JSON, JSON, meta("version.Info")),
            Section::OpenIdKeys => (&[][..], KEY_SET, Model::Text),
            Section::OpenIdConfiguration => (&[][..], JSON, Model::Text),
        };

        let mut all = vec![Operation {
            consumes,
            produces,
            answer,
            ..operation
        }];

        if let Section::GroupVersion { group, version } = self {
            let own = catalog
                .resources()
                .filter(|resource| resource.group == *group && resource.version == *version);
            all.extend(own.flat_map(|resource| resource::operations(catalog, resource)));
        }

        all
    }

    /// The operation that the section's own path has.
    fn plain<'c>(&self, id: &str, description: &'static str, tag: &str) -> Operation<'c> {
        Operation {
            method: "get",
            path: format!("/{}/", self.path()),
            id: id.to_string(),
            tag: tag.to_string(),
            description: description.into(),
            action: None,
            parameters: Vec::new(),
            body: None,
            consumes: DISCOVERY,
            produces: DISCOVERY,
            codes: &[200],
            answer: Model::Text,
        }
    }
}

/// Groups and versions that are served: the built-in ones that are on, and those of pages added at
/// run time.
pub(super) fn group_versions(catalog: &Catalog) -> BTreeSet<(String, String)> {
    let built_in = catalog.served().groups().iter().flat_map(|group| {
        group
            .versions
            .iter()
            .map(|version| (group.name.to_string(), version.to_string()))
    });
    let added = catalog.pages().skip(1).flat_map(Page::resources);
    built_in
        .chain(added.map(|resource| (resource.group.to_string(), resource.version.to_string())))
        .collect()
}
