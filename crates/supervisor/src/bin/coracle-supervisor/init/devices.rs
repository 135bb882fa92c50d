//! Device nodes of a container.

use coracle_supervisor::protocol::Device;
use rustix::fs::{AtFlags, FileType, Gid, Mode, Uid, chmodat, chownat, makedev, mknodat, unlinkat};
use rustix::io::Errno;

use super::root::Root;
use crate::step::{During as _, StepError};

pub(super) fn make(root: &Root, devices: &[Device]) -> Result<(), StepError> {
    for device in devices {
        let step = || format!("make device {}", device.path);
        let (folder, name) = root.parent(&device.path)?;
        let kind = match device.kind {
            b'b' => FileType::BlockDevice,
            b'p' => FileType::Fifo,
            _ => FileType::CharacterDevice,
        };
        let mode = Mode::from_raw_mode(device.mode);
        let number = makedev(device.major, device.minor);
        match mknodat(&folder, name, kind, mode, number) {
            // An image may bring a file of that name: it is no device, and must not be taken for one.
            Err(Errno::EXIST) => {
                unlinkat(&folder, name, AtFlags::empty()).during(step)?;
                mknodat(&folder, name, kind, mode, number).during(step)?;
            }
            other => other.during(step)?,
        }
        // The mode at creation was cut by the umask.
        chmodat(&folder, name, mode, AtFlags::empty()).during(step)?;
        let (uid, gid) = (Uid::from_raw(device.uid), Gid::from_raw(device.gid));
        chownat(&folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).during(step)?;
    }
    Ok(())
}
