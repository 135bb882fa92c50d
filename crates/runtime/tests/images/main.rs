//! Images from end to end: brought in, kept, mounted, removed.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod by_hand;
mod hostile;
mod import;
mod made;
mod place;
mod pull;
mod rootfs;
mod slow;
mod sys;

/// Runs on a thread of its own with a runtime, in a mount namespace of its own.
fn apart(deed: impl Future<Output = ()> + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sys::leave_the_mounts();
            let slave = rustix::mount::MountPropagationFlags::DOWNSTREAM
                | rustix::mount::MountPropagationFlags::REC;
            rustix::mount::mount_change("/", slave).unwrap();
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(deed);
        });
    });
}
