//! Selects the plugins that disconnect a pod.

use super::config::{NetworkList, Plugin};

/// The list that connected the pod. If some of its plugins no longer exist, and the network's
/// current configuration has only existing ones, the new plugins of that replace the first missing
/// one. Otherwise pods of a network whose plugin was uninstalled could never be removed.
pub(super) fn disconnect_list(
    mut then: NetworkList,
    now: Option<NetworkList>,
    exists: impl Fn(&Plugin) -> bool,
) -> NetworkList {
    let Some(first_gone) = then.plugins.iter().position(|plugin| !exists(plugin)) else {
        return then;
    };
    let Some(now) = now.filter(|now| now.plugins.iter().all(&exists)) else {
        return then;
    };
    then.plugins.retain(&exists);

    let new: Vec<Plugin> = now
        .plugins
        .into_iter()
        .filter(|plugin| then.plugins.iter().all(|known| known.kind != plugin.kind))
        .collect();
    then.plugins.splice(first_gone..first_gone, new);

    then
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(plugins: &[&str]) -> NetworkList {
        let plugin = |text: &&str| match text.split_once('+') {
            Some((kind, addresses)) => json!({"type": kind, "ipam": {"type": addresses}}),
            None => json!({"type": text}),
        };
        let plugins: Vec<_> = plugins.iter().map(plugin).collect();
        NetworkList::read(
            json!({"name": "n", "plugins": plugins})
                .to_string()
                .as_bytes(),
        )
        .unwrap()
    }

    #[test]
    fn missing_plugins_are_replaced_by_the_current_configuration() {
        let check = |then: &[&str], now: Option<&[&str]>, expected: &[&str]| {
            let there = ["bridge", "macvlan", "portmap", "tuning", "host-local"];
            let disconnect_list = disconnect_list(list(then), now.map(list), |plugin| {
                plugin.programs().all(|program| there.contains(&program))
            });
            assert_eq!(
                disconnect_list.plugins,
                list(expected).plugins,
                "{then:?} {now:?}"
            );
        };

        // All plugins exist: the current configuration does not matter.
        check(
            &["bridge", "portmap"],
            Some(&["macvlan"]),
            &["bridge", "portmap"],
        );

        // The configuration was not fixed.
        check(&["bridge", "gone"], None, &["bridge", "gone"]);
        check(
            &["bridge", "gone"],
            Some(&["bridge", "gone"]),
            &["bridge", "gone"],
        );

        check(
            &["bridge", "gone"],
            Some(&["macvlan", "gone too"]),
            &["bridge", "gone"],
        );

        // The plugin was removed or replaced.
        check(&["bridge", "gone"], Some(&["bridge"]), &["bridge"]);
        check(
            &["gone", "portmap"],
            Some(&["bridge", "portmap"]),
            &["bridge", "portmap"],
        );

        check(
            &["bridge", "gone", "tuning", "gone"],
            Some(&["bridge", "portmap"]),
            &["bridge", "portmap", "tuning"],
        );

        check(
            &["bridge+host-local", "gone"],
            Some(&["bridge"]),
            &["bridge+host-local"],
        );

        // A plugin without its IPAM plugin counts as missing.
        check(
            &["bridge+gone"],
            Some(&["bridge+host-local"]),
            &["bridge+host-local"],
        );
    }
}
