//! API errors, and the Status object that clients get.
//!
//! The texts are upstream's: clients match on reasons, and users read the messages.

use coracle_api::catalog::{Kind, Resource};
use coracle_api::field_error::FieldErrors;
use coracle_api::go_text::Quoted;
use coracle_api::schema::TooMuchAdded;
use coracle_api::{Map, Value};
use http::StatusCode;

/// A refused request.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    pub code: StatusCode,
    pub reason: Reason,
    pub message: String,
    /// Boxed: most requests are not refused, and a large error makes every answer a large move.
    pub details: Option<Box<Details>>,
    /// Seconds after which a client may try again.
    pub retry_after: Option<u32>,
    /// Warnings for the response headers.
    pub warnings: Vec<String>,
    /// Where a list whose version has expired may continue; empty: nowhere.
    pub continue_token: String,
    /// The Status that a webhook refused the request with, which is shown instead.
    pub foreign: Option<Box<Map>>,
}

/// The machine-readable reason of a refusal, which clients match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The Status has no reason.
    None,
    BadRequest,
    InternalError,
    TooManyRequests,
    ServiceUnavailable,
    Unauthorized,
    NotFound,
    MethodNotAllowed,
    AlreadyExists,
    Conflict,
    Timeout,
    Forbidden,
    Invalid,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    NotAcceptable,
    Expired,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::None => "",
            Reason::BadRequest => "BadRequest",
            Reason::InternalError => "InternalError",
            Reason::TooManyRequests => "TooManyRequests",
            Reason::ServiceUnavailable => "ServiceUnavailable",
            Reason::Unauthorized => "Unauthorized",
            Reason::NotFound => "NotFound",
            Reason::MethodNotAllowed => "MethodNotAllowed",
            Reason::AlreadyExists => "AlreadyExists",
            Reason::Conflict => "Conflict",
            Reason::Timeout => "Timeout",
            Reason::Forbidden => "Forbidden",
            Reason::Invalid => "Invalid",
            Reason::RequestEntityTooLarge => "RequestEntityTooLarge",
            Reason::UnsupportedMediaType => "UnsupportedMediaType",
            Reason::NotAcceptable => "NotAcceptable",
            Reason::Expired => "Expired",
        }
    }
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub name: String,
    pub group: String,
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

impl ApiError {
    pub fn new(code: StatusCode, reason: Reason, message: impl Into<String>) -> ApiError {
        ApiError {
            code,
            reason,
            message: message.into(),
            details: None,
            retry_after: None,
            warnings: Vec::new(),
            continue_token: String::new(),
            foreign: None,
        }
    }

    /// The refusal of a webhook: a Status with a code.
    pub fn foreign(mut status: Map) -> ApiError {
        let code = u16::try_from(status.int("code")).unwrap_or_default();
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        status.insert("apiVersion", "v1");
        status.insert("kind", "Status");
        if status.get("metadata").is_none_or(Value::is_null) {
            status.insert("metadata", Value::object());
        }

        ApiError {
            foreign: Some(Box::new(status.clone())),
            ..ApiError::new(code, Reason::None, status.text("message"))
        }
    }

    /// Adds the warnings that were gathered before the request was refused.
    pub fn after(mut self, warnings: Vec<String>) -> ApiError {
        self.warnings.splice(..0, warnings);
        self
    }

