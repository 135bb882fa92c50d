//! Secret: like a ConfigMap, with a type that requires certain keys and never changes.

mod key_pair;
mod print;

use std::collections::BTreeMap;

use coracle_api::codec::json;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, Value, names};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::config_map::{MAX_SIZE, validate_still_immutable, validate_unchanged};
use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{text, validate_immutable};

const DATA: Path<'static> = Path::Field(&Path::Root, "data");

/// The annotation that names the service account of a token.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

type Data = BTreeMap<String, ByteString>;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Secrets,
    printer: printer!(print::print_row),
    ..Behaviour::DEFAULT
};

struct Secrets;

impl Strategy for Secrets {
    type Object = Secret;

    fn prepare_update(&self, new: &mut Value, old: &Value, _: &Context<'_>) {
        let (Some(new), Some(kind)) = (new.as_object_mut(), old.get("type")) else {
            return;
        };
        if new.str("type").is_none_or(str::is_empty) {
            new.insert("type", kind.clone());
        }
    }

    fn validate(&self, new: &View<'_, Secret>, _: &Context<'_>, errors: &mut Errors) {
        let none = Data::new();
        let data = new.data.as_ref().unwrap_or(&none);
        for key in data.keys() {
            refuse(&DATA.key(key), key, names::config_map_key(key), errors);
        }
        if data.values().map(|value| value.0.len()).sum::<usize>() > MAX_SIZE {
            errors.push(FieldError::too_long(&DATA, MAX_SIZE));
        }
        validate_type(new, data, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Secret>,
        old: &View<'_, Secret>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_immutable(new.tree, old.tree, &["type"], "\"\"", errors);
        if old.immutable == Some(true) {
            validate_still_immutable(new.immutable, errors);
            validate_unchanged("data", new.data == old.data, errors);
        }
        self.validate_anew(new, cx, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, Secret>,
        _: Option<&View<'_, Secret>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        if text(&new.type_) != "kubernetes.io/tls" {
            return Vec::new();
        }

        let part = |name: &str| {
            new.data
                .as_ref()
                .and_then(|data| data.get(name))
                .map(|value| value.0.as_slice())
                .unwrap_or_default()
        };

        key_pair::fault(part("tls.crt"), part("tls.key"))
            .into_iter()
            .collect()
    }
}

/// Validates the keys that the type requires.
fn validate_type(secret: &View<'_, Secret>, data: &Data, errors: &mut Errors) {
    let mut present = |keys: &[&str]| {
        let missing = keys.iter().filter(|key| !data.contains_key(**key));
        errors.extend(missing.map(|key| FieldError::required(&DATA.key(key), "")));
    };

    match text(&secret.type_) {
        "kubernetes.io/service-account-token"
            if secret
                .tree
                .meta()
                .annotation(ACCOUNT)
                .is_none_or(str::is_empty) =>
        {
            let annotations = Path::Root.field("metadata.annotations");
            errors.push(FieldError::required(&annotations.key(ACCOUNT), ""));
        }
        "kubernetes.io/dockercfg" => validate_docker_config(".dockercfg", data, errors),
        "kubernetes.io/dockerconfigjson" => {
            validate_docker_config(".dockerconfigjson", data, errors)
        }
        // One of the two is enough.
        "kubernetes.io/basic-auth"
            if !data.contains_key("username") && !data.contains_key("password") =>
        {
            present(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth"
            if data
                .get("ssh-privatekey")
                .is_none_or(|value| value.0.is_empty()) =>
        {
            errors.push(FieldError::required(&DATA.key("ssh-privatekey"), ""));
        }
        "kubernetes.io/tls" => present(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

fn validate_docker_config(key: &str, data: &Data, errors: &mut Errors) {
    let at = DATA.key(key);
    let Some(content) = data.get(key) else {
        return errors.push(FieldError::required(&at, ""));
    };
    let fault = match json::parse(&content.0) {
        Err(error) => error.to_string(),
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let found = other.type_name();
            format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )
        }
    };

    errors.push(FieldError::invalid_str(
        &at,
        "<secret contents redacted>",
        fault,
    ));
}
