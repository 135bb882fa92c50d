//! Scales raw scores to 0..=100.

use crate::framework::MAX_SCORE;

/// The greatest becomes 100 and the others proportionally less; `reversed`: the greatest becomes 0.
pub(super) fn by_greatest(scores: &mut [i64], reversed: bool) {
    let greatest = scores.iter().copied().max().unwrap_or_default().max(0);
    for score in scores {
        let share = if greatest == 0 {
            *score
        } else {
            MAX_SCORE * *score / greatest
        };

        *score = match (reversed, greatest) {
            (true, 0) => MAX_SCORE,
            (true, _) => MAX_SCORE - share,
            (false, _) => share,
        };
    }
}
