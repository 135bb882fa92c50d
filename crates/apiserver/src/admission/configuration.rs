//! `--admission-control-config-file`: what configures plugins.
//!
//! The file is an AdmissionConfiguration, which names plugins with their configuration or with a
//! file that has it. A file of no kind is older: the whole of it configures ImagePolicyWebhook and
//! PodNodeSelector.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use coracle_api::codec::yaml;
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::go_text::Quoted;
use coracle_api::{Map, Path as FieldPath, Value};

use super::PluginFlags;
use super::pod_security::Standards;
use crate::webhook::{AdmissionCredentials, Credentials, CredentialsError};

/// What the file configures.
#[derive(Clone, Debug, Default)]
pub struct AdmissionConfiguration {
    pub credentials: AdmissionCredentials,
    pub plugins: PluginConfigurations,
}

/// How long a new pod stays on a node that fails, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TolerationSeconds {
    pub not_ready: i64,
    pub unreachable: i64,
}

impl Default for TolerationSeconds {
    fn default() -> TolerationSeconds {
        TolerationSeconds {
            not_ready: 300,
            unreachable: 300,
        }
    }
}

/// The configurations of plugins other than those of webhooks.
#[derive(Clone, Debug, Default)]
pub struct PluginConfigurations {
    pub toleration_seconds: TolerationSeconds,
    pub(super) pod_security: Standards,
    pub(super) event_limits: Vec<EventLimit>,
    pub(super) image_policy: Option<ImagePolicy>,
    /// Selectors by namespace, and the one of all others.
    pub(super) node_selectors: BTreeMap<String, String>,
    pub(super) tolerations: Tolerations,
}

/// How many events per second are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventLimit {
    pub(super) per: EventLimitType,
    pub(super) qps: u32,
    pub(super) burst: u32,
    /// How many namespaces, users or objects are told apart.
    pub(super) cache_size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventLimitType {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

impl EventLimitType {
    const ALL: [EventLimitType; 4] = [
        EventLimitType::Namespace,
        EventLimitType::Server,
        EventLimitType::SourceAndObject,
        EventLimitType::User,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            EventLimitType::Server => "Server",
            EventLimitType::Namespace => "Namespace",
            EventLimitType::User => "User",
            EventLimitType::SourceAndObject => "SourceAndObject",
        }
    }
}

/// The backend that decides about images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImagePolicy {
    pub(super) kubeconfig: PathBuf,
    pub(super) allow_for: Duration,
    pub(super) deny_for: Duration,
    pub(super) retry_after: Duration,
    /// Whether images are allowed that the backend could not be asked about.
    pub(super) default_allow: bool,
}

/// The tolerations of namespaces that name none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tolerations {
    pub(super) default: Vec<Value>,
    pub(super) whitelist: Vec<Value>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error(
        "unable to read admission control configuration from {} [{error}]",
        Quoted(file)
    )]
    Read { file: String, error: io::Error },
    #[error("{file}: {why}")]
    Malformed { file: String, why: String },
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

impl AdmissionConfiguration {
    pub fn read(file: &Path) -> Result<AdmissionConfiguration, ConfigurationError> {
        let configuration = read(file)?;
        let malformed = |why: String| ConfigurationError::Malformed {
            file: file.display().to_string(),
            why,
        };

        let mut found = AdmissionConfiguration::default();
        match configuration.text("kind") {
            "AdmissionConfiguration" => {}
            "" => {
                for name in ["ImagePolicyWebhook", "PodNodeSelector"] {
                    found.configure(name, &configuration).map_err(&malformed)?;
                }
                return Ok(found);
            }
            kind => return Err(malformed(format!("unknown kind {}", Quoted(kind)))),
        }

        let plugins = configuration.items("plugins");
        for plugin in plugins.iter().filter_map(Value::as_object) {
            let own = match (plugin.text("path"), plugin.below("configuration")) {
                (_, Some(inline)) => inline.clone(),
                ("", None) => continue,
                (path, None) => read(&file.parent().unwrap_or(Path::new("")).join(path))?,
            };
            match plugin.text("name") {
                "MutatingAdmissionWebhook" => {
                    found.credentials.mutating = credentials(&own, &malformed)?;
                }
                "ValidatingAdmissionWebhook" => {
                    found.credentials.validating = credentials(&own, &malformed)?;
                }
                name => found.configure(name, &own).map_err(&malformed)?,
            }
        }

        Ok(found)
    }

    fn configure(&mut self, name: &str, own: &Map) -> Result<(), String> {
        let plugins = &mut self.plugins;
        match name {
            "EventRateLimit" => plugins.event_limits = event_limits(own)?,
            "ImagePolicyWebhook" => plugins.image_policy = image_policy(own)?,
            "PodSecurity" => {
                check_kind(own, "PodSecurityConfiguration")?;
                plugins.pod_security = Standards::read(own)?;
            }
            "PodNodeSelector" => plugins.node_selectors = node_selectors(own),
            "PodTolerationRestriction" => plugins.tolerations = tolerations(own)?,
            name => {
                let name = Quoted(name);
                return Err(format!(
                    "admission plugin {name} reads no configuration here"
                ));
            }
        }
        Ok(())
    }
}

