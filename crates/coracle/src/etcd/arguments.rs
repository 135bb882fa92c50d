//! etcd's command line: flags have one dash or two, and those that are not given are taken from the
//! environment: `ETCD_DATA_DIR` is `--data-dir`.

use coracle_settings::{Mistakes, Program};

/// The command line with two dashes, and with the flags of the environment.
pub(super) fn complete<T: Default>(
    program: &Program<T>,
    given: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, Mistakes> {
    let given: Vec<String> = given.iter().map(|argument| two_dashes(argument)).collect();
    let is_given = |name: &str| {
        let flags = given
            .iter()
            .filter_map(|argument| argument.strip_prefix("--"));
        let mut names = flags.map(|flag| flag.split('=').next().unwrap_or(flag));
        names.any(|given| given == name)
    };

    let (mut arguments, mut mistakes) = (Vec::new(), Vec::new());
    let declared = program.settings().map(|setting| setting.name);
    for name in declared.chain(program.omitted()) {
        let key = format!("ETCD_{}", name.to_uppercase().replace('-', "_"));
        let value = variable(&key).filter(|value| !value.is_empty());
        match value {
            Some(_) if is_given(name) => mistakes.push(format!(
                "conflicting environment variable {key} is shadowed by corresponding command-line flag --{name} \
                 (either unset environment variable or disable flag)"
            )),
            Some(value) => arguments.push(format!("--{name}={value}")),
            None => {}
        }
    }

    arguments.extend(given);
    match mistakes.is_empty() {
        true => Ok(arguments),
        false => Err(Mistakes(mistakes)),
    }
}

/// `-data-dir` as `--data-dir`; Go's flags do not differ by the number of dashes.
fn two_dashes(argument: &str) -> String {
    let is_flag = |name: &str| name.starts_with(|first: char| first.is_ascii_alphabetic());
    match argument.strip_prefix('-') {
        Some(name) if is_flag(name) && name != "h" => format!("--{name}"),
        _ => argument.to_owned(),
    }
}
