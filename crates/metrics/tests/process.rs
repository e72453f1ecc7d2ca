//! The counters of the running process move when it works (Linux only: elsewhere they are absent).
#![cfg(target_os = "linux")]

use arbor_metrics::ProcessUsage;
use std::io::Write;

#[test]
fn written_bytes_count_what_reaches_the_disk() {
    let before = ProcessUsage::now();
    // Not in the system's temporary folder, which may be memory.
    let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("created");
    file.write_all(&vec![1; 1 << 20]).expect("written");
    file.as_file().sync_all().expect("synced");
    let after = ProcessUsage::now();

    assert!(after.peak_rss_bytes.expect("VmHWM is always shown") > 1 << 19);
    assert!(after.user_s.is_some() && after.user_s >= before.user_s);
    // Some containers hide /proc/self/io.
    let used = after.since(&before);
    assert_eq!(used.peak_rss_bytes, after.peak_rss_bytes);
    if let (Some(written), Some(life)) = (used.written_bytes, after.written_bytes) {
        assert!(written >= 1 << 20, "1 MiB written, {written} counted");
        assert!(written <= life, "{written} of {life}");
    }
}
