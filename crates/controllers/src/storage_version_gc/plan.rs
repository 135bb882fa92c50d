//! Which servers a StorageVersion names without a reason. Pure.

use coracle_api::time::Time;
use coracle_api::{Map, Text, Value};

/// What to do with a StorageVersion.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Every server that it names is there.
    Keep,
    /// None is.
    Delete,
    /// Write this status, without those that are gone.
    Update(Map),
}

/// Decides what a StorageVersion needs; `is_alive` says whether a server is there.
pub fn plan(version: &Value, is_alive: impl Fn(&str) -> bool, now: Time) -> Plan {
    let text = |of: &Value, name: &str| {
        let found = of.get(name).and_then(Value::as_str);
        Text::new(found.unwrap_or_default())
    };
    let status = version.get("status").and_then(Value::as_object);
    let mut status = status.cloned().unwrap_or_default();
    let before = status.items("storageVersions").to_vec();
    let mut servers = before.clone();
    servers.retain(|server| is_alive(&text(server, "apiServerID")));

    if servers.len() == before.len() {
        return Plan::Keep;
    }
    let Some(common) = servers
        .first()
        .map(|server| text(server, "encodingVersion"))
    else {
        return Plan::Delete;
    };

    let mut all = servers.iter();
    let is_common = all.all(|server| text(server, "encodingVersion") == common);
    status.insert("storageVersions", servers);
    let (state, what) = match is_common {
        true => ("True", "set"),
        false => ("False", "unset"),
    };
    match is_common {
        true => drop(status.insert("commonEncodingVersion", common)),
        false => drop(status.remove("commonEncodingVersion")),
    }

    let mut conditions = status.items("conditions").to_vec();
    let is_it = |condition: &Value| text(condition, "type") == CONDITION;
    let is_same = |condition: &Value| is_it(condition) && text(condition, "status") == state;
    if !conditions.iter().any(is_same) {
        conditions.retain(|condition| !is_it(condition));
        let mut condition = Map::new();
        condition.insert("type", CONDITION);
        condition.insert("status", state);
        condition.insert("lastTransitionTime", now.text());
        condition.insert(
            "reason",
            match is_common {
                true => "CommonEncodingVersionSet",
                false => "CommonEncodingVersionUnset",
            },
        );
        condition.insert("message", format!("Common encoding version {what}"));
        conditions.push(Value::Object(condition));
        status.insert("conditions", conditions);
    }
    Plan::Update(status)
}

const CONDITION: &str = "AllEncodingVersionsEqual";

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;
    use coracle_api::time::Timestamp;

    use super::*;

    #[test]
    fn servers_that_are_gone_are_removed_and_the_last_one_removes_the_object() {
        let version = |servers: &str| {
            let text = format!("{{status: {{storageVersions: [{servers}]}}}}");
            yaml::decode(text.as_bytes()).unwrap()
        };
        let now = Time(Timestamp::from_unix(0, 0));
        let alive = |name: &str| name.starts_with("alive");
        let (one, two) = (
            "{apiServerID: alive-1, encodingVersion: v1}",
            "{apiServerID: gone, encodingVersion: v2}",
        );

        assert_eq!(plan(&version(one), alive, now), Plan::Keep);
        assert_eq!(plan(&version(""), alive, now), Plan::Keep);
        assert_eq!(plan(&version(two), alive, now), Plan::Delete);
        let Plan::Update(status) = plan(&version(&format!("{one},{two}")), alive, now) else {
            panic!("one of two is gone");
        };
        assert_eq!(status.items("storageVersions").len(), 1);
        assert_eq!(status.text("commonEncodingVersion"), "v1");
        let reason = status.items("conditions")[0].get("reason").cloned();
        assert_eq!(reason, Some(Value::string("CommonEncodingVersionSet")));
    }
}
