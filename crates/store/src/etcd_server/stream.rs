//! A response stream that is produced by a task. The task is owned by the call and ends with it.

use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_stream::Stream;
use tonic::Status;

/// How many answers are buffered before the producing task waits.
const WAITING: usize = 16;

/// The sending end of a stream of answers.
pub(super) type Answers<T> = mpsc::Sender<Result<T, Status>>;

/// A stream of answers with the task that produces them.
pub(super) struct AnswerStream<T> {
    answers: mpsc::Receiver<Result<T, Status>>,
    _task: JoinSet<()>,
}

impl<T: Send + 'static> AnswerStream<T> {
    pub(super) fn new<F: Future<Output = ()> + Send + 'static>(
        make: impl FnOnce(Answers<T>) -> F,
    ) -> Self {
        let (sender, answers) = mpsc::channel(WAITING);
        let mut task = JoinSet::new();
        task.spawn(make(sender));
        AnswerStream {
            answers,
            _task: task,
        }
    }
}

impl<T> Stream for AnswerStream<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.answers.poll_recv(context)
    }
}
