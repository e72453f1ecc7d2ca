//! Files and standard input that are read whole. [`BoundedInput`] reads all of them, so that no
//! input takes more memory than its [`Bound`] allows.
//!
//! Chains of blocks are read block by block instead: [`source`](crate::source) bounds each block.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The greatest length of an input, after decompression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The kind of input, for error messages: "a genesis".
    pub what: &'static str,
    /// Bytes.
    pub bytes: u64,
}

impl Bound {
    /// A genesis file: ten million accounts have 1 GB.
    pub const GENESIS: Self = Self::new("a genesis", 1 << 30);
    /// A proof in JSON, whose text is not kept. A range of a million leaves has 200 MB.
    pub const PROOF: Self = Self::new("a proof in JSON", 1 << 29);
    /// A proof in the binary form, which takes 42 times its length in memory: 250,000 leaves with
    /// their values.
    pub const BINARY_PROOF: Self = Self::new("a proof in the binary form", 1 << 24);
    /// A block's storage logs in the form of zkSync's prover: a million.
    pub const STORAGE_LOGS: Self = Self::new("storage logs", 1 << 28);
    /// A witness in the binary form. A leaf has 15 to 79 bytes, and takes 67 in memory; under
    /// EIP-4762 60 million gas bring at most 300,000.
    pub const BINARY_WITNESS: Self = Self::new("a witness in the binary form", 1 << 27);
    /// A program for EVM384 with the files that it includes, or its code in hexadecimal.
    pub const PROGRAM: Self = Self::new("a program and the files that it includes", 1 << 24);
    /// The commands of a debugger's session.
    pub const DEBUGGER: Self = Self::new("the debugger's commands", 1 << 24);
    /// The settings beside a generated chain.
    pub const MANIFEST: Self = Self::new("a chain's manifest", 1 << 20);
    /// A small file in which a database's folder remembers a setting.
    pub const REMEMBERED: Self = Self::new("a database's setting", 512);

    const fn new(what: &'static str, bytes: u64) -> Self {
        Self { what, bytes }
    }
}

/// Why an input was not read.
#[derive(Debug, thiserror::Error)]
#[error("reading {name}: {fault}")]
pub struct InputError {
    /// The file's path, or "standard input".
    pub name: String,
    /// The reason.
    pub fault: InputFault,
}

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
pub enum InputFault {
    /// The operating system or the decompression failed.
    #[error("{0}")]
    Io(io::Error),
    /// The input is longer than its bound.
    #[error("it has more than {} bytes, the most that is read of {}", .0.bytes, .0.what)]
    TooLong(Bound),
    /// A byte of a text is zero or is not UTF-8.
    #[error("it is not text: byte {0:#04x} at offset {1}")]
    NotText(u8, usize),
}

/// A file or standard input of which a bounded number of bytes is read. [`Read`] fails with an
/// [`InputError`] as soon as the input is known to be longer.
pub struct BoundedInput<'a> {
    name: String,
    bound: Bound,
    /// Bytes that may still be read.
    left: u64,
    /// Bytes that the file has as it lies there; zero for what is no regular file.
    length: u64,
    from: Box<dyn Read + Send + 'a>,
}

impl BoundedInput<'static> {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// A file that cannot be opened, or a regular file that is longer than its bound.
    pub fn open(path: &Path, bound: Bound) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Ok(Self::new("standard input", io::stdin(), bound));
        }
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        match opened {
            Ok((found, _)) if found.is_file() && found.len() > bound.bytes => Err(InputError {
                name,
                fault: InputFault::TooLong(bound),
            }),
            Ok((found, file)) => Ok(Self {
                length: if found.is_file() { found.len() } else { 0 },
                ..Self::new(name, file, bound)
            }),
            Err(error) => Err(InputError {
                name,
                fault: InputFault::Io(error),
            }),
        }
    }
}

impl<'a> BoundedInput<'a> {
    /// Bounds another reader; errors give it this name.
    pub fn new(name: impl Into<String>, from: impl Read + Send + 'a, bound: Bound) -> Self {
        Self {
            name: name.into(),
            bound,
            left: bound.bytes,
            length: 0,
            from: Box::new(from),
        }
    }

    /// Decompresses the input if it begins as a gzip does. The bound applies to the compressed and
    /// to the decompressed length.
    ///
    /// # Errors
    /// An input that cannot be read.
    pub fn unpacked(mut self) -> Result<Self, InputError> {
        const GZIP: [u8; 2] = [0x1f, 0x8b];
        let mut begin = Vec::new();
        let read = (&mut self.from).take(2).read_to_end(&mut begin);
        read.map_err(|error| self.error(error))?;
        let is_gzip = begin == GZIP;
        self.from = Box::new(Cursor::new(begin).chain(self.from));
        if !is_gzip {
            return Ok(self);
        }
        let (name, bound) = (self.name.clone(), self.bound);
        let unpacked = MultiGzDecoder::new(BufReader::new(self));
        Ok(Self::new(name, unpacked, bound))
    }

