//! The stream of blocks over all files.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::block::{RawBlock, SourceBlock};
use super::discover::{Format, SourceFile, discover};
use super::era1::Era1File;
use super::error::SourceError;
use super::export::ExportFile;
use super::length::ChainLength;
use super::link::Link;

/// Opens exports, era1 files and folders of them, given in any order, as one chain.
///
/// # Errors
/// [`SourceError`] if a path cannot be read or is no chain, if files of two networks are mixed, or if files leave a gap
/// or overlap as far as their ends are known (era1; an export's end shows when it is read).
pub fn open_sources(paths: &[PathBuf]) -> Result<ChainInput, SourceError> {
    let found = discover(paths)?;
    let Some(first) = found.files.first() else {
        let reason = "no chain file was given".to_owned();
        return Err(SourceError::NotAChain {
            file: PathBuf::new(),
            reason,
        });
    };
    Ok(ChainInput {
        first: first.first.clone(),
        last: found.files.last().and_then(|file| file.last.clone()),
        length: ChainLength::of(found.files.iter().map(|file| file.path.as_path())),
        network: found.files.iter().find_map(|file| file.network.clone()),
        genesis_file: found.genesis,
        genesis_beside: found.genesis_beside,
        files: found.files.into(),
        current: None,
        previous: None,
        parent_gas_limit: None,
        ended: false,
    })
}

/// The blocks of all files in order, each checked to follow the one before. Holds one block at a time.
#[derive(Debug)]
pub struct ChainInput {
    files: VecDeque<SourceFile>,
    current: Option<Reader>,
    previous: Option<Link>,
    /// The gas limit of the block before the first that is read, where somebody knows it.
    parent_gas_limit: Option<u64>,
    ended: bool,
    genesis_file: Option<PathBuf>,
    genesis_beside: Option<PathBuf>,
    first: Link,
    last: Option<Link>,
    network: Option<String>,
    length: Option<ChainLength>,
}

#[derive(Debug)]
enum Reader {
    Export(ExportFile),
    Era1(Box<Era1File>),
}

impl ChainInput {
    /// The genesis file beside the blocks, if a folder was given that has one.
    pub const fn genesis_file(&self) -> Option<&PathBuf> {
        self.genesis_file.as_ref()
    }

    /// The `genesis.json` in the same folder as a file of blocks that was named itself: what else lies there may be another chain's, so it counts where nothing else tells the genesis.
    pub const fn genesis_beside(&self) -> Option<&PathBuf> {
        self.genesis_beside.as_ref()
    }

    /// The first block of all files.
    pub const fn first(&self) -> &Link {
        &self.first
    }

    /// The last block, if it is known without reading everything: when the last file is an era1 file.
    pub const fn last(&self) -> Option<&Link> {
        self.last.as_ref()
    }

    /// The length of all files; `None` if it is not known, such as that of a pipe.
    pub const fn length(&self) -> Option<&ChainLength> {
        self.length.as_ref()
    }

    /// The network, if file names or the genesis hash tell.
    pub fn network(&self) -> Option<&str> {
        self.network.as_deref()
    }

    /// Tells the gas limit of the block before the next one, which the files may not have: without it a header may claim any limit, and its block have as many
    /// transactions.
    pub const fn after_gas_limit(&mut self, parent: u64) {
        self.parent_gas_limit = Some(parent);
    }

    /// The next block, its body not yet decoded.
    ///
    /// # Errors
    /// [`SourceError`] for what is wrong with the file or with the order of blocks. After an error there is nothing more.
    pub fn next_raw(&mut self) -> Result<Option<RawBlock>, SourceError> {
        if self.ended {
            return Ok(None);
        }
        let block = self.advance();
        self.ended = !matches!(block, Ok(Some(_)));
        block
    }

    fn advance(&mut self) -> Result<Option<RawBlock>, SourceError> {
        while let Some(reader) = self.reader()? {
            let block = match reader {
                Reader::Export(file) => file.next_raw()?,
                Reader::Era1(file) => file.next_raw()?,
            };
            if let Some(block) = block {
                let before = self.previous.as_ref().map(|link| link.gas_limit);
                let parent_gas_limit = before.or(self.parent_gas_limit);
                let block = block.after_gas_limit(parent_gas_limit);
                // What a header claims beyond that makes no room for the blocks behind it either.
                let gas_limit = block.allowed_gas_limit();
                let link = Link::of(&block.header, block.hash, &block.position);
                self.follow(Link { gas_limit, ..link })?;
                return Ok(Some(block));
            }
            self.current = None;
        }
        Ok(None)
    }

    /// Goes on at block `number`, cheaply: whole era1 files are passed over by their index, other blocks by their
    /// headers (whose links are still checked). Returns the last block passed, or none if nothing was. If all files end
    /// before `number`, nothing follows.
    ///
    /// # Errors
    /// [`SourceError::OutOfRange`] if the files start behind `number`; otherwise as [`Self::next_raw`].
    pub fn skip_to(&mut self, number: u64) -> Result<Option<Link>, SourceError> {
        if number < self.first.number
            || self
                .previous
                .as_ref()
                .is_some_and(|link| link.number >= number)
        {
            let last = self.last.as_ref().map(|link| link.number);
            return Err(SourceError::OutOfRange {
                wanted: number,
                first: self.first.number,
                last,
            });
        }
        let result = self.pass(number);
        self.ended |= result.is_err();
        result.map(|()| self.previous.clone())
    }

    fn pass(&mut self, number: u64) -> Result<(), SourceError> {
        loop {
            if self.current.is_none() {
                while let Some(last) = self
                    .files
                    .front()
                    .and_then(|f| f.last.clone())
                    .filter(|l| l.number < number)
                {
                    self.previous = Some(last);
                    self.files.pop_front();
                }
            }
            let Some(reader) = self.reader()? else {
                return Ok(());
            };
            let passed = match reader {
                Reader::Export(file) => match file.peek()? {
                    Some(link) if link.number >= number => return Ok(()),
                    Some(link) => {
                        file.skip()?;
                        Some(link)
                    }
                    None => None,
                },
                Reader::Era1(file) => match file.next_number() {
                    Some(next) if next >= number => return Ok(()),
                    _ => file.skip()?,
                },
            };
            match passed {
                Some(link) => self.follow(link)?,
                None => self.current = None,
            }
        }
    }

    /// The file being read, opening the next if need be; none after the last.
    fn reader(&mut self) -> Result<Option<&mut Reader>, SourceError> {
        if self.current.is_none() {
            let Some(file) = self.files.pop_front() else {
                return Ok(None);
            };
            self.current = Some(match file.format {
                Format::Export => Reader::Export(ExportFile::open(&file.path)?),
                Format::Era1 => Reader::Era1(Box::new(Era1File::open(&file.path)?)),
            });
        }
        Ok(self.current.as_mut())
    }

    fn follow(&mut self, link: Link) -> Result<(), SourceError> {
        if let Some(previous) = &self.previous {
            previous.check_successor(&link)?;
        }
        self.previous = Some(link);
        Ok(())
    }
}

impl Iterator for ChainInput {
    type Item = Result<SourceBlock, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.next_raw().transpose()?.and_then(RawBlock::decode);
        self.ended |= block.is_err();
        Some(block)
    }
}
