//! Bytes as the file that a decoder reads.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

thread_local! {
    static FOLDER: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Runs `read` on a file with these bytes, in memory where the system has such a place.
pub(super) fn with_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path)) {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| {
            let shared = Path::new("/dev/shm");
            let root = if shared.is_dir() {
                shared.to_owned()
            } else {
                std::env::temp_dir()
            };
            let thread = format!("{:?}", std::thread::current().id());
            let folder = root.join(format!("arbor-decoders-{}-{thread}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            folder
        });
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("written");
        read(&path);
        std::fs::remove_file(&path).expect("removed");
    });
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().expect("it lies in a folder")
}
