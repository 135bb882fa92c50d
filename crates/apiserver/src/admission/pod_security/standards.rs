//! What a cluster asks of pods by its configuration: the policy of namespaces without labels, and who
//! is exempt.

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::{Map, Path, Value, names};

use super::policy::Policy;

/// A PodSecurityConfiguration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::admission) struct Standards {
    pub(super) defaults: Policy,
    users: Vec<String>,
    namespaces: Vec<String>,
    runtime_classes: Vec<String>,
}

impl Standards {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Something in it is wrong, in upstream's words.
    pub(in crate::admission) fn read(own: &Map) -> Result<Standards, String> {
        let nothing = Map::new();
        let defaults = own.below("defaults").unwrap_or(&nothing);
        let exemptions = own.below("exemptions").unwrap_or(&nothing);
        let defaults = Policy::of_configuration(defaults).map_err(|errors| errors.to_string())?;

        let list = |name: &str| -> Vec<String> {
            let texts = exemptions.items(name).iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let standards = Standards {
            defaults,
            users: list("usernames"),
            namespaces: list("namespaces"),
            runtime_classes: list("runtimeClasses"),
        };
        match standards.errors() {
            errors if errors.is_empty() => Ok(standards),
            errors => Err(errors.to_string()),
        }
    }

    fn errors(&self) -> FieldErrors {
        let at = Path::Root.field("exemptions");
        let mut errors = FieldErrors::new();
        let lists: [(&str, &[String], Option<names::Rule>); 3] = [
            ("usernames", &self.users, None),
            (
                "runtimeClasses",
                &self.runtime_classes,
                Some(names::dns1123_subdomain),
            ),
            ("namespaces", &self.namespaces, Some(names::dns1123_label)),
        ];

        for (name, list, rule) in lists {
            let at = at.field(name);
            for (index, text) in list.iter().enumerate() {
                let at = at.index(index);
                if list[..index].contains(text) {
                    let shown = format!("{text:?}");
                    errors.push(FieldError::duplicate(&at, shown));
                }
                match rule {
                    Some(rule) if !rule(text).is_empty() => {
                        let why = rule(text).join(", ");
                        errors.push(FieldError::invalid_str(&at, text, why));
                    }
                    None if text.is_empty() => {
                        let why = "username must not be empty";
                        errors.push(FieldError::invalid_str(&at, text, why));
                    }
                    _ => {}
                }
            }
        }

        errors
    }

    /// Whether pods of a namespace, or of a user, are not looked at.
    pub(super) fn exempts(&self, namespace: &str, user: &str) -> bool {
        self.exempts_namespace(namespace) || self.users.iter().any(|exempt| exempt == user)
    }

    pub(super) fn exempts_namespace(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|exempt| exempt == namespace)
    }

    pub(super) fn exempts_runtime(&self, class: Option<&str>) -> bool {
        class.is_some_and(|class| self.runtime_classes.iter().any(|exempt| exempt == class))
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn read(text: &str) -> Result<Standards, String> {
        let tree = json::parse(text.as_bytes()).unwrap();
        Standards::read(tree.as_object().unwrap())
    }

    #[test]
    fn a_cluster_has_a_policy_and_exemptions() {
        let standards = read(
            r#"{"defaults":{"enforce":"baseline","enforce-version":"v1.30"},
                "exemptions":{"usernames":["root"],"namespaces":["system"],"runtimeClasses":["vm"]}}"#,
        );
        let standards = standards.unwrap();
        assert_eq!(standards.defaults.enforce.to_string(), "baseline:v1.30");
        assert_eq!(standards.defaults.warn.to_string(), "privileged:latest");
        assert!(standards.exempts("system", "jane") && standards.exempts("a", "root"));
        assert!(!standards.exempts("a", "jane"));
        assert!(standards.exempts_runtime(Some("vm")) && !standards.exempts_runtime(None));

        let labels =
            json::parse(br#"{"pod-security.kubernetes.io/enforce":"restricted"}"#).unwrap();
        let (policy, _) = Policy::of(labels.as_object(), standards.defaults);
        assert_eq!(policy.enforce.to_string(), "restricted:v1.30");
    }

    #[test]
    fn mistakes_in_a_configuration_are_told() {
        let check = |text: &str, expected: &str| assert_eq!(read(text).unwrap_err(), expected);
        check(
            r#"{"defaults":{"enforce":"strict"}}"#,
            "defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
        );
        check(
            r#"{"exemptions":{"usernames":["a","a"]}}"#,
            "exemptions.usernames[1]: Duplicate value: \"a\"",
        );
    }
}
