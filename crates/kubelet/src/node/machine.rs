//! Machine information, read from kernel files.

use std::fs;
use std::path::Path;

use coracle_cgroup::Ceiling;

/// What the node status reports about the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) machine_id: String,
    pub(crate) system_uuid: String,
    pub(crate) boot_id: String,
    pub(crate) kernel: String,
    pub(crate) os_image: String,
    pub(crate) processors: usize,
    /// Bytes; limited by the cgroup if inside a container.
    pub(crate) memory: i64,
    /// Limit of processes and threads.
    pub(crate) pids: i64,
    /// Bytes of swap.
    pub(crate) swap: i64,
    /// Size in bytes of the file system that pods write to.
    pub(crate) disk: i64,
    /// Page sizes and total bytes of huge pages.
    pub(crate) huge_pages: Vec<(i64, i64)>,
}

impl Machine {
    /// Reads the machine information; `data` is the directory that pods write to, `ceiling` the
    /// limits of the cgroups around pods.
    pub(crate) fn read(data: &Path, ceiling: Ceiling) -> Machine {
        let line = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let release = line("/etc/os-release");

        let machine_id = line("/etc/machine-id");
        let uuid = line("/sys/class/dmi/id/product_uuid");

        Machine {
            // Upstream's fallback.
            system_uuid: if uuid.is_empty() {
                machine_id.clone()
            } else {
                uuid
            },
            machine_id,
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            kernel: line("/proc/sys/kernel/osrelease"),
            os_image: pretty_name(&release),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: at_most(meminfo("MemTotal"), ceiling.memory),
            pids: at_most(pids(&line), ceiling.pids),
            swap: meminfo("SwapTotal"),
            disk: rustix::fs::statvfs(data).map_or(0, |disk| {
                i64::try_from(disk.f_blocks.saturating_mul(disk.f_frsize)).unwrap_or(i64::MAX)
            }),
            huge_pages: huge_pages(Path::new("/sys/kernel/mm/hugepages")),
        }
    }
}

/// The kernel's limit of processes and threads.
fn pids(line: &impl Fn(&str) -> String) -> i64 {
    let limits = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    limits
        .iter()
        .filter_map(|file| line(file).parse().ok())
        .min()
        .unwrap_or(i64::MAX)
}

fn at_most(there: i64, ceiling: Option<u64>) -> i64 {
    ceiling
        .and_then(|ceiling| i64::try_from(ceiling).ok())
        .map_or(there, |ceiling| there.min(ceiling))
}

fn meminfo(name: &str) -> i64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kilobytes(&text, name).saturating_mul(1024)
}

fn kilobytes(text: &str, name: &str) -> i64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn pretty_name(release: &str) -> String {
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.unwrap_or("Linux").trim_matches(['"', '\'']).to_owned()
}

fn huge_pages(folder: &Path) -> Vec<(i64, i64)> {
    let sizes = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut pages: Vec<(i64, i64)> = sizes
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let kilobytes: i64 = name
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;

            let count: i64 = fs::read_to_string(entry.path().join("nr_hugepages"))
                .ok()?
                .trim()
                .parse()
                .ok()?;

            Some((
                kilobytes * 1024,
                kilobytes.saturating_mul(1024).saturating_mul(count),
            ))
        })
        .collect();
    pages.sort_unstable();

    pages
}

/// Go's name of the architecture.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_sizes_respect_cgroup_limits() {
        let ceiling = Ceiling {
            memory: Some(64 << 20),
            pids: Some(100),
        };
        let machine = Machine::read(Path::new("/"), ceiling);
        assert_eq!((machine.memory, machine.pids), (64 << 20, 100));
    }

    #[test]
    fn files_of_the_kernel_are_read() {
        let text = "MemTotal:       16384 kB\nMemFree:  5 kB\nSwapTotal:  0 kB\n";
        assert_eq!(kilobytes(text, "MemTotal"), 16384);
        assert_eq!(kilobytes(text, "Mem"), 0);
        assert_eq!(
            pretty_name("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n"),
            "Debian GNU/Linux 13"
        );
        let machine = Machine::read(Path::new("/"), Ceiling::default());
        assert!(machine.memory > 0 && machine.pids > 0);
    }
}
