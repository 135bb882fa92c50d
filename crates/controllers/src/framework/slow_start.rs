//! Many requests of one kind, of which perhaps none will succeed.

use std::future::Future;
use std::panic;

use tokio::task::JoinSet;

/// The most requests in flight: enough to keep cores and disk busy. More would only delay those who
/// process what has been created already.
const MAX_IN_FLIGHT: usize = 64;

/// Runs futures, each as a task of its own: first one, and two more for each that succeeds, until
/// one fails. So few are tried if none can succeed, and if all can, none waits for the slowest of a
/// batch. Returns the results of those tried, in the order in which they ended.
///
/// # Cancellation
/// All tasks end with the future.
pub async fn slow_start<T: Send + 'static, E: Send + 'static>(
    actions: impl IntoIterator<Item: Future<Output = Result<T, E>> + Send + 'static>,
) -> Vec<Result<T, E>> {
    let mut actions = actions.into_iter();
    let (mut under_way, mut came, mut failed) = (JoinSet::new(), Vec::new(), false);
    under_way.extend(actions.next());

    while let Some(ended) = under_way.join_next().await {
        let result = ended.unwrap_or_else(|ended| match ended.try_into_panic() {
            Ok(panicked) => panic::resume_unwind(panicked),
            Err(ended) => unreachable!("the task was cancelled: {ended}"),
        });
        failed |= result.is_err();

        came.push(result);

        if !failed {
            let room = MAX_IN_FLIGHT - under_way.len();
            under_way.extend(actions.by_ref().take(room.min(2)));
        }
    }

    came
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    /// Actions that take a second each, of which those after the first few fail.
    fn actions(
        count: usize,
        succeed: usize,
        most: &Arc<AtomicUsize>,
    ) -> impl Iterator<Item: Future<Output = Result<usize, usize>> + Send + 'static> + use<> {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), most.clone());
        (0..count).map(move |number| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::Relaxed);
                if number < succeed {
                    Ok(number)
                } else {
                    Err(number)
                }
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn each_success_allows_two_more_up_to_the_limit() {
        let (most, began) = (Arc::default(), Instant::now());
        let came = slow_start(actions(7, 7, &most)).await;
        assert_eq!(
            (came.len(), most.load(Ordering::Relaxed)),
            (7, 4),
            "one, then two, then four"
        );

        assert_eq!(began.elapsed(), Duration::from_secs(3));

        let (most, began) = (Arc::default(), Instant::now());
        let came = slow_start(actions(1000, 1000, &most)).await;
        assert!(came.len() == 1000 && came.iter().all(Result::is_ok));
        assert_eq!(most.load(Ordering::Relaxed), MAX_IN_FLIGHT);

        // 63 while it grows, and then 64 at a time.
        assert_eq!(began.elapsed(), Duration::from_secs(6 + 15));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_only_running_ones_are_awaited() {
        for (succeed, tried) in [(0, 1), (1, 3), (3, 7), (7, 15)] {
            let came = slow_start(actions(100, succeed, &Arc::default())).await;
            assert_eq!(came.len(), tried);
            assert_eq!(came.iter().filter(|came| came.is_ok()).count(), succeed);
        }
    }

    #[tokio::test]
    #[should_panic(expected = "one of them")]
    async fn a_panic_is_not_lost() {
        slow_start::<(), ()>([async { panic!("one of them") }]).await;
    }
}
