//! Binding: `bindings` is the old name of `pods/binding`.

use crate::behaviour::{Behaviour, Handler};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    handlers: &[("", Handler::Binding)],
    ..Behaviour::DEFAULT
};
