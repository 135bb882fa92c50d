//! Client connections: non-blocking requests and replies.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{FromRuntime, decode};
use coracle_supervisor::socket;
use rustix::event::epoll::EventFlags;

use super::Server;
use crate::container::Requester;

/// The limit of queued replies, after which the connection is closed.
const MOST_WAITING: usize = 10_000;

pub(super) struct Connection {
    socket: OwnedFd,
    waiting: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// It has sent `Hello`, and gets exit events.
    pub(super) listens: bool,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            waiting: VecDeque::new(),
            listens: false,
        }
    }

    /// Sends queued messages. Returns whether the connection is still open.
    fn flush(&mut self) -> bool {
        while let Some((message, descriptors)) = self.waiting.front() {
            let borrowed: Vec<_> = descriptors
                .iter()
                .map(|descriptor| descriptor.as_fd())
                .collect();

            match socket::send(&self.socket, message, &borrowed) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }

        true
    }
}

impl Server {
    /// Reads requests, and sends queued replies.
    pub(super) fn handle_messages(&mut self, token: u64, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.flush(token);
        }

        loop {
            let Some(connection) = self.connections.get(&token) else {
                return;
            };
            match socket::receive(&connection.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(Some((message, descriptors))) => match decode::<FromRuntime>(&message) {
                    Ok(message) => {
                        let requester = Requester {
                            connection: token,
                            number: message.number,
                        };
                        self.answer(requester, message.request, descriptors);
                    }
                    Err(_) => return self.hang_up(token),
                },
                Ok(None) | Err(_) => return self.hang_up(token),
            }
        }
    }

    /// Sends or queues a message. Ignored if the connection is closed.
    pub(super) fn send(&mut self, token: u64, message: Vec<u8>, descriptors: Vec<OwnedFd>) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        connection.waiting.push_back((message, descriptors));
        self.flush(token);
    }

    fn flush(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        if !connection.flush() || connection.waiting.len() > MOST_WAITING {
            return self.hang_up(token);
        }

        let wanted = if connection.waiting.is_empty() {
            EventFlags::IN
        } else {
            EventFlags::IN | EventFlags::OUT
        };

        let Some(connection) = self.connections.get(&token) else {
            return;
        };
        self.change(connection.socket.as_fd(), token, wanted);
    }

    fn hang_up(&mut self, token: u64) {
        if let Some(connection) = self.connections.remove(&token) {
            self.unwatch(connection.socket.as_fd(), token);
        }
    }
}