    /// Reads the input to its end.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn bytes(mut self) -> Result<Vec<u8>, InputError> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.length).unwrap_or(0));
        match self.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Reads the input, which must be text without a byte of zero, to its end. Of `/dev/zero` only
    /// a few bytes are read.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn text(mut self) -> Result<String, InputError> {
        const AT_ONCE: u64 = 1 << 16;
        let mut bytes = Vec::with_capacity(usize::try_from(self.length).unwrap_or(0));
        loop {
            let before = bytes.len();
            let read = (&mut self).take(AT_ONCE).read_to_end(&mut bytes);
            match read.map_err(|error| self.error(error))? {
                0 => break,
                _ => {
                    let zero = bytes[before..].iter().position(|byte| *byte == 0);
                    if let Some(zero) = zero {
                        return Err(self.not_text(0, before + zero));
                    }
                }
            }
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            self.not_text(error.as_bytes()[at], at)
        })
    }

    fn not_text(&self, byte: u8, offset: usize) -> InputError {
        InputError {
            name: self.name.clone(),
            fault: InputFault::NotText(byte, offset),
        }
    }

    /// The error of a read, under the input's name.
    fn error(&self, error: io::Error) -> InputError {
        error.downcast().unwrap_or_else(|error| InputError {
            name: self.name.clone(),
            fault: InputFault::Io(error),
        })
    }
}

impl Read for BoundedInput<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // One byte more shows that the input is too long.
        let most = usize::try_from(self.left + 1).unwrap_or(usize::MAX);
        let most = most.min(into.len());
        let count = self.from.read(&mut into[..most])?;
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => Err(io::Error::other(InputError {
                name: self.name.clone(),
                fault: InputFault::TooLong(self.bound),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::read::GzEncoder;

    use super::*;

    const SHORT: Bound = Bound::new("a test", 100);

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut from = GzEncoder::new(bytes, Compression::best());
        from.read_to_end(&mut packed).expect("packed");
        packed
    }

    #[test]
    fn as_much_as_the_bound_is_read_and_no_byte_more() {
        let input = |length| BoundedInput::new("it", io::repeat(b'7').take(length), SHORT);
        assert_eq!(input(100).bytes().expect("read").len(), 100);
        assert_eq!(input(100).text().expect("read").len(), 100);
        let too_long = "reading it: it has more than 100 bytes, the most that is read of a test";
        assert_eq!(input(101).bytes().expect_err("long").to_string(), too_long);
        assert_eq!(input(101).text().expect_err("long").to_string(), too_long);
        let endless = BoundedInput::new("it", io::repeat(b'7'), SHORT).bytes();
        assert_eq!(endless.expect_err("endless").to_string(), too_long);
    }

    #[test]
    fn a_long_file_is_refused_before_it_is_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(1 << 40).expect("a sparse file");
        let opened = BoundedInput::open(file.path(), SHORT);
        let error = opened.err().expect("too long").to_string();
        let name = file.path().display().to_string();
        assert!(
            error.contains(&name) && error.contains("100 bytes"),
            "{error}"
        );
        let missing = BoundedInput::open(&file.path().join("below"), SHORT);
        assert!(missing.is_err());
    }

    /// A gzip of 20 kB unpacks to 20 MB, and many gzips of nothing unpack to nothing.
    #[test]
    fn a_gzip_is_bounded_packed_and_unpacked() {
        let unpacked = |bytes: &[u8]| {
            let input = BoundedInput::new("it", bytes, SHORT).unpacked();
            let bytes = input.and_then(BoundedInput::bytes);
            bytes.map_err(|error| error.to_string())
        };
        assert_eq!(unpacked(&packed(&[7; 100])), Ok(vec![7; 100]));
        assert_eq!(unpacked(b"\x1f"), Ok(vec![0x1f]));
        assert_eq!(unpacked(b""), Ok(Vec::new()));
        for long in [packed(&[7; 101]), packed(b"").repeat(20), vec![7; 101]] {
            let error = unpacked(&long).expect_err("too long");
            assert!(error.contains("more than 100 bytes"), "{error}");
        }
        let cut = packed(&[7; 100]);
        assert!(unpacked(&cut[..cut.len() - 1]).is_err());
    }

    #[test]
    fn zeros_are_no_text() {
        let zeros = BoundedInput::new("/dev/zero", io::repeat(0), Bound::GENESIS);
        assert_eq!(
            zeros.text().expect_err("zeros").to_string(),
            "reading /dev/zero: it is not text: byte 0x00 at offset 0"
        );
        let latin = BoundedInput::new("it", &b"Erd\xf6s"[..], SHORT).text();
        assert_eq!(
            latin.expect_err("not UTF-8").to_string(),
            "reading it: it is not text: byte 0xf6 at offset 3"
        );
    }
}
