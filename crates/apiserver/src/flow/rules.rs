//! Compiled flow schemas: a request belongs to the first that matches it.
//!
//! They are ordered by precedence, then by name. Schemas whose level does not exist are ignored. A
//! request that no schema matches belongs to `catch-all`; `exempt` and `catch-all` are in force
//! even if their objects do not exist.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_kinds::flowcontrol::defaults;
use http::HeaderValue;
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, PolicyRulesWithSubjects, PriorityLevelConfiguration,
};

use super::matching;
use crate::authn::User;
use crate::request::RequestInfo;

/// The default precedence of a schema.
const DEFAULT_PRECEDENCE: i32 = 1000;

/// What a request is classified as.
#[derive(Debug)]
pub struct Class {
    pub flow_schema: String,
    pub priority_level: String,
    /// `SCHEMA/LEVEL`, for metrics.
    pub flow: Arc<str>,
    /// The UIDs of the objects, for response headers; empty where there is no object.
    pub flow_schema_uid: HeaderValue,
    pub priority_level_uid: HeaderValue,
}

pub struct Rules {
    schemas: Vec<Schema>,
    catch_all: Arc<Class>,
}

struct Schema {
    precedence: i32,
    class: Arc<Class>,
    rules: Vec<PolicyRulesWithSubjects>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::compile(&[], &[])
    }
}

impl Rules {
    pub fn compile(schemas: &[FlowSchema], levels: &[PriorityLevelConfiguration]) -> Rules {
        let mut uids: BTreeMap<String, String> = defaults::MANDATORY
            .iter()
            .map(|name| (name.to_string(), String::new()))
            .collect();

        for level in levels {
            let metadata = &level.metadata;
            uids.insert(
                metadata.name.clone().unwrap_or_default(),
                metadata.uid.clone().unwrap_or_default(),
            );
        }

        let mut schemas: Vec<Schema> = schemas
            .iter()
            .filter_map(|schema| compiled(schema, &uids))
            .collect();

        let mandatory = defaults::flow_schemas().into_iter().filter(|schema| {
            let name = schema.metadata.name.as_deref().unwrap_or_default();
            defaults::MANDATORY.contains(&name)
                && !schemas.iter().any(|own| own.class.flow_schema == name)
        });

        let mandatory: Vec<Schema> = mandatory
            .filter_map(|schema| compiled(&schema, &uids))
            .collect();
        schemas.extend(mandatory);
        schemas.sort_by(|a, b| {
            (a.precedence, &a.class.flow_schema).cmp(&(b.precedence, &b.class.flow_schema))
        });

        let catch_all = schemas
            .iter()
            .find(|schema| schema.class.flow_schema == "catch-all");
        let catch_all = catch_all
            .expect("it has just been added where it was not")
            .class
            .clone();

        Rules { schemas, catch_all }
    }

    pub fn classify(&self, user: &User, request: &RequestInfo) -> Arc<Class> {
        let found = self.schemas.iter().find(|schema| {
            schema
                .rules
                .iter()
                .any(|rule| matching::covers(rule, user, request))
        });
        found
            .map_or(&self.catch_all, |schema| &schema.class)
            .clone()
    }
}

/// `None`: its level does not exist.
fn compiled(schema: &FlowSchema, levels: &BTreeMap<String, String>) -> Option<Schema> {
    let spec = schema.spec.as_ref()?;
    let level = &spec.priority_level_configuration.name;

    let name = schema.metadata.name.clone()?;
    let class = Class {
        flow: Arc::from(format!("{name}/{level}")),
        flow_schema: name,
        priority_level: level.clone(),
        flow_schema_uid: header(schema.metadata.uid.as_deref().unwrap_or_default()),
        priority_level_uid: header(levels.get(level)?),
    };

    Some(Schema {
        precedence: spec.matching_precedence.unwrap_or(DEFAULT_PRECEDENCE),
        class: Arc::new(class),
        rules: spec.rules.clone().unwrap_or_default(),
    })
}