impl PluginConfigurations {
    /// What plugins that are enabled miss.
    pub fn errors(&self, flags: &PluginFlags) -> Vec<String> {
        let runs = |name: &str| {
            let is = |list: &[String]| list.iter().any(|given| given == name);
            is(&flags.enable) && !is(&flags.disable)
        };
        let missing = [
            (
                "EventRateLimit",
                self.event_limits.is_empty(),
                "limits: Invalid value: null: must not be empty",
            ),
            (
                "ImagePolicyWebhook",
                self.image_policy.is_none(),
                "no config specified",
            ),
        ];

        let missing = missing
            .into_iter()
            .filter(|(name, lacks, _)| *lacks && runs(name));
        missing
            .map(|(name, _, why)| {
                format!(
                    "failed to initialize admission: couldn't init admission plugin {name:?}: {why}"
                )
            })
            .collect()
    }
}

fn read(file: &Path) -> Result<Map, ConfigurationError> {
    let shown = || file.display().to_string();
    let text = fs::read(file).map_err(|error| ConfigurationError::Read {
        file: shown(),
        error,
    })?;
    let malformed = |why| ConfigurationError::Malformed { file: shown(), why };
    match yaml::decode(&text).map_err(|error| malformed(error.to_string()))? {
        Value::Object(map) => Ok(map),
        other => Err(malformed(format!(
            "it is {}, not an object",
            other.type_name()
        ))),
    }
}

fn credentials(
    own: &Map,
    malformed: &impl Fn(String) -> ConfigurationError,
) -> Result<Credentials, ConfigurationError> {
    check_kind(own, "WebhookAdmissionConfiguration").map_err(malformed)?;
    match own.text("kubeConfigFile") {
        "" => Ok(Credentials::default()),
        path if !Path::new(path).is_absolute() => Err(malformed(format!(
            "kubeConfigFile: Invalid value: {}: must be an absolute file path",
            Quoted(path)
        ))),
        path => Ok(Credentials::read(Path::new(path))?),
    }
}

fn check_kind(own: &Map, expected: &str) -> Result<(), String> {
    match own.text("kind") {
        kind if kind == expected => Ok(()),
        kind => Err(format!("unknown kind {}", Quoted(kind))),
    }
}

fn event_limits(own: &Map) -> Result<Vec<EventLimit>, String> {
    /// How many keys are told apart where the file does not say.
    const CACHE_SIZE: usize = 4096;

    check_kind(own, "Configuration")?;
    let at = FieldPath::Root.field("limits");
    let (mut errors, mut limits) = (FieldErrors::new(), Vec::new());
    let given = own.items("limits");
    if given.is_empty() {
        let shown = own.get("limits").map_or("null", |_| "[]").to_owned();
        errors.push(FieldError::invalid(&at, shown, "must not be empty"));
    }

    for (index, limit) in given.iter().filter_map(Value::as_object).enumerate() {
        let at = at.index(index);
        let name = limit.text("type");
        let per = EventLimitType::ALL
            .into_iter()
            .find(|known| known.name() == name);
        if per.is_none() {
            let known = EventLimitType::ALL.map(EventLimitType::name);
            errors.push(FieldError::not_supported(&at.field("type"), name, &known));
        }

        let mut positive = |name: &str| {
            let given = limit.int(name);
            match u32::try_from(given) {
                Ok(0) | Err(_) => {
                    let (at, shown) = (at.field(name), given.to_string());
                    errors.push(FieldError::invalid(&at, shown, "must be positive"));
                    1
                }
                Ok(given) => given,
            }
        };
        let (burst, qps) = (positive("burst"), positive("qps"));

        let given = limit.int("cacheSize");
        if given < 0 && per != Some(EventLimitType::Server) {
            let (at, shown) = (at.field("cacheSize"), given.to_string());
            errors.push(FieldError::invalid(&at, shown, "must not be negative"));
        }
        let cache_size = match usize::try_from(given) {
            Ok(0) | Err(_) => CACHE_SIZE,
            Ok(size) => size,
        };
        limits.extend(per.map(|per| EventLimit {
            per,
            qps,
            burst,
            cache_size,
        }));
    }

    match errors.is_empty() {
        true => Ok(limits),
        false => Err(errors.to_string()),
    }
}

