//! Files of preimages: the addresses and slot numbers behind hashed keys.
//!
//! | form | bytes |
//! |---|---|
//! | EIP-8347 | for each account: address 20, number of slots u32 big-endian, slot number 32 for each; ascending by the Keccak-256 of the address, slots by that of the number |
//! | `framed.bin` | the same records in another order |
//! | `geth snapshot export-preimages` | RLP strings: addresses (20 bytes) and slot numbers (32) |
//! | `geth db export preimage` | an RLP list (magic `gethdbdump`, version, kind, time), then for each preimage three RLP strings: 0, its key in the database, the preimage |
//!
//! Any of them may be packed with gzip or zstd.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, B256};

use crate::ConvertError;
use crate::input::Input;

/// The longest RLP string that is read: more than any preimage, and any key of geth's database.
const LONGEST: u64 = 1 << 12;

/// Said of a file that is read as records, which any bytes could be, and ends within one.
const UNKNOWN: &str = "it ends within a record: it was cut, or has none of the forms that are known. These are records (EIP-8347, framed.bin), \
    the strings of geth snapshot export-preimages, and geth db export preimage";

/// An address or the number of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Preimage {
    /// An account's address.
    Address(Address),
    /// A slot's number.
    Slot(B256),
}

impl Preimage {
    /// The bytes that are hashed.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Address(address) => address.as_slice(),
            Self::Slot(slot) => slot.as_slice(),
        }
    }

    /// The preimage with these bytes; `None` for a length of neither.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            20 => Some(Self::Address(Address::from_slice(bytes))),
            32 => Some(Self::Slot(B256::from_slice(bytes))),
            _ => None,
        }
    }
}

/// The form of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreimageForm {
    /// Records of an account with its slots.
    Records,
    /// RLP strings.
    Strings,
    /// The export of a key range of geth's database.
    Export,
}

/// A file of preimages that is being read.
pub struct PreimageFile {
    path: PathBuf,
    input: Input,
    form: PreimageForm,
    offset: u64,
    /// Slots that are left of a record.
    slots: u32,
}

