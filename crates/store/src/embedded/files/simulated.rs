//! A disk in memory that fails on demand: power cuts, full, read-only, failing and slow syncs.
//!
//! Reads see everything written, as with a page cache. A power cut leaves less: each write since a
//! file's last sync is kept, torn or lost independently; of the directory's unsynced changes only
//! the first few are kept. After a failed sync its writes are visible but never durable, as on
//! Linux: the next sync succeeds without them.

use super::{File, Files, Lock};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

/// The disk. It survives power cuts; open files do not.
#[derive(Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<Disk>>);

/// The disk as seen by one running process; all operations fail after a power cut.
pub struct SimulatedFiles {
    disk: SimulatedDisk,
    boot: u64,
}

#[derive(Default)]
struct Disk {
    /// The directory as seen by processes, and as a power cut would leave it.
    seen: BTreeMap<String, Inode>,
    durable: BTreeMap<String, Inode>,
    /// Directory changes since the last sync, in order.
    changes: Vec<Change>,
    inodes: Vec<Contents>,
    /// Incremented by every power cut: handles of an earlier boot are invalid.
    boot: u64,
    locked: bool,
    capacity: Option<u64>,
    read_only: bool,
    failing_syncs: u32,
    sync_delay: Duration,
    synced_writes: u64,
    /// The machine is switched off after this many more operations.
    operations_left: Option<u32>,
}

type Inode = usize;

enum Change {
    Link(String, Inode),
    Unlink(String),
    Rename(String, String),
}

#[derive(Default)]
struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

struct SimulatedFile {
    disk: SimulatedDisk,
    boot: u64,
    inode: Inode,
}

struct SimulatedLock {
    disk: SimulatedDisk,
    boot: u64,
}

impl SimulatedDisk {
    /// The disk's files for a process that starts now.
    pub fn files(&self) -> SimulatedFiles {
        SimulatedFiles {
            boot: self.disk().boot,
            disk: self.clone(),
        }
    }

    /// Another disk with the durable contents of this one.
    pub fn copy(&self) -> SimulatedDisk {
        let disk = self.disk();
        let inodes = disk.inodes.iter().map(Contents::durably).collect();
        let (seen, durable) = (disk.durable.clone(), disk.durable.clone());
        SimulatedDisk(Arc::new(Mutex::new(Disk {
            seen,
            durable,
            inodes,
            ..Disk::default()
        })))
    }

    /// Cuts the power. `chance` decides for each unsynced write whether it is kept (0), torn (1) or
    /// lost (2); it returns a number below its argument.
    pub fn cut_power(&self, chance: &mut dyn FnMut(usize) -> usize) {
        let mut disk = self.disk();
        disk.boot += 1;
        disk.locked = false;
        disk.operations_left = None;

        let kept = chance(disk.changes.len() + 1);
        for change in std::mem::take(&mut disk.changes).into_iter().take(kept) {
            change.apply(&mut disk.durable);
        }

        for contents in &mut disk.inodes {
            contents.cut_power(chance);
        }

        disk.seen = disk.durable.clone();
    }

    /// Switches the machine off after `operations` more: from then on everything fails.
    /// [`SimulatedDisk::cut_power`] decides what is left on the disk.
    pub fn switch_off_after(&self, operations: u32) {
        self.disk().operations_left = Some(operations);
    }

    /// The process is killed, the machine keeps running: nothing written is lost.
    pub fn kill_process(&self) {
        let mut disk = self.disk();
        disk.boot += 1;
        disk.locked = false;
    }

    /// Writes beyond this many bytes fail for lack of space; `None` for no limit.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.disk().capacity = capacity;
    }

    pub fn set_read_only(&self, read_only: bool) {
        self.disk().read_only = read_only;
    }

    /// The next `count` syncs fail, and what they should have made durable never will be.
    pub fn fail_syncs(&self, count: u32) {
        self.disk().failing_syncs = count;
    }

    /// Sets the duration of every sync.
    pub fn set_sync_delay(&self, delay: Duration) {
        self.disk().sync_delay = delay;
    }

    /// The total size of all files in bytes.
    pub fn used(&self) -> u64 {
        self.disk().used()
    }

    /// How many syncs had something to make durable.
    pub fn syncs(&self) -> u64 {
        self.disk().synced_writes
    }

    /// Flips a bit, as a failing disk does.
    pub fn flip_bit(&self, name: &str, offset: usize) {
        let mut disk = self.disk();
        let inode = disk.seen[name];
        let contents = &mut disk.inodes[inode];
        contents.seen[offset] ^= 0x10;
        contents.durable[offset] ^= 0x10;
    }

    /// The names and sizes of the files.
    pub fn listing(&self) -> Vec<(String, usize)> {
        let disk = self.disk();
        disk.seen
            .iter()
            .map(|(name, inode)| (name.clone(), disk.inodes[*inode].seen.len()))
            .collect()
    }

    /// Truncates a file.
    pub fn truncate(&self, name: &str, size: usize) {
        let mut disk = self.disk();
        let inode = disk.seen[name];
        disk.inodes[inode].seen.truncate(size);
        disk.inodes[inode].durable.truncate(size);
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0
            .lock()
            .expect("nothing panics while it holds the disk")
    }

    fn alive(&self, boot: u64) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.disk();
        if let Some(left) = &mut disk.operations_left {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => disk.boot += 1,
            }
        }

        if disk.boot == boot {
            Ok(disk)
        } else {
            Err(io::Error::other("the machine was switched off"))
        }
    }
}

