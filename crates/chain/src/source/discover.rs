//! From paths to an ordered, gapless list of files, before any block is read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::era1::Era1File;
use super::error::{Place, SourceError};
use super::export::ExportFile;
use super::link::Link;
use crate::genesis::Network;

/// First two bytes of an era1 file: the version entry's type, little-endian.
const ERA1_MAGIC: [u8; 2] = [0x65, 0x32];

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Export,
    Era1,
}

/// A file of blocks, looked at.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) first: Link,
    /// Known for era1 files only: an export would have to be read.
    pub(crate) last: Option<Link>,
    /// From an era1 file's name, or from the hash of block 0.
    pub(crate) network: Option<String>,
}

/// What was found under the paths.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) files: Vec<SourceFile>,
    /// Of a folder.
    pub(crate) genesis: Option<PathBuf>,
    /// The `genesis.json` in the same folder as a file that was named itself.
    pub(crate) genesis_beside: Option<PathBuf>,
}

/// Looks at every path and orders the files.
pub(crate) fn discover(paths: &[PathBuf]) -> Result<Found, SourceError> {
    let (mut genesis, mut genesis_beside) = (None, None);
    let mut names = Vec::new();
    for path in paths {
        if path.is_dir() {
            let (files, found) = look_into_folder(path)?;
            names.extend(files);
            genesis = genesis.or(found);
        } else {
            let beside = path.with_file_name("genesis.json");
            genesis_beside = genesis_beside.or(beside.is_file().then_some(beside));
            names.push(path.clone());
        }
    }
    let mut files = names
        .iter()
        .map(|path| look_at(path))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort_by(|a, b| (a.first.number, &a.path).cmp(&(b.first.number, &b.path)));
    check_networks(&files)?;
    for pair in files.windows(2) {
        check_neighbours(&pair[0], &pair[1])?;
    }
    Ok(Found {
        files,
        genesis,
        genesis_beside,
    })
}

/// Chain files and genesis file of a folder: `chain.rlp`, `chain.rlp.gz` or all `*.era1`, and `genesis.json` or else
/// the only `genesis*.json`.
fn look_into_folder(folder: &Path) -> Result<(Vec<PathBuf>, Option<PathBuf>), SourceError> {
    let place = Place::new(folder);
    let mut exports = Vec::new();
    let mut era1 = Vec::new();
    let mut genesis = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| place.io(0, e))? {
        let path = entry.map_err(|e| place.io(0, e))?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name == b"chain.rlp" || name == b"chain.rlp.gz" {
            exports.push(path);
        } else if name.ends_with(b".era1") {
            era1.push(path);
        } else if name.starts_with(b"genesis") && name.ends_with(b".json") {
            genesis.push(path);
        }
    }
    let genesis = match genesis.as_slice() {
        [only] => Some(only.clone()),
        several => several
            .iter()
            .find(|path| path.ends_with("genesis.json"))
            .cloned(),
    };
    match (exports.len(), era1.len()) {
        (0, 0) => Err(place.not_a_chain("the folder holds neither chain.rlp, chain.rlp.gz nor *.era1")),
        (1, 0) => Ok((exports, genesis)),
        (0, _) => Ok((era1, genesis)),
        _ => Err(place.not_a_chain(
            "the folder holds more than one chain (chain.rlp, chain.rlp.gz, *.era1): name the files wanted",
        )),
    }
}

fn look_at(path: &Path) -> Result<SourceFile, SourceError> {
    let place = Place::new(path);
    // Opening a FIFO waits for somebody to write it, and it cannot be read a second time.
    if !path.metadata().map_err(|e| place.io(0, e))?.is_file() {
        let reason = "it is no regular file; a chain is read more than once, which pipes and devices do not allow";
        return Err(place.not_a_chain(reason));
    }
    let mut magic = Vec::new();
    File::open(path)
        .and_then(|file| file.take(2).read_to_end(&mut magic))
        .map_err(|e| place.io(0, e))?;
    if magic == ERA1_MAGIC {
        let mut file = Era1File::open(path)?;
        let (first, last) = file.ends()?;
        let named = file.name().map(|name| name.network.clone());
        let network = agree(path, named, &first)?;
        return Ok(SourceFile {
            path: path.into(),
            format: Format::Era1,
            first,
            last: Some(last),
            network,
        });
    }
    let mut file = ExportFile::open(path)?;
    let Some(first) = file.peek()? else {
        return Err(place.not_a_chain("the file is empty"));
    };
    let network = agree(path, None, &first)?;
    Ok(SourceFile {
        path: path.into(),
        format: Format::Export,
        first,
        last: None,
        network,
    })
}

/// The network by name or by block 0, which must not contradict each other.
fn agree(path: &Path, named: Option<String>, first: &Link) -> Result<Option<String>, SourceError> {
    let genesis = match first.number {
        0 => Some(first.hash),
        1 => Some(first.parent),
        _ => None,
    };
    let known = genesis
        .and_then(Network::from_genesis_hash)
        .map(|network| network.name().to_owned());
    match (named, known) {
        (Some(named), Some(known)) if named != known => {
            Err(Place::new(path).not_a_chain(format!("named {named}, but it holds {known} blocks")))
        }
        (named, known) => Ok(known.or(named)),
    }
}

fn check_networks(files: &[SourceFile]) -> Result<(), SourceError> {
    let mut known = files
        .iter()
        .filter_map(|file| Some((file, file.network.as_ref()?)));
    let Some((first, network)) = known.next() else {
        return Ok(());
    };
    match known.find(|(_, other)| *other != network) {
        None => Ok(()),
        Some((second, other)) => Err(SourceError::NetworkMixup {
            first: first.path.clone(),
            first_network: network.clone(),
            second: second.path.clone(),
            second_network: other.clone(),
        }),
    }
}

fn check_neighbours(before: &SourceFile, after: &SourceFile) -> Result<(), SourceError> {
    match &before.last {
        Some(last) => last.check_successor(&after.first),
        None if after.first.number == before.first.number => Err(SourceError::Overlap {
            number: after.first.number,
            previous: before.first.number,
            before: before.first.position.clone(),
            after: after.first.position.clone(),
        }),
        None => Ok(()),
    }
}
