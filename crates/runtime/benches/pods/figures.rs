//! The measured figures and their goals.

#[derive(Default)]
pub(crate) struct Figures {
    rows: Vec<(String, Vec<f64>)>,
    notes: Vec<String>,
}

/// The goal for the median of a row.
pub(crate) enum Goal {
    AtMost(f64),
    /// At most this share of another row.
    ShareOf(&'static str, f64),
}

impl Figures {
    pub(crate) fn add(&mut self, row: &str, figure: f64) {
        self.add_all(row, vec![figure]);
    }

    pub(crate) fn add_all(&mut self, row: &str, figures: Vec<f64>) {
        match self.rows.iter_mut().find(|(name, _)| name == row) {
            Some((_, known)) => known.extend(figures),
            None => self.rows.push((row.to_owned(), figures)),
        }
    }

    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    fn middle(&self, row: &str) -> f64 {
        self.rows
            .iter()
            .find(|(name, _)| name == row)
            .map_or(f64::NAN, |(_, figures)| at(figures, 50))
    }

    pub(crate) fn print(&self, goals: &[(&str, Goal)]) {
        println!("{:<36}{:>10}{:>10}{:>7}   (ms)", "", "p50", "p99", "runs");

        for (name, figures) in &self.rows {
            println!(
                "{name:<36}{:>10.2}{:>10.2}{:>7}",
                at(figures, 50),
                at(figures, 99),
                figures.len()
            );
        }

        for note in &self.notes {
            println!("{note}");
        }

        for (name, goal) in goals {
            let (found, wanted, words) = match goal {
                Goal::AtMost(most) => (self.middle(name), *most, format!("at most {most}")),
                Goal::ShareOf(other, share) => (
                    self.middle(name),
                    self.middle(other) * share,
                    format!("at most {share} of {other}"),
                ),
            };
            let verdict = if found <= wanted { "reached" } else { "MISSED" };
            println!("{verdict}: {name}: {found:.2}, {words} ({wanted:.2})");
        }
    }
}

fn at(figures: &[f64], share: usize) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get((sorted.len().saturating_sub(1)) * share / 100)
        .copied()
        .unwrap_or(f64::NAN)
}
