//! What the operating system says this process has used.

use serde::{Deserialize, Serialize};

/// Clock ticks per second in which Linux reports CPU time in `/proc/PID/stat`.
///
/// `USER_HZ` of proc(5); 100 on every architecture that Rust supports there.
const USER_HZ: f64 = 100.0;

/// Resources used by this process, with those of children it has waited for.
///
/// A field is `None` where the operating system does not tell, or not to this user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// CPU time spent in user mode, over all threads, in seconds (resolution 10 ms).
    pub user_s: Option<f64>,
    /// CPU time spent in the kernel, over all threads, in seconds (resolution 10 ms).
    pub sys_s: Option<f64>,
    /// Largest resident set so far, in bytes (`VmHWM`); of this process alone.
    pub peak_rss_bytes: Option<u64>,
    /// Bytes fetched from the storage layer; reads served by the page cache do not count.
    pub read_bytes: Option<u64>,
    /// Bytes sent to the storage layer.
    ///
    /// Linux counts a page when it becomes dirty, not when it is written back, so that the figure
    /// is already complete before a sync. A page that is dirtied again after its write-back
    /// counts again; data of a file deleted before its write-back counts too.
    pub written_bytes: Option<u64>,
}

impl ProcessUsage {
    /// Reads the counters of this process from `/proc`; every field is `None` elsewhere.
    pub fn now() -> Self {
        let read = |path| std::fs::read_to_string(path).ok();
        let (user_s, sys_s) = read("/proc/self/stat")
            .and_then(|text| parse_cpu_seconds(&text))
            .unzip();
        let io = read("/proc/self/io").unwrap_or_default();
        Self {
            user_s,
            sys_s,
            peak_rss_bytes: read("/proc/self/status").and_then(|text| kib_field(&text, "VmHWM")),
            read_bytes: number_field(&io, "read_bytes"),
            written_bytes: number_field(&io, "write_bytes"),
        }
    }

    /// Reads this process's resident set at this moment, in bytes; `None` other than on Linux.
    pub fn resident_bytes() -> Option<u64> {
        kib_field(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS")
    }

    /// Reads the bytes that this process has sent to the storage layer, like
    /// [`written_bytes`](Self::written_bytes); `None` other than on Linux.
    pub fn bytes_written_so_far() -> Option<u64> {
        number_field(
            &std::fs::read_to_string("/proc/self/io").ok()?,
            "write_bytes",
        )
    }

    /// What was used after `begin` was read; the peak is not a sum and stays as it is.
    ///
    /// A process inherits the counters of the program it was before `exec`: below `cargo run`, those of a whole build.
    pub fn since(&self, begin: &Self) -> Self {
        let seconds = |now: Option<f64>, begin: Option<f64>| Some((now? - begin?).max(0.0));
        let bytes = |now: Option<u64>, begin: Option<u64>| now?.checked_sub(begin?);
        Self {
            user_s: seconds(self.user_s, begin.user_s),
            sys_s: seconds(self.sys_s, begin.sys_s),
            peak_rss_bytes: self.peak_rss_bytes,
            read_bytes: bytes(self.read_bytes, begin.read_bytes),
            written_bytes: bytes(self.written_bytes, begin.written_bytes),
        }
    }
}

/// User and system seconds of a `/proc/PID/stat` line: fields 14 to 17 of proc(5), own and children's.
fn parse_cpu_seconds(stat: &str) -> Option<(f64, f64)> {
    // The command name may hold spaces and parentheses; the fields after its last ')' start at 3.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> = rest
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, sys, child_user, child_sys] = ticks[..] else {
        return None;
    };
    let seconds = |a: u64, b: u64| (a + b) as f64 / USER_HZ;
    Some((seconds(user, child_user), seconds(sys, child_sys)))
}

/// The value of a `name: 123` line.
fn number_field(text: &str, name: &str) -> Option<u64> {
    text_field(text, name)?.parse().ok()
}

/// The value, in bytes, of a `name: 123 kB` line (proc(5) writes kB for 1,024 bytes).
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = text_field(text, name)?
        .strip_suffix("kB")?
        .trim_end()
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

/// The text after the colon of the first line whose part before it is `name`.
pub(crate) fn text_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim_end() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_seconds_include_children_and_survive_odd_names() {
        let line = "77 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 25 50 75 20 0 9 0";
        assert_eq!(parse_cpu_seconds(line), Some((2.0, 1.0)));
        assert_eq!(parse_cpu_seconds("77 (a) S 1 2 3"), None);
        assert_eq!(parse_cpu_seconds(""), None);
    }

    #[test]
    fn proc_fields_are_found_by_their_whole_name() {
        let io = "read_bytes: 7\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n";
        assert_eq!(number_field(io, "write_bytes"), Some(4096));
        assert_eq!(number_field(io, "bytes"), None);
        assert_eq!(kib_field("VmHWM:\t  3 kB\n", "VmHWM"), Some(3072));
        assert_eq!(kib_field("VmHWM:\t  3 MB\n", "VmHWM"), None);
    }
}
