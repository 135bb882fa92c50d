//! ClusterTrustBundleAttest: a bundle of CA certificates that names a signer requires the right to
//! attest for it.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::go_text::Quoted;

use super::super::{Attributes, Operation, Plugin};
use super::{GROUP, may, signer};
use crate::ApiError;

pub(in crate::admission) struct ClusterTrustBundleAttest;

#[async_trait]
impl Plugin for ClusterTrustBundleAttest {
    async fn validate(
        &self,
        bundle: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let is_bundle = attributes.is_of(GROUP, "clustertrustbundles");
        let Some(bundle) = bundle.filter(|_| is_bundle) else {
            return Ok(());
        };

        let name = signer(bundle);
        let is_collected = attributes.operation == Operation::Update
            && attributes
                .old
                .is_some_and(|old| only_for_collection(bundle, old));
        if name.is_empty() || is_collected || may("attest", name, attributes).await {
            return Ok(());
        }

        let why = format!(
            "user not permitted to attest for signerName {}",
            Quoted(name)
        );
        Err(attributes.forbidden(bundle, &why))
    }
}

/// Whether only what garbage collection and the server itself write differs.
fn only_for_collection(new: &Value, old: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        let mut metadata = object.meta_mut();
        for name in [
            "ownerReferences",
            "finalizers",
            "managedFields",
            "resourceVersion",
        ] {
            metadata.members().remove(name);
        }
        object
    };
    bare(new) == bare(old)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn a_change_of_owners_attests_nothing() {
        let check = |new: &str, old: &str, expected: bool| {
            let read = |text: &str| json::parse(text.as_bytes()).unwrap();
            assert_eq!(only_for_collection(&read(new), &read(old)), expected);
        };

        let old = r#"{"metadata":{"name":"b"},"spec":{"trustBundle":"x"}}"#;
        check(
            r#"{"metadata":{"name":"b","finalizers":["a/b"]},"spec":{"trustBundle":"x"}}"#,
            old,
            true,
        );
        check(
            r#"{"metadata":{"name":"b"},"spec":{"trustBundle":"y"}}"#,
            old,
            false,
        );
    }
}
