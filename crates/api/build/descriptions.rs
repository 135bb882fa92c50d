//! Descriptions of types and fields: upstream's where `k8s-openapi` has them in its schemas, our
//! own (`catalog/descriptions.txt`) for the rest.

use std::collections::HashMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::emit::{is_struct, table};
use crate::parse::{Field, Page, Type};

/// Descriptions by OpenAPI definition name; the type's own under the empty field name.
pub(crate) type Published = HashMap<String, HashMap<String, String>>;

pub(crate) fn published() -> Published {
    let mut generator = SchemaGenerator::default();
    kinds(&mut generator);
    let definitions = generator.take_definitions(true);
    definitions
        .iter()
        .map(|(name, schema)| (name.clone(), descriptions(schema)))
        .collect()
}

/// A typical kind. Its descriptions of `apiVersion` and `kind` hold for every kind.
const SOME_KIND: &str = "io.k8s.api.core.v1.Pod";

/// Our own descriptions, by `package.Type` or `package.Type.field`; `*List` stands for any list.
pub(crate) struct Own(HashMap<String, String>);

impl Own {
    pub(crate) fn parse(text: &str) -> Own {
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pair = |line: &str| match line.split_once(' ') {
            Some((name, text)) => (name.to_string(), text.trim().to_string()),
            None => panic!("descriptions.txt: {line:?} has no description"),
        };
        Own(lines.map(pair).collect())
    }

    fn find(&self, package: &str, declared: &Type, field: &str) -> Option<&String> {
        let of = |name: &str| {
            self.0.get(&if field.is_empty() {
                name.to_string()
            } else {
                format!("{name}.{field}")
            })
        };
        let is_list = declared.name.ends_with("List")
            && declared.fields.iter().any(|field| field.name == "items");
        of(&format!("{package}.{}", declared.name))
            .or_else(|| is_list.then(|| of("*List")).flatten())
    }
}

/// One text that holds every description once, and the offset and length of each: of the types,
/// then of their fields, in the order of the tables, then of the scalars by their definition names.
pub(crate) fn tables(pages: &[Page], published: &Published, own: &Own) -> (String, String) {
    let mut texts = String::new();
    let mut spans: HashMap<&str, (usize, usize)> = HashMap::new();

    let (mut of_types, mut of_fields, mut of_scalars) = (Vec::new(), Vec::new(), Vec::new());
    for page in pages {
        for declared in &page.types {
            let definition = definition_name(&page.proto, &declared.name);
            let described = published.get(&definition);

            let common = published.get(SOME_KIND).filter(|_| declared.kind.is_some());
            let mut span = |name: &str| {
                let found = described.and_then(|known| known.get(name));
                let found = found.or_else(|| own.find(&page.package, declared, name));
                let found = found.or_else(|| match name {
                    "apiVersion" | "kind" => common?.get(name),
                    _ => None,
                });
                let Some(text) = found else { return (0, 0) };

                *spans.entry(text).or_insert_with(|| {
                    texts.push_str(text);
                    (texts.len() - text.len(), text.len())
                })
            };

            if !is_struct(declared) {
                of_scalars.push(format!("({definition:?}, {:?})", span("")));
                continue;
            }

            of_types.push(format!("{:?}", span("")));
            let mut fields: Vec<&Field> = declared.fields.iter().collect();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            of_fields.extend(
                fields
                    .iter()
                    .map(|field| format!("{:?}", span(&field.name))),
            );
        }
    }

    of_scalars.sort();
    let mut out = String::new();
    table(&mut out, "OF_TYPES", "(u32, u32)", &of_types);
    table(&mut out, "OF_FIELDS", "(u32, u32)", &of_fields);
    table(&mut out, "OF_SCALARS", "(&str, (u32, u32))", &of_scalars);

    (texts, out)
}

/// `io.k8s.api.core.v1.Pod`: a type's name in OpenAPI documents.
fn definition_name(proto_package: &str, name: &str) -> String {
    let package = proto_package
        .strip_prefix("k8s.io")
        .unwrap_or(proto_package)
        .replace('_', "-");
    format!("io.k8s{package}.{name}")
}

fn descriptions(schema: &Value) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut take = |name: &str, schema: &Value| {
        if let Some(text) = schema["description"].as_str() {
            found.insert(name.to_string(), text.to_string());
        }
    };
    take("", schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        take(name, property);
    }
    found
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

macro_rules! add_kinds {
    ($generator:ident; $($module:path: $($kind:ident)+;)+) => {
        $( { use $module as page; $( add::<page::$kind>($generator); )+ } )+
    };
}

fn kinds(generator: &mut SchemaGenerator) {
    add_kinds! { generator;
        k8s_openapi::api::admissionregistration::v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
            MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration;
        k8s_openapi::api::admissionregistration::v1alpha1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        k8s_openapi::api::admissionregistration::v1beta1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        k8s_openapi::api::apiserverinternal::v1alpha1: StorageVersion;
        k8s_openapi::api::apps::v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        k8s_openapi::api::autoscaling::v1: HorizontalPodAutoscaler;
        k8s_openapi::api::autoscaling::v2: HorizontalPodAutoscaler;
        k8s_openapi::api::batch::v1: CronJob Job;
        k8s_openapi::api::certificates::v1: CertificateSigningRequest;
        k8s_openapi::api::certificates::v1alpha1: ClusterTrustBundle;
        k8s_openapi::api::certificates::v1beta1: ClusterTrustBundle PodCertificateRequest;
        k8s_openapi::api::coordination::v1: Lease;
        k8s_openapi::api::coordination::v1alpha2: LeaseCandidate;
        k8s_openapi::api::coordination::v1beta1: LeaseCandidate;
        k8s_openapi::api::core::v1: ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node
            PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service
            ServiceAccount;
        k8s_openapi::api::discovery::v1: EndpointSlice;
        k8s_openapi::api::events::v1: Event;
        k8s_openapi::api::flowcontrol::v1: FlowSchema PriorityLevelConfiguration;
        k8s_openapi::api::networking::v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        k8s_openapi::api::networking::v1beta1: IPAddress ServiceCIDR;
        k8s_openapi::api::node::v1: RuntimeClass;
        k8s_openapi::api::policy::v1: PodDisruptionBudget;
        k8s_openapi::api::rbac::v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        k8s_openapi::api::resource::v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        k8s_openapi::api::resource::v1alpha3: DeviceTaintRule ResourcePoolStatusRequest;
        k8s_openapi::api::resource::v1beta1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        k8s_openapi::api::resource::v1beta2: DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate
            ResourceSlice;
        k8s_openapi::api::scheduling::v1: PriorityClass;
        k8s_openapi::api::scheduling::v1alpha2: PodGroup Workload;
        k8s_openapi::api::storage::v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
            VolumeAttributesClass;
        k8s_openapi::api::storage::v1beta1: VolumeAttributesClass;
        k8s_openapi::api::storagemigration::v1beta1: StorageVersionMigration;
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1: CustomResourceDefinition;
        k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1: APIService;
        k8s_openapi::api::authentication::v1: SelfSubjectReview TokenRequest TokenReview;
        k8s_openapi::api::authorization::v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
            SubjectAccessReview;
        k8s_openapi::api::autoscaling::v1: Scale;
        k8s_openapi::api::core::v1: Binding;
        k8s_openapi::api::policy::v1: Eviction;
        k8s_openapi::apimachinery::pkg::apis::meta::v1: APIGroup APIGroupList APIResourceList APIVersions DeleteOptions Patch
            Status;
        k8s_openapi::apimachinery::pkg::version: Info;
    }
}
