//! Paths that are not about a resource: health, metrics, version, discovery, OpenAPI.

use coracle_api::codec::json;
use coracle_api::codec::media_type::{self, MediaType};
use coracle_api::time::MicroTime;
use coracle_api::{Map, Value};
use coracle_client::Stage;
use coracle_serving::zpages;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};

use crate::answer::{self, Answer};
use crate::authn::token::Issuer;
use crate::discovery::ServedGroups;
use crate::handler::Server;
use crate::metrics::BUILD;
use crate::openapi::OpenApi;
use crate::render::Form;
use crate::request::Request;
use crate::{ApiError, discovery};

impl Server {
    /// `form` is what the client accepts of a document with one shape.
    pub(crate) async fn plain(
        &self,
        request: &Request<'_>,
        form: Result<Form, ApiError>,
    ) -> Result<Answer, ApiError> {
        let (head, path, query) = (request.head, request.info.path.as_str(), request.query);
        if OpenApi::is_at(path) {
            let catalog = self.registry.caches.definitions().catalog();
            return Ok(self
                .openapi
                .answer(
                    head,
                    query,
                    &catalog,
                    self.aggregation.openapi(),
                    (self.registry.now)(),
                )
                .await);
        }

        // Whatever the method.
        if let Some(health) = self.health.answer(path, query).await {
            return Ok(health);
        }

        let known = match path {
            "/metrics" => {
                let status = self.registry.store.status().await;
                let page = self
                    .metrics
                    .page(status.ok().map(|status| status.file_bytes));
                let content_type = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
                Some(Ok(answer::bytes(StatusCode::OK, content_type, page)))
            }
            "/metrics/slis" => Some(Ok(answer::bytes(
                StatusCode::OK,
                coracle_metrics::CONTENT_TYPE,
                self.slis.text(),
            ))),
            "/statusz" => Some(Ok(page_answer(zpages::statusz(
                &self.status(),
                request.accept(),
            )))),
            "/flagz" => {
                let page = zpages::flagz(COMPONENT, &self.flags, request.accept());
                Some(Ok(page_answer(page)))
            }
            "/" => Some(Ok(answer::value(StatusCode::OK, &self.index(), INDENTED))),
            "/.well-known/openid-configuration" => {
                self.issued(head, Issuer::configuration, "application/json")
            }
            "/openid/v1/jwks" => self.issued(head, Issuer::key_set, "application/jwk-set+json"),
            "/version" => Some(Ok(answer::value(StatusCode::OK, &version(), INDENTED))),
            _ if path.starts_with(WHY) => {
                let noted = noted(&self.journal.of(&path[WHY.len()..]));
                Some(Ok(answer::value(StatusCode::OK, &noted, Form::JSON)))
            }
            _ => {
                let definitions = self.registry.caches.definitions();
                let served = ServedGroups::aggregated(&definitions, &self.aggregation);
                discovery::answer(path, &head.headers, &self.address, &served, form)
            }
        };

        match known {
            Some(_) if head.method != Method::GET && head.method != Method::HEAD => {
                Err(ApiError::method_not_allowed())
            }
            Some(answer) => answer,
            None if self.is_api_path(path) => Err(ApiError::no_such_resource()),
            None => Ok(answer::no_such_page()),
        }
    }
}

impl Server {
    /// Whether a path is below a version of the core group, or below a group.
    fn is_api_path(&self, path: &str) -> bool {
        let mut parts = path.trim_start_matches('/').split('/');
        match (parts.next(), parts.next()) {
            (Some("api"), Some(_)) => true,
            (Some("apis"), Some(group)) => {
                let definitions = self.registry.caches.definitions();
                definitions.served().has_group(group)
            }
            _ => false,
        }
    }

    /// A document with which others verify the tokens of service accounts.
    fn issued(
        &self,
        head: &Parts,
        document: impl Fn(&Issuer) -> Option<Value>,
        media_type: &'static str,
    ) -> Option<Result<Answer, ApiError>> {
        let document = document(self.registry.access.issuer.as_ref()?)?;
        let accept = head
            .headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok());

