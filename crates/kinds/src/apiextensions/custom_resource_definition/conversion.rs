//! Conversion of objects between versions.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1035_label;
use coracle_api::{Map, Path, Value};

use crate::admissionregistration::{validate_service, validate_url};
use crate::strategy::Errors;
use crate::validate::{internal, validate_one_of};

/// Versions of ConversionReview that upstream's servers support.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn validate(
    conversion: Option<&Map>,
    known_reviews: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(conversion) = conversion else { return };
    let (client, reviews) = (
        at.field("webhookClientConfig"),
        at.field("conversionReviewVersions"),
    );

    let strategy = conversion.text("strategy");
    match strategy {
        "" => errors.push(FieldError::required(&at.field("strategy"), "")),
        strategy => validate_one_of(
            strategy,
            &["None", "Webhook"],
            &at.field("strategy"),
            errors,
        ),
    }

    if strategy == "Webhook" {
        validate_client(conversion.below("webhookClientConfig"), &client, errors);
        return validate_reviews(conversion, known_reviews, &reviews, errors);
    }

    let detail = "should not be set when strategy is not set to Webhook";
    if conversion.is_set("webhookClientConfig") {
        errors.push(FieldError::forbidden(&client, detail));
    }
    if !conversion.items("conversionReviewVersions").is_empty() {
        errors.push(FieldError::forbidden(&reviews, detail));
    }
}

/// Whether a definition names a supported version of ConversionReview, or none at all.
pub(super) fn has_known_reviews(spec: &Map) -> bool {
    let Some(conversion) = spec.below("conversion") else {
        return true;
    };
    let mut reviews = conversion
        .items("conversionReviewVersions")
        .iter()
        .filter_map(Value::as_str)
        .peekable();
    reviews.peek().is_none() || reviews.any(|version| REVIEWS.contains(&version))
}

fn validate_client(client: Option<&Map>, at: &Path<'_>, errors: &mut Errors) {
    let Some(client) = client else {
        return errors.push(FieldError::required(
            at,
            "required when strategy is set to Webhook",
        ));
    };

    match (client.str("url"), client.below("service")) {
        (Some(url), None) => validate_url(url, &at.field("url"), errors),
        (None, Some(service)) => {
            let port = service
                .get("port")
                .and_then(Value::as_int)
                .map_or(443, |port| i32::try_from(port).unwrap_or(-1));

            let names = (service.text("name"), service.text("namespace"));
            validate_service(
                names,
                service.str("path"),
                port,
                &at.field("service"),
                errors,
            );
        }
        _ => errors.push(FieldError::required(
            at,
            "exactly one of url or service is required",
        )),
    }
}

fn validate_reviews(conversion: &Map, known: bool, at: &Path<'_>, errors: &mut Errors) {
    let versions: Vec<&str> = conversion
        .items("conversionReviewVersions")
        .iter()
        .filter_map(Value::as_str)
        .collect();

    if versions.is_empty() {
        return errors.push(FieldError::required(at, ""));
    }

    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = at.index(index);
        match seen.insert(version) {
            true => refuse(&at, version, dns1035_label(version), errors),
            false => errors.push(FieldError::invalid_str(&at, version, "duplicate version")),
        }
    }

    if known && !versions.iter().any(|version| REVIEWS.contains(version)) {
        let list = internal::list(versions.iter().map(|version| internal::text(version)));
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(FieldError::invalid(at, list, detail));
    }
}
