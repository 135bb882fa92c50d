//! PodTemplate: a template of pods by itself.

use coracle_api::Path;
use coracle_api::names::{self, Rule};
use k8s_openapi::api::core::v1::{PodTemplate, PodTemplateSpec};

use super::pod;
use crate::registry::strategy::{Context, Errors, Judged, Strategy};

const TEMPLATE: Path<'static> = Path::Field(&Path::Root, "template");

pub(in crate::registry) struct PodTemplates;

impl Strategy for PodTemplates {
    type Object = PodTemplate;

    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    fn validate(&self, new: &Judged<'_, PodTemplate>, cx: &Context<'_>, errors: &mut Errors) {
        let options = pod::Options::of_template(None, cx.registry.allow_privileged);
        pod::validate_template(given(&new.template), &TEMPLATE, &options, errors);
    }

    fn validate_update(
        &self,
        new: &Judged<'_, PodTemplate>,
        old: &Judged<'_, PodTemplate>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let options =
            pod::Options::of_template(old.template.as_ref(), cx.registry.allow_privileged);
        pod::validate_template(given(&new.template), &TEMPLATE, &options, errors);
    }

    fn warnings(
        &self,
        new: &Judged<'_, PodTemplate>,
        old: Option<&Judged<'_, PodTemplate>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        match old {
            Some(old) if old.metadata.generation == new.metadata.generation => Vec::new(),
            _ => pod::template_warnings(given(&new.template), &TEMPLATE),
        }
    }
}

fn given(template: &Option<PodTemplateSpec>) -> &PodTemplateSpec {
    static NONE: std::sync::OnceLock<PodTemplateSpec> = std::sync::OnceLock::new();
    template
        .as_ref()
        .unwrap_or_else(|| NONE.get_or_init(PodTemplateSpec::default))
}
