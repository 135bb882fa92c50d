use super::*;

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new("test")
}

#[tokio::test(start_paused = true)]
async fn additions_collapse_and_a_key_added_meanwhile_is_processed_again() {
    let queue = queue();
    for _ in 0..3 {
        queue.add("a");
    }

    assert_eq!(queue.len(), 1);

    let job = queue.take().await.unwrap();
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.len(), 0, "two workers never have it together");

    queue.add("b");
    assert_eq!(*queue.take().await.unwrap(), "b");

    drop(job);
    assert_eq!(*queue.take().await.unwrap(), "a");
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn failures_double_the_delay_until_they_are_reset() {
    let queue = queue();
    let mut waits = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        queue.add_rate_limited("a");
        drop(queue.take().await.unwrap());
        waits.push(begun.elapsed().as_millis());
    }

    assert_eq!(waits, [5, 10, 20, 40, 80]);
    assert_eq!(queue.failures(&"a"), 5);

    queue.forget(&"a");
    assert_eq!(queue.failures(&"a"), 0);
}

#[test]
fn a_wait_never_exceeds_the_longest() {
    let limiter = ExponentialLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
    let waits: Vec<Duration> = (0..70).map(|_| Limiter::when(&limiter, &"a")).collect();
    assert_eq!(waits[17], Duration::from_millis(5 << 17));
    assert!(
        waits[18..]
            .iter()
            .all(|wait| *wait == Duration::from_secs(1000))
    );

    let limiter = FastSlowLimiter::new(Duration::from_millis(1), Duration::from_secs(1), 2);
    let waits: Vec<u128> = (0..4)
        .map(|_| Limiter::when(&limiter, &"a").as_millis())
        .collect();
    assert_eq!(waits, [1, 1, 1000, 1000]);
}

#[tokio::test(start_paused = true)]
async fn of_two_later_moments_the_earlier_counts() {
    let queue = queue();
    let begun = Instant::now();
    queue.add_after("a", Duration::from_secs(10));
    queue.add_after("a", Duration::from_secs(1));
    queue.add_after("a", Duration::from_secs(5));
    drop(queue.take().await.unwrap());
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    let nothing = tokio::time::timeout(Duration::from_secs(60), queue.take()).await;
    assert!(nothing.is_err(), "it was the same key");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_woken_for_an_earlier_delay() {
    let queue = queue();
    queue.add_after("late", Duration::from_secs(100));
    let begun = Instant::now();

    let adder = queue.clone();
    let add = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        adder.add_after("soon", Duration::from_secs(1));
        std::future::pending::<()>().await;
    };

    let taken = tokio::select! {
        taken = queue.take() => taken,
        () = add => None,
    };

    assert_eq!(
        (*taken.unwrap(), begun.elapsed()),
        ("soon", Duration::from_secs(2))
    );
}

#[tokio::test(start_paused = true)]
async fn many_workers_share_the_work_and_none_is_left_asleep() {
    let queue: WorkQueue<String> = WorkQueue::new("shared");
    let tasks = crate::Tasks::new();

    let done = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..4 {
        let (queue, done) = (queue.clone(), done.clone());
        tasks.spawn(async move {
            while let Some(job) = queue.take().await {
                tokio::time::sleep(Duration::from_secs(1)).await;
                done.lock().push(job.to_string());
            }
        });
    }

    tokio::task::yield_now().await;
    let begun = Instant::now();

    for index in 0..8 {
        queue.add(format!("k{index}"));
    }

    queue.drain().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2), "four at a time");
    assert_eq!(done.lock().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_the_rest_is_handed_out_and_nothing_is_added() {
    let queue = queue();
    queue.add("a");
    queue.add_after("later", Duration::from_secs(1));
    queue.shut_down();
    queue.add("b");
    assert_eq!(queue.take().await.as_deref(), Some(&"a"));
    assert!(queue.take().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_measured_in_upstreams_names() {
    let queue = queue();
    queue.add("a");
    tokio::time::advance(Duration::from_millis(5)).await;
    let job = queue.take().await.unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    let registry = Registry::default();
    queue.export(&registry);
    let text = registry.text();

    for line in [
        "workqueue_adds_total{name=\"test\"} 1",
        "workqueue_depth{name=\"test\"} 0",
        "workqueue_unfinished_work_seconds{name=\"test\"} 2",
        "workqueue_queue_duration_seconds_bucket{name=\"test\",le=\"0.01\"} 1",
        "workqueue_queue_duration_seconds_count{name=\"test\"} 1",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }

    drop(job);
    let line = "workqueue_work_duration_seconds_count{name=\"test\"} 1\n";
    assert!(registry.text().contains(line), "{}", registry.text());

    drop(queue);
    assert!(!registry.text().contains("workqueue_depth"));
}
