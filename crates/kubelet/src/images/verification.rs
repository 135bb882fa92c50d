//! Which images that are present may be used without credentials.

use super::records::{History, PullSecret, Verdict, repository};

/// The setting of the kubelet; the names are upstream's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// `NeverVerify`
    Never,
    /// `NeverVerifyPreloadedImages`
    #[default]
    NeverOfPreloaded,
    /// `NeverVerifyAllowlistedImages`
    NeverOfListed(Vec<ListedImages>),
    /// `AlwaysVerify`
    Always,
}

/// An image of an allowlist, or all below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedImages {
    One(String),
    /// With a slash at the end.
    Below(String),
}

impl ListedImages {
    /// An image without tag and digest, or a path that ends with `/*`.
    ///
    /// # Errors
    /// With upstream's texts.
    pub fn parse(text: &str) -> Result<ListedImages, String> {
        if text != text.trim() {
            return Err(format!("leading/trailing spaces are not allowed: {text}"));
        }
        let path = text.strip_suffix('*').filter(|path| path.ends_with('/'));
        let rest = path.unwrap_or(text);
        if rest.is_empty() {
            return Err(format!("the supplied pattern is too short: {text}"));
        }
        if rest.contains('*') {
            return Err(format!(
                "not a valid wildcard pattern, only patterns ending with '/*' are allowed: {text}"
            ));
        }

        match path {
            Some("/") => Err("at least registry hostname is required".to_owned()),
            Some(path) => Ok(ListedImages::Below(path.to_owned())),
            None => match repository(rest) {
                None => {
                    Err("failed to parse as an image name: invalid reference format".to_owned())
                }
                Some(repository) if repository != rest => Err(format!(
                    "neither tag nor digest is accepted in an image reference: {text}"
                )),
                Some(_) => Ok(ListedImages::One(rest.to_owned())),
            },
        }
    }

    fn has(&self, repository: &str) -> bool {
        match self {
            ListedImages::One(image) => image == repository,
            ListedImages::Below(path) => repository.starts_with(path),
        }
    }
}

impl Verification {
    /// Whether a pod may use a present image.
    pub(super) fn verdict(
        &self,
        image: &str,
        history: &History,
        secrets: impl FnOnce() -> Vec<PullSecret>,
    ) -> Verdict {
        let is_verified = match self {
            Verification::Never => false,
            Verification::NeverOfPreloaded => history.is_pulled,
            Verification::NeverOfListed(listed) => {
                let image = repository(image).unwrap_or(image);
                !listed.iter().any(|images| images.has(image))
            }
            Verification::Always => true,
        };
        if !is_verified {
            return Verdict::Allowed;
        }
        match &history.access {
            Some(access) => access.verdict(&secrets()),
            None => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_says_which_images_are_for_all() {
        let listed = Verification::NeverOfListed(vec![
            ListedImages::parse("r.example/one").unwrap(),
            ListedImages::parse("r.example/all/*").unwrap(),
        ]);
        let check = |policy: &Verification, image: &str, is_pulled: bool, expected: bool| {
            let history = History {
                is_pulled,
                access: None,
            };
            let verdict = policy.verdict(image, &history, Vec::new);
            assert_eq!(
                verdict == Verdict::Allowed,
                expected,
                "{policy:?} {image} {is_pulled}"
            );
        };

        check(&Verification::Never, "x", true, true);
        check(&Verification::Always, "x", false, false);
        check(&Verification::default(), "x", false, true);
        check(&Verification::default(), "x", true, false);
        check(&listed, "r.example/one:v1", true, true);
        check(&listed, "r.example/ones:v1", true, false);
        check(&listed, "r.example/all/x", false, true);
        check(&listed, "r.example/all", false, false);
    }

    #[test]
    fn what_is_listed_is_an_image_or_a_path() {
        let check = |text: &str, expected: &str| {
            assert_eq!(ListedImages::parse(text).unwrap_err(), expected);
        };
        check(" a", "leading/trailing spaces are not allowed:  a");
        check("", "the supplied pattern is too short: ");
        check("/*", "at least registry hostname is required");
        check(
            "a*",
            "not a valid wildcard pattern, only patterns ending with '/*' are allowed: a*",
        );
        check(
            "a:v1",
            "neither tag nor digest is accepted in an image reference: a:v1",
        );
        check(
            "A",
            "failed to parse as an image name: invalid reference format",
        );
    }
}
