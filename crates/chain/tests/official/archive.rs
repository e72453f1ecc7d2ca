//! The fixtures' files: packed (`*.tar.xz`), or unpacked below a folder.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::unsupported;

/// A file of fixtures: its place in the collection, and its text.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) json: Vec<u8>,
}

/// Gives `sink` every JSON file below `place`; packed ones without unpacking them to the disk.
pub(crate) fn read(
    place: &Path,
    sink: &(dyn Fn(Text) -> std::io::Result<()> + Sync),
) -> std::io::Result<()> {
    let (mut archives, mut plain) = (Vec::new(), Vec::new());
    walk(place, &mut archives, &mut plain)?;
    std::thread::scope(|scope| {
        let unpacking: Vec<_> = archives
            .iter()
            .map(|archive| scope.spawn(|| unpack(archive, sink)))
            .collect();
        for path in plain {
            let name = path
                .strip_prefix(place)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            if unsupported::file(&name) {
                continue;
            }
            sink(Text {
                path: name,
                json: std::fs::read(&path)?,
            })?;
        }
        let ended = unpacking.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(std::io::Error::other("unpacking panicked")))
        });
        ended.collect()
    })
}

fn walk(
    place: &Path,
    archives: &mut Vec<PathBuf>,
    plain: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    if !place.is_dir() {
        let name = place.to_string_lossy();
        if name.ends_with(".tar.xz") {
            archives.push(place.into());
        } else if name.ends_with(".json") {
            plain.push(place.into());
        }
        return Ok(());
    }
    let entries: Result<Vec<_>, _> = std::fs::read_dir(place)?.collect();
    let mut paths: Vec<_> = entries?.iter().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .iter()
        .try_for_each(|path| walk(path, archives, plain))
}

fn unpack(
    archive: &Path,
    sink: &(dyn Fn(Text) -> std::io::Result<()> + Sync),
) -> std::io::Result<()> {
    let collection = archive.file_name().unwrap_or_default().to_string_lossy();
    let collection = collection.trim_end_matches(".tar.xz");
    let plain = lzma_rust2::XzReader::new(BufReader::new(File::open(archive)?), true);
    for entry in tar::Archive::new(plain).entries()? {
        let mut entry = entry?;
        let path = format!(
            "{collection}/{}",
            entry.path()?.to_string_lossy().trim_start_matches("./")
        );
        let is_json = entry.header().entry_type().is_file() && path.ends_with(".json");
        if is_json && !unsupported::file(&path) {
            let mut json = Vec::with_capacity(entry.size() as usize);
            entry.read_to_end(&mut json)?;
            sink(Text { path, json })?;
        }
    }
    Ok(())
}
