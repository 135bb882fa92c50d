//! Images end to end: pulled, imported, mounted, removed.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod bad_registries;
mod commands;
mod fixtures;
mod import;
mod mirrors;
mod pull;
mod rootfs;
mod slow;
mod sys;
mod test_store;

/// Runs a future on its own thread, in its own mount namespace.
fn in_mount_namespace(work: impl Future<Output = ()> + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sys::unshare_mounts();
            let slave = rustix::mount::MountPropagationFlags::DOWNSTREAM
                | rustix::mount::MountPropagationFlags::REC;
            rustix::mount::mount_change("/", slave).unwrap();
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(work);
        });
    });
}
