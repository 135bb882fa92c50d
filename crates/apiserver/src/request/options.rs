//! The options of a request, parsed from query parameters (or a body, for deletes) and validated
//! with upstream's texts.

use std::time::Duration;

use coracle_api::field_error::{FieldError, FieldErrorKind, FieldErrors};
use coracle_api::go_text::{Quoted, parse_int};
use coracle_api::meta::validate;
use coracle_api::resource_version::ResourceVersion;
use coracle_api::selector::{FieldSelector, LabelSelector};
use coracle_api::{Map, Path, Value};

use super::{Query, Verb};
use crate::ApiError;

/// The options of create, update and patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOptions {
    pub dry_run: bool,
    /// The verb of the request; `None`: the server itself writes.
    pub verb: Option<Verb>,
    pub field_manager: String,
    pub field_validation: FieldValidation,
    /// Whether the request says what becomes of unknown fields.
    pub states_validation: bool,
    /// Apply: take fields that others own.
    pub force: Option<bool>,
}

/// What becomes of fields that the kind does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The options of list and watch.
#[derive(Clone, Debug)]
pub struct ListOptions {
    pub labels: LabelSelector,
    /// Not yet validated: the fields depend on the resource.
    pub fields: String,
    pub version: ResourceVersion,
    /// Whether a version was given at all, be it 0.
    pub version_given: bool,
    pub version_match: Option<VersionMatch>,
    pub limit: usize,
    pub continue_token: String,
    pub watch: bool,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    /// Nothing, or zero seconds: as long as the server likes. Fewer than that: no time at all.
    pub timeout: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteOptions {
    pub grace_period: Option<i64>,
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub version: Option<String>,
    pub dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl WriteOptions {
    /// `kind`: CreateOptions, UpdateOptions or PatchOptions; `apply`: an apply patch, which must
    /// name its manager.
    pub fn parse(query: &Query, kind: &str, apply: bool) -> Result<WriteOptions, ApiError> {
        let mut errors = FieldErrors::default();
        let manager = query.get("fieldManager").unwrap_or_default();

        let force = query
            .get("force")
            .map(|text| text != "false" && text != "0");
        if kind == "PatchOptions" {
            if force.is_some() && !apply {
                errors.push(forbidden(
                    "force",
                    "may not be specified for non-apply patch",
                ));
            }

            if apply && manager.is_empty() {
                errors.push(required("fieldManager", "is required for apply patch"));
            }
        }

        validate::field_manager(manager, &Path::Root.field("fieldManager"), &mut errors);
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        check_dry_run(&dry_run, &mut errors);

        let validation = query.get("fieldValidation").unwrap_or_default();
        let field_validation = match validation {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(not_supported(
                    "fieldValidation",
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };

        refuse(&errors, kind)?;

        Ok(WriteOptions {
            dry_run: !dry_run.is_empty(),
            verb: Some(match kind {
                "CreateOptions" => Verb::Create,
                "PatchOptions" => Verb::Patch,
                _ => Verb::Update,
            }),
            field_manager: manager.to_string(),
            field_validation,
            states_validation: !validation.is_empty(),
            force,
        })
    }

    /// As an object: `kind` is CreateOptions or UpdateOptions.
    pub fn object(&self, kind: &str) -> Value {
        let mut object = options_object(kind, self.dry_run);
        if !self.field_manager.is_empty() {
            object.insert("fieldManager", self.field_manager.as_str());
        }
        if self.states_validation {
            object.insert("fieldValidation", self.field_validation.as_str());
        }
        Value::Object(object)
    }
}

impl FieldValidation {
    fn as_str(self) -> &'static str {
        match self {
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Warn => "Warn",
            FieldValidation::Strict => "Strict",
        }
    }
}

/// The members that options of all kinds have.
fn options_object(kind: &str, dry_run: bool) -> Map {
    let mut object = Map::new();
    object.insert("apiVersion", "meta.k8s.io/v1");
    object.insert("kind", kind);
    if dry_run {
        object.insert("dryRun", vec![Value::from("All")]);
    }
    object
}

impl ListOptions {
    pub fn parse(query: &Query) -> Result<ListOptions, ApiError> {
        let number = |name: &str| match query.get(name).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => parse_int(text).map(Some).map_err(|cause| {
                ApiError::bad_request(format!(
                    "strconv.ParseInt: parsing {}: {cause}",
                    Quoted(text)
                ))
            }),
        };
        let (limit, seconds) = (number("limit")?, number("timeoutSeconds")?);

        let labels = query
            .get("labelSelector")
            .unwrap_or_default()
            .parse::<LabelSelector>();
        let labels = labels.map_err(|error| ApiError::bad_request(error.to_string()))?;

        let watch = query.is_true("watch");
        let version_text = query.get("resourceVersion").unwrap_or_default();

        let send_initial_events = query
            .get("sendInitialEvents")
            .map(|_| query.is_true("sendInitialEvents"));
        let version_match =
            check_match(query, watch, !version_text.is_empty(), send_initial_events)?;
        let version = version_text.parse::<ResourceVersion>().map_err(|error| {
            // A watch returns the error as it is.
            if watch {
                ApiError::unexplained(error.to_string())
            } else {
                ApiError::bad_request(format!("invalid resource version: {error}"))
            }
        })?;

        Ok(ListOptions {
            labels,
            fields: query.get("fieldSelector").unwrap_or_default().to_string(),
            version,
            version_given: !version_text.is_empty(),
            version_match,
            limit: limit
                .and_then(|limit| usize::try_from(limit).ok())
                .unwrap_or(0),
            continue_token: query.get("continue").unwrap_or_default().to_string(),
            watch,
            bookmarks: query.is_true("allowWatchBookmarks"),
            send_initial_events,
            timeout: seconds
                .filter(|seconds| *seconds != 0)
                .map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default())),
        })
    }
}

