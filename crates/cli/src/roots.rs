//! The file of roots: what a tree makes of each block, so that two machines can compare.
//!
//! One line a block, ascending: the block's number in decimal, a space, and the root after it as 0x and 64 digits. Blocks that no root was computed for have no line.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::replay::BlockStats;
use arbor_state::State;
use arbor_versions::{Meta, Version, View};

use crate::files;

/// A file of roots that a replay adds to.
pub(crate) struct RootsFile {
    path: PathBuf,
    file: File,
    failed: Option<std::io::Error>,
}

impl RootsFile {
    /// Where a database keeps its roots, if headers do not have them and no other place is named.
    pub(crate) fn of_database(dir: &Path) -> PathBuf {
        dir.join("roots")
    }

    /// Finds out whether a file of roots can be written before anything is made.
    ///
    /// # Errors
    /// What is no regular file, or cannot be opened or made.
    pub(crate) fn check(path: &Path) -> Result<()> {
        let context = || format!("the file of roots {}", path.display());
        if path.exists() && !path.is_file() {
            bail!("{} is not a regular file", context());
        }
        files::check_opens(path).with_context(context)
    }

    /// Prepares to take away the lines of blocks after `head`, to which a database will go back. Nothing is changed yet; `None` where there is no file.
    ///
    /// # Errors
    /// A file that cannot be written, or that is none of roots.
    pub(crate) fn cut_after(path: &Path, head: u64) -> Result<Option<Cut>> {
        let context = || format!("the file of roots {}", path.display());
        if !path.is_file() {
            return Ok(None);
        }
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.with_context(context)?;
        let kept = Kept::of(BufReader::new(&file), head, &mut |_, _| Ok(()));
        let kept = kept.with_context(context)?;
        let (path, bytes) = (path.to_owned(), kept.bytes);
        Ok(Some(Cut { path, file, bytes }))
    }

    /// Goes on with a file where the database stands: lines of later blocks, and what a crash left of a line, are cut off. A new file
    /// begins with the database's head, which is the genesis in a new database. What a crash kept from being written is written now,
    /// as far back as the database knows its blocks; a warning names the rest.
    ///
    /// # Errors
    /// A file that cannot be written, or that is none of roots; a line with another root than the database has, or none where it has one ([`Known`]).
    pub(crate) fn open(path: &Path, state: &State) -> Result<Self> {
        let context = || format!("the file of roots {}", path.display());
        if path.exists() && !path.is_file() {
            bail!("{} is not a regular file", context());
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).with_context(context)?;
        let head = state.head();
        let known = Known::new(state.reader().view())?;
        let mut check = |before: Option<Line>, line: &Line| match &known {
            Some(known) => known.check(before, line),
            None => Ok(()),
        };
        let end = head.map_or(0, |head| head.block_number);
        let kept = Kept::of(BufReader::new(&file), end, &mut check).with_context(context)?;
        file.set_len(kept.bytes).with_context(context)?;
        file.seek(SeekFrom::End(0)).with_context(context)?;
        let mut roots = Self {
            path: path.to_owned(),
            file,
            failed: None,
        };
        if let Some(head) = head {
            roots.fill(state, kept.last.map(|last| last.number), head)?;
        }
        Ok(roots)
    }

    /// Adds what lies between the last line and the head.
    fn fill(&mut self, state: &State, last: Option<u64>, head: &Meta) -> Result<()> {
        let view = state.reader().view();
        let first = last.map_or(head.block_number, |last| last + 1);
        if first > head.block_number {
            return Ok(());
        }
        let mut due = first;
        for version in first_version(view, head, first)?..=head.version.0 {
            let meta = view.meta(Version(version))?;
            if let Some(meta) = meta.filter(|meta| meta.block_number >= due) {
                if due == first && meta.block_number > first {
                    tracing::warn!(
                        "the file of roots {} has no lines for blocks {first} to {}, which the database does not know any more",
                        self.path.display(),
                        meta.block_number - 1
                    );
                }
                self.line(&Line::of(&meta));
                due = meta.block_number + 1;
            }
        }
        Ok(())
    }

    /// Adds a block.
    pub(crate) fn block(&mut self, block: &BlockStats) {
        if let Some(root) = block.root {
            let number = block.number;
            self.line(&Line { number, root });
        }
    }

    /// Hands a line to the system at once, so that a process that is killed has told of all that it flushed.
    fn line(&mut self, line: &Line) {
        if self.failed.is_none() {
            let Line { number, root } = line;
            let text = format!("{number} {root}\n");
            self.failed = self.file.write_all(text.as_bytes()).err();
        }
    }

