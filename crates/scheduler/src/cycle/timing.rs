//! How long the parts of a cycle take.

use std::time::Duration;

use tokio::time::Instant;

use crate::framework::Refusal;

/// A part of scheduling, by upstream's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Bind,
}

/// How a part ended, by upstream's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Success,
    Unschedulable,
    UnschedulableAndUnresolvable,
    Error,
}

impl Point {
    pub fn name(self) -> &'static str {
        match self {
            Point::PreFilter => "PreFilter",
            Point::Filter => "Filter",
            Point::PostFilter => "PostFilter",
            Point::PreScore => "PreScore",
            Point::Score => "Score",
            Point::Bind => "Bind",
        }
    }
}

impl Status {
    pub(crate) fn of(refusal: &Refusal) -> Status {
        match refusal {
            Refusal::NotNow(_) => Status::Unschedulable,
            Refusal::Never(_) => Status::UnschedulableAndUnresolvable,
            Refusal::Failed(_) => Status::Error,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Status::Success => "Success",
            Status::Unschedulable => "Unschedulable",
            Status::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Status::Error => "Error",
        }
    }
}

/// What one cycle took, part by part. The clock is handed in.
#[derive(Clone, Debug)]
pub struct Timing {
    now: fn() -> Instant,
    pub points: Vec<(Point, Status, Duration)>,
    /// Of single plugins, where each runs once in a cycle.
    pub plugins: Vec<(Point, &'static str, Status, Duration)>,
}

impl Timing {
    pub fn new(now: fn() -> Instant) -> Timing {
        Timing {
            now,
            points: Vec::new(),
            plugins: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        (self.now)()
    }

    pub(super) fn point(&mut self, point: Point, status: Status, began: Instant) {
        let took = self.now().duration_since(began);
        self.points.push((point, status, took));
    }

    /// Counts a plugin; returns when the next part begins, and how long this one took.
    pub(super) fn plugin(
        &mut self,
        point: Point,
        plugin: &'static str,
        status: Status,
        began: Instant,
    ) -> (Instant, Duration) {
        let now = self.now();
        let took = now.duration_since(began);
        self.plugins.push((point, plugin, status, took));
        (now, took)
    }
}
