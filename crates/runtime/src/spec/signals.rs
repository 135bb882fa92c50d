//! Signals by the names that images and CRI use.

use coracle_cri::v1::Signal;

/// The number of a signal: `SIGTERM`, `TERM`, `15`, `RTMIN+3`.
pub(crate) fn parse(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse() {
        return (1..=64).contains(&number).then_some(number);
    }

    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    if let Some((base, sign)) = [("RTMIN", 1), ("RTMAX", -1)]
        .into_iter()
        .find(|(base, _)| name.starts_with(base))
    {
        let first = if sign > 0 { 34 } else { 64 };
        let rest = &name[base.len()..]
            .replace("PLUS", "")
            .replace("MINUS", "")
            .replace(['+', '-'], "");

        let offset: i32 = if rest.is_empty() {
            0
        } else {
            rest.parse().ok()?
        };

        return Some(first + sign * offset).filter(|number| (34..=64).contains(number));
    }

    NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number)
}

/// The stop signal of a container: its own, the image's, or SIGTERM.
pub(crate) fn stop_signal(wanted: Signal, image: &str) -> i32 {
    let own = if wanted == Signal::RuntimeDefault {
        None
    } else {
        parse(wanted.as_str_name())
    };
    own.or_else(|| parse(image)).unwrap_or(libc::SIGTERM)
}

const NAMES: [(&str, i32); 34] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("IOT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("POLL", 29),
    ("PWR", 30),
    ("SYS", 31),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        let check = |text: &str, expected: Option<i32>| assert_eq!(parse(text), expected, "{text}");
        check("SIGTERM", Some(15));
        check("quit", Some(3));
        check("9", Some(9));
        check("SIGRTMIN+3", Some(37));
        check("SIGRTMINPLUS15", Some(49));
        check("SIGRTMAXMINUS14", Some(50));
        check("RTMAX", Some(64));
        check("0", None);
        check("SIGNOTHING", None);
    }

    #[test]
    fn a_container_is_ended_by_its_own_signal_then_the_images() {
        assert_eq!(stop_signal(Signal::Sigusr1, "SIGQUIT"), 10);
        assert_eq!(stop_signal(Signal::RuntimeDefault, "SIGQUIT"), 3);
        assert_eq!(stop_signal(Signal::RuntimeDefault, ""), 15);
    }
}
