//! What fields are for, in upstream's words: taken from the schemas that `k8s-openapi` carries, never written down here.

use std::collections::HashMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Descriptions by OpenAPI definition name; the type's own under the empty field name.
pub(crate) type Descriptions = HashMap<String, HashMap<String, String>>;

pub(crate) fn all() -> Descriptions {
    let mut generator = SchemaGenerator::default();
    kinds(&mut generator);
    let definitions = generator.take_definitions(true);
    definitions.iter().map(|(name, schema)| (name.clone(), descriptions(schema))).collect()
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
        k8s_openapi::apimachinery::pkg::apis::meta::v1: APIGroup APIGroupList APIResourceList APIVersions DeleteOptions Status;
    }
}
