//! A store of keys and values with proofs, for those who have state but no Ethereum: a list of
//! registered devices.
//!
//! The store keeps every device's key under the hash of its name. Anybody who knows a root can
//! check that a device is registered, or that it is not, without the store.

use std::error::Error;

use arbor_database::primitives::{B256, keccak256};
use arbor_database::{KeyValueWrite, OpenOptions, Retain, Verdict, Version};

/// A device's place in the store.
fn place(name: &str) -> B256 {
    keccak256(name)
}

/// Returns how many of the proven devices are registered. This is what somebody does who has a root
/// and a file, and no database.
fn check(file: &[u8], root: B256) -> Result<usize, Box<dyn Error>> {
    let proof = arbor_verify::standard().read(serde_json::from_slice(file)?)?;
    match proof.verify(root)? {
        Verdict::True(claims) => {
            let registered = claims.leaves.iter().filter(|leaf| leaf.value.is_some());
            Ok(registered.count())
        }
        Verdict::False(reason) => Err(format!("a false proof: {reason}").into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    for tree_name in ["eip8297", "ar16mt"] {
        let options = OpenOptions::new().tree(tree_name).retain(Retain::Last(100));
        let path = dir.path().join(tree_name);
        let mut tree = options.open_key_value(&path)?;
        let (lamp, door) = (place("lamp"), place("door"));
        let registered = tree.extend(&[
            KeyValueWrite::put(lamp, keccak256("the lamp's key")),
            KeyValueWrite::put(door, keccak256("the door's key")),
        ])?;
        tree.extend(&[KeyValueWrite::put(lamp, keccak256("the lamp's second key"))])?;
        if tree_name == "eip8297" {
            tree.extend(&[KeyValueWrite::delete(door)])?;
            assert_eq!(tree.get(door)?, None);
        } else {
            // AR16MT (amortized radix-16 Merkle tree) keeps every leaf: a key gets another value,
            // and is never deleted.
            let refused = tree.extend(&[KeyValueWrite::delete(door)]);
            println!("{tree_name}: {}", refused.err().ok_or("a deletion")?);
            tree.extend(&[KeyValueWrite::put(door, B256::ZERO)])?;
            let index = tree.get(door)?.and_then(|entry| entry.index);
            assert_eq!(index, Some(2));
        }
        tree.flush()?;
        drop(tree);

        // The folder remembers its tree. Both devices are proven as they were at the first version.
        let mut tree = OpenOptions::new().open_key_value(&path)?;
        let then = tree.at(Version(0))?;
        assert_eq!(then.root(), registered);
        let mut file = Vec::new();
        let proof = then.prove(&[lamp, door, place("window")])?;
        proof.write_json(&mut file, false)?;
        let shown = check(&file, registered)?;
        println!(
            "{tree_name}: {shown} of 3 devices were registered, in a proof of {} bytes",
            file.len()
        );
        assert_eq!(shown, 2);

        let root = tree.root();
        assert!(check(&file, root).is_err());
        tree.rollback(Version(0))?;
        assert_eq!(tree.root(), registered);
        let report = tree.verify()?;
        assert!(report.is_ok(), "{:?}", report.faults);
        println!(
            "{tree_name}: rolled back, {} entries verified",
            report.entries
        );
    }
    Ok(())
}
