//! Streams of containers: output to log and attached clients, input from attached clients.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{Failure, Reply};
use rustix::event::Timespec;
use rustix::event::epoll::EventFlags;

use super::requests::{input_of, wrong_phase};
use super::{Server, Source};
use crate::clock;
use crate::container::Requester;
use crate::output::{Attachment, Pumped, Stream};
use crate::step::During as _;

impl Server {
    /// Reads the output of a container.
    pub(super) fn pump(&mut self, id: &str, index: usize, token: u64) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let Some(output) = container.outputs.get_mut(index) else {
            return;
        };
        let pumped = output.pump(&mut container.log, false);

        let held_up = output.is_held_up();
        if pumped == Pumped::Ended {
            self.end_output(id, index, token);
        } else if held_up {
            self.listen_to_output(id, index, false);
        }

        self.update_attachments(id, index);
    }

    /// Reads all remaining output of a container that has exited.
    pub(super) fn drain(&mut self, id: &str) {
        let count = self
            .containers
            .get(id)
            .map_or(0, |container| container.outputs.len());

        for index in 0..count {
            let Some(container) = self.containers.get_mut(id) else {
                return;
            };

            let pumped = container.outputs[index].pump(&mut container.log, true);
            if pumped == Pumped::Ended
                && let Some(token) = self.output_token(id, index)
            {
                self.end_output(id, index, token);
            }

            self.update_attachments(id, index);
        }
    }

    fn end_output(&mut self, id: &str, index: usize, token: u64) {
        let source = self
            .containers
            .get_mut(id)
            .and_then(|container| container.outputs.get_mut(index))
            .and_then(|output| output.source.take());
        if let Some(source) = source {
            self.unwatch(source.as_fd(), token);
        }
    }

    fn output_token(&self, id: &str, index: usize) -> Option<u64> {
        self.token_of(
            |source| matches!(source, Source::Output { id: of, index: at } if of == id && *at == index),
        )
    }

    fn listen_to_output(&self, id: &str, index: usize, listen: bool) {
        let output = self
            .containers
            .get(id)
            .and_then(|container| container.outputs.get(index));

        if let (Some(source), Some(token)) = (
            output.and_then(|output| output.source()),
            self.output_token(id, index),
        ) {
            self.change(
                source,
                token,
                if listen {
                    EventFlags::IN
                } else {
                    EventFlags::empty()
                },
            );
        }
    }

    /// Attaches a client to a container's output.
    pub(super) fn attach(
        &mut self,
        requester: Requester,
        id: &str,
        wanted: [bool; 2],
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), Failure> {
        let container = self.find(id)?;
        if container.has_exited() {
            return Err(wrong_phase("the container is not running"));
        }

        let (input, terminal) = (input_of(container), container.terminal.is_some());
        let streams = [Stream::Stdout, Stream::Stderr]
            .into_iter()
            .zip(wanted)
            .filter(|(_, wanted)| *wanted);

        for ((stream, _), sink) in streams.zip(descriptors) {
            self.add_attachment(id, stream, sink)?;
        }

        self.reply(requester, Reply::Attached { terminal }, input);

        Ok(())
    }

    fn add_attachment(&mut self, id: &str, stream: Stream, sink: OwnedFd) -> Result<(), Failure> {
        let step = || "attach to the output".to_owned();
        let outputs = &self.find(id)?.outputs;
        let Some(index) = outputs.iter().position(|output| output.stream == stream) else {
            return Ok(());
        };

        rustix::io::ioctl_fionbio(&sink, true).during(step)?;
        let source = Source::Attachment {
            id: id.to_owned(),
            index,
        };

        // Errors and hang-ups are always reported by epoll.
        let token = self
            .watch(sink.as_fd(), source, EventFlags::empty())
            .during(step)?;
        self.find(id)?.outputs[index]
            .attachments
            .push(Attachment::new(token, sink));

        Ok(())
    }

    /// Handles an attachment that is writable again, or closed.
    pub(super) fn attachment_event(
        &mut self,
        id: &str,
        index: usize,
        token: u64,
        flags: EventFlags,
    ) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };

        let Some(output) = container.outputs.get_mut(index) else {
            return;
        };
        if let Some(attachment) = output.attachments.iter_mut().find(|one| one.token == token) {
            if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
                attachment.close();
            } else {
                attachment.flush();
            }
        }

        if !output.is_held_up() {
            self.listen_to_output(id, index, true);
        }

        self.update_attachments(id, index);
    }

    /// Disconnects clients that block a container and read nothing. Returns the time until the next
    /// deadline; none if there is none.
    pub(super) fn disconnect_stalled(&mut self) -> Option<Timespec> {
        let now = clock::monotonic();
        let mut over = Vec::new();

        let mut next: Option<i64> = None;
        for (id, container) in &mut self.containers {
            for (index, output) in container.outputs.iter_mut().enumerate() {
                for attachment in &mut output.attachments {
                    match attachment.deadline(now) {
                        Some(deadline) if deadline <= now => {
                            attachment.close();
                            over.push((id.clone(), index));
                        }
                        Some(deadline) => {
                            next = Some(next.map_or(deadline, |next| next.min(deadline)))
                        }
                        None => {}
                    }
                }
            }
        }

        for (id, index) in over {
            self.update_attachments(&id, index);
            self.listen_to_output(&id, index, true);
        }

        next.map(|next| Timespec {
            tv_sec: (next - now) / 1_000_000_000 + 1,
            tv_nsec: 0,
        })
    }

    /// Updates the watched events of attachments, and drops closed ones.
    fn update_attachments(&mut self, id: &str, index: usize) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };

        let Some(output) = container.outputs.get_mut(index) else {
            return;
        };
        let gone: Vec<u64> = output
            .attachments
            .iter()
            .filter(|one| one.is_gone())
            .map(|one| one.token)
            .collect();

        output
            .attachments
            .retain(|attachment| !attachment.is_gone());

        for token in gone {
            self.sources.remove(&token);
        }

        let Some(output) = self
            .containers
            .get(id)
            .and_then(|container| container.outputs.get(index))
        else {
            return;
        };

        for attachment in &output.attachments {
            let wanted = if attachment.is_waiting() {
                EventFlags::OUT
            } else {
                EventFlags::empty()
            };
            if let Some(sink) = attachment.sink() {
                self.change(sink, attachment.token, wanted);
            }
        }
    }

    /// Removes a container and all its watches.
    pub(super) fn forget(&mut self, id: &str) {
        let Some(container) = self.containers.remove(id) else {
            return;
        };
        let watched: Vec<(u64, Source)> = self
            .sources
            .iter()
            .filter(|(_, source)| about(source) == Some(id))
            .map(|(token, source)| (*token, source.clone()))
            .collect();

        for (token, source) in watched {
            self.sources.remove(&token);
            let descriptor = match source {
                Source::Output { index, .. } => container.outputs[index].source(),
                Source::ContainerSync { .. } => container.sync.as_ref().map(|sync| sync.as_fd()),
                _ => None,
            };

            if let Some(descriptor) = descriptor {
                self.unwatch(descriptor, token);
            }
        }
    }
}

/// The container that a source belongs to.
fn about(source: &Source) -> Option<&str> {
    match source {
        Source::ContainerSync { id }
        | Source::Output { id, .. }
        | Source::Attachment { id, .. } => Some(id),
        _ => None,
    }
}
