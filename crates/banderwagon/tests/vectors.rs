//! Published encodings, refusals and images, from ../shared/vectors (see its INDEX.md); copies of the small ones lie in testdata/.

use arbor_banderwagon::{DecodingError, Fr, Point, Trust};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../testdata/banderwagon.json")).expect("JSON")
}

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("a string");
    hex::decode(text.trim_start_matches("0x")).expect("hexadecimal")
}

fn strings<'a>(value: &'a Value, name: &str) -> Vec<&'a Value> {
    let list = value[name].as_array().expect("a list");
    assert!(!list.is_empty());
    list.iter().collect()
}

#[test]
fn doublings_of_the_generator() {
    let mut point = Point::generator();
    for expected in strings(&vectors(), "generator_doublings_compressed_be") {
        let expected = bytes(expected);
        assert_eq!(point.to_bytes().to_vec(), expected);
        assert_eq!(Point::from_bytes(&expected), Ok(point));
        point = point.double();
    }
}

#[test]
fn points_outside_the_subgroup_are_refused_unless_trusted() {
    for encoding in strings(&vectors(), "decode_must_fail_not_in_subgroup") {
        let encoding = bytes(encoding);
        let error = Point::from_bytes(&encoding).expect_err("not in the subgroup");
        assert!(
            matches!(error, DecodingError::Subgroup | DecodingError::Curve),
            "{error}"
        );
        let array: [u8; 32] = encoding.try_into().expect("32 bytes");
        let batch = Point::from_bytes_batch(&[array; 9], Trust::Untrusted);
        assert_eq!(batch, vec![Err(error); 9]);
    }
}

#[test]
fn image_of_the_generator() {
    let expected = bytes(&vectors()["group_to_field_generator_le"]);
    assert_eq!(
        Point::generator().map_to_field().to_le_bytes().to_vec(),
        expected
    );
    let batch = Point::map_to_field_batch(&[Point::generator(), Point::IDENTITY]);
    assert_eq!(batch, [Point::generator().map_to_field(), Fr::ZERO]);
}

#[test]
fn sum_of_uncompressed_points() {
    let case = &vectors()["add_uncompressed_le_xy"];
    let point = |name: &str| {
        // The vector has each coordinate's bytes in the other order, and representatives of either kind.
        let mut bytes = bytes(&case[name]);
        bytes[..32].reverse();
        bytes[32..].reverse();
        Point::from_uncompressed(&bytes, Trust::Trusted).expect("two coordinates")
    };
    assert_eq!(point("lhs") + point("rhs"), point("sum"));
}

/// jsign/verkle-test-vectors, crypto 002 to 008.
#[test]
fn outside_decoding_cases() {
    let cases: Value =
        serde_json::from_str(include_str!("../testdata/encodings.json")).expect("JSON");
    let mapped = &cases["002_map_to_field_element"];
    let point = Point::from_bytes(&bytes(&mapped["serializedPoint"])).expect("a point");
    let number = point.map_to_field().to_be_bytes();
    assert_eq!(
        decimal(&number),
        mapped["fieldElement"].as_str().expect("a number")
    );

    let highest = &cases["003_serialize_lexicographically_highest"];
    let uncompressed = |case: &Value| {
        [
            bytes(&case["serializedXCoordinate"]),
            bytes(&case["serializedYCoordinate"]),
        ]
        .concat()
    };
    let point =
        Point::from_uncompressed(&uncompressed(highest), Trust::Untrusted).expect("a point");
    assert_eq!(
        point.to_bytes().to_vec(),
        bytes(&highest["expectedSerializedPoint"])
    );
    let uncompressed = uncompressed(highest);
    assert_eq!(
        Point::to_uncompressed_batch(&[point])[0].to_vec(),
        uncompressed
    );

    let error = |name: &str| {
        let encoding = bytes(&cases[name]["serializedPoint"]);
        Point::from_bytes(&encoding).expect_err(name)
    };
    assert_eq!(
        error("005_deserialize_point_not_in_curve"),
        DecodingError::Curve
    );
    assert_eq!(
        error("006_deserialize_point_not_in_subgroup"),
        DecodingError::Subgroup
    );
    assert_eq!(
        error("007_deserialize_point_x_bigger_than_field"),
        DecodingError::Coordinate
    );
    for encoding in strings(
        &cases["008_deserialize_point_x_wrong_length"],
        "serializedPoints",
    ) {
        // One of them has an odd number of digits.
        let text = encoding
            .as_str()
            .expect("a string")
            .trim_start_matches("0x");
        let digits = "0".repeat(text.len() % 2) + text;
        let bytes = hex::decode(digits).expect("hexadecimal");
        let error = Point::from_bytes(&bytes).expect_err("the length is wrong");
        assert_eq!(
            error,
            DecodingError::Length {
                expected: 32,
                found: bytes.len()
            }
        );
    }
}

/// crypto 004: the representative with the lower y is no encoding of anything, though a database of our own may hold it.
#[test]
fn the_lower_y_is_refused_unless_trusted() {
    let cases: Value =
        serde_json::from_str(include_str!("../testdata/encodings.json")).expect("JSON");
    let lowest = &cases["004_deserialize_lexicographically_lowest"];
    let lower = [
        bytes(&lowest["serializedXCoordinate"]),
        bytes(&lowest["serializedYCoordinate"]),
    ]
    .concat();
    let refused = Point::from_uncompressed(&lower, Trust::Untrusted);
    assert_eq!(refused, Err(DecodingError::Representative));
    let point = Point::from_uncompressed(&lower, Trust::Trusted).expect("trusted");
    let higher = Point::to_uncompressed_batch(&[point])[0];
    assert_ne!(higher[..], lower[..]);
    assert_eq!(
        Point::from_uncompressed(&higher, Trust::Untrusted),
        Ok(point)
    );
}

#[test]
fn other_lengths_are_refused() {
    for length in (0..100).filter(|&length| length != 64) {
        let error = Point::from_uncompressed(&vec![0; length], Trust::Trusted);
        assert_eq!(
            error,
            Err(DecodingError::Length {
                expected: 64,
                found: length
            })
        );
    }
    let off_curve = [[0; 32], [1; 32]].concat();
    let error = Point::from_uncompressed(&off_curve, Trust::Untrusted);
    assert_eq!(error, Err(DecodingError::Curve));
}

/// Decimal digits of a number in bytes, most significant first.
fn decimal(bytes: &[u8]) -> String {
    let mut digits = vec![0u32];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let value = *digit * 256 + carry;
            (*digit, carry) = (value % 10, value / 10);
        }
        while carry > 0 {
            digits.push(carry % 10);
            carry /= 10;
        }
    }
    digits.iter().rev().map(u32::to_string).collect()
}