    /// The refusal of a review or token request with these errors. Upstream leaves its kind empty.
    pub fn if_any(group: &str, errors: &FieldErrors) -> Result<(), ApiError> {
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid_kind(group, "", "", errors))
        }
    }

    fn with(mut self, details: Details) -> ApiError {
        self.details = Some(Box::new(details));
        self
    }

    pub fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, Reason::BadRequest, message)
    }

    pub fn internal(message: impl Into<String>) -> ApiError {
        let message = message.into();
        let cause = Cause {
            reason: "",
            message: message.clone(),
            field: String::new(),
        };

        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            Reason::InternalError,
            format!("Internal error occurred: {message}"),
        )
        .with(Details {
            causes: vec![cause],
            ..Details::default()
        })
    }

    /// A failure that upstream passes on as it is, without a reason.
    pub fn unexplained(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Reason::None, message)
    }

    /// The client is to retry after a second.
    pub fn too_many_requests(message: impl Into<String>) -> ApiError {
        let error = ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            Reason::TooManyRequests,
            message,
        );
        ApiError {
            retry_after: Some(1),
            ..error
        }
    }

    pub fn shutting_down() -> ApiError {
        let error = ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Reason::ServiceUnavailable,
            "apiserver is shutting down",
        );
        ApiError {
            retry_after: Some(1),
            ..error
        }
    }

    /// The backend that the request is forwarded to does not answer.
    pub fn service_unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Reason::ServiceUnavailable,
            message,
        )
    }

    pub fn unauthorized() -> ApiError {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            Reason::Unauthorized,
            "Unauthorized",
        )
    }

    /// No object of that name.
    pub fn not_found(resource: &Resource, name: &str) -> ApiError {
        let message = format!("{} {} not found", qualified(resource), Quoted(name));
        ApiError::new(StatusCode::NOT_FOUND, Reason::NotFound, message).with(about(resource, name))
    }

    /// Nothing is served at that path.
    pub fn no_such_resource() -> ApiError {
        ApiError::new(
            StatusCode::NOT_FOUND,
            Reason::NotFound,
            "the server could not find the requested resource",
        )
        .with(Details::default())
    }

    pub fn method_not_allowed() -> ApiError {
        let message = "the server does not allow this method on the requested resource";
        ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            Reason::MethodNotAllowed,
            message,
        )
        .with(Details::default())
    }

    pub fn already_exists(resource: &Resource, name: &str, being_deleted: bool) -> ApiError {
        let prefix = if being_deleted {
            "object is being deleted: "
        } else {
            ""
        };
        let message = format!(
            "{prefix}{} {} already exists",
            qualified(resource),
            Quoted(name)
        );
        ApiError::new(StatusCode::CONFLICT, Reason::AlreadyExists, message)
            .with(about(resource, name))
    }

    /// `why`: the object has been modified, a precondition failed.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> ApiError {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            qualified(resource),
            Quoted(name)
        );
        ApiError::new(StatusCode::CONFLICT, Reason::Conflict, message).with(about(resource, name))
    }

    /// A conflict that names the kind instead of the resource.
    pub fn conflict_of_kind(kind: &Kind, name: &str, why: &str) -> ApiError {
        let qualified = match kind.group.as_str() {
            "" => kind.name.to_string(),
            group => format!("{}.{group}", kind.name),
        };

        let message = format!(
            "Operation cannot be fulfilled on {qualified} {}: {why}",
            Quoted(name)
        );

        let details = Details {
            name: name.to_string(),
            group: kind.group.to_string(),
            kind: kind.name.to_string(),
            ..Details::default()
        };

        ApiError::new(StatusCode::CONFLICT, Reason::Conflict, message).with(details)
    }

    /// The store has not reached the resource version of the request.
    pub fn version_too_large(asked: u64, current: u64) -> ApiError {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_string(),
            field: String::new(),
        };

        let mut error =
            ApiError::new(StatusCode::GATEWAY_TIMEOUT, Reason::Timeout, message).with(Details {
                causes: vec![cause],
                ..Details::default()
            });
        error.retry_after = Some(1);

        error
    }

    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> ApiError {
        let message = match name {
            "" => format!("{} is forbidden: {why}", qualified(resource)),
            name => format!(
                "{} {} is forbidden: {why}",
                qualified(resource),
                Quoted(name)
            ),
        };
        ApiError::new(StatusCode::FORBIDDEN, Reason::Forbidden, message).with(about(resource, name))
    }

    /// A request that authorization denies; `why` begins with the user and the denied action.
    pub fn denied(details: Details, why: &str) -> ApiError {
        let message = match (
            details.kind.as_str(),
            details.group.as_str(),
            details.name.as_str(),
        ) {
            ("", ..) => format!("forbidden: {why}"),
            (kind, "", "") => format!("{kind} is forbidden: {why}"),
            (kind, group, "") => format!("{kind}.{group} is forbidden: {why}"),
            (kind, "", name) => format!("{kind} \"{name}\" is forbidden: {why}"),
            (kind, group, name) => format!("{kind}.{group} \"{name}\" is forbidden: {why}"),
        };

        ApiError::new(StatusCode::FORBIDDEN, Reason::Forbidden, message).with(details)
    }

    /// Invalid fields, all of them at once.
    pub fn invalid(kind: &Kind, name: &str, errors: &FieldErrors) -> ApiError {
        ApiError::invalid_kind(&kind.group, &kind.name, name, errors)
    }

    pub fn invalid_kind(group: &str, kind: &str, name: &str, errors: &FieldErrors) -> ApiError {
        let causes = errors.iter().map(|error| Cause {
            reason: error.kind.reason(),
            message: error.body().to_string(),
            field: error.field.clone(),
        });

        let qualified = if group.is_empty() {
            kind.to_string()
        } else {
            format!("{kind}.{group}")
        };

        let details = Details {
            name: name.to_string(),
            group: group.to_string(),
            kind: kind.to_string(),
            uid: String::new(),
            causes: causes.collect(),
        };

        ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            Reason::Invalid,
            format!("{qualified} {} is invalid: {errors}", Quoted(name)),
        )
        .with(details)
    }

    pub fn too_large(limit: usize) -> ApiError {
        let message = format!("Request entity too large: limit is {limit}");
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            Reason::RequestEntityTooLarge,
            message,
        )
    }

    /// Lists whose elements would take more memory than one request may.
    pub fn too_many_elements() -> ApiError {
        let message = "Request entity too large: the lists of the object have too many elements";
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            Reason::RequestEntityTooLarge,
            message,
        )
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> ApiError {
        ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Reason::UnsupportedMediaType,
            message,
        )
    }

    pub fn not_acceptable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_ACCEPTABLE, Reason::NotAcceptable, message)
    }

    /// No route at this path answers in any form that the client takes.
    pub fn not_acceptable_here(message: impl Into<String>) -> ApiError {
        ApiError::not_acceptable(message).with(Details::default())
    }

    /// The requested version has been compacted.
    pub fn expired(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::GONE, Reason::Expired, message)
    }

    /// The Status object.
    pub fn to_status(&self) -> Value {
        if let Some(status) = &self.foreign {
            return Value::Object(Map::clone(status));
        }

        let mut status = Map::new();
        status.insert("apiVersion", "v1");
        status.insert("kind", "Status");

        let mut metadata = Map::new();
        if !self.continue_token.is_empty() {
            metadata.insert("continue", self.continue_token.as_str());
        }

        status.insert("metadata", metadata);
        status.insert("status", "Failure");

        if !self.message.is_empty() {
            status.insert("message", self.message.as_str());
        }
        if self.reason != Reason::None {
            status.insert("reason", self.reason.as_str());
        }

        if let Some(details) = &self.details {
            let mut shown = details.to_map();
            if let Some(seconds) = self.retry_after {
                shown.insert("retryAfterSeconds", i64::from(seconds));
            }
            status.insert("details", shown);
        }

        status.insert("code", i64::from(self.code.as_u16()));

        Value::Object(status)
    }
}

impl From<TooMuchAdded> for ApiError {
    fn from(error: TooMuchAdded) -> ApiError {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: {error}"),
        )
    }
}

impl Details {
    pub fn to_map(&self) -> Map {
        let mut map = Map::new();
        for (name, text) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !text.is_empty() {
                map.insert(name, text.as_str());
            }
        }

        if !self.causes.is_empty() {
            map.insert(
                "causes",
                self.causes.iter().map(Cause::to_value).collect::<Vec<_>>(),
            );
        }

        map
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (name, text) in [
            ("reason", self.reason),
            ("message", &self.message),
            ("field", &self.field),
        ] {
            if !text.is_empty() {
                map.insert(name, text);
            }
        }
        Value::Object(map)
    }
}

/// `deployments.apps`, or `pods`.
pub fn qualified(resource: &Resource) -> String {
    if resource.group.is_empty() {
        resource.plural.to_string()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

fn about(resource: &Resource, name: &str) -> Details {
    Details {
        name: name.to_string(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        ..Details::default()
    }
}
