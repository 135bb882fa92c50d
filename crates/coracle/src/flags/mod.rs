//! Command lines in the style of upstream's components: one table of flags per component. A flag is
//! an entry of a table: its name, its value, and how it sets the component's options. [`parse`]
//! reads the arguments and collects all errors, [`help`] prints the table. `_` and `-` in names are
//! the same.

mod help;
pub(crate) mod values;

pub(crate) use help::help;

/// A flag that sets something in `T`.
pub(crate) struct Flag<T: 'static> {
    pub(crate) name: &'static str,
    /// Its section in the help.
    pub(crate) section: &'static str,
    pub(crate) takes: Takes,
    /// The default as the help shows it; empty: none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
    /// Sets the value; the error says what is wrong with it.
    pub(crate) set: fn(&mut T, &str) -> Result<(), String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A value is required; this is its name in the help.
    Value(&'static str),
    /// `--flag` is `--flag=true`.
    Switch,
}

/// What a command line requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Run,
    Help,
    Version,
}

/// All errors of a command line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Mistakes(pub(crate) Vec<String>);

/// The flags of a component.
pub(crate) struct Table<T: 'static> {
    /// The component's name.
    pub(crate) component: &'static str,
    pub(crate) about: &'static str,
    /// Sections, in the order of the help.
    pub(crate) sections: &'static [&'static str],
    pub(crate) flags: &'static [&'static [Flag<T>]],
    /// Flags of upstream that are not implemented yet; they have an error text of their own.
    pub(crate) not_yet: &'static [&'static str],
}

impl<T> Table<T> {
    fn find(&self, name: &str) -> Option<&'static Flag<T>> {
        self.flags
            .iter()
            .flat_map(|part| part.iter())
            .find(|flag| flag.name == name)
    }
}

/// Reads `arguments` into `options`.
pub(crate) fn parse<T>(
    table: &Table<T>,
    arguments: &[String],
    options: &mut T,
) -> Result<Parsed, Mistakes> {
    let mut mistakes = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        // Upstream has one flag with a short form.
        let verbosity = argument.strip_prefix("-v").map(|level| format!("v{level}"));
        let given = verbosity.as_deref().or_else(|| argument.strip_prefix("--"));
        let Some(given) = given.filter(|given| !given.is_empty()) else {
            match argument.as_str() {
                "-h" => return Ok(Parsed::Help),
                _ => mistakes.push(positional(table.component, argument)),
            }
            continue;
        };

        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (given, None),
        };

        let name = name.replace('_', "-");
        match name.as_str() {
            "help" => return Ok(Parsed::Help),
            "version" => return Ok(Parsed::Version),
            _ => {}
        }

        let Some(flag) = table.find(&name) else {
            mistakes.push(unknown(table, &name));

            // A value that follows is not reported as an error of its own.
            if value.is_none()
                && arguments
                    .as_slice()
                    .first()
                    .is_some_and(|next| !next.starts_with('-'))
            {
                arguments.next();
            }

            continue;
        };

        let value = match (flag.takes, value) {
            (_, Some(value)) => value,
            (Takes::Switch, None) => "true",
            (Takes::Value(_), None) => match arguments.next() {
                Some(next) => next,
                None => {
                    mistakes.push(format!("flag needs an argument: --{name}"));
                    continue;
                }
            },
        };

        if let Err(why) = (flag.set)(options, value) {
            mistakes.push(format!(
                "invalid argument {value:?} for \"--{name}\" flag: {why}"
            ));
        }
    }

    if mistakes.is_empty() {
        Ok(Parsed::Run)
    } else {
        Err(Mistakes(mistakes))
    }
}

fn positional(component: &str, argument: &str) -> String {
    if argument.starts_with('-') && argument.len() > 1 {
        return format!("unknown shorthand flag: {argument}");
    }
    format!("{component:?} does not take any arguments, got [{argument:?}]")
}

fn unknown<T>(table: &Table<T>, name: &str) -> String {
    if table.not_yet.contains(&name) {
        return format!(
            "flag --{name} is not supported yet by Coracle's {}",
            table.component
        );
    }
    format!("unknown flag: --{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Options {
        port: u16,
        fast: bool,
    }

    const TABLE: Table<Options> = Table {
        component: "thing",
        about: "A thing.",
        sections: &["generic"],
        flags: &[&[
            Flag {
                name: "secure-port",
                section: "generic",
                takes: Takes::Value("int"),
                default: "1",
                about: "port",
                set: |options, text| {
                    options.port = text.parse().map_err(|_| "not a port".to_string())?;
                    Ok(())
                },
            },
            Flag {
                name: "fast",
                section: "generic",
                takes: Takes::Switch,
                default: "",
                about: "be fast",
                set: |options, text| {
                    options.fast = text == "true";
                    Ok(())
                },
            },
        ]],
        not_yet: &["slow"],
    };

    fn check(arguments: &[&str], expected: Result<(u16, bool), &[&str]>) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let mut options = Options::default();
        let read = match parse(&TABLE, &arguments, &mut options) {
            Ok(parsed) => {
                assert_eq!(parsed, Parsed::Run);
                Ok((options.port, options.fast))
            }
            Err(Mistakes(mistakes)) => Err(mistakes),
        };

        let expected = expected
            .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(read, expected, "{arguments:?}");
    }

    #[test]
    fn flags_are_read_in_every_spelling() {
        check(&["--secure-port=7"], Ok((7, false)));
        check(&["--secure-port", "7", "--fast"], Ok((7, true)));
        check(&["--secure_port", "7", "--fast=false"], Ok((7, false)));
        check(&["--secure-port=7", "--secure-port=8"], Ok((8, false)));
    }

    #[test]
    fn all_mistakes_are_reported_together() {
        check(
            &[
                "--nope",
                "value",
                "--slow=1",
                "word",
                "--secure-port=x",
                "--secure-port",
            ],
            Err(&[
                "unknown flag: --nope",
                "flag --slow is not supported yet by Coracle's thing",
                "\"thing\" does not take any arguments, got [\"word\"]",
                "invalid argument \"x\" for \"--secure-port\" flag: not a port",
                "flag needs an argument: --secure-port",
            ]),
        );
    }
}