fn image_policy(own: &Map) -> Result<Option<ImagePolicy>, String> {
    let Some(own) = own.below("imagePolicy") else {
        return Ok(None);
    };

    const HALF_AN_HOUR: Duration = Duration::from_secs(1800);
    let duration =
        |name: &str, unit: Duration, default: Duration, least: Duration, most: Duration| match own
            .int(name)
        {
            -1 => Ok(Duration::ZERO),
            0 => Ok(default),
            given => {
                let given = u32::try_from(given).map(|given| unit * given);
                let within = given.ok().filter(|given| (least..=most).contains(given));
                within.ok_or_else(|| {
                    format!(
                        "imagePolicy.{name}: valid value is between {least:?} and {most:?}, got {}",
                        own.int(name)
                    )
                })
            }
        };

    let second = Duration::from_secs(1);
    Ok(Some(ImagePolicy {
        kubeconfig: PathBuf::from(own.text("kubeConfigFile")),
        retry_after: duration(
            "retryBackoff",
            Duration::from_millis(1),
            Duration::from_millis(500),
            Duration::from_nanos(1),
            Duration::from_secs(300),
        )?,
        allow_for: duration(
            "allowTTL",
            second,
            Duration::from_secs(300),
            second,
            HALF_AN_HOUR,
        )?,
        deny_for: duration(
            "denyTTL",
            second,
            Duration::from_secs(30),
            second,
            HALF_AN_HOUR,
        )?,
        default_allow: own.get("defaultAllow") == Some(&Value::Bool(true)),
    }))
}

fn node_selectors(own: &Map) -> BTreeMap<String, String> {
    let given = own.below("podNodeSelectorPluginConfig");
    given
        .into_iter()
        .flat_map(Map::iter)
        .map(|(name, value)| {
            (
                name.to_owned(),
                value.as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn tolerations(own: &Map) -> Result<Tolerations, String> {
    check_kind(own, "Configuration")?;
    Ok(Tolerations {
        default: own.items("default").to_vec(),
        whitelist: own.items("whitelist").to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_configured_inline_or_by_a_file_beside() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            file
        };
        let kubeconfig = file("users", "users:\n- {name: '*', user: {token: t}}\n");
        let own = format!(
            "{{kind: WebhookAdmissionConfiguration, apiVersion: apiserver.config.k8s.io/v1, kubeConfigFile: {}}}",
            kubeconfig.display()
        );
        file("own", &own);
        let check = |plugins: &str| {
            let text = format!("kind: AdmissionConfiguration\nplugins: [{plugins}]\n");
            AdmissionConfiguration::read(&file("configuration", &text))
        };
        let has_user = |credentials: &Credentials| credentials.has("*");

        let read = check(&format!(
            "{{name: MutatingAdmissionWebhook, configuration: {own}}}, {{name: ValidatingAdmissionWebhook, path: own}}"
        ))
        .unwrap()
        .credentials;
        assert!(has_user(&read.mutating) && has_user(&read.validating));

        let read = check("{name: ValidatingAdmissionWebhook, path: own}")
            .unwrap()
            .credentials;
        assert!(!has_user(&read.mutating) && has_user(&read.validating));

        let refused = check("{name: Priority, path: own}")
            .unwrap_err()
            .to_string();
        assert!(
            refused.ends_with("admission plugin \"Priority\" reads no configuration here"),
            "{refused}"
        );

        let read = check(
            "{name: EventRateLimit, configuration: {kind: Configuration, limits: [{type: Server, qps: 5, burst: 9}]}}, \
             {name: PodTolerationRestriction, configuration: {kind: Configuration, default: [{key: k}]}}",
        )
        .unwrap()
        .plugins;
        let limit = EventLimit {
            per: EventLimitType::Server,
            qps: 5,
            burst: 9,
            cache_size: 4096,
        };
        assert_eq!(read.event_limits, [limit]);
        assert_eq!(read.tolerations.default.len(), 1);

        let refused = check(
            "{name: EventRateLimit, configuration: {kind: Configuration, limits: [{type: X, qps: -1}]}}",
        )
        .unwrap_err()
        .to_string();
        let expected = "[limits[0].type: Unsupported value: \"X\": supported values: \"Namespace\", \"Server\", \
             \"SourceAndObject\", \"User\", limits[0].burst: Invalid value: 0: must be positive, \
             limits[0].qps: Invalid value: -1: must be positive]";
        assert!(refused.ends_with(expected), "{refused}");
    }

    #[test]
    fn a_file_of_no_kind_configures_two_plugins() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old");
        let text = "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b, ns: c=d}\n\
                    imagePolicy: {kubeConfigFile: /k, denyTTL: -1, retryBackoff: 20, defaultAllow: true}\n";
        fs::write(&file, text).unwrap();

        let read = AdmissionConfiguration::read(&file).unwrap().plugins;
        assert_eq!(read.node_selectors["ns"], "c=d");
        let policy = read.image_policy.clone().unwrap();
        assert_eq!(policy.deny_for, Duration::ZERO);
        assert_eq!(policy.allow_for, Duration::from_secs(300));
        assert_eq!(policy.retry_after, Duration::from_millis(20));

        let flags = PluginFlags {
            enable: vec!["EventRateLimit".to_owned(), "ImagePolicyWebhook".to_owned()],
            ..PluginFlags::default()
        };
        assert_eq!(read.errors(&flags).len(), 1);
        assert_eq!(PluginConfigurations::default().errors(&flags).len(), 2);
    }
}
