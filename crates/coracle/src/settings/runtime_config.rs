//! Which built-in APIs are served: of every program that runs an API server.

use coracle_settings::{Pairs, Part, Setting};

pub(crate) const fn runtime_config<T: Part<Pairs>>() -> [Setting<T>; 1] {
    [Setting::new(
        "runtime-config",
        "",
        "Built-in APIs to switch: GROUP/VERSION=true|false, GROUP/VERSION/RESOURCE=true|false (the core group is empty: /v1), \
         api/all, api/ga, api/beta, api/alpha. Alpha and beta versions are off by default",
        |options: &mut T| options.part(),
    )]
}
