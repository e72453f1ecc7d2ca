//! Hashes, bare vectors, tree keys, and what is done with points.

use super::{Study, naive_sum, scalar_bytes};
use crate::{
    inputs,
    measure::{Case, Failed, Row},
};
use arbor_hashing::{Backend, Keccak, keccak256, keccak256_fixed};
use arbor_ipa::{Fr, Point, Term, Trust};

/// Messages, points or keys that are worked on together.
const BATCH: u64 = 1024;

/// Keys of a batch.
const KEYS: u64 = 256;

/// Addresses that the repeated keys share.
const ADDRESSES: u64 = 8;

impl Study<'_> {
    /// Keccak-256 of one length. The definition here is the portable permutation, which is tested against published digests.
    pub(super) fn keccak(&mut self, length: usize) -> Result<Row, Failed> {
        let message = |i: u64| -> Vec<u8> {
            let bytes =
                (0..length.div_ceil(32) as u64).flat_map(|j| inputs::digest("message", 64 * i + j));
            bytes.take(length).collect()
        };
        let messages: Vec<_> = (0..BATCH).map(message).collect();
        let portable = Keccak::on(Backend::Portable).unwrap_or_default();
        self.measure(Case {
            name: format!("keccak/{length}"),
            what: format!("Keccak-256 of {length} bytes"),
            values: 1,
            inputs: &messages,
            naive: &|message| portable.hash(message),
            one: &|message| keccak256(message),
            many: Some(&|messages| {
                let mut digests = vec![[0; 32]; messages.len()];
                arbor_hashing::keccak256_batch(messages, &mut digests);
                digests
            }),
            bytes: &|digest| digest.to_vec(),
        })
    }

    pub(super) fn keccaks(&mut self) -> Result<(), Failed> {
        for length in [32, 64, 128, 256, 512, 1024] {
            let row = self.keccak(length)?;
            self.rows.push(row);
        }
        Ok(())
    }

    /// Commitments to the first N of 256 scalars, all of full length.
    pub(super) fn vectors(&mut self) -> Result<(), Failed> {
        for values in [1, 5, 16, 64, 256] {
            let vector = |i: u64| -> Vec<Term> {
                (0..values)
                    .map(|k| (k, inputs::scalar(256 * i + k as u64)))
                    .collect()
            };
            let vectors: Vec<_> = (0..64).map(vector).collect();
            let committer = self.committer;
            self.add(Case {
                name: format!("vector/{values}"),
                what: format!("commitment to {values} full scalars"),
                values,
                inputs: &vectors,
                naive: &|terms| naive_sum(terms),
                one: &|terms| committer.sum(terms),
                many: Some(&|lists| committer.sums(lists)),
                bytes: &|point| point.to_bytes().to_vec(),
            })?;
        }
        Ok(())
    }

    /// Keys of an account and of a slot: by Keccak as Merkle-Patricia tries have them, by Pedersen hash as the Verkle tree has.
    pub(super) fn keys(&mut self) -> Result<(), Failed> {
        let addresses: Vec<[u8; 20]> = (0..KEYS)
            .map(|i| {
                let mut short = [0; 20];
                short.copy_from_slice(&inputs::address(i)[12..]);
                short
            })
            .collect();
        let slots: Vec<[u8; 32]> = (0..KEYS).map(|i| inputs::digest("slot", i)).collect();
        let portable = Keccak::on(Backend::Portable).unwrap_or_default();
        self.add(Case {
            name: "key/keccak-address".into(),
            what: "Merkle-Patricia key of an address".into(),
            values: 1,
            inputs: &addresses,
            naive: &|address| portable.hash(address),
            one: &|address| keccak256(address),
            many: Some(&|addresses| {
                let mut keys = vec![[0; 32]; addresses.len()];
                keccak256_fixed(addresses, &mut keys);
                keys
            }),
            bytes: &|key| key.to_vec(),
        })?;
        self.add(Case {
            name: "key/keccak-slot".into(),
            what: "Merkle-Patricia key of a slot".into(),
            values: 1,
            inputs: &slots,
            naive: &|slot| portable.hash(slot),
            one: &|slot| keccak256(slot),
            many: Some(&|slots| {
                let mut keys = vec![[0; 32]; slots.len()];
                keccak256_fixed(slots, &mut keys);
                keys
            }),
            bytes: &|key| key.to_vec(),
        })?;
        self.verkle_keys()
    }

    fn verkle_keys(&mut self) -> Result<(), Failed> {
        type Key = ([u8; 32], [u8; 32]);
        let committer = self.committer;
        let naive = |&(address, index): &Key| -> [u8; 31] {
            let half = |bytes: &[u8; 32], i: usize| Fr::from_le_half(&bytes.as_chunks().0[i]);
            let terms = [
                (0, Fr::from(2u64 + 256 * 64)),
                (1, half(&address, 0)),
                (2, half(&address, 1)),
                (3, half(&index, 0)),
                (4, half(&index, 1)),
            ];
            let mut stem = [0; 31];
            stem.copy_from_slice(&naive_sum(&terms).map_to_field().to_le_bytes()[..31]);
            stem
        };
        let headers: Vec<Key> = (0..KEYS).map(|i| (inputs::address(i), [0; 32])).collect();
        let slots: Vec<Key> = (0..KEYS)
            .map(|i| (inputs::address(i), inputs::slot_index(i)))
            .collect();
        for (name, what, keys) in [
            ("key/header", "Verkle stem of an account's header", &headers),
            ("key/slot", "Verkle stem of a random slot", &slots),
        ] {
            self.add(Case {
                name: name.into(),
                what: what.into(),
                values: 1,
                inputs: keys,
                naive: &naive,
                one: &|key| committer.stems(&[*key])[0],
                many: Some(&|keys| committer.stems(keys)),
                bytes: &|stem| stem.to_vec(),
            })?;
        }

        let repeated: Vec<Key> = (0..KEYS)
            .map(|i| (inputs::address(i % ADDRESSES), inputs::slot_index(i)))
            .collect();
        let addresses: Vec<_> = (0..ADDRESSES).map(inputs::address).collect();
        let kept = committer.address_commitments(&addresses);
        let with_kept: Vec<_> = (0..KEYS)
            .map(|i| (kept[(i % ADDRESSES) as usize], i as usize))
            .collect();
        self.add(Case {
            name: "key/slot-repeated".into(),
            what: "Verkle stem of a random slot, address known".into(),
            values: 1,
            inputs: &with_kept,
            naive: &|&(_, i)| naive(&repeated[i]),
            one: &|&(kept, i)| committer.stems_of_addresses(&[(kept, repeated[i].1)])[0],
            many: Some(&|keys| {
                let keys: Vec<_> = keys
                    .iter()
                    .map(|&(kept, i)| (kept, repeated[i].1))
                    .collect();
                committer.stems_of_addresses(&keys)
            }),
            bytes: &|stem| stem.to_vec(),
        })
    }

    /// Images in the scalar field, compressed encodings, and their decoding with all checks.
    pub(super) fn points(&mut self) -> Result<(), Failed> {
        let lists: Vec<[Term; 1]> = (0..BATCH).map(|i| [(0, inputs::scalar(256 * i))]).collect();
        let points = self.committer.sums(&lists);
        let encodings = Point::to_bytes_batch(&points);
        self.add(Case {
            name: "point/map".into(),
            what: "image of a point in the scalar field".into(),
            values: 1,
            inputs: &points,
            // The image by the encoding: x/y has the same sign for both representatives.
            naive: &|point| {
                Point::from_bytes(&point.to_bytes()).map_or(Fr::ZERO, |point| point.map_to_field())
            },
            one: &|point| point.map_to_field(),
            many: Some(&|points| Point::map_to_field_batch(points)),
            bytes: &scalar_bytes,
        })?;
        self.add(Case {
            name: "point/compress".into(),
            what: "compressed encoding of a point".into(),
            values: 1,
            inputs: &points,
            naive: &|point| (*point + *point - *point).to_bytes(),
            one: &|point| point.to_bytes(),
            many: Some(&|points| Point::to_bytes_batch(points)),
            bytes: &|bytes| bytes.to_vec(),
        })?;
        let by_encoding = |encoding: &[u8; 32]| {
            let index = encodings.iter().position(|other| other == encoding);
            index.map(|index| points[index])
        };
        self.add(Case {
            name: "point/decompress".into(),
            what: "decoding of a point, with subgroup check".into(),
            values: 1,
            inputs: &encodings,
            naive: &by_encoding,
            one: &|encoding| Point::from_bytes(encoding).ok(),
            many: Some(&|encodings| {
                let decoded = Point::from_bytes_batch(encodings, Trust::Untrusted);
                decoded.into_iter().map(Result::ok).collect()
            }),
            bytes: &|point| point.map_or(Vec::new(), |point| point.to_bytes().to_vec()),
        })
    }
}
