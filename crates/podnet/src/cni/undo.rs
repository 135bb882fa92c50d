//! Which plugins disconnect a pod.

use super::config::{NetworkList, Plugin};

/// The list that connected the pod, as it was then. Where plugins of it are gone, and the network
/// has been given others `now` which are all there, those that are new take the place of the first
/// that is gone: without this, a network whose configuration named a plugin that never comes back
/// would keep its pods for ever.
pub(super) fn undoing(
    mut then: NetworkList,
    now: Option<NetworkList>,
    is_there: impl Fn(&Plugin) -> bool,
) -> NetworkList {
    let Some(first_gone) = then.plugins.iter().position(|plugin| !is_there(plugin)) else {
        return then;
    };
    let Some(now) = now.filter(|now| now.plugins.iter().all(&is_there)) else {
        return then;
    };
    then.plugins.retain(&is_there);

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
    fn what_is_gone_is_replaced_once_the_network_has_been_mended() {
        let check = |then: &[&str], now: Option<&[&str]>, expected: &[&str]| {
            let there = ["bridge", "macvlan", "portmap", "tuning", "host-local"];
            let undoing = undoing(list(then), now.map(list), |plugin| {
                plugin.programs().all(|program| there.contains(&program))
            });
            assert_eq!(undoing.plugins, list(expected).plugins, "{then:?} {now:?}");
        };

        // All of then are there: what is configured now does not matter.
        check(
            &["bridge", "portmap"],
            Some(&["macvlan"]),
            &["bridge", "portmap"],
        );

        // Nothing has been mended.
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

        // It was taken out, or others took its place.
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

        // A plugin without the one that gives it addresses can do as little as one that is gone.
        check(
            &["bridge+gone"],
            Some(&["bridge+host-local"]),
            &["bridge+host-local"],
        );
    }
}
