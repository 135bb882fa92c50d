//! Progress of a pull: bars on a terminal, plain lines otherwise.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use coracle_base::sync::Mutex;
use coracle_runtime::images::{Digest, Progress, Report};

use super::show::size;

/// Prints progress to standard error.
pub(super) fn report() -> Report {
    let is_terminal = std::io::stderr().is_terminal();
    let shown = Mutex::new(Printed::default());
    Arc::new(move |event| {
        let mut shown = shown.lock();
        let text = if is_terminal {
            shown.bars(&event)
        } else {
            shown.line(&event)
        };
        // A pull does not fail because its progress cannot be printed.
        drop(std::io::stderr().write_all(text.as_bytes()));
    })
}

/// The progress printed so far.
#[derive(Default)]
struct Printed {
    layers: Vec<Layer>,
    drawn: usize,
}

struct Layer {
    digest: Digest,
    total: u64,
    arrived: u64,
    unpacked: bool,
}

const WIDTH: usize = 30;

impl Printed {
    fn line(&mut self, event: &Progress) -> String {
        self.note(event);
        match event {
            Progress::UpToDate { digest } => format!("up to date: {digest}\n"),
            Progress::Resolved { digest, layers } => format!("{digest}: {} layers\n", layers.len()),
            Progress::Arrived { .. } => String::new(),
            Progress::Unpacked { layer } => format!("{}: unpacked\n", short(*layer)),
        }
    }

    /// The bars, drawn over the previous ones; empty if nothing changed.
    fn bars(&mut self, event: &Progress) -> String {
        if let Progress::UpToDate { .. } = event {
            return self.line(event);
        }
        if !self.note(event) {
            return String::new();
        }

        let back = if self.drawn == 0 {
            String::new()
        } else {
            format!("\x1b[{}A", self.drawn)
        };

        self.drawn = self.layers.len();

        self.layers.iter().fold(back, |text, layer| {
            format!("{text}\x1b[2K{}\n", layer.bar())
        })
    }

    /// Records an event; returns whether a bar changed.
    fn note(&mut self, event: &Progress) -> bool {
        let find = |layers: &[Layer], digest: Digest| {
            layers.iter().position(|layer| layer.digest == digest)
        };
        match event {
            Progress::UpToDate { .. } => {}
            Progress::Resolved { layers, .. } => {
                let fresh = |&(digest, total): &(Digest, u64)| Layer {
                    digest,
                    total,
                    arrived: 0,
                    unpacked: false,
                };
                self.layers = layers.iter().map(fresh).collect();
            }
            Progress::Arrived { layer, bytes } => {
                let Some(at) = find(&self.layers, *layer) else {
                    return false;
                };
                let before = self.layers[at].percent();
                self.layers[at].arrived = *bytes;
                return self.layers[at].percent() != before;
            }
            Progress::Unpacked { layer } => {
                for layer in self
                    .layers
                    .iter_mut()
                    .filter(|known| known.digest == *layer)
                {
                    layer.unpacked = true;
                }
            }
        }

        true
    }
}

impl Layer {
    fn percent(&self) -> u64 {
        self.arrived.saturating_mul(100) / self.total.max(1)
    }

    fn bar(&self) -> String {
        let name = short(self.digest);
        if self.unpacked {
            return format!("{name}  unpacked  {}", size(self.total));
        }
        let filled = usize::try_from(self.percent()).unwrap_or(100).min(100) * WIDTH / 100;
        let bar = format!("{}{}", "=".repeat(filled), " ".repeat(WIDTH - filled));
        format!(
            "{name}  [{bar}]  {} of {}",
            size(self.arrived),
            size(self.total)
        )
    }
}

fn short(digest: Digest) -> String {
    digest.hex().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_over_each_other_and_only_when_they_change() {
        let layer = Digest::of(b"layer");
        let mut shown = Printed::default();
        let first = shown.bars(&Progress::Resolved {
            digest: layer,
            layers: vec![(layer, 1000)],
        });

        assert!(
            first.starts_with("\x1b[2K") && first.contains("0B of 1.0kB"),
            "{first:?}"
        );

        assert_eq!(shown.bars(&Progress::Arrived { layer, bytes: 9 }), "");

        let half = shown.bars(&Progress::Arrived { layer, bytes: 500 });
        assert!(
            half.starts_with("\x1b[1A\x1b[2K") && half.contains(&"=".repeat(15)),
            "{half:?}"
        );

        assert!(
            shown
                .bars(&Progress::Unpacked { layer })
                .contains("unpacked")
        );
    }

    #[test]
    fn lines_are_printed_for_finished_steps_only() {
        let layer = Digest::of(b"layer");
        let mut shown = Printed::default();
        assert_eq!(shown.line(&Progress::Arrived { layer, bytes: 9 }), "");
        assert_eq!(
            shown.line(&Progress::Unpacked { layer }),
            format!("{}: unpacked\n", short(layer))
        );
    }
}