impl ListOptions {
    /// Narrows the options to the object that the path names; no name: to nothing.
    pub fn only_object(&mut self, name: &str) -> Result<(), ApiError> {
        if name.is_empty() {
            return Ok(());
        }

        let fields = self.fields.parse::<FieldSelector>();
        let fields = fields.map_err(|error| ApiError::bad_request(error.to_string()))?;
        match fields.exact_value("metadata.name") {
            Some(other) if other != name => {
                return Err(ApiError::bad_request(
                    "fieldSelector metadata.name doesn't match requested name",
                ));
            }
            _ if self.fields.is_empty() => self.fields = format!("metadata.name={name}"),
            _ => self.fields.push_str(&format!(",metadata.name={name}")),
        }

        Ok(())
    }
}

/// Validates `resourceVersionMatch`.
fn check_match(
    query: &Query,
    watch: bool,
    version_given: bool,
    send_initial_events: Option<bool>,
) -> Result<Option<VersionMatch>, ApiError> {
    let mut errors = FieldErrors::default();
    let text = query.get("resourceVersionMatch").unwrap_or_default();
    let found = match text {
        "Exact" => Some(VersionMatch::Exact),
        "NotOlderThan" => Some(VersionMatch::NotOlderThan),
        _ => None,
    };

    match (watch, send_initial_events) {
        (true, None) if !text.is_empty() => {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(forbidden("resourceVersionMatch", why));
        }
        (true, Some(_)) => {
            if found != Some(VersionMatch::NotOlderThan) {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                errors.push(forbidden("resourceVersionMatch", why));
            }

            if !text.is_empty() && found != Some(VersionMatch::NotOlderThan) {
                errors.push(not_supported(
                    "resourceVersionMatch",
                    text,
                    &["NotOlderThan"],
                ));
            }
        }
        (false, Some(_)) => {
            errors.push(forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        _ => {}
    }

    if !watch && !text.is_empty() {
        if !version_given {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(forbidden("resourceVersionMatch", why));
        }

        if found.is_none() {
            errors.push(not_supported(
                "resourceVersionMatch",
                text,
                &["Exact", "NotOlderThan", ""],
            ));
        } else if found == Some(VersionMatch::Exact) && query.get("resourceVersion") == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(forbidden("resourceVersionMatch", why));
        } else if query.get("continue").is_some_and(|token| !token.is_empty()) {
            errors.push(forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
    }

    refuse(&errors, "ListOptions")?;

    Ok(found)
}

impl DeleteOptions {
    /// From the body, if there is one, else from the query.
    pub fn parse(query: &Query, body: Option<&Value>) -> Result<DeleteOptions, ApiError> {
        let RawDelete {
            mut options,
            propagation,
            orphan,
            dry_run,
        } = match body {
            Some(body) => from_body(body),
            None => from_query(query)?,
        };

        let mut errors = FieldErrors::default();
        if let (Some(policy), Some(_)) = (&propagation, orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let at = Path::Root.field("propagationPolicy");
            errors.push(FieldError::invalid(&at, Quoted(policy).to_string(), why));
        }

        // The deprecated flag is the same as one of two propagation policies.
        let by_flag = |orphan| if orphan { "Orphan" } else { "Background" }.to_string();
        let propagation = propagation.or(orphan.map(by_flag));
        options.propagation = match propagation.as_deref() {
            None | Some("") => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(not_supported("propagationPolicy", other, &supported));
                None
            }
        };

        let dry_run: Vec<&str> = dry_run.iter().map(String::as_str).collect();
        check_dry_run(&dry_run, &mut errors);
        refuse(&errors, "DeleteOptions")?;
        options.dry_run = !dry_run.is_empty();

        Ok(options)
    }

    pub fn object(&self) -> Value {
        let mut object = options_object("DeleteOptions", self.dry_run);
        if let Some(seconds) = self.grace_period {
            object.insert("gracePeriodSeconds", seconds);
        }
        if let Some(propagation) = self.propagation {
            object.insert("propagationPolicy", propagation.as_str());
        }

        let mut preconditions = Map::new();
        if let Some(uid) = &self.uid {
            preconditions.insert("uid", uid.as_str());
        }
        if let Some(version) = &self.version {
            preconditions.insert("resourceVersion", version.as_str());
        }
        if !preconditions.is_empty() {
            object.insert("preconditions", preconditions);
        }

        Value::Object(object)
    }
}

impl Propagation {
    fn as_str(self) -> &'static str {
        match self {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        }
    }
}

/// Options as they were given.
struct RawDelete {
    options: DeleteOptions,
    propagation: Option<String>,
    orphan: Option<bool>,
    dry_run: Vec<String>,
}

fn from_body(body: &Value) -> RawDelete {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_string);
    let options = DeleteOptions {
        grace_period: body.get("gracePeriodSeconds").and_then(Value::as_int),
        uid: text(body.at(&["preconditions", "uid"])),
        version: text(body.at(&["preconditions", "resourceVersion"])),
        ..DeleteOptions::default()
    };

    let dry_run = body
        .get("dryRun")
        .and_then(Value::as_array)
        .unwrap_or_default();

    let dry_run = dry_run
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_string)
        .collect();

    let propagation = text(body.get("propagationPolicy"));
    let orphan = body.get("orphanDependents").and_then(Value::as_bool);

    RawDelete {
        options,
        propagation,
        orphan,
        dry_run,
    }
}

