//! `arbor diff`: two lists of leaves next to each other.

use std::path::Path;

use alloy_primitives::{B256, Bytes};
use anyhow::{Context, Result, bail};
use arbor_state::{Settings, TreeKind, Zeros};
use serde::Serialize;

use crate::args::Diff as Args;
use crate::leaf_file::LeafFile;
use crate::leaf_list::{HashedTree, LeafList, ListedLeaf, OfDatabase, no_names};
use crate::output;

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
    let (a, b) = lists(args)?;
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

/// Reads both lists.
fn lists(args: &Args) -> Result<(LeafList, LeafList)> {
    if args.a == Path::new("-") && args.b == Path::new("-") {
        bail!("standard input (-) can be one of the two lists, not both");
    }
    let (a, b) = (Side::read(&args.a)?, Side::read(&args.b)?);
    let asked = asked_tree(args, [&a, &b])?;
    refuse_other_trees(args, asked, [&a, &b])?;
    // A database with another tree does not know which leaves were there.
    let is_other = [&a, &b].into_iter().any(|side| side.is_other(asked));
    let of_accounts = asked.filter(|_| is_other);
    if let Some((tree, _)) = of_accounts
        && tree.zeros == Zeros::Kept
        && ![&a, &b].into_iter().all(|side| side.is_other(asked))
    {
        output::tell(&format!(
            "the leaves of zeros that {} keeps of what is gone are left out of databases: not both have that tree",
            tree.name
        ));
    }
    let leaves = |side: Side, path: &Path| {
        let leaves = side.leaves(of_accounts);
        leaves.with_context(|| format!("reading {}", path.display()))
    };
    Ok((leaves(a, &args.a)?, leaves(b, &args.b)?))
}

/// One of the two that are compared.
enum Side {
    Database(OfDatabase),
    File(LeafFile),
}

/// The tree that databases are compared by, and its hash function.
type Asked = Option<(&'static TreeKind, &'static str)>;

impl Side {
    fn read(path: &Path) -> Result<Self> {
        let read = match path.is_dir() {
            true => OfDatabase::open(path).map(Self::Database),
            false => LeafFile::read(path).map(Self::File),
        };
        read.with_context(|| format!("reading {}", path.display()))
    }

    /// The tree of a database.
    fn own_tree(&self) -> Asked {
        match self {
            Self::Database(found) => Some(found.tree()),
            Self::File(_) => None,
        }
    }

    /// Whether it is a database with another tree than the one that is asked for.
    fn is_other(&self, asked: Asked) -> bool {
        let name = |(tree, hash): (&'static TreeKind, &'static str)| (tree.name, hash);
        match (self.own_tree(), asked) {
            (Some(own), Some(asked)) => name(own) != name(asked),
            _ => false,
        }
    }

    /// The tree that the leaves are of, if that is known.
    fn tree(&self, asked: Asked) -> Option<HashedTree> {
        match self {
            Self::Database(_) => {
                let (tree, hash) = asked.or(self.own_tree())?;
                Some(HashedTree::new(tree, hash))
            }
            Self::File(file) => file.tree.clone(),
        }
    }

    /// The leaves of a file; those of a database's own tree, or those that its accounts have in another.
    fn leaves(self, of_accounts: Asked) -> Result<LeafList> {
        match (self, of_accounts) {
            (Self::File(file), _) => Ok(file.leaves),
            (Self::Database(found), Some((tree, hash))) => found.leaves_in(tree, hash),
            (Self::Database(found), None) => {
                let leaves = found.own_leaves()?;
                leaves.ok_or_else(|| no_names(found.tree().0))
            }
        }
    }
}

/// The tree that is asked for. Without `--hash` it has the hash function of the first database with that tree.
fn asked_tree(args: &Args, sides: [&Side; 2]) -> Result<Asked> {
    let Some(tree) = args.tree else {
        return Ok(None);
    };
    let own = sides.into_iter().filter_map(Side::own_tree);
    let own = own.filter(|(own, _)| own.name == tree.name);
    let own = own.map(|(_, hash)| hash.to_owned()).next();
    let settings = Settings {
        hash: args.hash.clone().or(own),
        ..Settings::default()
    };
    let made = (tree.make)(&settings).context("--hash")?;
    Ok(Some((tree, made.hash())))
}

/// Refuses leaves of different trees: their keys are not the same, whatever their states are.
fn refuse_other_trees(args: &Args, asked: Asked, [a, b]: [&Side; 2]) -> Result<()> {
    match (a.tree(asked), b.tree(asked)) {
        (Some(of_a), Some(of_b)) if of_a != of_b => bail!(
            "the trees differ: {} has leaves of {of_a}, {} of {of_b}. Leaves of different trees have different keys, so \
             nothing was compared. If a side is a database, --tree T takes the leaves that its accounts have in the tree T",
            args.a.display(),
            args.b.display()
        ),
        _ => Ok(()),
    }
}
