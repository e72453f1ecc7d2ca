//! Files that several threads append to, and of which a killed process leaves a usable beginning.
//!
//! A file is a row of frames. A frame is the number of the source's part (4 bytes), the number of the run
//! that read the part (4), the length of the payload (8), the XXH3 of the payload (8), and the
//! payload. Integers are big-endian. A frame counts if the run [finished](super::done) that part.
//! Frames of a part that was interrupted are passed over, and [dropped](drop_dead) before the next run.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use crate::ConvertError;
use crate::job::remove_file;

/// Bytes of a frame before its payload.
const HEAD: usize = 4 + 4 + 8 + 8;

/// Which reading of the source a frame comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin {
    /// The part of the source.
    pub(crate) part: u32,
    /// The run of the process, from 1 on.
    pub(crate) run: u32,
}

/// A file to append frames to, opened when the first one comes.
pub(crate) struct FrameFile {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl FrameFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: Mutex::default(),
        }
    }

    /// Appends a frame; returns the offset of its payload.
    pub(crate) fn append(&self, origin: Origin, payload: &[u8]) -> Result<u64, ConvertError> {
        let failed = ConvertError::file(&self.path);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let append = |slot: &mut Option<File>| {
            let file = match slot {
                Some(file) => file,
                None => slot.insert(
                    OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(&self.path)?,
                ),
            };
            let offset = file.seek(SeekFrom::End(0))?;
            let mut frame = Vec::with_capacity(HEAD + payload.len());
            frame.extend(origin.part.to_be_bytes());
            frame.extend(origin.run.to_be_bytes());
            frame.extend((payload.len() as u64).to_be_bytes());
            frame.extend(xxh3_64(payload).to_be_bytes());
            frame.extend_from_slice(payload);
            if let Err(error) = file.write_all(&frame) {
                // A disk that is full took a part: the next frame must not follow it.
                file.set_len(offset)?;
                return Err(error);
            }
            Ok(offset + HEAD as u64)
        };
        append(&mut file).map_err(failed)
    }
}

/// Reads a file frame by frame, from its beginning. A file that is absent has no frames.
pub(crate) struct Frames<'a, R = File> {
    path: &'a Path,
    file: Option<BufReader<R>>,
    offset: u64,
    length: u64,
}

/// A frame whose payload was not read yet.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) origin: Origin,
    /// Where the payload begins.
    pub(crate) begin: u64,
    pub(crate) length: u64,
    check: u64,
}

