//! The folder that a chain is generated in.
//!
//! | file | what |
//! |---|---|
//! | `chain.rlp` | the blocks, the genesis block first; `chain.rlp.gz` instead once compressed |
//! | `genesis.json` | the genesis in geth's form |
//! | `generator.json` | the settings |
//! | `.state/` | the state behind the last block, to continue from; may be deleted |

use std::{
    fs::{self, File, TryLockError},
    io::{self, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use alloy_genesis::Genesis;
use alloy_primitives::B256;
use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};

use super::{GeneratorError, GeneratorSettings, SettingsError, file::ChainFile};
use arbor_chain::bounded_input::{Bound, BoundedInput, InputError, InputFault};
use arbor_chain::genesis::Population;

/// Version of the chain that given settings make; raised when the same settings give other blocks.
const FORMAT: u32 = 1;

/// What `generator.json` holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    settings: GeneratorSettings,
}

/// What `genesis.json` holds.
#[derive(Serialize)]
struct GenesisText<'a> {
    #[serde(flatten)]
    genesis: &'a Genesis,
    #[serde(flatten)]
    populated: Option<Populated>,
}

/// The fields of a genesis whose accounts are not all listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Populated {
    pub(super) population: Population,
    pub(super) state_root: B256,
}

/// Paths of the files in a folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    fn chain(&self) -> PathBuf {
        self.root.join("chain.rlp")
    }

    fn compressed(&self) -> PathBuf {
        self.root.join("chain.rlp.gz")
    }

    fn manifest(&self) -> PathBuf {
        self.root.join("generator.json")
    }

    pub(super) fn genesis(&self) -> PathBuf {
        self.root.join("genesis.json")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.root.join(".state")
    }

    /// Opens the chain to append to: a new one, or one begun earlier with the same settings. No other process makes one in the folder until the chain is dropped.
    pub(super) fn open(&self, settings: &GeneratorSettings) -> Result<ChainFile, GeneratorError> {
        let lock = lock(&self.root)?;
        self.check_manifest(settings)?;
        self.write_json(
            &self.manifest(),
            &Manifest {
                format: FORMAT,
                settings: settings.clone(),
            },
        )?;
        if self.compressed().exists() && !self.chain().exists() {
            self.decompress()?;
        }
        let chain = ChainFile::open(&self.chain())?.locked(lock);
        if chain.blocks() > settings.blocks + 1 {
            let reason = format!(
                "{}: the chain there has {} already",
                self.root.display(),
                chain.blocks() - 1
            );
            return Err(SettingsError {
                field: "blocks",
                reason,
            }
            .into());
        }
        Ok(chain)
    }

    /// Reads the manifest; `None` if there is none.
    fn read_manifest(&self) -> Result<Option<Manifest>, GeneratorError> {
        let path = self.manifest();
        let text = match BoundedInput::open(&path, Bound::MANIFEST).and_then(BoundedInput::text) {
            Ok(text) => text,
            Err(InputError {
                fault: InputFault::Io(cause),
                ..
            }) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(InputError { fault, .. }) => {
                return Err(GeneratorError::damaged(&path, fault.to_string()));
            }
        };
        let manifest = serde_json::from_str(&text);
        manifest
            .map(Some)
            .map_err(|error| GeneratorError::damaged(&path, error.to_string()))
    }

    /// Refuses settings other than those that the chain in the folder was begun with.
    pub(super) fn check_manifest(
        &self,
        settings: &GeneratorSettings,
    ) -> Result<(), GeneratorError> {
        let Some(manifest) = self.read_manifest()? else {
            let chains = [self.chain(), self.compressed()];
            return match chains.into_iter().find(|chain| chain.exists()) {
                Some(path) => Err(GeneratorError::Foreign { path }),
                None => Ok(()),
            };
        };
        let field = if manifest.format == FORMAT {
            settings.conflict_with(&manifest.settings)
        } else {
            Some("version of the generator")
        };
        field.map_or(Ok(()), |field| {
            Err(GeneratorError::OtherSettings {
                path: self.root.clone(),
                field,
            })
        })
    }

    /// Writes `genesis.json` and returns its text.
    pub(super) fn write_genesis(
        &self,
        genesis: &Genesis,
        populated: Option<Populated>,
    ) -> Result<String, GeneratorError> {
        let path = self.genesis();
        self.write_json(&path, &GenesisText { genesis, populated })?;
        Ok(arbor_chain::genesis::Genesis::read_text(&path)?)
    }

    /// Replaces the finished chain by its compressed form.
    pub(super) fn compress(&self) -> Result<PathBuf, GeneratorError> {
        let target = self.compressed();
        self.replace(&target, |out| {
            let mut encoder = GzEncoder::new(out, Compression::default());
            io::copy(&mut File::open(self.chain())?, &mut encoder)?;
            encoder.finish()?;
            Ok(())
        })?;
        self.remove(&self.chain())?;
        Ok(target)
    }

    fn decompress(&self) -> Result<(), GeneratorError> {
        self.replace(&self.chain(), |out| {
            io::copy(
                &mut MultiGzDecoder::new(BufReader::new(File::open(self.compressed())?)),
                out,
            )?;
            Ok(())
        })?;
        self.remove(&self.compressed())
    }

    fn remove(&self, path: &Path) -> Result<(), GeneratorError> {
        fs::remove_file(path).map_err(|cause| GeneratorError::file(path, cause))
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<(), GeneratorError> {
        self.replace(path, |out| {
            serde_json::to_writer_pretty(&mut *out, value)?;
            out.write_all(b"\n")
        })
    }

    /// Writes a file beside its place and moves it there when it is whole and durable.
    fn replace(
        &self,
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), GeneratorError> {
        let part = path.with_extension("part");
        let replace = || {
            let mut out = BufWriter::with_capacity(1 << 18, File::create(&part)?);
            write(&mut out)?;
            out.into_inner()?.sync_all()?;
            fs::rename(&part, path)
        };
        replace().map_err(|cause| GeneratorError::file(path, cause))
    }
}

/// Returns the settings that the chain in a folder was made with, or is being made with; `None` if the folder does not have them.
///
/// # Errors
/// A file with settings that cannot be read.
pub fn settings_of(chain: &Path) -> Result<Option<GeneratorSettings>, GeneratorError> {
    let manifest = Folder::new(chain).read_manifest()?;
    Ok(manifest.map(|manifest| manifest.settings))
}

/// Makes a folder if there is none, and keeps other processes from making chains in it until the lock is dropped. `None` if the system cannot lock folders.
pub(super) fn lock(folder: &Path) -> Result<Option<File>, GeneratorError> {
    fs::create_dir_all(folder).map_err(|cause| match folder.is_file() {
        true => GeneratorError::NoFolder {
            path: folder.to_owned(),
        },
        false => GeneratorError::file(folder, cause),
    })?;
    let Ok(lock) = File::open(folder) else {
        return Ok(None);
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Err(GeneratorError::Busy {
            path: folder.to_owned(),
        }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}
