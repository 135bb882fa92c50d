//! A cache of the documents that were requested, in as little memory as possible.
//!
//! A document is built when it is first requested, compressed while it is written, and kept
//! compressed: all of them together are a megabyte or two. Its hash is kept, since the index has
//! the hash of every document; its content is dropped and rebuilt if the cache is too large. When
//! kinds are added or removed, the documents that contain them are dropped. Readers of an
//! uncompressed document share one copy, which exists as long as one of them reads.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use coracle_api::catalog::Catalog;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ring::digest::{Context, SHA512};

use super::document::{Document, Form};
use super::section::Section;

/// How much compressed content is cached.
const KEPT_BYTES: usize = 4 << 20;

/// Why a document could not be built.
#[derive(Debug, thiserror::Error)]
#[error("compression failed")]
pub(super) struct LibraryError(#[from] io::Error);

/// A cached document.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// SHA-512 of its JSON: the same for both forms, as a client of one may request the other.
    pub(super) hash: Arc<str>,
    content: Content,
}

impl Kept {
    pub(super) fn gzip(&self) -> Bytes {
        self.content.gzip.clone()
    }

    /// The content as it was before it was compressed.
    pub(super) fn plain(&self) -> Result<Bytes, LibraryError> {
        // Held while it is decompressed, so that concurrent requests share one copy.
        let mut plain = self
            .content
            .plain
            .lock()
            .unwrap_or_else(PoisonError::into_inner);

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
    /// The catalogue that the cached documents are built from.
    catalog: Catalog,
    hashes: BTreeMap<Document, Arc<str>>,
    contents: BTreeMap<(Document, Form), Content>,
}

impl Library {
    /// The document, if it is cached.
    pub(super) fn kept(&self, catalog: &Catalog, document: &Document, form: Form) -> Option<Kept> {
        let cached_documents = self.cached_documents(catalog);
        let hash = cached_documents.hashes.get(document)?.clone();
        let content = cached_documents
            .contents
            .get(&(document.clone(), form))?
            .clone();
        Some(Kept { hash, content })
    }

    /// The document, built if it is not cached.
    pub(super) fn get(
        &self,
        catalog: &Catalog,
        document: &Document,
        form: Form,
    ) -> Result<Kept, LibraryError> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);

        if let Some(kept) = self.kept(catalog, document, form) {
            return Ok(kept);
        }

        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        document.write(catalog, form, &mut gzip)?;
        let gzip = Bytes::from(gzip.finish()?.into_boxed_slice());
        let content = Content {
            gzip,
            plain: Arc::default(),
        };

        let hash = self.hash(catalog, document)?;
        self.cached_documents(catalog)
            .keep((document.clone(), form), content.clone());

        Ok(Kept { hash, content })
    }

    /// The hash of a document: all that the index needs of it.
    pub(super) fn hash(
        &self,
        catalog: &Catalog,
        document: &Document,
    ) -> Result<Arc<str>, LibraryError> {
        if let Some(hash) = self.cached_documents(catalog).hashes.get(document) {
            return Ok(hash.clone());
        }

        let mut hasher = Hasher(Context::new(&SHA512));
        document.write(catalog, Form::Json, &mut hasher)?;

        let digits: String = hasher
            .0
            .finish()
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let hash: Arc<str> = digits.into();
        self.cached_documents(catalog)
            .hashes
            .insert(document.clone(), hash.clone());

        Ok(hash)
    }

    fn cached_documents(&self, catalog: &Catalog) -> MutexGuard<'_, CachedDocuments> {
        let mut cached_documents = self
            .cached_documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cached_documents.be_for(catalog);
        cached_documents
    }
}

impl CachedDocuments {
    /// Drops the documents that the difference between two catalogues has invalidated.
    fn be_for(&mut self, catalog: &Catalog) {
        let mut wrong: Vec<Document> = Vec::new();
        for page in self.catalog.difference(catalog) {
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

        self.catalog = catalog.clone();
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
