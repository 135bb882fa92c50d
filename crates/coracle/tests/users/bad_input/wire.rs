//! A raw client: arbitrary bytes over TLS, and the response.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Timeout of a response on a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// A client certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// The administrator of the server with this data directory.
    pub(crate) fn administrator(folder: &Path) -> Identity {
        let pki = folder.join("pki");
        Identity {
            certificates: vec![CertificateDer::from_pem_file(pki.join("admin.crt")).unwrap()],
            key: PrivateKeyDer::from_pem_file(pki.join("admin.key")).unwrap(),
        }
    }
}

/// A connection to a server.
pub(crate) struct Connection(StreamOwned<ClientConnection, TcpStream>);

impl Connection {
    /// Without an identity the client is anonymous.
    pub(crate) fn open(
        folder: &Path,
        address: &str,
        identity: impl Into<Option<Identity>>,
        protocol: &[u8],
    ) -> Connection {
        Connection::over(
            TcpStream::connect(address).unwrap(),
            folder,
            identity,
            protocol,
        )
    }

    /// The same over a socket that is connected.
    pub(crate) fn over(
        socket: TcpStream,
        folder: &Path,
        identity: impl Into<Option<Identity>>,
        protocol: &[u8],
    ) -> Connection {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(folder.join("pki/ca.crt")).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();

        let builder = builder.unwrap().with_root_certificates(roots);
        let mut config = match identity.into() {
            Some(identity) => builder
                .with_client_auth_cert(identity.certificates, identity.key)
                .unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];

        let name = ServerName::try_from("127.0.0.1").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        socket.set_read_timeout(Some(ANSWERED_WITHIN)).unwrap();
        socket.set_nodelay(true).unwrap();

        Connection(StreamOwned::new(client, socket))
    }

    /// Sends bytes; returns false if the server has closed the connection.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.0
            .write_all(bytes)
            .and_then(|()| self.0.flush())
            .is_ok()
    }

    /// Closes the sending direction.
    pub(crate) fn end(&mut self) {
        self.0.conn.send_close_notify();
        self.0.flush().unwrap();
        self.0.sock.shutdown(Shutdown::Write).unwrap();
    }

    /// The head of an answer in HTTP/1.1; `None`: the connection was closed without a word.
    pub(crate) fn head(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.byte()?);
        }
        Some(String::from_utf8(head).unwrap())
    }

    /// The length of the rest of a chunked response.
    pub(crate) fn body_of_chunks(&mut self) -> usize {
        let mut total = 0;
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                line.push(self.byte().expect("the size of a chunk"));
            }

            let size = usize::from_str_radix(str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.0.read_exact(&mut chunk).unwrap();
            total += size;

            if size == 0 {
                return total;
            }
        }
    }

    /// One answer in HTTP/1.1; `None`: the connection was closed without a word.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let head = self.head()?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();

        let length = |head: &str| {
            let line = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))?;
            line.parse::<usize>().ok()
        };
        let mut body = vec![0; length(&head.to_lowercase()).unwrap_or_default()];
        self.0.read_exact(&mut body).ok()?;

        Some(Answer {
            status,
            head,
            body: String::from_utf8_lossy(&body).into_owned(),
            content: body,
        })
    }

    /// One frame in HTTP/2, its kind and its content; `None`: the connection was closed.
    pub(crate) fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 9];
        for byte in &mut head {
            *byte = self.byte()?;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut content = vec![0; length];
        self.0.read_exact(&mut content).ok()?;
        Some((head[3], content))
    }

    /// All bytes until the connection is closed.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let mut part = [0; 4096];
        loop {
            match self.0.read(&mut part) {
                Ok(0) => return rest,
                Ok(count) => rest.extend_from_slice(&part[..count]),
                Err(error) if timed_out(&error) => panic!("the connection is still open"),
                Err(_) => return rest,
            }
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(1) => Some(byte[0]),
            Err(error) if timed_out(&error) => panic!("no answer"),
            _ => None,
        }
    }
}

fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// The same, as it came.
    pub(crate) content: Vec<u8>,
}
