//! Negotiates `Accept`: clauses in the order of their quality, each tried against what the endpoint
//! offers.
//!
//! The grammar is looser than the RFC's, as upstream's is: no quoted strings, a malformed clause is
//! skipped, a quality that is no number counts as 0, and 0 is the last choice, not a refusal.

use super::MediaType;

/// What an endpoint can respond with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Objects of a built-in resource.
    BuiltIn,
    /// Objects of a built-in kind without a table form: reviews, bindings, some subresources.
    WithoutTable,
    /// Objects of a custom resource. Only their metadata has a protobuf form.
    Custom,
    /// Documents that have a single shape.
    Plain,
    /// Aggregated discovery, which must be requested by name.
    AggregatedDiscovery,
}

/// The negotiated response.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    pub media_type: MediaType,
    pub transform: Option<Transform>,
    /// `pretty=1`: indented.
    pub pretty: bool,
    /// `stream=watch`.
    pub stream: bool,
    /// `profile=…`, which selects the discovery profile between servers.
    pub profile: Option<String>,
}

/// A shape other than that of the object itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    Table(MetaVersion),
    PartialObjectMetadata(MetaVersion),
    PartialObjectMetadataList(MetaVersion),
    /// `apidiscovery.k8s.io/v2`.
    ApiGroupDiscoveryList,
}

/// A version of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    V1,
    V1beta1,
}

/// The endpoint offers nothing that the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAcceptable {
    #[error("only the following media types are accepted: {}", joined(MediaType::all().map(MediaType::as_str)))]
    Object,
    #[error("only the following media types are accepted: {}", joined(MediaType::all().filter_map(stream)))]
    Stream,
    /// Documents about the API have no CBOR form.
    #[error(
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )]
    Document,
}

pub(super) fn joined(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The stream type as errors name it.
fn stream(of: MediaType) -> Option<&'static str> {
    of.stream()
}

/// The form and shape of a response.
pub fn negotiate(accept: &str, endpoint: Endpoint) -> Result<Accepted, NotAcceptable> {
    if accept.is_empty() {
        return Ok(Accepted::plain(MediaType::Json));
    }
    clauses(accept)
        .iter()
        .flat_map(|clause| MediaType::all().map(move |offer| (clause, offer)))
        .filter(|(clause, offer)| clause.covers(*offer))
        .find_map(|(clause, offer)| clause.accepted(offer, endpoint))
        .ok_or(NotAcceptable::Object)
}

/// The offer that the client prefers, of several below `application/`; `None`: it accepts none of
/// them.
pub fn choose<'o>(accept: &str, offers: &[&'o str]) -> Option<&'o str> {
    if accept.is_empty() {
        return offers.first().copied();
    }
    let covers = |clause: &Clause<'_>, offer: &str| {
        matches!(clause.kind, "*" | "application")
            && (clause.subtype == "*" || offer.strip_prefix("application/") == Some(clause.subtype))
    };
    let clauses = clauses(accept);
    clauses
        .iter()
        .find_map(|clause| offers.iter().copied().find(|offer| covers(clause, offer)))
}

/// The form of a page of a component: a text for people, or an object of `config.k8s.io` where the
/// client names its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageForm {
    Text,
    Object {
        media_type: MediaType,
        /// `v1alpha1` or `v1beta1`.
        version: &'static str,
    },
}

/// The form of a page that exists as a text and as an object of `kind`; `None`: the client accepts
/// neither.
pub fn negotiate_page(accept: &str, kind: &str) -> Option<PageForm> {
    if accept.trim().is_empty() {
        return Some(PageForm::Text);
    }
    clauses(accept).iter().find_map(|clause| clause.page(kind))
}

/// The form and shape of the events of a watch.
pub fn negotiate_stream(accept: &str, endpoint: Endpoint) -> Result<Accepted, NotAcceptable> {
    let accepted = negotiate(accept, endpoint).map_err(|_| NotAcceptable::Stream)?;
    // The best match counts: a client that prefers YAML to JSON gets no watch, though JSON would
    // do.
    if accepted.media_type.stream().is_some() {
        Ok(accepted)
    } else {
        Err(NotAcceptable::Stream)
    }
}

impl Accepted {
    fn plain(media_type: MediaType) -> Accepted {
        Accepted {
            media_type,
            transform: None,
            pretty: false,
            stream: false,
            profile: None,
        }
    }
}

