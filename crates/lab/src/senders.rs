//! Senders: keys recovered and hashed to addresses, in lanes and by libsecp256k1, in turn on one thread.

use crate::{inputs::digest, measure::Failed};
use arbor_metrics::Table;
use arbor_secp256k1::{Key, Method, Signed, Unrecoverable, addresses};
use secp256k1::{Message, PublicKey, SecretKey, ecdsa::RecoverableSignature};
use serde::Serialize;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Signatures in the batches that are measured if nothing else is asked for.
pub const BATCHES: [usize; 4] = [1, 8, 64, 1024];
/// Batches of at least so many signatures count for [`Results::ratio_to_libsecp256k1`].
const LARGE: usize = 64;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// What recovered in [`Row::method_us`].
    pub method: &'static str,
    /// A row for each size.
    pub batches: Vec<Row>,
    /// The largest ratio among the batches of 64 signatures and more; none if there are none.
    pub ratio_to_libsecp256k1: Option<f64>,
}

/// One size of batch: microseconds a signature, the median and the least of all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Signatures.
    pub batch: usize,
    /// Rounds, each with both methods.
    pub rounds: usize,
    /// libsecp256k1, the median.
    pub libsecp256k1_us: f64,
    /// libsecp256k1, the least.
    pub libsecp256k1_least_us: f64,
    /// The method, the median.
    pub method_us: f64,
    /// The method, the least.
    pub method_least_us: f64,
    /// The median of the rounds' ratios.
    pub ratio: f64,
}

/// Measures batches of the given sizes, each for about `budget`.
///
/// # Errors
///
/// [`Failed`] if an address is not the signer's; then nothing is timed.
pub fn run(batches: &[usize], budget: Duration) -> Result<Results, Failed> {
    let most = batches.iter().copied().max().unwrap_or(0);
    let signers: Vec<_> = (0..most as u64).map(signer).collect();
    let signed: Vec<_> = signers.iter().map(|signer| signer.0).collect();
    let keys: Vec<_> = signers.iter().map(|signer| signer.1).collect();
    let expected = addresses(&keys);
    let method = Method::detect();
    for method in [Method::LIBRARY, method] {
        for batch in batches {
            let found = senders(method, &signed[..*batch]);
            let wrong = found
                .iter()
                .zip(&expected)
                .position(|(found, expected)| found.as_ref() != Ok(expected));
            if let Some(index) = wrong {
                return Err(Failed {
                    row: format!("senders, {}, batches of {batch}", method.name()),
                    index,
                    by: "the signer's key",
                });
            }
        }
    }
    let rows = batches
        .iter()
        .map(|batch| row(method, &signed[..*batch], budget));
    let rows: Vec<_> = rows.collect();
    let large = rows.iter().filter(|row| row.batch >= LARGE);
    Ok(Results {
        method: method.name(),
        ratio_to_libsecp256k1: large.map(|row| row.ratio).reduce(f64::max),
        batches: rows,
    })
}

/// A signature, and its signer's key.
fn signer(number: u64) -> (Signed, Key) {
    // A digest that is no secret key does not come within the life of this project.
    let secret = SecretKey::from_secret_bytes(digest("secret", number))
        .expect("invariant: a hash is below the order");
    let digest = digest("transaction", number);
    let signature =
        RecoverableSignature::sign_ecdsa_recoverable(Message::from_digest(digest), &secret);
    let (id, compact) = signature.serialize_compact();
    let (halves, _) = compact.as_chunks::<32>();
    let [_, key @ ..] = PublicKey::from_secret_key(&secret).serialize_uncompressed();
    let id = id as i32;
    let signed = Signed {
        digest,
        r: halves[0],
        s: halves[1],
        y_is_odd: id & 1 == 1,
        x_is_large: id & 2 == 2,
    };
    (signed, key)
}

fn senders(method: Method, signed: &[Signed]) -> Vec<Result<[u8; 20], Unrecoverable>> {
    let found = method.recover(signed);
    let keys: Vec<_> = found.iter().map(|key| key.unwrap_or([0; 64])).collect();
    let addresses = addresses(&keys).into_iter().zip(found);
    addresses
        .map(|(address, key)| key.map(|_| address))
        .collect()
}

fn row(method: Method, signed: &[Signed], budget: Duration) -> Row {
    let mut rounds = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < budget || rounds.len() < 5 {
        let time = |method| {
            let start = Instant::now();
            black_box(senders(method, black_box(signed)));
            start.elapsed().as_secs_f64() * 1e6 / signed.len() as f64
        };
        rounds.push((time(Method::LIBRARY), time(method)));
    }
    let sorted = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<_> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (library, lanes) = (sorted(|round| round.0), sorted(|round| round.1));
    let ratios = sorted(|round| round.1 / round.0);
    let middle = rounds.len() / 2;
    Row {
        batch: signed.len(),
        rounds: rounds.len(),
        libsecp256k1_us: library[middle],
        libsecp256k1_least_us: library[0],
        method_us: lanes[middle],
        method_least_us: lanes[0],
        ratio: ratios[middle],
    }
}

/// Returns the rows as a table: microseconds a signature on one thread, medians and in parentheses the least.
#[must_use]
pub fn table(results: &Results) -> Table {
    let mut table = Table::new(["batch", "libsecp256k1", "lanes", "ratio"]);
    for row in &results.batches {
        let both = |median: f64, least: f64| format!("{median:.2} ({least:.2})");
        table.row([
            row.batch.to_string(),
            both(row.libsecp256k1_us, row.libsecp256k1_least_us),
            both(row.method_us, row.method_least_us),
            format!("{:.3}", row.ratio),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_checked_and_compared() {
        let results = run(&[1, 64], Duration::ZERO).expect("right");
        assert_eq!(results.batches.len(), 2);
        assert_eq!(
            results.ratio_to_libsecp256k1,
            Some(results.batches[1].ratio)
        );
        let none = run(&[8], Duration::ZERO).expect("right");
        assert_eq!(none.ratio_to_libsecp256k1, None);
        let text = table(&results).text(None);
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
