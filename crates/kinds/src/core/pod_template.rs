//! PodTemplate: a pod template as an object of its own.

use coracle_api::names::Rule;
use coracle_api::time::Timestamp;
use coracle_api::{Path, names};
use k8s_openapi::api::core::v1::{PodTemplate, PodTemplateSpec};

use super::pod;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};

const TEMPLATE: Path<'static> = Path::Field(&Path::Root, "template");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PodTemplates,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct PodTemplates;

impl Strategy for PodTemplates {
    type Object = PodTemplate;

    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    fn validate(&self, new: &View<'_, PodTemplate>, cx: &Context<'_>, errors: &mut Errors) {
        let options = pod::Options::of_template(None, cx.cluster.allow_privileged());
        pod::validate_template(given(&new.template), &TEMPLATE, &options, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, PodTemplate>,
        old: &View<'_, PodTemplate>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let options =
            pod::Options::of_template(old.template.as_ref(), cx.cluster.allow_privileged());
        pod::validate_template(given(&new.template), &TEMPLATE, &options, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, PodTemplate>,
        old: Option<&View<'_, PodTemplate>>,
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

fn print_row(template: &PodTemplate, _: Timestamp) -> Row {
    let (names, images) = cells::template_containers(template.template.as_ref());
    let metadata = template
        .template
        .as_ref()
        .and_then(|template| template.metadata.as_ref());
    row![
        cells::name(&template.metadata),
        names,
        images,
        cells::labels(metadata.and_then(|meta| meta.labels.as_ref()))
    ]
}