fn from_query(query: &Query) -> Result<RawDelete, ApiError> {
    let grace_period = match query
        .get("gracePeriodSeconds")
        .filter(|text| !text.is_empty())
    {
        None => None,
        Some(text) => Some(parse_int(text).map_err(|cause| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {}: {cause}",
                Quoted(text)
            ))
        })?),
    };

    let options = DeleteOptions {
        grace_period,
        ..DeleteOptions::default()
    };

    let propagation = query.get("propagationPolicy").map(str::to_string);
    let orphan = query
        .get("orphanDependents")
        .map(|_| query.is_true("orphanDependents"));
    let dry_run = query.all("dryRun").map(str::to_string).collect();

    Ok(RawDelete {
        options,
        propagation,
        orphan,
        dry_run,
    })
}

fn check_dry_run(given: &[&str], errors: &mut FieldErrors) {
    if given.iter().all(|text| *text == "All") {
        return;
    }
    let shown: Vec<String> = given.iter().map(|text| Quoted(text).to_string()).collect();
    let mut error = FieldError::not_supported(&Path::Root.field("dryRun"), "", &["All"]);
    error.bad_value = Some(format!("[{}]", shown.join(",")));
    errors.push(error);
}

fn refuse(errors: &FieldErrors, kind: &str) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_kind("meta.k8s.io", kind, "", errors))
}

