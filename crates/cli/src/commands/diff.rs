//! `arbor diff`: two lists of leaves next to each other.

use std::io::Read;
use std::path::Path;

use alloy_primitives::{B256, Bytes, hex};
use anyhow::{Context, Result, anyhow, bail};
use arbor_convert::Input;
use arbor_state::Settings;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::Diff as Args;
use crate::leaf_list::{self, LeafList, ListedLeaf};
use crate::output;

/// Bytes of a list.
const LONGEST: u64 = 1 << 32;

/// A leaf that differs, as `--json` prints it, a line each.
#[derive(Serialize)]
struct Difference<'a> {
    key: Bytes,
    of: Option<&'a str>,
    a: Option<B256>,
    b: Option<B256>,
}

/// Prints the leaves that differ, ascending by key; it is an error if there are any.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.a == Path::new("-") && args.b == Path::new("-") {
        bail!("standard input (-) can be one of the two lists, not both");
    }
    let (a, b) = (list(args, &args.a)?, list(args, &args.b)?);
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    let mut keys: Vec<&Vec<u8>> = keys.collect();
    keys.sort_unstable();
    let (mut count, mut first) = (0, None);
    for key in &keys {
        let (of_a, of_b) = (a.get(*key), b.get(*key));
        let value = |of: Option<&ListedLeaf>| of.map(|leaf| leaf.value);
        if value(of_a) == value(of_b) {
            continue;
        }
        count += 1;
        let of = [of_a, of_b].into_iter().flatten();
        let difference = Difference {
            key: (*key).clone().into(),
            of: of.filter_map(|leaf| leaf.of.as_deref()).next(),
            a: value(of_a),
            b: value(of_b),
        };
        match args.json {
            true => output::line(&serde_json::to_string(&difference)?)?,
            false => output::line(&difference.text())?,
        }
        first.get_or_insert_with(|| difference.name());
    }
    let (of_a, of_b) = (args.a.display(), args.b.display());
    match first {
        _ if keys.is_empty() => bail!("neither {of_a} nor {of_b} has a leaf: nothing was compared"),
        None => output::remark(args.json, &format!("{} leaves, all alike", keys.len())),
        Some(first) => bail!(
            "{count} of {} leaves differ between {of_a} ({} leaves) and {of_b} ({}), the first of them {first}",
            keys.len(),
            a.len(),
            b.len()
        ),
    }
}

impl Difference<'_> {
    fn name(&self) -> String {
        self.of
            .map_or_else(|| format!("key {}", self.key), str::to_owned)
    }

    fn text(&self) -> String {
        let shown =
            |value: Option<B256>| value.map_or("absent".to_owned(), |value| value.to_string());
        format!(
            "{}: {} in A, {} in B",
            self.name(),
            shown(self.a),
            shown(self.b)
        )
    }
}

/// Reads a list: of a database, or of a file.
fn list(args: &Args, path: &Path) -> Result<LeafList> {
    let list = match path.is_dir() {
        true => of_database(args, path),
        false => of_file(path),
    };
    list.with_context(|| format!("reading {}", path.display()))
}

/// The leaves of a database's latest block, under its own tree unless another is asked for.
fn of_database(args: &Args, dir: &Path) -> Result<LeafList> {
    let found = leaf_list::of_database(dir)?;
    let tree = args.tree.unwrap_or(found.tree);
    let leaves = tree.verify.leaves.with_context(|| {
        format!(
            "the leaves of its tree, {}, have no names: name another with --tree",
            tree.name
        )
    })?;
    let hash = match (args.tree, &args.hash) {
        (None, None) => found.hash,
        (_, hash) => {
            let settings = Settings {
                hash: hash.clone(),
                ..Settings::default()
            };
            let made = (tree.make)(&settings).context("--hash")?;
            made.hash().to_owned()
        }
    };
    leaf_list::leaves_of(leaves, &hash, &found.accounts)
}

/// Reads the JSON of `arbor oracle --json`, an object of values by keys, or lines, plain or compressed.
fn of_file(file: &Path) -> Result<LeafList> {
    let mut text = String::new();
    Input::open(file)?
        .by_ref()
        .take(LONGEST)
        .read_to_string(&mut text)?;
    if text.trim().is_empty() {
        bail!("it is empty");
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(found) => from_json(&found),
        Err(error) if text.trim_start().starts_with('{') => Err(error.into()),
        Err(_) => from_lines(&text),
    }
}

fn from_json(found: &Value) -> Result<LeafList> {
    if let Some(leaves) = found["leaves"].as_array() {
        return from_leaves(leaves);
    }
    // geth's `evm t8n` writes its leaves under this name if they go to standard output.
    let values = found.get("vkt").unwrap_or(found).as_object();
    let values = values.filter(|values| {
        let mut keys = values.keys();
        keys.all(|key| hex::decode(key).is_ok())
    });
    let values = values.context(
        "it has neither a list \"leaves\", as arbor oracle --json writes it, nor values by keys in hexadecimal",
    )?;
    from_values(values)
}

/// Reads leaves with their names.
fn from_leaves(leaves: &[Value]) -> Result<LeafList> {
    let mut list = LeafList::new();
    for (number, leaf) in (0..).zip(leaves) {
        let field = |name: &str| {
            let text = leaf[name].as_str();
            text.with_context(|| format!("leaf {number} has no {name}"))
        };
        let of = leaf["of"].as_str().map(str::to_owned);
        put(&mut list, field("key")?, field("value")?, of)
            .with_context(|| format!("leaf {number}"))?;
    }
    Ok(list)
}

/// Reads values by their keys, as `evm t8n --output.vkt` writes them.
fn from_values(values: &Map<String, Value>) -> Result<LeafList> {
    let mut list = LeafList::new();
    for (key, value) in values {
        let value = value.as_str();
        let value = value.with_context(|| format!("the value of key {key} is no string"))?;
        put(&mut list, key, value, None)?;
    }
    Ok(list)
}

/// Lines with a key, a value, and what the leaf stands for. A line that begins with a word that is not hexadecimal is none.
fn from_lines(text: &str) -> Result<LeafList> {
    let mut list = LeafList::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.splitn(3, [' ', ',', '\t']);
        let (Some(key), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        if hex::decode(key).is_err() {
            continue;
        }
        let of = words.next().map(str::to_owned);
        put(&mut list, key, value, of).with_context(|| format!("line {number}"))?;
    }
    match list.is_empty() && !text.starts_with("root ") {
        true => Err(anyhow!(
            "it has no leaves: neither JSON nor lines with a key and a value"
        )),
        false => Ok(list),
    }
}

fn put(list: &mut LeafList, key: &str, value: &str, of: Option<String>) -> Result<()> {
    let key = hex::decode(key).with_context(|| format!("key {key}"))?;
    let value: B256 = value.parse().with_context(|| format!("value {value}"))?;
    match list.insert(key, ListedLeaf { value, of }) {
        None => Ok(()),
        Some(_) => bail!("the key comes twice"),
    }
}