fn header(uid: &str) -> HeaderValue {
    HeaderValue::from_str(uid).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::Query;

    fn with_uids() -> Rules {
        let mut schemas = defaults::flow_schemas();
        let mut levels = defaults::priority_levels();

        for schema in &mut schemas {
            schema.metadata.uid = schema
                .metadata
                .name
                .as_ref()
                .map(|name| format!("fs-{name}"));
        }

        for level in &mut levels {
            level.metadata.uid = level
                .metadata
                .name
                .as_ref()
                .map(|name| format!("pl-{name}"));
        }

        Rules::compile(&schemas, &levels)
    }

    fn check(
        rules: &Rules,
        (name, groups): (&str, &[&str]),
        method: &str,
        path: &str,
        expected: (&str, &str),
    ) {
        let groups = groups.iter().map(ToString::to_string).collect();
        let user = User {
            name: name.to_string(),
            groups,
            ..User::default()
        };

        let class = rules.classify(
            &user,
            &RequestInfo::new(
                &Method::from_bytes(method.as_bytes()).unwrap(),
                path,
                &Query::parse(""),
            ),
        );

        assert_eq!(
            (
                class.flow_schema_uid.to_str().unwrap(),
                class.priority_level_uid.to_str().unwrap()
            ),
            expected
        );
    }

    const KNOWN: &str = "system:authenticated";

    #[test]
    fn requests_go_to_the_schemas_of_a_new_cluster() {
        let rules = with_uids();
        let masters: &[&str] = &["system:masters", KNOWN];
        check(
            &rules,
            ("admin", masters),
            "GET",
            "/api/v1/pods",
            ("fs-exempt", "pl-exempt"),
        );

        check(
            &rules,
            ("jane", &[KNOWN]),
            "GET",
            "/livez",
            ("fs-probes", "pl-exempt"),
        );

        check(
            &rules,
            ("jane", &[KNOWN]),
            "GET",
            "/livez/ping",
            ("fs-probes", "pl-exempt"),
        );

        check(
            &rules,
            ("jane", &[KNOWN]),
            "POST",
            "/livez",
            ("fs-global-default", "pl-global-default"),
        );

        let node = ("system:node:a", &["system:nodes", KNOWN] as &[&str]);
        check(
            &rules,
            node,
            "PUT",
            "/api/v1/nodes/a/status",
            ("fs-system-node-high", "pl-node-high"),
        );

        check(
            &rules,
            node,
            "GET",
            "/api/v1/pods",
            ("fs-system-nodes", "pl-system"),
        );

        let scheduler = ("system:kube-scheduler", &[KNOWN] as &[&str]);
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";
        check(
            &rules,
            scheduler,
            "PUT",
            lease,
            ("fs-system-leader-election", "pl-leader-election"),
        );

        check(
            &rules,
            scheduler,
            "DELETE",
            lease,
            ("fs-kube-scheduler", "pl-workload-high"),
        );

        let account = (
            "system:serviceaccount:kube-system:x",
            &["system:serviceaccounts", KNOWN] as &[&str],
        );

        check(
            &rules,
            account,
            "GET",
            "/apis",
            ("fs-kube-system-service-accounts", "pl-workload-high"),
        );

        let account = (
            "system:serviceaccount:a:x",
            &["system:serviceaccounts", KNOWN] as &[&str],
        );

        check(
            &rules,
            account,
            "GET",
            "/apis",
            ("fs-service-accounts", "pl-workload-low"),
        );

        check(
            &rules,
            ("x", &[]),
            "GET",
            "/apis",
            ("fs-catch-all", "pl-catch-all"),
        );
    }

    #[test]
    fn without_objects_there_are_still_exempt_and_catch_all() {
        let rules = Rules::default();
        check(
            &rules,
            ("admin", &["system:masters"]),
            "GET",
            "/apis",
            ("", ""),
        );

        let class = rules.classify(
            &User::default(),
            &RequestInfo::new(&Method::GET, "/", &Query::parse("")),
        );

        assert_eq!(
            (&*class.flow_schema, &*class.priority_level),
            ("catch-all", "catch-all")
        );
    }

    #[test]
    fn a_schema_whose_level_is_not_there_does_not_count() {
        let levels: Vec<_> = defaults::priority_levels()
            .into_iter()
            .filter(|level| level.metadata.name.as_deref() != Some("global-default"))
            .collect();
        let rules = Rules::compile(&defaults::flow_schemas(), &levels);

        let user = User {
            groups: vec![KNOWN.to_string()],
            ..User::default()
        };

        let class = rules.classify(
            &user,
            &RequestInfo::new(&Method::GET, "/apis", &Query::parse("")),
        );
        assert_eq!(class.flow_schema, "catch-all");
    }
}