fn not_supported(field: &str, found: &str, supported: &[&str]) -> FieldError {
    FieldError::not_supported(&Path::Root.field(field), found, supported)
}

fn forbidden(field: &str, why: &str) -> FieldError {
    plain(FieldErrorKind::Forbidden, field, why)
}

fn required(field: &str, why: &str) -> FieldError {
    plain(FieldErrorKind::Required, field, why)
}

fn plain(kind: FieldErrorKind, field: &str, detail: &str) -> FieldError {
    FieldError {
        kind,
        field: field.to_string(),
        bad_value: None,
        detail: detail.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn a_watch_of_no_seconds_has_the_usual_time_and_one_of_fewer_has_none() {
        let check = |query: &str, expected: Option<u64>| {
            let options = ListOptions::parse(&Query::parse(query)).unwrap();
            assert_eq!(
                options.timeout,
                expected.map(Duration::from_secs),
                "{query}"
            );
        };

        check("watch=1", None);
        check("watch=1&timeoutSeconds=0", None);
        check("watch=1&timeoutSeconds=5", Some(5));
        check("watch=1&timeoutSeconds=-5", Some(0));
    }

    #[test]
    fn write_options_are_validated_with_upstreams_texts() {
        let check = |query: &str, kind: &str, apply: bool, expected: &str| {
            assert_eq!(
                message(WriteOptions::parse(&Query::parse(query), kind, apply)),
                expected,
                "{query}"
            );
        };

        let create = "CreateOptions.meta.k8s.io \"\" is invalid: ";
        check(
            "dryRun=Some",
            "CreateOptions",
            false,
            &format!("{create}dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""),
        );

        check(
            "fieldValidation=Maybe",
            "CreateOptions",
            false,
            &format!(
                "{create}fieldValidation: Unsupported value: \"Maybe\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
            ),
        );

        check(
            "fieldManager=%07",
            "CreateOptions",
            false,
            &format!(
                "{create}fieldManager: Invalid value: \"\\a\": invalid character U+0007 (at position 0)"
            ),
        );

        check(
            "",
            "PatchOptions",
            true,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        );
    }

    #[test]
    fn list_options_are_validated_with_upstreams_texts() {
        let check = |query: &str, expected: &str| {
            assert_eq!(
                message(ListOptions::parse(&Query::parse(query))),
                expected,
                "{query}"
            );
        };

        let list = "ListOptions.meta.k8s.io \"\" is invalid: ";
        check(
            "limit=many",
            "strconv.ParseInt: parsing \"many\": invalid syntax",
        );

        check(
            "labelSelector=a%3D%3D%3Db",
            "unable to parse requirement: found '=', expected: identifier",
        );

        check(
            "resourceVersion=abc",
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        );

        check(
            "resourceVersionMatch=Exact",
            &format!(
                "{list}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
            ),
        );

        check(
            "watch=true&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5",
            &format!(
                "{list}[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to \
                 NotOlderThan, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]"
            ),
        );
    }

    #[test]
    fn delete_options_come_from_the_body_or_the_query() {
        let query = Query::parse("propagationPolicy=Foreground&gracePeriodSeconds=5");
        let options = DeleteOptions::parse(&query, None).unwrap();
        assert_eq!(
            (options.propagation, options.grace_period),
            (Some(Propagation::Foreground), Some(5))
        );

        let body = coracle_api::codec::json::parse(
            br#"{"orphanDependents":true,"preconditions":{"uid":"u"}}"#,
        )
        .unwrap();
        let options = DeleteOptions::parse(&query, Some(&body)).unwrap();
        assert_eq!(
            (options.propagation, options.grace_period),
            (Some(Propagation::Orphan), None)
        );

        assert_eq!(options.uid.as_deref(), Some("u"));
        assert_eq!(
            message(DeleteOptions::parse(
                &Query::parse("propagationPolicy=Orphan&orphanDependents=true"),
                None
            )),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and \
             deletionPropagation cannot be both set"
        );

        assert_eq!(
            message(DeleteOptions::parse(
                &Query::parse("propagationPolicy=Sideways"),
                None
            )),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sideways\": supported \
             values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        );
    }
}