    /// Tells what could not be written.
    ///
    /// # Errors
    /// The first thing that could not.
    pub(crate) fn finish(self) -> Result<()> {
        self.failed
            .map_or(Ok(()), Err)
            .with_context(|| format!("writing the file of roots {}", self.path.display()))
    }
}

/// A file of roots that is to be cut.
pub(crate) struct Cut {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Cut {
    /// Cuts it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn apply(self) -> Result<()> {
        self.file
            .set_len(self.bytes)
            .with_context(|| format!("the file of roots {}", self.path.display()))
    }
}

/// A block's line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    number: u64,
    root: B256,
}

/// Bytes of the longest line, its line feed included, also of files that have blocks' hashes.
const LONGEST: u64 = 20 + 2 * (1 + 66) + 1;

impl Line {
    fn of(meta: &Meta) -> Self {
        Self {
            number: meta.block_number,
            root: meta.root.into(),
        }
    }

    /// A line as it is written, and in no other form: two files of the same roots have the same bytes.
    fn parse(text: &[u8]) -> Option<Self> {
        let (digits, root) = std::str::from_utf8(text).ok()?.split_once(' ')?;
        let number = digits.parse().ok()?;
        let is_plain = digits == "0" || digits.starts_with(|first| matches!(first, '1'..='9'));
        let hex = root.strip_prefix("0x")?;
        let is_lower = hex
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let root = hex.parse().ok()?;
        (is_plain && is_lower).then_some(Self { number, root })
    }

    /// Whether this is a line as they were once: with the block's hash between number and root.
    fn had_hash(text: &[u8]) -> bool {
        let words: Vec<&[u8]> = text.trim_ascii_end().split(|byte| *byte == b' ').collect();
        matches!(words[..], [_, hash, root] if hash.len() == 66 && root.len() == 66)
    }

    /// Whether this can be what a crash left of a line.
    fn may_begin_with(text: &[u8]) -> bool {
        let number = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = &text[number..];
        let fits = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'x' || *byte == b' ';
        number > 0 && (rest.is_empty() || rest[0] == b' ') && rest.iter().all(fits)
    }
}

/// The version from which on a database may know blocks from `first` on: that block's own, or else the oldest that it remembers, which may be one of the last 257
/// before those that it retains.
fn first_version(view: View<'_>, head: &Meta, first: u64) -> Result<u64> {
    let last = head.version.0;
    let oldest = view.oldest().map_or(last, |oldest| oldest.0);
    let own = view.version_of_block(first)?;
    Ok(own.map_or(last.saturating_sub(256).min(oldest), |own| own.0))
}

/// The roots that a database has, to hold a file against: those of all blocks that it retains, up to [`Known::MOST`] of the newest and as many spread
/// over the others.
struct Known<'a> {
    view: View<'a>,
    /// The oldest block that is retained.
    oldest: u64,
    /// From here on every block is looked at, before it one of so many.
    newest: u64,
    every: u64,
}

impl<'a> Known<'a> {
    const MOST: u64 = 5_000;

    /// `None` for a database without blocks.
    fn new(view: View<'a>) -> Result<Option<Self>> {
        let (Some(head), Some(oldest)) = (view.head(), view.oldest()) else {
            return Ok(None);
        };
        let oldest = view.meta(oldest)?;
        let oldest = oldest.map_or(head.block_number, |oldest| oldest.block_number);
        let newest = oldest.max(head.block_number.saturating_sub(Self::MOST - 1));
        Ok(Some(Self {
            view,
            oldest,
            newest,
            every: 1 + (newest - oldest) / Self::MOST,
        }))
    }

    /// The root of a block, if it is one of those that are looked at and the database has a version of it.
    fn root(&self, number: u64) -> Result<Option<B256>> {
        let spread = || (number - self.oldest).is_multiple_of(self.every);
        if number < self.oldest || number < self.newest && !spread() {
            return Ok(None);
        }
        let version = self.view.version_of_block(number)?;
        let meta = version.map(|version| self.view.meta(version)).transpose()?;
        Ok(meta.flatten().map(|meta| meta.root.into()))
    }

