//! wasmcurves' module in an interpreter (wasmi) and a compiler (wasmtime), as it is and with the arithmetic of the base field by the host, which is blst's.

use std::path::Path;

use blst::blst_fp;

use crate::fastest;

/// Bytes of an element of Fp12, and of a point of G1 in Jacobian coordinates.
const TARGET: usize = 12 * 48;
const POINT: usize = 3 * 48;

/// Where the module has P, Q and 1, and results may lie: behind all that it keeps for itself in its 25 pages.
struct Places {
    p: u32,
    q: u32,
    one: u32,
    free: u32,
}

/// A name, seconds of a pairing, and of two.
pub type Row = (&'static str, f64, f64);

/// The rows, for what `wasmcurves/modules.js` wrote into the folder.
pub fn rows(rounds: u32, folder: &Path) -> Vec<Row> {
    let read = |name: &str| std::fs::read(folder.join(name)).expect("modules.js wrote it");
    let places = String::from_utf8(read("places")).expect("digits");
    let places: Vec<u32> = places
        .split(' ')
        .map(|at| at.parse().expect("a number"))
        .collect();
    let places = Places {
        p: places[0],
        q: places[1],
        one: places[2],
        free: 24 << 16,
    };
    let (alone, hosted) = (read("alone.wasm"), read("hosted.wasm"));
    vec![
        interpreted::row("wasmcurves, wasmi", &alone, &places, rounds),
        interpreted::row("wasmcurves, wasmi, host's field", &hosted, &places, rounds),
        compiled::row("wasmcurves, wasmtime", &alone, &places, rounds),
        compiled::row(
            "wasmcurves, wasmtime, host's field",
            &hosted,
            &places,
            rounds,
        ),
    ]
}

type Binary = unsafe extern "C" fn(*mut blst_fp, *const blst_fp, *const blst_fp);

/// r = x op y, in Montgomery form with R = 2^384, as both have it.
fn apply(operation: Binary, memory: &mut [u8], [x, y, r]: [u32; 3]) {
    let read = |at: u32| {
        let bytes: &[u8; 48] = memory[at as usize..].first_chunk().expect("in memory");
        let (limbs, _) = bytes.as_chunks::<8>();
        blst_fp {
            l: std::array::from_fn(|index| u64::from_le_bytes(limbs[index])),
        }
    };
    let (x, y) = (read(x), read(y));
    let mut result = blst_fp::default();
    // SAFETY: all three are residues.
    unsafe { operation(&mut result, &x, &y) };
    for (chunk, limb) in memory[r as usize..].chunks_exact_mut(8).zip(result.l) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
}

/// Both engines have the same interface but for a name, and for what it takes to define an import.
macro_rules! engine {
    ($name:ident, $engine:ident, $instantiate:ident, |$linker:ident, $store:ident, $memory:ident| $define:expr) => {
        mod $name {
            use $engine::{Caller, Engine, Linker, Memory, MemoryType, Module, Store};

            use super::*;

            pub(super) fn row(
                name: &'static str,
                code: &[u8],
                places: &Places,
                rounds: u32,
            ) -> Row {
                let engine = Engine::default();
                let module = Module::new(&engine, code).expect("valid");
                let mut store = Store::new(&engine, None::<Memory>);
                let memory = Memory::new(&mut store, MemoryType::new(25, None)).expect("25 pages");
                *store.data_mut() = Some(memory);
                let mut linker = Linker::new(&engine);
                for (name, operation) in [
                    ("f1m_add", blst::blst_fp_add as Binary),
                    ("f1m_sub", blst::blst_fp_sub),
                    ("f1m_mul", blst::blst_fp_mul),
                ] {
                    let host =
                        move |mut caller: Caller<'_, Option<Memory>>, x: u32, y: u32, r: u32| {
                            let memory = caller.data().expect("set before any call");
                            apply(operation, memory.data_mut(&mut caller), [x, y, r]);
                        };
                    linker.func_wrap("host", name, host).expect("defined once");
                }
                let square = |mut caller: Caller<'_, Option<Memory>>, x: u32, r: u32| {
                    let memory = caller.data().expect("set before any call");
                    apply(blst::blst_fp_mul, memory.data_mut(&mut caller), [x, x, r]);
                };
                linker
                    .func_wrap("host", "f1m_square", square)
                    .expect("defined once");
                {
                    let ($linker, $store, $memory) = (&mut linker, &store, memory);
                    let _ = $store;
                    $define.expect("defined once");
                }
                let instance = linker
                    .$instantiate(&mut store, &module)
                    .expect("all imports are there");
                let pairing =
                    instance.get_typed_func::<(u32, u32, u32), ()>(&mut store, "bls12381_pairing");
                let pairing = pairing.expect("exported");
                let multiply =
                    instance.get_typed_func::<(u32, u32, u32), ()>(&mut store, "ftm_mul");
                let negate = instance.get_typed_func::<(u32, u32), ()>(&mut store, "g1m_neg");
                let check = instance
                    .get_typed_func::<(u32, u32, u32, u32, u32), u32>(
                        &mut store,
                        "bls12381_pairingEq2",
                    )
                    .expect("exported");
                let &Places { p, q, one, free } = places;
                let (minus_p, f, g) = (free, free + POINT as u32, free + (POINT + TARGET) as u32);
                let target = |store: &Store<Option<Memory>>, at: u32| {
                    memory.data(store)[at as usize..][..TARGET].to_vec()
                };

                // e(P, Q) e(-P, Q) = 1, and e(P, Q)^2 is not.
                negate
                    .expect("exported")
                    .call(&mut store, (p, minus_p))
                    .expect("no trap");
                pairing.call(&mut store, (p, q, f)).expect("no trap");
                pairing.call(&mut store, (minus_p, q, g)).expect("no trap");
                multiply
                    .expect("exported")
                    .call(&mut store, (f, g, g))
                    .expect("no trap");
                assert!(
                    target(&store, g) == target(&store, one)
                        && target(&store, f) != target(&store, one)
                );
                assert!(
                    check
                        .call(&mut store, (p, q, minus_p, q, one))
                        .expect("no trap")
                        == 1
                );
                assert!(check.call(&mut store, (p, q, p, q, one)).expect("no trap") == 0);

                let pairing_s = fastest(rounds, || {
                    pairing.call(&mut store, (p, q, f)).expect("no trap")
                });
                let two_pairs_s = fastest(rounds, || {
                    check
                        .call(&mut store, (p, q, minus_p, q, one))
                        .expect("no trap")
                });
                (name, pairing_s, two_pairs_s)
            }
        }
    };
}

engine!(
    interpreted,
    wasmi,
    instantiate_and_start,
    |linker, store, memory| linker.define("env", "memory", memory)
);
engine!(compiled, wasmtime, instantiate, |linker, store, memory| {
    linker.define(store, "env", "memory", memory)
});
