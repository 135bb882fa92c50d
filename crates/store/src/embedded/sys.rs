//! A system call that no safe crate has.
#![expect(unsafe_code, reason = "a raw system call")]

/// Lets this thread wait, when it wakes up, until a processor is free or whoever has it had a turn.
///
/// A writer that cuts in as soon as the first request comes has the requests behind it still to be written, each with a
/// sync of its own; on a busy machine that was a fifth of all its work. One that lets them come finds them together,
/// and where a processor is free it loses nothing. Its share of the machine stays the same, unlike with a nice value.
/// A process that was given rules of its own, as by `chrt`, keeps them.
pub(super) fn let_others_finish() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread; the parameters are read during the call alone.
    unsafe {
        if libc::sched_getscheduler(0) == libc::SCHED_OTHER {
            libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters);
        }
    }
}
