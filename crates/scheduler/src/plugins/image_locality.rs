//! `ImageLocality`: prefers nodes that have the pod's images, if these are large and widespread.

use std::sync::Arc;

use super::{Args, Handle, args};
use crate::cache::{Cache, NodeInfo};
use crate::framework::{Cycle, Extensions, MAX_SCORE, PreScore, Refusal, Score};
use crate::pod::Images;

struct ImageLocality;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    Ok(Extensions {
        score: Some(Arc::new(ImageLocality)),
        ..Extensions::default()
    })
}

impl PreScore for ImageLocality {
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let images = &cycle.pod.images;

        // No node has any of them: all nodes are equal.
        let known = images
            .names
            .iter()
            .any(|name| cycle.cache.image_spread(name) > 0);

        Ok(known.then(|| {
            Box::new(ImageScore {
                images,
                cache: cycle.cache,
            }) as Box<dyn Score + 'c>
        }))
    }
}

struct ImageScore<'c> {
    images: &'c Images,
    cache: &'c Cache,
}

impl Score for ImageScore<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        let present = self
            .images
            .names
            .iter()
            .filter_map(|name| Some((name, node.node.image_size(name)?)));

        let sum = present.map(|(name, size)| {
            spread_size(
                size,
                self.cache.image_spread(name),
                self.cache.order().len(),
            )
        });

        scaled(
            sum.sum(),
            i64::try_from(self.images.containers).unwrap_or(i64::MAX),
        )
    }
}

/// An image counts by the share of nodes that have it, otherwise the only node with it would get
/// every pod.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "upstream computes it in floats"
)]
fn spread_size(size: i64, having: usize, nodes: usize) -> i64 {
    (size as f64 * (having as f64 / nodes as f64)) as i64
}

fn scaled(size: i64, containers: i64) -> i64 {
    let most = MOST_PER_CONTAINER * containers.max(1);
    MAX_SCORE * (size.clamp(LEAST, most) - LEAST) / (most - LEAST)
}

const MIB: i64 = 1024 * 1024;
const LEAST: i64 = 23 * MIB;
const MOST_PER_CONTAINER: i64 = 1000 * MIB;
