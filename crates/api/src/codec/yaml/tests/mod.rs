//! Literal expectations, produced by upstream's decoder and encoder.

mod errors;
mod hostile;
mod printing;
mod reading;
