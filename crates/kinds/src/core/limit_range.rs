//! LimitRange: bounds and defaults for the resources of one pod, container or claim.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::quantity::{Format, Quantity};
use coracle_api::uid::Uid;
use coracle_api::{Path, Value, names, resource_name};
use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::resources::{self, read, shown};
use crate::{OwnMetadata, Part};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &LimitRanges,
    ..Behaviour::DEFAULT
};

struct LimitRanges;

impl Strategy for LimitRanges {
    type Object = LimitRange;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {
        if new.meta().name().is_empty() {
            let random = || cx.cluster.random();
            let bits = (u128::from(random()) << 64) | u128::from(random());
            new.meta_mut()
                .set_name(&Uid::from_random(bits.to_le_bytes()).to_string());
        }
    }

    fn validate(&self, new: &View<'_, LimitRange>, _: &Context<'_>, errors: &mut Errors) {
        let at = SPEC.field("limits");
        let mut types = BTreeSet::new();
        for (index, item) in new.spec.iter().flat_map(|spec| &spec.limits).enumerate() {
            let at = at.index(index);
            validate_type(&item.type_, &at.field("type"), errors);
            if !types.insert(&item.type_) {
                let shown = Quoted(&item.type_).to_string();
                errors.push(FieldError::duplicate(&at.field("type"), shown));
            }
            validate_item(item, &at, errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, LimitRange>,
        _: &View<'_, LimitRange>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
    }
}

fn validate_type(found: &str, at: &Path<'_>, errors: &mut Errors) {
    let messages = names::qualified_name(found);
    let readable = messages.is_empty();
    refuse(at, found, messages, errors);
    if readable
        && !found.contains('/')
        && !matches!(found, "Pod" | "Container" | "PersistentVolumeClaim")
    {
        let detail = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid_str(at, found, detail));
    }
}

fn validate_item(item: &LimitRangeItem, at: &Path<'_>, errors: &mut Errors) {
    validate_names("max", &item.max, item, at, errors);
    validate_names("min", &item.min, item, at, errors);

    let is_pod = item.type_ == "Pod";
    for (field, list) in [
        ("default", &item.default),
        ("defaultRequest", &item.default_request),
    ] {
        if !is_pod {
            validate_names(field, list, item, at, errors);
        } else if list.as_ref().is_some_and(|list| !list.is_empty()) {
            let detail = "may not be specified when `type` is 'Pod'";
            errors.push(FieldError::forbidden(&at.field(field), detail));
        }
    }

    let bounds_storage = |list: &List| {
        list.as_ref()
            .is_some_and(|list| list.contains_key("storage"))
    };

    if item.type_ == "PersistentVolumeClaim"
        && !bounds_storage(&item.min)
        && !bounds_storage(&item.max)
    {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&at.field("limits"), detail));
    }

    validate_names(
        "maxLimitRequestRatio",
        &item.max_limit_request_ratio,
        item,
        at,
        errors,
    );

    let none = None;
    let defaults = if is_pod {
        [&none, &none]
    } else {
        [&item.default, &item.default_request]
    };

    let lists = [
        &item.min,
        &item.max,
        defaults[0],
        defaults[1],
        &item.max_limit_request_ratio,
    ];

    let resources: BTreeSet<&String> = lists
        .into_iter()
        .flatten()
        .flat_map(BTreeMap::keys)
        .collect();

    for name in resources {
        let [min, max, default, request, ratio] =
            lists.map(|list| list.as_ref()?.get(name).map(read));
        Amounts {
            name,
            min,
            max,
            default,
            request,
            ratio,
        }
        .validate(at, errors);
    }
}

type List = Option<BTreeMap<String, Written>>;

fn validate_names(
    field: &str,
    list: &List,
    item: &LimitRangeItem,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for name in list.iter().flat_map(BTreeMap::keys) {
        let at = at.field(field);
        match item.type_.as_str() {
            "Pod" | "Container" => {
                resources::validate_container_resource_name(name, &at.key(name), errors)
            }
            _ => resources::validate_resource_name(name, &at.key(name), errors),
        }
    }
}

/// The amounts of one item for one resource.
struct Amounts<'a> {
    name: &'a str,
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

