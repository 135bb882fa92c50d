//! Scales raw scores to 0..=100.

use crate::framework::BEST;

/// The greatest becomes 100 and the others proportionally less; `reversed`: the greatest becomes 0.
pub(super) fn by_greatest(scores: &mut [i64], reversed: bool) {
    let greatest = scores.iter().copied().max().unwrap_or_default().max(0);
    for score in scores {
        let share = if greatest == 0 {
            *score
        } else {
            BEST * *score / greatest
        };

        *score = match (reversed, greatest) {
            (true, 0) => BEST,
            (true, _) => BEST - share,
            (false, _) => share,
        };
    }
}
