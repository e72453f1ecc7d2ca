//! Snappy's framing format, in which era1 files have headers, bodies and receipts.

use std::io::{self, Read};

/// Decompresses snappy's framing format, which carries a checksum for each 64 KiB. Reads no more than the data needs.
pub(crate) fn unframe(compressed: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    let mut decoder = snap::read::FrameDecoder::new(Chunks::new(compressed)).take(limit + 1);
    decoder
        .read_to_end(&mut data)
        .map_err(|e| format!("snappy: {e}"))?;
    if data.len() as u64 > limit {
        return Err(format!("snappy: more than {limit} bytes"));
    }
    Ok(data)
}

/// Passes over the chunks that a reader must skip (padding among them), whatever their length: the decoder refuses those longer than a chunk of data.
pub(crate) struct Chunks<R> {
    from: R,
    /// Of the chunk being read, its header, what of that was read, and the bytes that follow.
    head: [u8; 4],
    read: usize,
    left: u64,
}

impl<R: Read> Chunks<R> {
    pub(crate) const fn new(from: R) -> Self {
        Self {
            from,
            head: [0; 4],
            read: 4,
            left: 0,
        }
    }

    /// Reads the header of the next chunk that is not skipped; false at the end. A header that was cut short is passed on as it is.
    fn next_chunk(&mut self) -> io::Result<bool> {
        loop {
            let mut head = Vec::new();
            (&mut self.from).take(4).read_to_end(&mut head)?;
            let Ok(whole) = <[u8; 4]>::try_from(head.as_slice()) else {
                self.read = 4 - head.len();
                self.head[self.read..].copy_from_slice(&head);
                self.left = 0;
                return Ok(!head.is_empty());
            };
            let length = u64::from(u32::from_le_bytes([whole[1], whole[2], whole[3], 0]));
            if !(0x80..=0xfe).contains(&whole[0]) {
                (self.head, self.read, self.left) = (whole, 0, length);
                return Ok(true);
            }
            let skipped = io::copy(&mut (&mut self.from).take(length), &mut io::sink())?;
            if skipped < length {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("a skippable chunk of {length} bytes has {skipped}"),
                ));
            }
        }
    }
}

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || (self.read == 4 && self.left == 0 && !self.next_chunk()?) {
            return Ok(0);
        }
        if self.read < 4 {
            let mut head = &self.head[self.read..];
            let count = head.read(into)?;
            self.read += count;
            return Ok(count);
        }
        let count = (&mut self.from).take(self.left).read(into)?;
        self.left -= count as u64;
        Ok(count)
    }
}
