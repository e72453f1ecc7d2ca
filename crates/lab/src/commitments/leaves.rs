//! Leaves of the Verkle tree: made, and changed.

use super::{Study, naive_sum, scalar_bytes};
use crate::{
    inputs,
    measure::{Case, Failed},
};
use arbor_ipa::{Fr, LeafChange, LeafCommitment, LeafValues, Term, ValueChange, value_scalars};

type Values = Vec<(u8, [u8; 32])>;

/// The field element that stands for a leaf, by the text of EIP-6800.
fn naive_leaf(stem: &[u8; 31], values: &[(u8, [u8; 32])]) -> Fr {
    let half = |upper: bool| {
        let of_half = values.iter().filter(|value| (value.0 >= 128) == upper);
        let terms = of_half.flat_map(|(suffix, value)| {
            let [low, high] = value_scalars(Some(value));
            let at = 2 * usize::from(suffix % 128);
            [(at, low), (at + 1, high)]
        });
        naive_sum(&terms.collect::<Vec<Term>>()).map_to_field()
    };
    let mut stem_bytes = [0; 32];
    stem_bytes[..31].copy_from_slice(stem);
    let stem = Fr::from_le_bytes_reduced(&stem_bytes);
    naive_sum(&[(0, Fr::ONE), (1, stem), (2, half(false)), (3, half(true))]).map_to_field()
}

/// A leaf and what is to change in it.
struct Change {
    stem: [u8; 31],
    leaf: LeafCommitment,
    changes: Vec<ValueChange>,
    /// The values afterwards.
    after: Values,
}

impl Change {
    fn as_leaf_change(&self) -> LeafChange<'_> {
        LeafChange {
            leaf: self.leaf,
            changes: &self.changes,
        }
    }
}

impl Study<'_> {
    pub(super) fn leaves(&mut self) -> Result<(), Failed> {
        for count in [1, 4, 16, 64, 256] {
            let leaves = if count > 16 { 64 } else { 256 };
            let values: Vec<_> = (0..leaves).map(|i| inputs::values(i, count)).collect();
            self.leaf(
                format!("leaf/{count}"),
                format!("leaf of {count} values"),
                &values,
            )?;
        }
        let accounts: Vec<_> = (0..256).map(inputs::account).collect();
        let what = "header leaf of an account without code".into();
        self.leaf("leaf/account".into(), what, &accounts)?;
        let contracts: Vec<_> = (0..64).map(inputs::contract).collect();
        let what = "header leaf of a contract, full".into();
        self.leaf("leaf/contract".into(), what, &contracts)
    }

    fn leaf(&mut self, name: String, what: String, values: &[Values]) -> Result<(), Failed> {
        let committer = self.committer;
        let leaves = inputs::leaves(values);
        self.add(Case {
            name,
            what,
            values: values[0].len(),
            inputs: &leaves,
            naive: &|leaf: &LeafValues| naive_leaf(&leaf.stem, leaf.values),
            one: &|leaf| committer.commit_leaves(&[*leaf])[0].field,
            many: Some(&|leaves| {
                let leaves = committer.commit_leaves(leaves);
                leaves.iter().map(|leaf| leaf.field).collect()
            }),
            bytes: &scalar_bytes,
        })
    }

    pub(super) fn updates(&mut self) -> Result<(), Failed> {
        for count in [1, 4, 16, 64, 256] {
            let changes = self.changes(count, 1);
            let what = format!("one value of a leaf of {count}, its field elements kept");
            self.update(format!("update/{count}"), what, &changes)?;
        }
        for count in [1, 4, 16, 64, 256] {
            let changes = self.changes(count, 1);
            self.update_from_points(count, &changes)?;
        }
        for changed in [1, 4, 16, 64, 256] {
            let changes = self.changes(256, changed);
            let what = format!("{changed} of 256 values of a leaf, its field elements kept");
            self.update(format!("update-many/{changed}"), what, &changes)?;
        }
        Ok(())
    }

    /// Leaves of `count` values, of which the first `changed` are replaced.
    fn changes(&self, count: usize, changed: usize) -> Vec<Change> {
        let values: Vec<_> = (0..64).map(|i| inputs::values(i, count)).collect();
        let committed = self.committer.commit_leaves(&inputs::leaves(&values));
        let change = |(i, (mut after, leaf)): (usize, (Values, LeafCommitment))| {
            let mut changes = Vec::new();
            for (suffix, value) in after.iter_mut().take(changed) {
                let new = inputs::digest("changed", 256 * i as u64 + u64::from(*suffix));
                changes.push(ValueChange {
                    suffix: *suffix,
                    old: Some(*value),
                    new: Some(new),
                });
                *value = new;
            }
            Change {
                stem: inputs::stem(i as u64),
                leaf,
                changes,
                after,
            }
        };
        values
            .into_iter()
            .zip(committed)
            .enumerate()
            .map(change)
            .collect()
    }

    fn update(&mut self, name: String, what: String, changes: &[Change]) -> Result<(), Failed> {
        let committer = self.committer;
        self.add(Case {
            name,
            what,
            values: changes[0].changes.len(),
            inputs: changes,
            naive: &|change| naive_leaf(&change.stem, &change.after),
            one: &|change| committer.update_leaves(&[change.as_leaf_change()])[0].field,
            many: Some(&|changes| {
                let changes: Vec<_> = changes.iter().map(Change::as_leaf_change).collect();
                let leaves = committer.update_leaves(&changes);
                leaves.iter().map(|leaf| leaf.field).collect()
            }),
            bytes: &scalar_bytes,
        })
    }

    /// The leaf is known by its stem and the points C1 and C2 alone, as a node's record holds it.
    fn update_from_points(&mut self, count: usize, changes: &[Change]) -> Result<(), Failed> {
        let committer = self.committer;
        let update = |changes: &[Change]| -> Vec<Fr> {
            let stored: Vec<_> = changes
                .iter()
                .map(|change| (change.stem, change.leaf.halves))
                .collect();
            let leaves = committer.fields_of_leaves(&stored);
            let changes: Vec<_> = leaves
                .into_iter()
                .zip(changes)
                .map(|(leaf, change)| LeafChange {
                    leaf,
                    changes: &change.changes,
                })
                .collect();
            let leaves = committer.update_leaves(&changes);
            leaves.iter().map(|leaf| leaf.field).collect()
        };
        self.add(Case {
            name: format!("update-from-points/{count}"),
            what: format!("one value of a leaf of {count}, from C1 and C2 alone"),
            values: 1,
            inputs: changes,
            naive: &|change| naive_leaf(&change.stem, &change.after),
            one: &|change| update(std::slice::from_ref(change))[0],
            many: Some(&update),
            bytes: &scalar_bytes,
        })
    }
}
