use crate::parse::tree::{Forest, TreeId};
use crate::source::{Issues, Source};
use std::sync::Arc;
pub(crate) fn parse(
    _source: &Arc<Source>,
    _forest: &mut Forest,
    issues: &mut Issues,
) -> Option<Option<TreeId>> {
    issues.report(crate::source::Location::NONE, "syntax");
    None
}
