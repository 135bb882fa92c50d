//! Which part of an object a write is about.

/// The object itself, or one of its subresources.
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
    /// The node of a pod, by a Binding.
    Binding,
    /// The end of a pod, by an Eviction.
    Eviction,
    /// A token of a service account.
    Token,
    /// The number of replicas, by a Scale.
    Scale,
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
            Part::Binding => "binding",
            Part::Eviction => "eviction",
            Part::Token => "token",
            Part::Scale => "scale",
        }
    }

    /// The part of that name, if requests to it take and answer the whole object.
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
