//! A client that requests a Service and resolves its name in a loop, and records every failure.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::machine::Machine;

pub(crate) struct Traffic {
    answered: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    asking: JoinHandle<Vec<String>>,
}

/// Timeout of a request on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const NAME: [&str; 5] = ["echo", "default", "svc", "cluster", "local"];

impl Traffic {
    /// Starts the requests. Failures before the first success are ignored: rules take a moment.
    pub(crate) fn begin(machine: &Machine, service: IpAddr, dns: IpAddr) -> Traffic {
        let (answered, over) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );

        let (count, end) = (answered.clone(), over.clone());
        let asking = machine.inside(move || {
            let mut failures = Vec::new();
            while !end.load(Ordering::Relaxed) {
                let number = count.load(Ordering::Relaxed);
                match fetch(service, PATIENCE)
                    .and_then(|()| resolve(dns, service, number, PATIENCE))
                {
                    Ok(()) => drop(count.fetch_add(1, Ordering::Relaxed)),
                    Err(error) if number > 0 => {
                        failures.push(format!("after {number} answers: {error}"))
                    }
                    Err(_) => {}
                }

                thread::sleep(Duration::from_millis(50));
            }

            failures
        });

        Traffic {
            answered,
            over,
            asking,
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.answered.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn never_failed(self) {
        self.over.store(true, Ordering::Relaxed);
        let failures = self.asking.join().unwrap();
        let answered = self.answered.load(Ordering::Relaxed);
        assert!(
            failures.is_empty(),
            "{answered} times there was an answer; {failures:#?}"
        );
        assert!(answered > 50, "only {answered} answers");
    }
}

/// A pod behind the Service `echo` must answer.
pub(crate) fn fetch(service: IpAddr, patience: Duration) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the Service: {error}");
    let mut stream =
        TcpStream::connect_timeout(&SocketAddr::new(service, 80), patience).map_err(failed)?;
    stream.set_read_timeout(Some(patience)).map_err(failed)?;
    stream
        .write_all(b"GET / HTTP/1.0\r\n\r\n")
        .map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;

    let good = answer.starts_with("HTTP/1.1 200") && answer.contains("\"host\":\"echo-");
    if good {
        Ok(())
    } else {
        Err(format!("the Service: {answer:?}"))
    }
}

/// Resolves the name; its addresses must include that of the Service.
pub(crate) fn resolve(
    dns: IpAddr,
    service: IpAddr,
    number: u64,
    patience: Duration,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("its name: {error}");
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
    socket.set_read_timeout(Some(patience)).map_err(failed)?;
    let number = u16::try_from(number % 65_536).unwrap();

    // One question, to be answered recursively.
    let mut question = [
        number.to_be_bytes().as_slice(),
        &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ]
    .concat();

    for label in NAME {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.as_bytes());
    }

    question.extend([0, 0, 1, 0, 1]);
    socket.send_to(&question, (dns, 53)).map_err(failed)?;
    let mut answer = [0; 512];
    let (length, _) = socket.recv_from(&mut answer).map_err(failed)?;
    let IpAddr::V4(wanted) = service else {
        return Err("the Service has no IPv4 address".to_owned());
    };

    let found = answer[..length]
        .windows(4)
        .any(|octets| octets == wanted.octets());
    if found {
        Ok(())
    } else {
        Err(format!("its name: {:?}", &answer[..length]))
    }
}
