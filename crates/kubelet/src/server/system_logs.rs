//! `/logs/`: the files below `/var/log` of the node, as pages and as they are.
//!
//! Pods may write there, so a link leads nowhere else: what is opened must be below the folder.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use rustix::fs::{Mode, OFlags};

use super::answer::{self, Answer};

/// Where a node's services write their logs.
pub(super) const FOLDER: &str = "/var/log";

const CHUNK: usize = 64 << 10;

/// What is at a path.
#[derive(Debug)]
enum Found {
    /// Names in order; those of folders end in a slash.
    Folder(Vec<OsString>),
    File {
        file: File,
        length: u64,
    },
}

/// The response for a path below `folder`.
pub(super) async fn answer(folder: &'static str, path: &[String], has_slash: bool) -> Answer {
    let wanted: PathBuf = path.iter().collect();
    let found = tokio::task::spawn_blocking(move || open(Path::new(folder), &wanted)).await;
    match found.map_err(io::Error::other).flatten() {
        Ok(Found::Folder(_)) if !has_slash => moved(path),
        Ok(Found::Folder(names)) => page(&names),
        Ok(Found::File { file, length }) => content(file, length),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            answer::text(StatusCode::NOT_FOUND, "404 page not found\n")
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            answer::text(StatusCode::FORBIDDEN, "403 Forbidden\n")
        }
        Err(error) => {
            tracing::info!(%error, path = path.join("/"), "cannot read system log");
            answer::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "500 Internal Server Error\n",
            )
        }
    }
}

fn open(folder: &Path, wanted: &Path) -> io::Result<Found> {
    let leaves = wanted
        .components()
        .any(|part| !matches!(part, std::path::Component::Normal(_)));
    if leaves {
        return Err(ErrorKind::NotFound.into());
    }

    // Without waiting for the writer of a pipe.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(folder.join(wanted), flags, Mode::empty())?);
    let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    if !place.starts_with(folder.canonicalize()?) {
        return Err(ErrorKind::PermissionDenied.into());
    }

    let kind = file.metadata()?;
    if kind.is_dir() {
        return Ok(Found::Folder(names(&place)?));
    }
    match kind.is_file() {
        true => Ok(Found::File {
            file,
            length: kind.len(),
        }),
        false => Err(ErrorKind::PermissionDenied.into()),
    }
}

fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let mut name = entry.file_name();
        if entry.file_type()?.is_dir() {
            name.push("/");
        }
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// Links in a page are relative, so a folder's path ends in a slash.
fn moved(path: &[String]) -> Answer {
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let name = path.last().map_or("logs", String::as_str);
    if let Ok(location) = HeaderValue::from_str(&format!("{}/", encoded(name.as_bytes()))) {
        head.headers_mut().insert(header::LOCATION, location);
    }
    answer::empty(head)
}

/// A page of links, as Go's file server writes it.
fn page(names: &[OsString]) -> Answer {
    let mut html = String::from(
        "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n",
    );
    for name in names {
        let shown = escaped(&name.to_string_lossy());
        html.push_str(&format!(
            "<a href=\"{}\">{shown}</a>\n",
            encoded(name.as_bytes())
        ));
    }
    html.push_str("</pre>\n");
    answer::with_type(StatusCode::OK, "text/html; charset=utf-8", html)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

/// A name as a relative reference.
fn encoded(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(char::from(*byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The file as it is now: what is written later is not sent.
fn content(file: File, length: u64) -> Answer {
    let chunks = stream::try_unfold((file, length), async |(mut file, left)| {
        if left == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let room = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let mut chunk = vec![0; room];
            let count = file.read(&mut chunk)?;
            chunk.truncate(count);
            Ok::<_, io::Error>((file, chunk))
        });
        let (file, chunk) = read.await.map_err(io::Error::other)??;
        if chunk.is_empty() {
            // It was truncated meanwhile. The response is aborted, since its length has been sent.
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let left = left - chunk.len() as u64;
        Ok(Some((Frame::data(Bytes::from(chunk)), (file, left))))
    });

    let mut answer = Response::new(StreamBody::new(chunks).boxed_unsync());
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn fixture() -> (tempfile::TempDir, &'static str) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::create_dir_all(log.join("pods/a b")).unwrap();
        std::fs::write(log.join("dpkg.log"), "installed\n").unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        symlink("dpkg.log", log.join("inside")).unwrap();
        symlink("../secret", log.join("outside")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, log.join("pipe"), Mode::RUSR).unwrap();
        let path = String::leak(log.to_str().unwrap().to_owned());
        (folder, path)
    }

    async fn get(folder: &'static str, path: &str) -> (u16, String) {
        let parts: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let answer = answer(folder, &parts, path.is_empty() || path.ends_with('/')).await;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn files_and_folders_of_the_folder_are_served_and_no_others() {
        let (_kept, log) = fixture();
        let check = async |path: &str, status: u16, begins: &str| {
            let (found, body) = get(log, path).await;
            assert_eq!(found, status, "{path}: {body}");
            assert!(body.contains(begins), "{path}: {body}");
        };

        check("", 200, "<a href=\"dpkg.log\">dpkg.log</a>").await;
        check("", 200, "<a href=\"pods/\">pods/</a>").await;
        check("pods/", 200, "<a href=\"a%20b/\">a b/</a>").await;
        check("pods", 301, "").await;
        check("dpkg.log", 200, "installed\n").await;
        check("inside", 200, "installed\n").await;
        check("outside", 403, "").await;
        check("pipe", 403, "").await;
        check("../secret", 404, "").await;
        check("missing", 404, "404 page not found").await;
    }
}
