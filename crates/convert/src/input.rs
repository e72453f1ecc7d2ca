//! A file, a pipe or standard input, plain or compressed with gzip or zstd.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
        let has_ended = Arc::new(AtomicBool::new(false));
        let counted = Counted {
            raw,
            read: Arc::clone(&read),
            has_ended: Arc::clone(&has_ended),
        };
        let mut packed = BufReader::with_capacity(BUFFER, counted);
        let first = packed.fill_buf()?;
        let text: Box<dyn BufRead + Send> = if first.starts_with(&GZIP) {
            let unpacked = Unpacked {
                decoder: MultiGzDecoder::new(packed),
                form: "gzip",
                read: Arc::clone(&read),
                has_ended,
            };
            Box::new(BufReader::with_capacity(BUFFER, unpacked))
        } else if first.starts_with(&ZSTD) {
            let unpacked = Unpacked {
                decoder: ZstdFrames(Some(ZstdState::Between(packed))),
                form: "zstd",
                read: Arc::clone(&read),
                has_ended,
            };
            Box::new(BufReader::with_capacity(BUFFER, unpacked))
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

/// A decoder whose errors say what is wrong with the file.
struct Unpacked<R> {
    decoder: R,
    form: &'static str,
    read: Arc<AtomicU64>,
    has_ended: Arc<AtomicBool>,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(bytes).map_err(|error| {
            // The system's errors are not of the decoder.
            if error.raw_os_error().is_some() {
                return error;
            }
            let form = self.form;
            let read = self.read.load(Ordering::Relaxed);
            let text = match self.has_ended.load(Ordering::Relaxed) {
                true => format!(
                    "it ends in the middle of its {form}, after {read} bytes: it was cut, or is not written to its end. Write or copy it again"
                ),
                false => format!(
                    "its {form} is damaged before byte {read} ({error}). Write or copy it again"
                ),
            };
            io::Error::new(error.kind(), text)
        })
    }
}

struct Counted {
    raw: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
    /// Whether all of it was read.
    has_ended: Arc<AtomicBool>,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(bytes)?;
        if count == 0 && !bytes.is_empty() {
            self.has_ended.store(true, Ordering::Relaxed);
        }
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

    /// The errors of the decoders were told as they are: "failed to fill whole buffer".
    #[test]
    fn a_cut_file_says_that_it_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        let mut random = 7u32;
        let text: Vec<u8> = (0..200_000)
            .map(|_| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 24) as u8
            })
            .collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let frames = [stored_frame(b"some text"), stored_frame(b"and more")].concat();
        for (form, whole) in [("gzip", gzip), ("zstd", frames)] {
            let error = |bytes: &[u8]| {
                std::fs::write(&path, bytes).unwrap();
                let read = Input::open(&path).unwrap().read_to_end(&mut Vec::new());
                read.unwrap_err().to_string()
            };
            for cut in [1, 3, 7] {
                let told = error(&whole[..whole.len() - cut]);
                let wanted = format!(
                    "in the middle of its {form}, after {} bytes",
                    whole.len() - cut
                );
                assert!(told.contains(&wanted), "{told}");
            }
        }
    }
}