    /// Holds a line, and the lack of lines between it and the one before, against the database.
    fn check(&self, before: Option<Line>, line: &Line) -> Result<()> {
        const REMEDY: &str = "move the file away, and a new one begins at the database's head";
        let between = before
            .map_or(line.number, |before| before.number + 1)
            .max(self.oldest);
        for number in between..line.number {
            if self.root(number)?.is_some() {
                bail!("the line of block {number} is missing before it: {REMEDY}");
            }
        }
        match self.root(line.number)? {
            Some(root) if root != line.root => bail!(
                "the database has another root at block {}, {root}: {REMEDY}",
                line.number
            ),
            _ => Ok(()),
        }
    }
}

/// The lines of a file that stay.
#[derive(PartialEq, Eq, Debug)]
struct Kept {
    bytes: u64,
    last: Option<Line>,
}

impl Kept {
    /// The lines of blocks up to `head`, each of which is checked with the one before it.
    fn of(
        mut file: impl BufRead,
        head: u64,
        check: &mut dyn FnMut(Option<Line>, &Line) -> Result<()>,
    ) -> Result<Self> {
        let (mut kept, mut text, mut count) = (
            Self {
                bytes: 0,
                last: None,
            },
            Vec::new(),
            0,
        );
        loop {
            text.clear();
            let length = file.by_ref().take(LONGEST).read_until(b'\n', &mut text)?;
            count += 1;
            let line = match text.strip_suffix(b"\n") {
                Some(whole) => Line::parse(whole),
                None if length == 0 => return Ok(kept),
                None if (length as u64) < LONGEST && Line::may_begin_with(&text) => {
                    return Ok(kept);
                }
                None => None,
            };
            let Some(line) = line else {
                if Line::had_hash(&text) {
                    bail!(
                        "line {count} has the block's hash, as files of earlier versions do: move the file away, and a new one begins at the database's head"
                    );
                }
                bail!("line {count} is not a block's number and a root");
            };
            if kept.last.is_some_and(|last| last.number >= line.number) {
                bail!(
                    "line {count}: block {} does not follow the line before",
                    line.number
                );
            }
            if line.number > head {
                return Ok(kept);
            }
            check(kept.last, &line).with_context(|| format!("line {count}"))?;
            kept.bytes += length as u64;
            kept.last = Some(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy_primitives::U256;
    use arbor_state::ar16mt::AR16MT;
    use arbor_state::{BlockRef, StateChanges};
    use arbor_store::MemoryStore;
    use arbor_versions::{Changes, Identity, Options, Retain, Versions};

    use super::*;

    fn line(number: u64) -> String {
        let root = B256::with_last_byte(number as u8);
        format!("{number} {root}\n")
    }

    #[test]
    fn later_blocks_and_broken_lines_are_cut_off() {
        let text: String = (3..6).map(line).collect();
        let each = line(3).len() as u64;
        let end = |text: &str, head| {
            let kept = Kept::of(text.as_bytes(), head, &mut |_, _| Ok(()))
                .map_err(|error| error.to_string())?;
            assert_eq!(kept.last.is_some(), kept.bytes > 0);
            Ok::<u64, String>(kept.bytes)
        };
        assert_eq!(end("", 9), Ok(0));
        assert_eq!(end(&text, 9), Ok(3 * each));
        assert_eq!(end(&text, 4), Ok(2 * each));
        assert_eq!(end(&text, 2), Ok(0));
        assert_eq!(end(&text[..text.len() - 1], 9), Ok(2 * each));
        assert_eq!(end(&text[..each as usize + 5], 9), Ok(each));
        for (bad, why) in [
            ("a file of something else\n".to_owned(), "line 1 is not"),
            ("a file of something else".to_owned(), "line 1 is not"),
            ("{\"number\": 1}".to_owned(), "line 1 is not"),
            ("0".repeat(1_000), "line 1 is not"),
            (line(3) + "4\n", "line 2 is not"),
            (line(3) + &line(3), "line 2: block 3 does not follow"),
            (line(3).replace('\n', " 0\n"), "line 1 is not"),
            (format!("0{}", line(3)), "line 1 is not"),
            (format!("+{}", line(3)), "line 1 is not"),
            (line(2) + &line(10).replace("0a", "0A"), "line 2 is not"),
            (line(3).replace("0x", ""), "line 1 is not"),
            (
                line(3).replace(' ', &format!(" {} ", B256::ZERO)),
                "line 1 has the block's hash",
            ),
        ] {
            let error = end(&bad, 9).expect_err("refused");
            assert!(error.starts_with(why), "{error}");
        }
    }

    /// Only the last line was held against the database.
    #[test]
    fn every_line_is_held_against_what_the_database_knows() {
        const BLOCKS: u64 = 20_000;
        let database = database(BLOCKS);
        let known = || {
            let known = Known::new(database.view()).expect("read");
            known.expect("it has blocks")
        };
        let check = |lines: &[(u64, u64)]| {
            let text: String = lines
                .iter()
                .map(|(number, root)| line_of(*number, *root))
                .collect();
            let known = known();
            let mut check = |before: Option<Line>, line: &Line| known.check(before, line);
            let kept = Kept::of(text.as_bytes(), BLOCKS, &mut check);
            kept.map(|kept| kept.bytes)
                .map_err(|error| format!("{error:#}"))
        };
        let own: Vec<(u64, u64)> = (0..=BLOCKS).map(|number| (number, number)).collect();
        check(&own).expect("they are the database's");
        check(&own[3..]).expect("a file may begin later");
        // All of the newest, and of the others one of four.
        for number in [0, 4, 14_996, 15_001, 15_002, BLOCKS - 1, BLOCKS] {
            let mut other = own.clone();
            other[number as usize].1 += 1;
            let error = check(&other).expect_err("another root");
            let line = number + 1;
            let why = format!("line {line}: the database has another root at block {number}, 0x");
            assert!(error.starts_with(&why), "{error}");
        }
        for number in [4, 15_001, 19_999] {
            let mut without = own.clone();
            without.remove(number as usize);
            let error = check(&without).expect_err("a line is missing");
            let why = format!(
                "line {}: the line of block {number} is missing before it",
                number + 1
            );
            assert!(error.starts_with(&why), "{error}");
        }
    }

    /// Each block between the last line and the head was looked up, however few of them the database knew.
    #[test]
    fn what_the_database_does_not_know_is_not_looked_for() {
        const FAR: u64 = 1 << 50;
        let (store, tree) = (Arc::new(MemoryStore::default()), AR16MT.tree());
        let options = Options {
            retain: Retain::None,
            ..Options::default()
        };
        let state = State::open(store, None, tree, crate::database::NO_CHAIN, options);
        let mut state = state.expect("made");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("roots");
        let mut lines = |last, blocks: &[u64]| {
            for number in blocks {
                let computed = state.compute(&StateChanges::default()).expect("computed");
                let block = BlockRef {
                    number: *number,
                    hash: B256::ZERO,
                    header: Vec::new(),
                };
                state.commit(&block, computed).expect("committed");
            }
            std::fs::write(&path, "").expect("written");
            let mut roots = RootsFile {
                path: path.clone(),
                file: File::options().append(true).open(&path).expect("opened"),
                failed: None,
            };
            let head = state.head().expect("a block").clone();
            roots.fill(&state, last, &head).expect("filled");
            let text = std::fs::read_to_string(&path).expect("read");
            let number = |line: &str| line.split(' ').next().and_then(|word| word.parse().ok());
            text.lines().filter_map(number).collect::<Vec<u64>>()
        };
        assert_eq!(lines(None, &[3, 4]), [4]);
        assert_eq!(lines(Some(2), &[]), [3, 4]);
        let far = [FAR, FAR + 1];
        assert_eq!(lines(Some(3), &far), [4, FAR, FAR + 1]);
        assert_eq!(lines(Some(1 << 40), &[]), far);
        assert_eq!(lines(Some(FAR), &[]), far[1..]);
        assert_eq!(lines(Some(FAR + 1), &[]), [0; 0]);
    }

    fn line_of(number: u64, root: u64) -> String {
        format!("{number} {}\n", self::root(root))
    }

    /// A database that retains blocks whose roots are their numbers.
    fn database(blocks: u64) -> Versions {
        let identity = Identity {
            tree: "a tree".into(),
            revision: "1".into(),
            hash: "none".into(),
            layout: 1,
            chain_id: 1,
            genesis: [0; 32],
        };
        let options = Options {
            retain: Retain::All,
            background: false,
            ..Options::default()
        };
        let store = Arc::new(MemoryStore::default());
        let database = Versions::create(store, None, &identity, &[], options);
        let mut database = database.expect("made");
        for number in 0..=blocks {
            let meta = Meta {
                version: Version(number),
                block_number: number,
                block_hash: [0; 32],
                root: root(number).0,
                extra: Vec::new(),
            };
            database.apply(meta, Changes::default()).expect("applied");
        }
        database.flush().expect("flushed");
        database
    }

    fn root(number: u64) -> B256 {
        B256::from(U256::from(number))
    }
}
