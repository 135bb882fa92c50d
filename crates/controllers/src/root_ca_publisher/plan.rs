//! The ConfigMap with the cluster's CA. Pure.

use std::sync::Arc;

use coracle_api::{Map, Value};

/// The name of the ConfigMap; pods mount it.
pub const NAME: &str = "kube-root-ca.crt";
/// The entry with the CA.
const ENTRY: &str = "ca.crt";
/// The annotation with its description.
const DESCRIPTION: &str = "kubernetes.io/description";
const GOOD_FOR: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                        endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                        guaranteed across distributions of Kubernetes clusters.";

/// All that was observed of a namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Whether it is being deleted: nothing can be created in it.
    pub is_going: bool,
    /// The ConfigMap, if it exists.
    pub config_map: Option<Arc<Value>>,
    /// The CA to publish.
    pub authority: String,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Create the ConfigMap.
    Create(Value),
    /// Restore its content.
    Update(Value),
}

/// Decides what the namespace needs.
pub fn plan(observed: &Observed) -> Plan {
    if observed.is_going {
        return Plan::Keep;
    }

    let mut data = Map::new();
    data.insert(ENTRY, observed.authority.as_str());

    match &observed.config_map {
        None => {
            let mut made = Map::new();
            made.insert("apiVersion", "v1");
            made.insert("kind", "ConfigMap");
            made.insert("data", data);
            let mut made = Value::Object(made);
            made.meta_mut().set_name(NAME);
            made.meta_mut().set_annotation(DESCRIPTION, Some(GOOD_FOR));
            Plan::Create(made)
        }
        Some(known) => {
            let same = known.get("data").and_then(Value::as_object) == Some(&data);
            let described = known
                .meta()
                .annotation(DESCRIPTION)
                .is_some_and(|text| !text.is_empty());

            if same && described {
                return Plan::Keep;
            }

            let mut right = Value::clone(known);
            if let Some(members) = right.as_object_mut() {
                members.insert("data", data);
            }

            right.meta_mut().set_annotation(DESCRIPTION, Some(GOOD_FOR));

            Plan::Update(right)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_config_map_is_created_and_a_changed_one_restored() {
        let observed = |is_going, held: Option<Value>| Observed {
            is_going,
            config_map: held.map(Arc::new),
            authority: "PEM".to_string(),
        };

        let Plan::Create(made) = plan(&observed(false, None)) else {
            panic!("it is made")
        };
        assert_eq!(
            made.at(&["data", "ca.crt"]).and_then(Value::as_str),
            Some("PEM")
        );

        assert_eq!(plan(&observed(true, None)), Plan::Keep);
        assert_eq!(plan(&observed(false, Some(made.clone()))), Plan::Keep);

        let mut changed = made.clone();
        changed
            .as_object_mut()
            .unwrap()
            .object_mut("data")
            .insert("more", "x");

        assert_eq!(
            plan(&observed(false, Some(changed))),
            Plan::Update(made.clone())
        );

        let mut bare = made.clone();
        bare.meta_mut().set_annotation(DESCRIPTION, None);
        assert_eq!(
            plan(&observed(false, Some(bare))),
            Plan::Update(made.clone())
        );

        // A changed description is left alone.
        let mut own = made.clone();
        own.meta_mut().set_annotation(DESCRIPTION, Some("ours"));
        assert_eq!(plan(&observed(false, Some(own))), Plan::Keep);
    }
}
