//! The policy that the labels of a namespace set.

use std::fmt;

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::{Map, Path, Value};

/// How strict rules are; the strictest is the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

/// The version that rules are taken from: `v1.x`, or the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Version {
    #[default]
    Latest,
    Minor(u32),
}

/// Rules of one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// What happens to pods of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) audit: LevelVersion,
    pub(super) warn: LevelVersion,
}

/// The newest version in which a rule changed.
const NEWEST: u32 = 35;

impl Level {
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }
}

impl LevelVersion {
    /// The minor version whose rules hold.
    pub(super) fn minor(self) -> u32 {
        match self.version {
            Version::Latest => NEWEST,
            Version::Minor(minor) => minor.min(NEWEST),
        }
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level.name();
        match self.version {
            Version::Latest => write!(out, "{level}:latest"),
            Version::Minor(minor) => write!(out, "{level}:v1.{minor}"),
        }
    }
}

impl Policy {
    /// The policy that labels set, and the errors in them. What cannot be parsed is enforced as
    /// restricted, and not warned of.
    /// `defaults` is the policy of namespaces without labels.
    pub(super) fn of(labels: Option<&Map>, defaults: Policy) -> (Policy, FieldErrors) {
        let mut reader = Reader {
            labels,
            mistakes: FieldErrors::new(),
        };

        let mut policy = defaults;
        let enforced = reader.read("enforce", &mut policy.enforce, Level::Restricted);
        reader.read("audit", &mut policy.audit, Level::Privileged);
        let warned = reader.read("warn", &mut policy.warn, Level::Privileged);

        // A namespace that enforces a level is also warned of it, unless it sets a warn level.
        if !warned.level && enforced.level_is_good && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !warned.version {
                policy.warn.version = policy.enforce.version;
            }
        }

        (policy, reader.mistakes)
    }

    pub(super) fn asks_for_nothing(&self) -> bool {
        [self.enforce, self.audit, self.warn]
            .iter()
            .all(|mode| mode.level == Level::Privileged)
    }
}

impl Policy {
    /// Reads the defaults of a PodSecurityConfiguration.
    ///
    /// # Errors
    /// A level or version is unknown, in upstream's words.
    pub(super) fn of_configuration(defaults: &Map) -> Result<Policy, FieldErrors> {
        let (mut policy, mut errors) = (Policy::default(), FieldErrors::new());
        let at = Path::Root.field("defaults");
        let modes = [
            ("enforce", &mut policy.enforce),
            ("audit", &mut policy.audit),
            ("warn", &mut policy.warn),
        ];

        for (mode, into) in modes {
            let text = defaults.text(mode);
            match level(text) {
                Some(level) => into.level = level,
                None if text.is_empty() => {}
                None => {
                    let why = "must be one of privileged, baseline, restricted";
                    errors.push(FieldError::invalid_str(&at.field(mode), text, why));
                }
            }

            let name = format!("{mode}-version");
            let text = defaults.text(&name);
            match version(text) {
                Some(version) => into.version = version,
                None if text.is_empty() => {}
                None => {
                    let why = "must be \"latest\" or \"v1.x\"";
                    errors.push(FieldError::invalid_str(&at.field(&name), text, why));
                }
            }
        }

        match errors.is_empty() {
            true => Ok(policy),
            false => Err(errors),
        }
    }
}

struct Reader<'l> {
    labels: Option<&'l Map>,
    mistakes: FieldErrors,
}

/// Which labels of a mode are set.
struct PresentLabels {
    level: bool,
    level_is_good: bool,
    version: bool,
}

impl Reader<'_> {
    fn read(&mut self, mode: &str, into: &mut LevelVersion, otherwise: Level) -> PresentLabels {
        let (level_label, version_label) = (
            format!("pod-security.kubernetes.io/{mode}"),
            format!("pod-security.kubernetes.io/{mode}-version"),
        );

        let text = |label: &str| {
            self.labels
                .and_then(|labels| labels.get(label))
                .and_then(Value::as_str)
        };

        let (level, version) = (text(&level_label), text(&version_label));
        let mut given = PresentLabels {
            level: level.is_some(),
            level_is_good: false,
            version: version.is_some(),
        };

        if let Some(text) = level {
            match self::level(text) {
                Some(level) => {
                    into.level = level;
                    given.level_is_good = true;
                }
                None => {
                    into.level = otherwise;
                    self.refuse(
                        &level_label,
                        text,
                        "must be one of privileged, baseline, restricted",
                    );
                }
            }
        }

        if let Some(text) = version {
            match self::version(text) {
                Some(version) => into.version = version,
                None => {
                    into.version = Version::Latest;
                    self.refuse(&version_label, text, "must be \"latest\" or \"v1.x\"");
                }
            }
        }

        given
    }

    fn refuse(&mut self, label: &str, found: &str, why: &str) {
        let labels = Path::Root.field("metadata.labels");
        self.mistakes
            .push(FieldError::invalid_str(&labels.key(label), found, why));
    }
}

fn level(text: &str) -> Option<Level> {
    match text {
        "privileged" => Some(Level::Privileged),
        "baseline" => Some(Level::Baseline),
        "restricted" => Some(Level::Restricted),
        _ => None,
    }
}

fn version(text: &str) -> Option<Version> {
    if text == "latest" {
        return Some(Version::Latest);
    }
    let minor = text.strip_prefix("v1.")?;
    let readable = minor.bytes().all(|byte| byte.is_ascii_digit())
        && (minor == "0" || !minor.starts_with('0'));
    minor.parse().ok().filter(|_| readable).map(Version::Minor)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn labels_set_the_enforce_and_warn_levels() {
        let check = |labels: &str, enforce: &str, warn: &str, mistakes: &[&str]| {
            let labels = json::parse(
                labels
                    .replace("ps/", "pod-security.kubernetes.io/")
                    .as_bytes(),
            )
            .unwrap();

            let (policy, found) = Policy::of(labels.as_object(), Policy::default());
            assert_eq!(
                (
                    policy.enforce.to_string().as_str(),
                    policy.warn.to_string().as_str()
                ),
                (enforce, warn)
            );

            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, mistakes);
        };
        check("{}", "privileged:latest", "privileged:latest", &[]);

        check(
            r#"{"ps/enforce":"baseline"}"#,
            "baseline:latest",
            "baseline:latest",
            &[],
        );

        check(
            r#"{"ps/enforce":"baseline","ps/warn":"privileged"}"#,
            "baseline:latest",
            "privileged:latest",
            &[],
        );

        check(
            r#"{"ps/enforce":"restricted","ps/enforce-version":"v1.20"}"#,
            "restricted:v1.20",
            "restricted:v1.20",
            &[],
        );

        check(
            r#"{"ps/enforce":"x","ps/enforce-version":"v1.01"}"#,
            "restricted:latest",
            "privileged:latest",
            &[
                "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"x\": must be one of privileged, baseline, restricted",
                "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"v1.01\": must be \"latest\" or \"v1.x\"",
            ],
        );
    }
}
