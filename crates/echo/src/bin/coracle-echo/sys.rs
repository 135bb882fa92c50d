//! Signal handlers, which the standard library lacks.
#![expect(unsafe_code, reason = "signals are calls of the C library")]

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

unsafe extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn _exit(code: i32) -> !;
}

/// Exits with 0 on SIGINT and SIGTERM.
pub(crate) fn exit_on_signal() {
    for number in [SIGINT, SIGTERM] {
        // SAFETY: the handler makes one call, and that call may be made in a handler.
        unsafe { signal(number, end) };
    }
}

extern "C" fn end(_: i32) {
    // SAFETY: ends the process at once; it runs nothing of this program any more.
    unsafe { _exit(0) }
}
