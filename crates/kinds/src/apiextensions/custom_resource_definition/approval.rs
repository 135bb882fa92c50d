//! Protected API groups (`k8s.io`, `kubernetes.io`): an annotation links to the approval of the API
//! by the Kubernetes community.

use coracle_api::go_text::Quoted;

pub const ANNOTATION: &str = "api-approved.kubernetes.io";

/// The state of the approval annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    Given,
    /// The annotation says that the API is unapproved.
    Bypassed,
    Missing,
    Invalid,
}

impl Approval {
    pub fn of(annotation: Option<&str>) -> Approval {
        match annotation.unwrap_or_default() {
            "" => Approval::Missing,
            text if text.starts_with("unapproved") => Approval::Bypassed,
            text => match text.split_once("://") {
                Some((scheme, rest))
                    if !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/') =>
                {
                    Approval::Given
                }
                _ => Approval::Invalid,
            },
        }
    }

    /// The message of the condition, as upstream has it.
    pub fn explained(self, annotation: Option<&str>) -> String {
        let annotation = annotation.unwrap_or_default();
        match self {
            Approval::Given => format!("approved in {annotation}"),
            Approval::Bypassed => format!("not approved: {}", Quoted(annotation)),
            Approval::Missing => format!(
                "protected groups must have approval annotation \"{ANNOTATION}\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
            Approval::Invalid => format!(
                "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        }
    }

    /// The reason in the condition of a definition.
    pub fn reason(self) -> &'static str {
        match self {
            Approval::Given => "ApprovedAnnotation",
            Approval::Bypassed => "UnapprovedAnnotation",
            Approval::Missing => "MissingAnnotation",
            Approval::Invalid => "InvalidAnnotation",
        }
    }
}

/// Whether APIs of a group need the approval of the Kubernetes community.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|name| {
        group
            .strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_annotation_is_a_url_or_unapproved() {
        assert_eq!(Approval::of(None), Approval::Missing);
        assert_eq!(
            Approval::of(Some("unapproved, a trial")),
            Approval::Bypassed
        );
        assert_eq!(
            Approval::of(Some("https://github.com/kubernetes/enhancements/pull/1")),
            Approval::Given
        );
        assert_eq!(Approval::of(Some("yes")), Approval::Invalid);
        assert_eq!(Approval::of(Some("https:///x")), Approval::Invalid);
    }

    #[test]
    fn only_kubernetes_groups_are_protected() {
        assert!(
            is_protected("k8s.io") && is_protected("a.k8s.io") && is_protected("kubernetes.io")
        );
        assert!(!is_protected("notk8s.io") && !is_protected("k8s.io.example.com"));
    }
}