impl<'a> Frames<'a> {
    pub(crate) fn open(path: &'a Path) -> Result<Self, ConvertError> {
        let opened = match File::open(path) {
            Ok(file) => file.metadata().map(|found| (Some(file), found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((None, 0)),
            Err(error) => Err(error),
        };
        let (file, length) = opened.map_err(ConvertError::file(path))?;
        Ok(Self {
            path,
            file: file.map(|file| BufReader::with_capacity(1 << 16, file)),
            offset: 0,
            length,
        })
    }
}

impl<'a, R: Read + Seek> Frames<'a, R> {
    /// Reads the frames in bytes of this length; the path is for errors.
    pub(crate) fn of(path: &'a Path, bytes: R, length: u64) -> Self {
        Self {
            path,
            file: Some(BufReader::new(bytes)),
            offset: 0,
            length,
        }
    }

    /// The next frame whose origin counts; those before it are skipped.
    pub(crate) fn next_of(
        &mut self,
        counts: impl Fn(Origin) -> bool,
    ) -> Result<Option<Frame>, ConvertError> {
        while let Some(frame) = self.next()? {
            if counts(frame.origin) {
                return Ok(Some(frame));
            }
            self.skip(&frame)?;
        }
        Ok(None)
    }

    /// The next frame; `None` at the end, and before a frame that is cut.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, ConvertError> {
        let Some(file) = &mut self.file else {
            return Ok(None);
        };
        if self.offset + HEAD as u64 > self.length {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        let failed = ConvertError::file(self.path);
        file.read_exact(&mut head).map_err(failed)?;
        let (origin, length, check) = decode_head(&head);
        let frame = Frame {
            origin,
            length,
            check,
            begin: self.offset + HEAD as u64,
        };
        match frame.begin.checked_add(frame.length) {
            Some(end) if end <= self.length => {
                self.offset = end;
                Ok(Some(frame))
            }
            _ => Ok(None),
        }
    }

    /// Where the last whole frame ends, after [`next`](Self::next) has returned `None`.
    pub(crate) fn end(&self) -> u64 {
        self.offset
    }

    /// Whether nothing follows the last whole frame, after [`next`](Self::next) has returned `None`.
    pub(crate) fn is_whole(&self) -> bool {
        self.offset == self.length
    }

    /// Passes over the payload of the frame that came last.
    pub(crate) fn skip(&mut self, frame: &Frame) -> Result<(), ConvertError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let by = i64::try_from(frame.length).map_err(io::Error::other);
        let skipped = by.and_then(|by| file.seek_relative(by));
        skipped.map_err(ConvertError::file(self.path))
    }

    /// Reads the payload of the frame that came last, and checks it.
    pub(crate) fn payload(&mut self, frame: &Frame) -> Result<Vec<u8>, ConvertError> {
        let Some(file) = &mut self.file else {
            return Ok(Vec::new());
        };
        let mut payload = vec![0; frame.length as usize];
        let read = file.read_exact(&mut payload);
        read.map_err(ConvertError::file(self.path))?;
        match xxh3_64(&payload) == frame.check {
            true => Ok(payload),
            false => Err(ConvertError::Damaged {
                path: self.path.to_owned(),
                offset: frame.begin,
                why: "a frame does not have its check sum",
            }),
        }
    }
}

/// Dead bytes before the last frame that counts are left in a file as long as they are at most this part of the bytes that count.
const DEAD_PART: u64 = 4;

/// Drops the frames that do not count: those of parts that were interrupted, and what a killed process left of a frame.
///
/// Nobody may have the file open. Dead frames at the end are cut off. A file with many dead frames before its last
/// one that counts is written anew next to it and renamed, so that a kill leaves the old file or the new one. If the disk has
/// no room for the new file, the old one stays.
pub(crate) fn drop_dead(path: &Path, counts: impl Fn(Origin) -> bool) -> Result<(), ConvertError> {
    let new = path.with_added_extension("new");
    remove_file(&new)?;
    let mut frames = Frames::open(path)?;
    let (mut live, mut end) = (0, 0);
    while let Some(frame) = frames.next()? {
        frames.skip(&frame)?;
        if counts(frame.origin) {
            live += HEAD as u64 + frame.length;
            end = frames.end();
        }
    }
    if live == 0 {
        return remove_file(path);
    }
    if end < frames.length {
        let file = OpenOptions::new().write(true).open(path);
        let cut = file.and_then(|file| file.set_len(end));
        cut.map_err(ConvertError::file(path))?;
    }
    if (end - live) * DEAD_PART <= live {
        return Ok(());
    }
    match rewrite(path, &new, counts) {
        Err(error) if is_full(&error) => remove_file(&new),
        written => written.map_err(ConvertError::file(path)),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Writes the frames that count to a new file, which takes the place of the old one.
fn rewrite(path: &Path, new: &Path, counts: impl Fn(Origin) -> bool) -> io::Result<()> {
    let mut old = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut out = BufWriter::with_capacity(1 << 16, File::create(new)?);
    let mut head = [0; HEAD];
    loop {
        match old.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            read => read?,
        }
        let (origin, length, _) = decode_head(&head);
        if counts(origin) {
            out.write_all(&head)?;
            io::copy(&mut old.by_ref().take(length), &mut out)?;
        } else {
            old.seek_relative(i64::try_from(length).map_err(io::Error::other)?)?;
        }
    }
    out.flush()?;
    out.get_ref().sync_all()?;
    std::fs::rename(new, path)
}

/// Reads the origin of a frame, the length of its payload, and the payload's check sum.
fn decode_head(head: &[u8; HEAD]) -> (Origin, u64, u64) {
    let number = |range: std::ops::Range<usize>| {
        let bytes = head[range].iter();
        bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let origin = Origin {
        part: number(0..4) as u32,
        run: number(4..8) as u32,
    };
    (origin, number(8..16), number(16..24))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use super::*;

    /// The frames of interrupted parts stayed in their file for the rest of a conversion.
    #[test]
    fn frames_that_do_not_count_take_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames");
        let counts = |origin: Origin| origin.part.is_multiple_of(2);
        let write = |parts: &[u32]| {
            let file = FrameFile::new(path.clone());
            for part in parts {
                let origin = Origin {
                    part: *part,
                    run: 1,
                };
                file.append(origin, &[*part as u8; 100]).unwrap();
            }
        };
        let parts = || {
            let mut frames = Frames::open(&path).unwrap();
            let mut parts = Vec::new();
            while let Some(frame) = frames.next().unwrap() {
                let payload = frames.payload(&frame).unwrap();
                assert_eq!(payload, [frame.origin.part as u8; 100]);
                parts.push(frame.origin.part);
            }
            parts
        };
        let drop_dead = || drop_dead(&path, counts).unwrap();
        drop_dead();
        write(&[1, 3]);
        drop_dead();
        assert!(!path.exists());
        // At the end.
        write(&[2, 4, 5]);
        drop_dead();
        assert_eq!(parts(), [2, 4]);
        // A frame that was cut, after one that counts.
        write(&[6, 7]);
        let length = std::fs::metadata(&path).unwrap().len();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(length - 1).unwrap();
        drop_dead();
        assert_eq!(parts(), [2, 4, 6]);
        // Within: few stay, and many go.
        write(&[8, 9, 10]);
        drop_dead();
        assert_eq!(parts(), [2, 4, 6, 8, 9, 10]);
        write(&[11, 12]);
        std::fs::write(path.with_added_extension("new"), "of a killed run").unwrap();
        drop_dead();
        assert_eq!(parts(), [2, 4, 6, 8, 10, 12]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