impl Amounts<'_> {
    fn validate(&self, at: &Path<'_>, errors: &mut Errors) {
        // The field, the amount that errors show, and the two that must be in order, with their
        // names.
        let orders = [
            (
                "min",
                &self.min,
                (&self.min, "min value"),
                (&self.max, "max value"),
            ),
            (
                "defaultRequest",
                &self.request,
                (&self.min, "min value"),
                (&self.request, "default request value"),
            ),
            (
                "defaultRequest",
                &self.request,
                (&self.request, "default request value"),
                (&self.max, "max value"),
            ),
            (
                "defaultRequest",
                &self.request,
                (&self.request, "default request value"),
                (&self.default, "default limit value"),
            ),
            (
                "default",
                &self.min,
                (&self.min, "min value"),
                (&self.default, "default value"),
            ),
            (
                "default",
                &self.max,
                (&self.default, "default value"),
                (&self.max, "max value"),
            ),
        ];

        for (field, found, (less, less_name), (more, more_name)) in orders {
            if let (Some(found), Some(less), Some(more)) = (found, less, more)
                && less > more
            {
                let detail = format!("{less_name} {less} is greater than {more_name} {more}");
                errors.push(FieldError::invalid(
                    &at.field(field).key(self.name),
                    shown(found),
                    detail,
                ));
            }
        }

        self.validate_ratio(&at.field("maxLimitRequestRatio").key(self.name), errors);

        if let (Some(default), Some(request)) = (&self.default, &self.request)
            && !resource_name::may_be_overcommitted(self.name)
            && default != request
        {
            let detail = format!(
                "default value {default} must equal to defaultRequest value {request} in {}",
                self.name
            );

            errors.push(FieldError::invalid(
                &at.field("defaultRequest").key(self.name),
                shown(request),
                detail,
            ));
        }
    }

    fn validate_ratio(&self, at: &Path<'_>, errors: &mut Errors) {
        let Some(ratio) = &self.ratio else { return };
        if *ratio < Quantity::new(1, Format::DecimalSi) {
            errors.push(FieldError::invalid(
                at,
                shown(ratio),
                format!("ratio {ratio} is less than 1"),
            ));
        }

        let (Some(min), Some(max)) = (&self.min, &self.max) else {
            return;
        };

        let most = max.to_f64() / min.to_f64();
        if ratio.to_f64() > most {
            let detail = format!("ratio {ratio} is greater than max/min = {most:.6}");
            errors.push(FieldError::invalid(at, shown(ratio), detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;
    use coracle_api::typed;

    use super::*;
    use crate::validate::check_causes;

    fn check(item: &str, expected: &[&str]) {
        let item: LimitRangeItem =
            typed::from_tree(&json::parse(item.as_bytes()).unwrap()).unwrap();
        let mut errors = Errors::new();
        validate_item(&item, &Path::Root.field("i"), &mut errors);
        check_causes(&errors, expected);
    }

    #[test]
    fn bounds_and_defaults_are_in_order() {
        check(
            r#"{"type":"Container","min":{"cpu":"1"},"max":{"cpu":"2"},"default":{"cpu":"2"}}"#,
            &[],
        );

        check(
            r#"{"type":"Container","min":{"cpu":"3"},"max":{"cpu":"2"},"default":{"cpu":"1"}}"#,
            &[
                "i.min[cpu]: Invalid value: \"3\": min value 3 is greater than max value 2",
                "i.default[cpu]: Invalid value: \"3\": min value 3 is greater than default value 1",
            ],
        );

        check(
            r#"{"type":"Container","default":{"example.com/g":"2"},"defaultRequest":{"example.com/g":"1"}}"#,
            &[
                "i.defaultRequest[example.com/g]: Invalid value: \"1\": default value 2 must equal to defaultRequest",
            ],
        );
    }

    #[test]
    fn ratios_fit_between_the_bounds() {
        let ratio = |ratio: &str| {
            format!(
                r#"{{"type":"Container","min":{{"cpu":"1"}},"max":{{"cpu":"2"}},"maxLimitRequestRatio":{{"cpu":"{ratio}"}}}}"#
            )
        };

        check(&ratio("2"), &[]);
        check(
            &ratio("500m"),
            &["i.maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less than 1"],
        );

        check(
            &ratio("3"),
            &[
                "i.maxLimitRequestRatio[cpu]: Invalid value: \"3\": ratio 3 is greater than max/min = 2.000000",
            ],
        );
    }

    #[test]
    fn types_have_their_required_fields_only() {
        check(
            r#"{"type":"Pod","default":{"cpu":"1"},"defaultRequest":{"cpu":"1"}}"#,
            &[
                "i.default: Forbidden: may not be",
                "i.defaultRequest: Forbidden: may not be",
            ],
        );
        check(
            r#"{"type":"PersistentVolumeClaim","max":{"cpu":"1"}}"#,
            &["i.limits: Required value: either minimum or maximum storage value is required"],
        );
    }
}
