//! `arbor diff`: two lists of leaves next to each other.

use std::collections::BTreeMap;
use std::path::Path;

use alloy_primitives::{B256, Bytes, hex};
use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use serde_json::Value;

use crate::args::Diff as Args;
use crate::output;

/// A leaf of a list: its value, and what it stands for, if the list says so.
struct Listed {
    value: B256,
    of: Option<String>,
}

type List = BTreeMap<Vec<u8>, Listed>;

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
    let (a, b) = (list(&args.a)?, list(&args.b)?);
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    let mut keys: Vec<&Vec<u8>> = keys.collect();
    keys.sort_unstable();
    let mut count = 0;
    for key in &keys {
        let (of_a, of_b) = (a.get(*key), b.get(*key));
        let value = |of: Option<&Listed>| of.map(|leaf| leaf.value);
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
    }
    match count {
        0 => output::remark(args.json, &format!("{} leaves, all alike", keys.len())),
        _ => bail!(
            "{count} of {} leaves differ between {} and {}",
            keys.len(),
            args.a.display(),
            args.b.display()
        ),
    }
}

impl Difference<'_> {
    fn text(&self) -> String {
        let shown =
            |value: Option<B256>| value.map_or("absent".to_owned(), |value| value.to_string());
        let of = self
            .of
            .map_or_else(|| format!("key {}", self.key), str::to_owned);
        format!("{of}: {} in A, {} in B", shown(self.a), shown(self.b))
    }
}

/// Reads a list: the JSON of `arbor oracle --json`, or lines.
fn list(file: &Path) -> Result<List> {
    let name = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(name)?;
    let list = match serde_json::from_str::<Value>(&text) {
        Ok(found) => from_json(&found),
        Err(_) => from_lines(&text),
    };
    list.with_context(name)
}

fn from_json(found: &Value) -> Result<List> {
    let leaves = found["leaves"].as_array();
    let leaves = leaves.context("it has no list \"leaves\"")?.iter();
    let mut list = List::new();
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

/// Lines with a key, a value, and what the leaf stands for. A line that begins with a word that is not hexadecimal is none.
fn from_lines(text: &str) -> Result<List> {
    let mut list = List::new();
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
    match list.is_empty() && !text.trim().is_empty() && !text.starts_with("root ") {
        true => Err(anyhow!(
            "it has no leaves: neither JSON nor lines with a key and a value"
        )),
        false => Ok(list),
    }
}

fn put(list: &mut List, key: &str, value: &str, of: Option<String>) -> Result<()> {
    let key = hex::decode(key).with_context(|| format!("key {key}"))?;
    let value: B256 = value.parse().with_context(|| format!("value {value}"))?;
    match list.insert(key, Listed { value, of }) {
        None => Ok(()),
        Some(_) => bail!("the key comes twice"),
    }
}
