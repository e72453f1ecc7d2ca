//! A file, a pipe or standard input, plain or compressed with gzip or zstd.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;
/// The beginnings of compressed files.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The text of an input, decompressed, and how much of the input was read for it.
pub struct Input {
    text: Box<dyn BufRead + Send>,
    read: Arc<AtomicU64>,
    length: Option<u64>,
}

impl Input {
    /// Opens a file or a pipe, or standard input if the path is `-`. Its first bytes say how it is compressed.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn open(path: &Path) -> io::Result<Self> {
        match path == Path::new("-") {
            true => Self::of(Box::new(io::stdin()), None),
            false => {
                let file = File::open(path)?;
                let found = file.metadata()?;
                let length = found.is_file().then_some(found.len());
                Self::of(Box::new(file), length)
            }
        }
    }

    /// Takes bytes of any kind, `length` of them if that is known.
    ///
    /// # Errors
    /// What keeps them from being read.
    pub fn of(raw: Box<dyn Read + Send>, length: Option<u64>) -> io::Result<Self> {
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            raw,
            read: Arc::clone(&read),
        };
        let mut packed = BufReader::with_capacity(BUFFER, counted);
        let first = packed.fill_buf()?;
        let text: Box<dyn BufRead + Send> = if first.starts_with(&GZIP) {
            Box::new(BufReader::with_capacity(
                BUFFER,
                MultiGzDecoder::new(packed),
            ))
        } else if first.starts_with(&ZSTD) {
            let frames = ZstdFrames(Some(ZstdState::Between(packed)));
            Box::new(BufReader::with_capacity(BUFFER, frames))
        } else {
            Box::new(packed)
        };
        Ok(Self { text, read, length })
    }

    /// Puts bytes that were read back before what comes next.
    pub(crate) fn unread(&mut self, bytes: Vec<u8>) {
        let text = std::mem::replace(&mut self.text, Box::new(io::empty()));
        self.text = Box::new(io::Cursor::new(bytes).chain(text));
    }

    /// The part of the input that was read, 0 to 1; `None` for a pipe.
    pub fn part(&self) -> Option<f64> {
        let length = self.length?.max(1);
        Some(self.read.load(Ordering::Relaxed) as f64 / length as f64)
    }

    /// Bytes of the file; `None` for a pipe.
    pub fn length(&self) -> Option<u64> {
        self.length
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.text.read(bytes)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.text.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.text.consume(count);
    }
}

struct Counted {
    raw: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(bytes)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

type Packed = BufReader<Counted>;

/// The frames of a zstd file, one after another: `zstd` writes one, `pzstd` many.
struct ZstdFrames(Option<ZstdState>);

enum ZstdState {
    Between(Packed),
    Within(Box<StreamingDecoder<Packed, ruzstd::decoding::FrameDecoder>>),
}

impl Read for ZstdFrames {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.take() {
                None => return Ok(0),
                Some(ZstdState::Between(mut packed)) => {
                    if packed.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder = StreamingDecoder::new(packed);
                    let decoder = decoder.map_err(|error| {
                        io::Error::new(io::ErrorKind::InvalidData, error.to_string())
                    })?;
                    self.0 = Some(ZstdState::Within(Box::new(decoder)));
                }
                Some(ZstdState::Within(mut decoder)) => match decoder.read(bytes)? {
                    0 if !bytes.is_empty() => {
                        self.0 = Some(ZstdState::Between(decoder.into_inner()));
                    }
                    count => {
                        self.0 = Some(ZstdState::Within(decoder));
                        return Ok(count);
                    }
                },
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A frame of zstd whose only block is stored as it is.
    fn stored_frame(text: &[u8]) -> Vec<u8> {
        let single_segment = 0b0010_0000;
        let mut frame = [&ZSTD[..], &[single_segment, text.len() as u8]].concat();
        let block = (text.len() as u32) << 3 | 1;
        frame.extend_from_slice(&block.to_le_bytes()[..3]);
        frame.extend_from_slice(text);
        frame
    }

    #[test]
    fn every_form_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        let text = b"{\"root\":\"0x00\"}\n{}\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        let gzip = gzip.finish().unwrap();
        let (begin, end) = text.split_at(7);
        let two_frames = [stored_frame(begin), stored_frame(end)].concat();
        for bytes in [text.to_vec(), gzip, stored_frame(text), two_frames] {
            std::fs::write(&path, &bytes).unwrap();
            let mut input = Input::open(&path).unwrap();
            let mut read = Vec::new();
            input.read_to_end(&mut read).unwrap();
            assert_eq!(read, text);
            assert_eq!(input.part(), Some(1.0));
        }
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        let whole = stored_frame(b"{\"root\":\"0x00\"}\n");
        for length in 4..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let read = Input::open(&path).unwrap().read_to_end(&mut Vec::new());
            assert!(read.is_err(), "{length}");
        }
    }
}
