//! The declarations of a program without the type of its options, for tests.

use coracle_settings::document::{Standing, UpstreamFlag};
use coracle_settings::{Part, Program};

use super::Logs;

/// A table of upstream's flags beside those of a program, and how many of them it takes.
type Comparison = Box<dyn Fn(&[UpstreamFlag]) -> (String, usize)>;

/// What a program declares.
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    pub(crate) help: String,
    pub(crate) tables: String,
    pub(crate) duplicates: Vec<&'static str>,
    /// Sections with their flags and the defaults of these.
    pub(crate) sections: Vec<(&'static str, Vec<(&'static str, &'static str)>)>,
    pub(crate) omitted: Vec<&'static str>,
    pub(crate) standing: Box<dyn Fn(&str) -> Standing>,
    pub(crate) comparison: Comparison,
}

impl Declared {
    pub(crate) fn of<T: Default + Part<Logs>>(program: &'static Program<T>) -> Declared {
        // Panics if a default cannot be read.
        program.defaults();

        let sections = program.headings().into_iter().map(|(name, settings)| {
            let settings = settings
                .iter()
                .map(|setting| (setting.name, setting.default));
            (name, settings.collect())
        });
        Declared {
            name: program.name,
            help: program.help(),
            tables: program.tables(),
            duplicates: program.duplicates(),
            sections: sections.collect(),
            omitted: program.omitted().collect(),
            standing: Box::new(|name| program.standing(name)),
            comparison: Box::new(|upstream| program.comparison(upstream)),
        }
    }
}
