//! Literal expectations, found by asking upstream's own decoder and encoder.

mod errors;
mod hostile;
mod printing;
mod reading;
