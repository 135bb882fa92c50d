//! A cache of the documents that were requested, in as little memory as possible.
//!
//! A document is built when it is first requested, compressed while it is written, and kept
//! compressed: all of them together are a megabyte or two. Its hash is kept, since the index has
//! the hash of every document; its content is dropped and rebuilt if the cache is too large. When
//! kinds are added or removed, the documents that contain them are dropped. Readers of an
//! uncompressed document share one copy, which exists as long as one of them reads.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, MutexGuard, Weak};

use bytes::Bytes;
use coracle_api::catalog::Catalog;
use coracle_base::sync::Mutex;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ring::digest::{Context, SHA512};

use super::document::{Document, Form};
use super::others::Others;
use super::section::Section;

/// How much compressed content is cached.
const KEPT_BYTES: usize = 4 << 20;

/// Why a document could not be built.
#[derive(Debug, thiserror::Error)]
#[error("compression failed")]
pub(super) struct LibraryError(#[from] io::Error);

/// What documents are made of.
#[derive(Clone, Default)]
pub(super) struct Sources {
    pub(super) catalog: Catalog,
    pub(super) others: Others,
}

/// A cached document.
#[derive(Clone, Debug)]
pub(super) struct CachedDocument {
    /// SHA-512 of its JSON: the same for both forms, as a client of one may request the other.
    pub(super) hash: Arc<str>,
    content: Content,
}

impl CachedDocument {
    pub(super) fn gzip(&self) -> Bytes {
        self.content.gzip.clone()
    }

    /// The content as it was before it was compressed.
    pub(super) fn plain(&self) -> Result<Bytes, LibraryError> {
        // Held while it is decompressed, so that concurrent requests share one copy.
        let mut plain = self.content.plain.lock();

        if let Some(plain) = plain.as_ref().and_then(Weak::upgrade) {
            return Ok(Bytes::from_owner(plain));
        }

        let mut out = Vec::new();
        GzDecoder::new(self.content.gzip.as_ref()).read_to_end(&mut out)?;
        let made: Arc<[u8]> = out.into();
        *plain = Some(Arc::downgrade(&made));

        Ok(Bytes::from_owner(made))
    }
}

/// The cached content of a document in one form.
#[derive(Clone, Debug)]
struct Content {
    gzip: Bytes,
    /// The same uncompressed, while it is being read.
    plain: Arc<Mutex<Option<Weak<[u8]>>>>,
}

/// Builds documents and caches them. Building takes milliseconds, tens of them for the largest: too
/// long for a thread that serves requests.
#[derive(Default)]
pub(super) struct Library {
    cached_documents: Mutex<CachedDocuments>,
    /// Held while a document is built, so that concurrent requests build it once.
    making: Mutex<()>,
}

#[derive(Default)]
struct CachedDocuments {
    /// What the cached documents are built from.
    sources: Sources,
    hashes: BTreeMap<Document, Arc<str>>,
    contents: BTreeMap<(Document, Form), Content>,
}

impl Library {
    /// The document, if it is cached.
    pub(super) fn kept(
        &self,
        sources: &Sources,
        document: &Document,
        form: Form,
    ) -> Option<CachedDocument> {
        let cached_documents = self.cached_documents(sources);
        let hash = cached_documents.hashes.get(document)?.clone();
        let content = cached_documents
            .contents
            .get(&(document.clone(), form))?
            .clone();
        Some(CachedDocument { hash, content })
    }

    /// The document, built if it is not cached.
    pub(super) fn get(
        &self,
        sources: &Sources,
        document: &Document,
        form: Form,
    ) -> Result<CachedDocument, LibraryError> {
        let _making = self.making.lock();

        if let Some(kept) = self.kept(sources, document, form) {
            return Ok(kept);
        }

        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        document.write(sources, form, &mut gzip)?;
        let gzip = Bytes::from(gzip.finish()?.into_boxed_slice());
        let content = Content {
            gzip,
            plain: Arc::default(),
        };

        let hash = self.hash(sources, document)?;
        self.cached_documents(sources)
            .keep((document.clone(), form), content.clone());

        Ok(CachedDocument { hash, content })
    }

    /// The hash of a document: all that the index needs of it.
    pub(super) fn hash(
        &self,
        sources: &Sources,
        document: &Document,
    ) -> Result<Arc<str>, LibraryError> {
        if let Some(hash) = self.cached_documents(sources).hashes.get(document) {
            return Ok(hash.clone());
        }

        let mut hasher = Hasher(Context::new(&SHA512));
        document.write(sources, Form::Json, &mut hasher)?;

        let digits: String = hasher
            .0
            .finish()
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let hash: Arc<str> = digits.into();
        self.cached_documents(sources)
            .hashes
            .insert(document.clone(), hash.clone());

        Ok(hash)
    }

    fn cached_documents(&self, sources: &Sources) -> MutexGuard<'_, CachedDocuments> {
        let mut cached_documents = self.cached_documents.lock();
        cached_documents.be_for(sources);
        cached_documents
    }
}

impl CachedDocuments {
    /// Drops the documents that the difference to what they are built from has invalidated.
    fn be_for(&mut self, sources: &Sources) {
        let mut wrong: Vec<Document> = Vec::new();
        if !self.sources.others.are(&sources.others) {
            wrong.push(Document::V2);
        }
        for page in self.sources.catalog.difference(&sources.catalog) {
            wrong.push(Document::V2);
            wrong.extend(page.resources().iter().map(|resource| {
                let (group, version) = (resource.group.to_string(), resource.version.to_string());
                Document::V3(Section::GroupVersion { group, version })
            }));
        }

        if !wrong.is_empty() {
            self.hashes.retain(|document, _| !wrong.contains(document));
            self.contents
                .retain(|(document, _), _| !wrong.contains(document));
        }

        self.sources = sources.clone();
    }

    fn keep(&mut self, name: (Document, Form), content: Content) {
        if content.gzip.len() > KEPT_BYTES {
            return;
        }

        let mut kept: usize = self
            .contents
            .values()
            .map(|content| content.gzip.len())
            .sum();

        while kept + content.gzip.len() > KEPT_BYTES
            && let Some((_, gone)) = self.contents.pop_first()
        {
            kept -= gone.gzip.len();
        }

        self.contents.insert(name, content);
    }
}

struct Hasher(Context);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