        if let Err(refused) = media_type::produces(accept.unwrap_or_default(), &[media_type]) {
            return Some(Err(ApiError::not_acceptable_here(refused.to_string())));
        }

        let mut answer = answer::bytes(StatusCode::OK, media_type, json::to_vec(&document));
        let for_an_hour = HeaderValue::from_static("public, max-age=3600");
        answer
            .headers_mut()
            .insert(header::CACHE_CONTROL, for_an_hour);

        Some(Ok(answer))
    }

    fn status(&self) -> zpages::Status<'_> {
        zpages::Status {
            name: COMPONENT,
            version: BUILD.git_version,
            started: self.started,
            now: (self.registry.now)(),
            paths: self.paths(),
        }
    }

    /// The document at `/`.
    fn index(&self) -> Value {
        let paths = self.paths();
        let mut index = Map::new();
        index.insert("paths", paths.iter().map(Value::string).collect::<Vec<_>>());

        Value::Object(index)
    }

    /// Every path that is served, without resources.
    fn paths(&self) -> Vec<String> {
        let mut paths = self.health.paths();
        let fixed = [
            "/apis",
            "/apis/",
            "/api",
            "/flagz",
            "/metrics",
            "/metrics/slis",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/statusz",
            "/version",
        ];
        paths.extend(fixed.map(str::to_string));

        if self.registry.access.issuer.is_some() {
            paths.extend(
                ["/.well-known/openid-configuration", "/openid/v1/jwks"].map(str::to_string),
            );
        }

        let definitions = self.registry.caches.definitions();
        for group in ServedGroups::aggregated(&definitions, &self.aggregation).groups() {
            let base = if group.name.is_empty() {
                "/api".to_string()
            } else {
                format!("/apis/{}", group.name)
            };

            paths.extend(
                group
                    .versions
                    .iter()
                    .map(|version| format!("{base}/{version}")),
            );

            paths.push(base);
        }

        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

/// The name of this component in its pages.
const COMPONENT: &str = "apiserver";

fn page_answer(page: zpages::Page) -> Answer {
    let mut answer = answer::bytes(page.status, page.content_type, page.content);
    let warning = page
        .warning
        .and_then(|text| HeaderValue::try_from(text).ok());
    if let Some(warning) = warning {
        answer.headers_mut().insert(header::WARNING, warning);
    }
    answer
}

/// How documents are written that people read more often than programs.
const INDENTED: Form = Form {
    media_type: MediaType::Json,
    pretty: true,
};

/// The notes about an object, by its UID. Access to this path grants access to all notes; the UID
/// is known to clients that may read the object.
const WHY: &str = "/coracle/why/";

fn noted(stages: &[Stage]) -> Value {
    let stage = |stage: &Stage| {
        let mut noted = Map::new();
        noted.insert("when", MicroTime(stage.when).text());
        noted.insert("who", stage.who);
        noted.insert("what", stage.what);
        noted.insert("outcome", stage.outcome.as_str());
        Value::Object(noted)
    };
    let mut noted = Map::new();
    noted.insert("stages", stages.iter().map(stage).collect::<Vec<_>>());
    Value::Object(noted)
}

fn version() -> Value {
    let mut version = Map::new();
    for (name, text) in [
        ("major", BUILD.major),
        ("minor", BUILD.minor),
        ("emulationMajor", "1"),
        ("emulationMinor", "36"),
        ("minCompatibilityMajor", "1"),
        ("minCompatibilityMinor", "35"),
        ("gitVersion", BUILD.git_version),
        ("gitCommit", BUILD.git_commit),
        ("gitTreeState", BUILD.git_tree_state),
        ("buildDate", BUILD.build_date),
        ("goVersion", BUILD.go_version),
        ("compiler", BUILD.compiler),
        ("platform", BUILD.platform),
    ] {
        version.insert(name, text);
    }

    Value::Object(version)
}
