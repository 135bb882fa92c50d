//! Requests made concurrently.

use std::future::Future;
use std::panic;

use tokio::task::JoinSet;

/// Runs futures concurrently, each as a task of its own: the CPU cost of the requests is spread
/// over all cores, and other work waits for one of them at most. Returns the results in order.
///
/// # Cancellation
/// All tasks end with the future.
pub async fn concurrently<T: Send + 'static>(
    futures: impl IntoIterator<Item: Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let mut tasks = JoinSet::new();
    for (index, future) in futures.into_iter().enumerate() {
        tasks.spawn(async move { (index, future.await) });
    }

    let mut done: Vec<Option<T>> = (0..tasks.len()).map(|_| None).collect();
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok((index, came)) => done[index] = Some(came),
            Err(ended) => match ended.try_into_panic() {
                Ok(panicked) => panic::resume_unwind(panicked),
                Err(ended) => unreachable!("the task was cancelled: {ended}"),
            },
        }
    }

    done.into_iter()
        .map(|came| came.expect("every task has ended and stored its result"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn results_are_in_order_and_all_run_concurrently() {
        let began = Instant::now();
        let future = |number: u64| async move {
            sleep(Duration::from_secs(10 - number)).await;
            number
        };
        assert_eq!(
            concurrently((0..10).map(future)).await,
            (0..10).collect::<Vec<_>>()
        );
        assert_eq!(began.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test]
    #[should_panic(expected = "one of them")]
    async fn a_panic_is_not_lost() {
        concurrently::<()>([async { panic!("one of them") }]).await;
    }
}
