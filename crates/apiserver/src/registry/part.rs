//! Which part of an object a write is about.

/// The object itself, or a subresource that takes the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but the status, where the kind has a subresource for it.
    Main,
    Status,
    /// A namespace's `spec.finalizers`.
    Finalize,
    /// The approval of a certificate signing request.
    Approval,
    /// A pod's `spec.ephemeralContainers`.
    EphemeralContainers,
    /// A pod's `spec.containers[*].resources`.
    Resize,
}

impl Part {
    /// The subresource as paths and owners name it; empty for the object itself.
    pub fn name(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Approval => "approval",
            Part::EphemeralContainers => "ephemeralcontainers",
            Part::Resize => "resize",
        }
    }

    pub fn named(name: &str) -> Option<Part> {
        let all = [
            Part::Main,
            Part::Status,
            Part::Finalize,
            Part::Approval,
            Part::EphemeralContainers,
            Part::Resize,
        ];
        all.into_iter().find(|part| part.name() == name)
    }
}
