//! Feature gates, which every component has.

use std::collections::BTreeMap;

use coracle_api::gates::{self, FeatureGates};
use coracle_settings::{Mistakes, Part, Setting};

/// The states of gates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates {
    asked: BTreeMap<String, bool>,
}

pub(crate) const fn feature_gates<T: Part<Gates>>() -> [Setting<T>; 1] {
    [Setting::new(
        "feature-gates",
        "",
        "Features to switch: Name=true,Other=false. AllAlpha and AllBeta are all features of a stage. What each \
         default is, upstream's documentation lists",
        |options: &mut T| &mut options.part().asked,
    )]
}

impl Gates {
    /// Makes these the gates of the process. The API server's may be written as `kube:Name`.
    pub(crate) fn set(&self) -> Result<(), Mistakes> {
        let mut asked = BTreeMap::new();
        for (name, state) in &self.asked {
            match name.split_once(':') {
                None | Some(("kube", _)) => {
                    let name = name.strip_prefix("kube:").unwrap_or(name);
                    asked.insert(name.to_owned(), *state);
                }
                Some((component, _)) => {
                    let why = format!("component not registered: {component}");
                    return Err(Mistakes(vec![why]));
                }
            }
        }

        let states = FeatureGates::new(&asked).map_err(Mistakes)?;
        for warning in states.warnings() {
            tracing::warn!("{warning}");
        }
        gates::set(states);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_may_name_the_component() {
        let check = |name: &str, expected: Result<(), &str>| {
            let asked = BTreeMap::from([(name.to_owned(), true)]);
            let found = Gates { asked }
                .set()
                .map_err(|mistakes| mistakes.0.join(", "));
            assert_eq!(found, expected.map_err(str::to_owned), "{name}");
        };

        // These are on anyway.
        check("NodeDeclaredFeatures", Ok(()));
        check("kube:NodeDeclaredFeatures", Ok(()));
        check("other:X", Err("component not registered: other"));
        check("kube:X", Err("unrecognized feature gate: X"));
    }
}
