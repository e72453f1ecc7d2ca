//! The bytes of stored records.

use crate::support::change;
use arbor_tree_verkle::{Form, MemoryTree, NodeKey, Settings, Value};

const PLAIN: Form = Form {
    compressed: false,
    images: false,
    leaf_commitments: false,
    values: false,
    whole: false,
};

/// The node at this depth above the values of one leaf, which hangs below the root.
fn node(form: Form, depth: usize, values: &[(u8, Value)]) -> String {
    let mut tree = MemoryTree::new();
    let settings = Settings {
        form,
        ..Settings::default()
    };
    let key = |suffix| std::array::from_fn(|i| if i == 31 { suffix } else { 0xab });
    let changes = values
        .iter()
        .map(|(suffix, value)| (key(*suffix), Some(*value)));
    change(&mut tree, &settings, &changes.collect::<Vec<_>>());
    hex::encode(&tree.records()[&NodeKey::on_way(&[0xab; 31], depth)])
}

/// One leaf of three values, in both halves, below the root.
fn record(form: Form, depth: usize) -> String {
    node(
        form,
        depth,
        &[0, 1, 200].map(|suffix| (suffix, [suffix; 32])),
    )
}

#[test]
fn an_internal_node() {
    let compressed = Form {
        compressed: true,
        ..PLAIN
    };
    let images = Form {
        images: true,
        ..PLAIN
    };
    let found = [PLAIN, compressed, images].map(|form| record(form, 0));
    assert_eq!(
        found,
        [
            concat!(
                "0001ab00602b0edd3b8da62b229eeaa2b774331709cbd27d55c7ca8042271a55726fc8a16c6840243b8ae2537da4360462eb",
                "68fe5434e57cd72f2c65e818f8ede999100e"
            ),
            "0201ab00602b0edd3b8da62b229eeaa2b774331709cbd27d55c7ca8042271a55726fc8a1",
            concat!(
                "0401ab00602b0edd3b8da62b229eeaa2b774331709cbd27d55c7ca8042271a55726fc8a1236496c3f4fa5f4f936046b283",
                "6f60e4726887c49deeb149c33a7a88989e0e83"
            )
        ]
    );
}

#[test]
fn a_leaf() {
    let everything = Form {
        compressed: true,
        images: true,
        leaf_commitments: true,
        values: false,
        whole: false,
    };
    let found = [PLAIN, everything].map(|form| record(form, 1));
    assert_eq!(
        found,
        [
            concat!(
                "01abababababababababababababababababababababababababababababab030001c84cb3058118f4e04f056009fa2af9c4",
                "7fbcd4322258413a9800019abad775c6e6619b54f0cb61bb1e7c81007456b5827b46420e74fad73c993619fe839c138e8032",
                "37ff43a92301b10486c4f1d26505816b7060504b6731fb386732b36d5c1ad267f083172fc66901af849ac89f08561f1d0405",
                "d5d5df7b0cb74aceca51f2c0a6"
            ),
            concat!(
                "0fabababababababababababababababababababababababababababababab030001c84cb3058118f4e04f056009fa2af9c4",
                "7fbcd4322258413a9800019abad775c6e63237ff43a92301b10486c4f1d26505816b7060504b6731fb386732b36d5c1ad262",
                "aeb0ef2c5e21799ab5088a328f68013d29a330fb427aaa1611fa3fef40e4ce754a2245e5802d897a03adeed4451ba37276cc",
                "e808fcd21f22684d134416381b"
            )
        ]
    );
}

#[test]
fn a_leaf_of_few_values() {
    let few = Form {
        images: true,
        values: true,
        ..PLAIN
    };
    let no_code = hex::decode("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    let no_code: [u8; 32] = no_code.expect("hex").try_into().expect("32 bytes");
    let mut small = [0; 32];
    small[30] = 7;
    // The upper half's two values would take more bytes than a point.
    let values = [(0, small), (1, no_code), (200, [200; 32]), (201, [201; 32])];
    let record = node(few, 1, &values);
    let front = concat!(
        "15",
        "abababababababababababababababababababababababababababababab",
        "040001c8c9",
        "020700",
        "21"
    );
    assert_eq!(record[..front.len()], *front);
    assert_eq!(record.len(), front.len() + 2 * (64 + 32));
}

#[test]
fn a_leaf_with_all_its_values() {
    let without = Form {
        whole: false,
        ..Form::PUBLISHED
    };
    let (with, without) = (record(Form::PUBLISHED, 1), record(without, 1));
    let head = 2 * (1 + 30 + 4);
    let values = [0, 1, 200].map(|value| hex::encode([value; 32])).concat();
    assert_eq!((&with[..2], &without[..2]), ("49", "09"));
    assert_eq!(
        with[2..],
        [&without[2..head], &values, &without[head..]].concat()
    );
}

#[test]
fn a_node_with_many_children_has_a_bitmap() {
    let mut tree = MemoryTree::new();
    let changes: Vec<_> = (0..40).map(|i| ([i * 5; 32], Some([1; 32]))).collect();
    let settings = Settings {
        form: PLAIN,
        ..Settings::default()
    };
    change(&mut tree, &settings, &changes);
    let record = &tree.records()[&NodeKey::ROOT];
    assert_eq!(record.len(), 1 + 33 + 1 + 64);
    let expected = "00ff218410420821841042082184104208218410420821841042080000000000000000";
    assert_eq!(hex::encode(&record[..35]), expected);
}