impl PreimageFile {
    /// Opens a file and recognises its form.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open(path: &Path) -> Result<Self, ConvertError> {
        let input = Input::open(path).map_err(ConvertError::file(path))?;
        Self::read(path, input)
    }

    /// Recognises the form of a file; the path is for errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(path: &Path, input: Input) -> Result<Self, ConvertError> {
        let mut file = Self {
            path: path.to_owned(),
            input,
            form: PreimageForm::Records,
            offset: 0,
            slots: 0,
        };
        file.form = file.recognised()?;
        if file.form == PreimageForm::Export {
            file.pass_header()?;
        }
        Ok(file)
    }

    /// The form of the file.
    pub fn form(&self) -> PreimageForm {
        self.form
    }

    /// RLP strings of 20 or 32 bytes begin with 94 or a0. At the place where a second one begins, a record has a byte of
    /// its number of slots, whose first bytes are zero.
    fn recognised(&mut self) -> Result<PreimageForm, ConvertError> {
        let failed = ConvertError::file(&self.path);
        let begin = self.input.fill_buf().map_err(failed)?;
        let head = |at: usize| begin.get(at).copied();
        let is_head = |at| matches!(head(at), None | Some(0x94 | 0xa0));
        Ok(match head(0) {
            Some(0x94) if is_head(21) => PreimageForm::Strings,
            Some(0xa0) if is_head(33) => PreimageForm::Strings,
            Some(first)
                if first >= 0xc0
                    && begin.windows(10).take(16).any(|text| text == b"gethdbdump") =>
            {
                PreimageForm::Export
            }
            _ => PreimageForm::Records,
        })
    }

    /// The next preimage; `None` at the end.
    ///
    /// # Errors
    /// A file that cannot be read, or that ends within a preimage; a string of another length.
    pub fn read_next(&mut self) -> Result<Option<Preimage>, ConvertError> {
        match self.form {
            PreimageForm::Records => self.next_of_record(),
            PreimageForm::Strings => {
                let Some(string) = self.string()? else {
                    return Ok(None);
                };
                let preimage = Preimage::of(&string);
                let wrong = || self.damaged("a preimage has neither 20 nor 32 bytes");
                preimage.map(Some).ok_or_else(wrong)
            }
            PreimageForm::Export => loop {
                if self.string()?.is_none() {
                    return Ok(None);
                }
                let key = self.string()?;
                let value = self.string()?;
                let (Some(_), Some(value)) = (key, value) else {
                    return Err(self.damaged("it ends within an entry"));
                };
                // geth's table has preimages of other lengths, of keys that no state has.
                if let Some(preimage) = Preimage::of(&value) {
                    return Ok(Some(preimage));
                }
            },
        }
    }

    fn next_of_record(&mut self) -> Result<Option<Preimage>, ConvertError> {
        if self.slots > 0 {
            self.slots -= 1;
            let mut slot = [0; 32];
            self.exact(&mut slot)?;
            return Ok(Some(Preimage::Slot(slot.into())));
        }
        if self.is_over()? {
            return Ok(None);
        }
        let (mut address, mut slots) = ([0; 20], [0; 4]);
        self.exact(&mut address)?;
        self.exact(&mut slots)?;
        self.slots = u32::from_be_bytes(slots);
        Ok(Some(Preimage::Address(address.into())))
    }

    fn is_over(&mut self) -> Result<bool, ConvertError> {
        let failed = ConvertError::file(&self.path);
        Ok(self.input.fill_buf().map_err(failed)?.is_empty())
    }

    fn exact(&mut self, bytes: &mut [u8]) -> Result<(), ConvertError> {
        match self.input.read_exact(bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged(match self.form {
                    PreimageForm::Records => UNKNOWN,
                    _ => "it ends within a preimage: it was cut. Write or copy it again",
                }))
            }
            read => {
                self.offset += bytes.len() as u64;
                read.map_err(ConvertError::file(&self.path))
            }
        }
    }

    /// The length of the next RLP item and whether it is a list; `None` at the end. A single byte that is its own string is returned
    /// too.
    fn item(&mut self) -> Result<Option<(u64, bool, Option<u8>)>, ConvertError> {
        if self.is_over()? {
            return Ok(None);
        }
        let mut head = [0];
        self.exact(&mut head)?;
        let (base, is_list) = match head[0] {
            byte @ 0..0x80 => return Ok(Some((1, false, Some(byte)))),
            0x80..0xc0 => (0x80, false),
            _ => (0xc0, true),
        };
        let short = u64::from(head[0] - base);
        let length = match short {
            0..=55 => short,
            long => {
                let mut bytes = [0; 8];
                self.exact(&mut bytes[8 - (long as usize - 55)..])?;
                u64::from_be_bytes(bytes)
            }
        };
        match length <= LONGEST {
            true => Ok(Some((length, is_list, None))),
            false => Err(self.damaged("an RLP item is longer than any preimage")),
        }
    }

    fn string(&mut self) -> Result<Option<Vec<u8>>, ConvertError> {
        match self.item()? {
            None => Ok(None),
            Some((_, _, Some(byte))) => Ok(Some(vec![byte])),
            Some((_, true, None)) => Err(self.damaged("an RLP list is in the place of a string")),
            Some((length, false, None)) => {
                let mut string = vec![0; length as usize];
                self.exact(&mut string)?;
                Ok(Some(string))
            }
        }
    }

    fn pass_header(&mut self) -> Result<(), ConvertError> {
        let length = self.item()?.map_or(0, |(length, _, _)| length);
        self.exact(&mut vec![0; length as usize])
    }

    fn damaged(&self, why: &'static str) -> ConvertError {
        ConvertError::Preimages {
            path: self.path.clone(),
            offset: self.offset,
            why,
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<(PreimageForm, Vec<Preimage>), ConvertError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("preimages");
        std::fs::write(&path, bytes).unwrap();
        let mut file = PreimageFile::open(&path)?;
        let mut all = Vec::new();
        while let Some(preimage) = file.read_next()? {
            all.push(preimage);
        }
        Ok((file.form(), all))
    }

    fn address(byte: u8) -> Preimage {
        Preimage::Address(Address::repeat_byte(byte))
    }

    fn slot(byte: u8) -> Preimage {
        Preimage::Slot(B256::repeat_byte(byte))
    }

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&[0x80 + bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn every_form_is_recognised_and_read() {
        // Addresses that begin like RLP strings.
        for first in [0x94, 0xa0, 0xf8, 1] {
            let records = [
                &[first; 20][..],
                &2u32.to_be_bytes(),
                &[7; 32],
                &[8; 32],
                &[2; 20],
                &[0; 4],
            ]
            .concat();
            let expected = vec![address(first), slot(7), slot(8), address(2)];
            assert_eq!(read(&records).unwrap(), (PreimageForm::Records, expected));
        }
        let strings = [string(&[5; 20]), string(&[6; 32]), string(&[7; 20])].concat();
        let expected = vec![address(5), slot(6), address(7)];
        assert_eq!(
            read(&strings).unwrap(),
            (PreimageForm::Strings, expected.clone())
        );

        let header = [
            &string(b"gethdbdump")[..],
            &[0x80],
            &string(b"preimage"),
            &[0x84, 1, 2, 3, 4],
        ]
        .concat();
        let mut export = vec![0xc0 + header.len() as u8];
        export.extend(header);
        for name in &expected {
            export.push(0x80);
            export.extend([&[0xab][..], &[9; 43]].concat());
            export.extend(string(name.bytes()));
        }
        // A preimage of another length.
        export.extend([&[0x80, 0x81, 0x90][..], &string(&[1; 5])].concat());
        assert_eq!(read(&export).unwrap(), (PreimageForm::Export, expected));
        assert_eq!(read(&[]).unwrap().1, Vec::new());
    }

    #[test]
    fn cut_and_strange_files_are_refused() {
        let records = [&[1; 20][..], &2u32.to_be_bytes(), &[7; 32], &[8; 32]].concat();
        for length in 1..records.len() {
            assert!(read(&records[..length]).is_err(), "{length}");
        }
        let strings = [string(&[5; 20]), string(&[6; 32])].concat();
        for length in 1..strings.len() {
            assert!(
                length == 21 || read(&strings[..length]).is_err(),
                "{length}"
            );
        }
        let other = [string(&[5; 20]), string(&[6; 32]), string(&[6; 31])].concat();
        assert!(
            read(&other)
                .unwrap_err()
                .to_string()
                .contains("neither 20 nor 32")
        );
    }
}