impl Disk {
    fn used(&self) -> u64 {
        self.seen
            .values()
            .map(|inode| self.inodes[*inode].seen.len() as u64)
            .sum()
    }

    fn writable(&self) -> io::Result<()> {
        if self.read_only {
            Err(io::ErrorKind::ReadOnlyFilesystem.into())
        } else {
            Ok(())
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.changes.push(change);
    }

    fn find(&self, name: &str) -> io::Result<Inode> {
        self.seen
            .get(name)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Inode>) {
        match self {
            Change::Link(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Change::Unlink(name) => {
                names.remove(name);
            }
            Change::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

impl Contents {
    fn durably(&self) -> Contents {
        Contents {
            seen: self.durable.clone(),
            durable: self.durable.clone(),
            unsynced: Vec::new(),
        }
    }

    fn cut_power(&mut self, chance: &mut dyn FnMut(usize) -> usize) {
        for (offset, bytes) in std::mem::take(&mut self.unsynced) {
            match chance(3) {
                0 => overwrite(&mut self.durable, offset, &bytes),
                1 => overwrite(&mut self.durable, offset, &bytes[..chance(bytes.len() + 1)]),
                _ => {}
            }
        }
        self.seen = self.durable.clone();
    }

    fn sync(&mut self) -> bool {
        let writes = std::mem::take(&mut self.unsynced);
        for (offset, bytes) in &writes {
            overwrite(&mut self.durable, *offset, bytes);
        }
        !writes.is_empty()
    }
}

fn overwrite(contents: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[offset..end].copy_from_slice(bytes);
}

impl Files for SimulatedFiles {
    fn path(&self) -> String {
        "the simulated disk".into()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk.alive(self.boot)?.seen.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk.alive(self.boot)?;
        disk.writable()?;
        let inode = disk.inodes.len();
        disk.inodes.push(Contents::default());
        disk.change(Change::Link(name.to_owned(), inode));
        Ok(Arc::new(SimulatedFile {
            disk: self.disk.clone(),
            boot: self.boot,
            inode,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let inode = self.disk.alive(self.boot)?.find(name)?;
        Ok(Arc::new(SimulatedFile {
            disk: self.disk.clone(),
            boot: self.boot,
            inode,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk.alive(self.boot)?;
        disk.writable()?;
        disk.find(from)?;
        disk.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk.alive(self.boot)?;
        disk.writable()?;
        disk.find(name)?;
        disk.change(Change::Unlink(name.to_owned()));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut disk = self.disk.alive(self.boot)?;
        for change in std::mem::take(&mut disk.changes) {
            change.apply(&mut disk.durable);
        }
        Ok(())
    }

    fn lock(&self) -> io::Result<Option<Box<dyn Lock>>> {
        let mut disk = self.disk.alive(self.boot)?;
        disk.writable()?;
        if std::mem::replace(&mut disk.locked, true) {
            return Ok(None);
        }
        Ok(Some(Box::new(SimulatedLock {
            disk: self.disk.clone(),
            boot: self.boot,
        })))
    }

    fn reads_may_block(&self) -> bool {
        false
    }
}

impl File for SimulatedFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.alive(self.boot)?;
        disk.writable()?;

        let room = disk
            .capacity
            .map(|capacity| capacity.saturating_sub(disk.used()));
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let fits = match room.and_then(|room| usize::try_from(room).ok()) {
            Some(room) => &bytes[..bytes.len().min(room)],
            None => bytes,
        };

        let contents = &mut disk.inodes[self.inode];
        overwrite(&mut contents.seen, offset, fits);
        contents.unsynced.push((offset, fits.to_vec()));

        if fits.len() < bytes.len() {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let disk = self.disk.alive(self.boot)?;
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let found = disk.inodes[self.inode]
            .seen
            .get(offset..offset + bytes.len());
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let delay = self.disk.alive(self.boot)?.sync_delay;
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }

        let mut disk = self.disk.alive(self.boot)?;
        disk.writable()?;

        if disk.failing_syncs > 0 {
            disk.failing_syncs -= 1;
            disk.inodes[self.inode].unsynced.clear();
            return Err(io::Error::other("input/output error (simulated)"));
        }

        let wrote = disk.inodes[self.inode].sync();
        disk.synced_writes += u64::from(wrote);

        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.alive(self.boot)?.inodes[self.inode].seen.len() as u64)
    }
}

impl Lock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        if let Ok(mut disk) = self.disk.alive(self.boot) {
            disk.locked = false;
        }
    }
}
