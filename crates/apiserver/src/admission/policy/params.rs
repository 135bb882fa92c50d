//! The parameters of a policy: objects that its expressions see as `params`.

use std::borrow::Cow;
use std::sync::Arc;

use coracle_api::catalog::{Kind, split_api_version};
use coracle_api::selector::LabelSelector;
use coracle_api::{Map, Value};

use crate::admission::Attributes;
use crate::cache::{Cache, Caches, Entry};
use crate::served::Served;

/// The kind of the parameters of a policy.
#[derive(Clone, Debug)]
pub(super) struct ParamKind {
    api_version: String,
    kind: String,
}

/// The parameters that a binding names.
#[derive(Clone, Debug)]
pub(super) struct ParamRef {
    /// Empty: those that the selector selects.
    name: String,
    /// Empty: that of the request.
    namespace: String,
    /// Or what is wrong with it.
    selector: Option<Result<LabelSelector, String>>,
    /// Whether a request is refused if there are none.
    denies_if_missing: bool,
}

/// An object, or none where the binding names no parameters.
pub(super) type Param = Option<Arc<Value>>;

/// Why there are no parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParamError {
    #[error(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    )]
    NoNamespace,
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    Namespace,
    #[error("paramRef.name and paramRef.selector are mutually exclusive")]
    NameAndSelector,
    #[error("one of name or selector must be provided")]
    Nothing,
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    Missing,
    /// Objects of this kind are not stored.
    #[error(
        "paramKind kind `&ParamKind{{APIVersion:{0},Kind:{1},}}` not yet synced to use for admission"
    )]
    NotStored(String, String),
    #[error("{0}")]
    Selector(String),
    #[error("{0}")]
    Conversion(String),
}

impl ParamKind {
    pub(super) fn of(kind: &Map) -> ParamKind {
        ParamKind {
            api_version: kind.text("apiVersion").to_owned(),
            kind: kind.text("kind").to_owned(),
        }
    }

    /// The resource that shows objects of this kind.
    ///
    /// # Errors
    /// There is none, with upstream's text.
    pub(super) fn resource(&self, caches: &Caches) -> Result<Served, String> {
        let (group, version) = split_api_version(&self.api_version);
        Served::of_kind(caches, group, version, &self.kind).ok_or_else(|| {
            format!(
                "failed to find resource referenced by paramKind: '{group}/{version}, Kind={}'",
                self.kind
            )
        })
    }
}

impl ParamRef {
    pub(super) fn of(params: &Map) -> ParamRef {
        let selector = params.get("selector").filter(|given| !given.is_null());
        ParamRef {
            name: params.text("name").to_owned(),
            namespace: params.text("namespace").to_owned(),
            selector: selector.map(|given| {
                LabelSelector::from_value(Some(given)).map_err(|error| error.to_string())
            }),
            denies_if_missing: params.text("parameterNotFoundAction") == "Deny",
        }
    }

    /// The parameters for a request, in the version of the policy's `paramKind`. There may be none,
    /// and then nothing is evaluated.
    ///
    /// # Errors
    /// They are missing, or cannot be found out.
    pub(super) async fn collect(
        &self,
        served: &Served,
        attributes: &Attributes<'_>,
        caches: &Caches,
    ) -> Result<Vec<Param>, ParamError> {
        let prefix = match served.resource().namespaced {
            false if !self.namespace.is_empty() => return Err(ParamError::Namespace),
            false => String::new(),
            true => match [self.namespace.as_str(), attributes.namespace()] {
                ["", ""] => return Err(ParamError::NoNamespace),
                ["", namespace] | [namespace, _] => format!("{namespace}/"),
            },
        };

        let cache = cache(served, caches).ok_or_else(|| {
            let kind = served.kind();
            ParamError::NotStored(kind.api_version().to_string(), kind.name.to_string())
        })?;
        let found = self.find(cache, &prefix)?;
        if found.is_empty() && self.denies_if_missing {
            return Err(ParamError::Missing);
        }

        let mut params = Vec::with_capacity(found.len());
        for entry in found {
            let tree = caches.trees.of(&entry, cache.storage_version().of);
            params.push(Some(shown(tree, served, attributes).await?));
        }
        Ok(params)
    }

    /// Those whose key begins with `prefix`.
    fn find(&self, cache: &Cache, prefix: &str) -> Result<Vec<Arc<Entry>>, ParamError> {
        match (self.name.as_str(), &self.selector) {
            ("", None) => Err(ParamError::Nothing),
            ("", Some(Err(error))) => Err(ParamError::Selector(error.clone())),
            ("", Some(Ok(selector))) => {
                let snapshot = cache.snapshot();
                let below = snapshot.entries.below(prefix, prefix);
                let selected =
                    below.filter(|entry| selector.is_everything() || selector.matches(&***entry));
                Ok(selected.cloned().collect())
            }
            (_, Some(_)) => Err(ParamError::NameAndSelector),
            (name, None) => Ok(cache.get(&format!("{prefix}{name}")).into_iter().collect()),
        }
    }
}

fn cache<'c>(served: &'c Served, caches: &'c Caches) -> Option<&'c Arc<Cache>> {
    match served {
        Served::BuiltIn(own) => caches.get(&own.resource.storage.as_ref()?.prefix),
        Served::Custom(custom, _) => Some(&custom.cache),
    }
}

/// A stored object in the version that is wanted.
async fn shown(
    tree: Arc<Value>,
    served: &Served,
    attributes: &Attributes<'_>,
) -> Result<Arc<Value>, ParamError> {
    let kind: &Kind = served.kind();
    let wanted = kind.api_version();
    if tree.get("apiVersion").and_then(Value::as_str) == Some(&*wanted) {
        return Ok(tree);
    }

    let Some((custom, version)) = served.custom() else {
        let shown = served.storage_version().show(Cow::Borrowed(&*tree), kind);
        return Ok(Arc::new(shown.into_owned()));
    };
    if custom.conversion.is_none() {
        return Ok(Arc::new(custom.shown(Value::clone(&tree), &version.name)));
    }

    let objects = vec![Value::clone(&tree)];
    let converted = attributes
        .conversion
        .convert(custom, objects, &wanted)
        .await;
    let mut converted = converted.map_err(ParamError::Conversion)?;
    let mut shown = converted
        .pop()
        .ok_or_else(|| ParamError::Conversion("CR conversion failed".to_owned()))?;
    version.prune(&mut shown);
    Ok(Arc::new(shown))
}
