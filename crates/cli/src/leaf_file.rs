//! Files of leaves, which `arbor diff` compares: those of `arbor oracle` and of other programs.

use std::io::Read;
use std::path::Path;

use alloy_primitives::{B256, hex};
use anyhow::{Context, Result, anyhow, bail};
use arbor_convert::Input;
use serde_json::{Map, Value};

use crate::leaf_list::{HashedTree, LeafList, ListedLeaf};

/// Bytes of a list.
const LONGEST: u64 = 1 << 32;

/// What parts the words of a line.
const BETWEEN: [char; 3] = [' ', ',', '\t'];

/// A list of leaves.
pub(crate) struct LeafFile {
    pub(crate) leaves: LeafList,
    /// The tree that the leaves are of, if the file names it.
    pub(crate) tree: Option<HashedTree>,
}

impl LeafFile {
    /// Reads the JSON of `arbor oracle --json`, an object of values by keys, or lines, plain or compressed.
    ///
    /// # Errors
    /// A key or a value that is malformed: the error names the line.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let mut text = String::new();
        Input::open(file)?
            .by_ref()
            .take(LONGEST)
            .read_to_string(&mut text)?;
        if text.trim().is_empty() {
            bail!("it is empty");
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(found) => from_json(&found, &text),
            Err(error) if text.trim_start().starts_with('{') => Err(error.into()),
            Err(_) => Ok(Self {
                leaves: from_lines(&text)?,
                tree: None,
            }),
        }
    }
}

fn from_json(found: &Value, text: &str) -> Result<LeafFile> {
    let word = |name: &str| found[name].as_str().map(str::to_owned);
    let tree = word("tree").zip(word("hash"));
    let tree = tree.map(|(tree, hash)| HashedTree { tree, hash });
    if let Some(leaves) = found["leaves"].as_array() {
        let leaves = from_leaves(leaves, text)?;
        return Ok(LeafFile { leaves, tree });
    }
    if let Some(tree) = &tree {
        bail!("it has no leaves: arbor oracle prints only the root of the tree {tree}");
    }
    // geth's `evm t8n` writes its leaves under this name if they go to standard output.
    let values = found.get("vkt").unwrap_or(found).as_object();
    let are_texts = |values: &&Map<String, Value>| values.values().all(Value::is_string);
    let values = values.filter(are_texts).context(
        "it has neither a list \"leaves\", as arbor oracle --json writes it, nor values by keys in hexadecimal",
    )?;
    let leaves = from_values(values, text)?;
    Ok(LeafFile { leaves, tree })
}

/// Reads leaves with their names.
fn from_leaves(leaves: &[Value], text: &str) -> Result<LeafList> {
    let mut list = LeafList::new();
    for (number, leaf) in (0..).zip(leaves) {
        let field = |name: &str| {
            let text = leaf[name].as_str();
            text.with_context(|| format!("leaf {number} has no {name}"))
        };
        let of = leaf["of"].as_str().map(str::to_owned);
        let (key, value) = (field("key")?, field("value")?);
        put(&mut list, (key, value), of)
            .with_context(|| format!("leaf {number}{}", line_of(text, key)))?;
    }
    Ok(list)
}

/// Reads values by their keys, as `evm t8n --output.vkt` writes them.
fn from_values(values: &Map<String, Value>, text: &str) -> Result<LeafList> {
    let mut list = LeafList::new();
    for (key, value) in values {
        let value = value.as_str().unwrap_or_default();
        put(&mut list, (key, value), None)
            .with_context(|| format!("the value by key {key:.80}{}", line_of(text, key)))?;
    }
    Ok(list)
}

/// Names the line of a JSON text that has a key.
fn line_of(text: &str, key: &str) -> String {
    let quoted = format!("\"{key}\"");
    let mut lines = (1..).zip(text.lines());
    let found = lines.find(|(_, line)| line.contains(&quoted));
    found.map_or_else(String::new, |(line, _)| format!(" in line {line}"))
}

/// Reads lines with a key, a value, and what the leaf stands for.
fn from_lines(text: &str) -> Result<LeafList> {
    let mut list = LeafList::new();
    for (number, line) in (1..).zip(text.lines()) {
        let (key, rest) = first_word(line);
        if is_no_key(key) {
            continue;
        }
        let (value, of) = first_word(rest);
        let of = Some(of.trim_matches(BETWEEN).to_owned()).filter(|of| !of.is_empty());
        put(&mut list, (key, value), of).with_context(|| format!("line {number}"))?;
    }
    match list.is_empty() && !text.starts_with("root ") {
        true => Err(anyhow!(
            "it has no leaves: neither JSON nor lines with a key and a value"
        )),
        false => Ok(list),
    }
}

/// The first word of a line, and what follows it.
fn first_word(line: &str) -> (&str, &str) {
    let line = line.trim_start_matches(BETWEEN).trim_end();
    line.split_once(BETWEEN).unwrap_or((line, ""))
}

/// Whether a line that begins with this word has no leaf: an empty line, a comment, the head of a table, and what
/// `arbor oracle` calls `root` and `proof`. A word with digits is meant as a key.
fn is_no_key(word: &str) -> bool {
    let is_word = word.chars().all(|letter| !letter.is_ascii_digit());
    word.starts_with('#') || is_word && hex::decode(word).map_or(true, |key| key.is_empty())
}

fn put(list: &mut LeafList, (key, value): (&str, &str), of: Option<String>) -> Result<()> {
    let key = bytes_of("key", key)?;
    let value = bytes_of("value", value)?;
    let length = value.len();
    let value = B256::try_from(&value[..])
        .map_err(|_| anyhow!("its value has {length} bytes instead of 32"))?;
    match list.insert(key, ListedLeaf { value, of }) {
        None => Ok(()),
        Some(_) => bail!("the key comes twice"),
    }
}

/// The bytes that a word has in hexadecimal.
fn bytes_of(what: &str, word: &str) -> Result<Vec<u8>> {
    let bytes = hex::decode(word)
        .map_err(|error| anyhow!("its {what} {word:.80} is not hexadecimal: {error}"))?;
    match bytes.is_empty() {
        true => bail!("it has no {what}"),
        false => Ok(bytes),
    }
}