/// One alternative of the header.
#[derive(Debug)]
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// The clauses, best first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<_> = accept.split(',').filter_map(Clause::parse).collect();
    if clauses.len() > FEW {
        clauses.sort_by(|a, b| {
            b.quality
                .total_cmp(&a.quality)
                .then(a.wildcards().cmp(&b.wildcards()))
        });
        return clauses;
    }

    // Upstream's comparison is not a total order: a wildcard yields to its neighbour regardless of
    // quality. So the result depends on the sorting algorithm, which is this one.
    for end in 1..clauses.len() {
        let mut index = end;
        while index > 0 && clauses[index].goes_before(&clauses[index - 1]) {
            clauses.swap(index, index - 1);
            index -= 1;
        }
    }

    clauses
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Clause<'a>> {
        let mut parts = text.trim_matches(' ').split(';');
        let (kind, subtype) = split_type(parts.next()?)?;
        let mut clause = Clause {
            kind,
            subtype,
            quality: 1.0,
            parameters: Vec::new(),
        };

        for (name, value) in parts.filter_map(parameter) {
            match name {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                _ => clause.parameters.push((name, value.trim_matches(' '))),
            }
        }

        Some(clause)
    }

    fn goes_before(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }

    fn wildcards(&self) -> usize {
        usize::from(self.kind == "*") + usize::from(self.subtype == "*")
    }

    fn covers(&self, offer: MediaType) -> bool {
        match (self.kind, self.subtype) {
            ("*" | "application", "*") => true,
            ("application", subtype) => subtype == offer.subtype(),
            _ => false,
        }
    }

    /// The result for an offer that this clause covers, if the endpoint supports it.
    fn accepted(&self, offer: MediaType, endpoint: Endpoint) -> Option<Accepted> {
        if self
            .parameter("sv")
            .is_some_and(|version| !endpoint.serves_version(version))
        {
            return None;
        }

        let stream = self.parameter("stream");
        if stream.is_some_and(|stream| stream != "watch" || offer.stream().is_none()) {
            return None;
        }

        let transform = match self.requested_transform() {
            None => None,
            Some(known) => Some(known?),
        };

        endpoint.allows(offer, transform).then(|| Accepted {
            transform,
            pretty: self.parameter("pretty") == Some("1"),
            stream: stream.is_some(),
            profile: self.parameter("profile").map(str::to_owned),
            ..Accepted::plain(offer)
        })
    }

    /// The form that this clause accepts of a page. Neither form is streamed or served in another
    /// version of the meta group.
    fn page(&self, kind: &str) -> Option<PageForm> {
        if self.parameter("sv").is_some() || self.parameter("stream").is_some() {
            return None;
        }

        let part = |name| self.parameter(name).unwrap_or("");
        let named = (part("g"), part("v"), part("as"));
        if !self.names_a_kind() {
            let is_text = matches!(
                (self.kind, self.subtype),
                ("*" | "text", "*") | ("text", "plain")
            );
            return is_text.then_some(PageForm::Text);
        }

        let version = ["v1alpha1", "v1beta1"]
            .into_iter()
            .find(|version| named == ("config.k8s.io", version, kind))?;
        let media_type = [MediaType::Json, MediaType::Yaml]
            .into_iter()
            .find(|offer| self.covers(*offer))?;
        Some(PageForm::Object {
            media_type,
            version,
        })
    }

    /// Whether the client names the kind of the response.
    fn names_a_kind(&self) -> bool {
        let names_one = |(name, _): &(&str, &str)| matches!(*name, "as" | "g" | "v");
        self.parameters.iter().any(names_one)
    }

    /// The last value of that name, unless it is empty.
    fn parameter(&self, name: &str) -> Option<&'a str> {
        let found = self
            .parameters
            .iter()
            .rev()
            .find(|(found, _)| *found == name);
        found
            .map(|(_, value)| *value)
            .filter(|value| !value.is_empty())
    }

    /// The requested shape: `None` if there is none, `Some(None)` if it is unknown.
    fn requested_transform(&self) -> Option<Option<Transform>> {
        if !self.names_a_kind() {
            return None;
        }

        let part = |name| self.parameter(name).unwrap_or("");
        let meta = match (part("g"), part("v")) {
            ("meta.k8s.io", "v1") => Some(MetaVersion::V1),
            ("meta.k8s.io", "v1beta1") => Some(MetaVersion::V1beta1),
            _ => None,
        };

        Some(match (part("as"), meta) {
            ("Table", Some(version)) => Some(Transform::Table(version)),
            ("PartialObjectMetadata", Some(version)) => {
                Some(Transform::PartialObjectMetadata(version))
            }
            ("PartialObjectMetadataList", Some(version)) => {
                Some(Transform::PartialObjectMetadataList(version))
            }
            ("APIGroupDiscoveryList", None)
                if (part("g"), part("v")) == ("apidiscovery.k8s.io", "v2") =>
            {
                Some(Transform::ApiGroupDiscoveryList)
            }
            _ => None,
        })
    }
}

/// `type/subtype`; a lone `*` stands for `*/*`, and a slash at the end does not count.
fn split_type(text: &str) -> Option<(&str, &str)> {
    let (kind, subtype) = text.split_once('/').unwrap_or((text, ""));
    let kind = kind.trim_matches(' ');
    if subtype.is_empty() {
        return (kind == "*").then_some(("*", "*"));
    }
    let subtype = subtype.strip_suffix('/').unwrap_or(subtype);
    (!subtype.contains('/')).then_some((kind, subtype.trim_matches(' ')))
}

/// `name=value`. The value of `q` must not contain spaces, so none are trimmed here.
fn parameter(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let value = value.strip_suffix('=').unwrap_or(value);
    (!value.is_empty() && !value.contains('=')).then_some((name.trim_matches(' '), value))
}

impl Endpoint {
    fn allows(self, offer: MediaType, transform: Option<Transform>) -> bool {
        match transform {
            None => match self {
                Endpoint::BuiltIn | Endpoint::WithoutTable | Endpoint::Plain => true,
                Endpoint::Custom => offer != MediaType::Protobuf,
                Endpoint::AggregatedDiscovery => false,
            },
            // A table has no binary form.
            Some(Transform::Table(_)) => {
                let is_text = !matches!(offer, MediaType::Protobuf | MediaType::Cbor);
                matches!(self, Endpoint::BuiltIn | Endpoint::Custom) && is_text
            }
            Some(Transform::PartialObjectMetadata(_) | Transform::PartialObjectMetadataList(_)) => {
                self.is_of_objects()
            }
            Some(Transform::ApiGroupDiscoveryList) => self == Endpoint::AggregatedDiscovery,
        }
    }

    /// `sv`, the version of the meta group used in responses.
    fn serves_version(self, version: &str) -> bool {
        self.is_of_objects() && version == "v1"
    }

    fn is_of_objects(self) -> bool {
        matches!(
            self,
            Endpoint::BuiltIn | Endpoint::WithoutTable | Endpoint::Custom
        )
    }
}

/// Up to this many clauses are sorted exactly as upstream sorts them.
const FEW: usize = 12;
