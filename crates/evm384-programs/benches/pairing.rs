//! One pairing and the check of two pairs: blst, revm's precompile, and our contracts in revm's interpreter and in the engine.
//!
//! `cargo bench -p arbor-evm384-programs`; every result is compared with blst's before it is timed.

use std::hint::black_box;

use arbor_evm384::engine::Decoded;
use arbor_evm384::{Backend, GasSchedule, Interface, Machine, Setup};
use arbor_evm384_programs::bls12_381::{Goal, Pairing, Part};
use blst::{blst_fp, blst_fp12, blst_p1_affine, blst_p2_affine};
use criterion::{Criterion, criterion_group, criterion_main};
use revm::precompile::bls12_381::pairing::pairing as precompile;
use revm::primitives::Bytes;

const GAS: u64 = 16_000_000;

/// Points of order r.
fn points() -> (blst_p1_affine, blst_p2_affine) {
    // SAFETY: blst returns pointers to constants.
    unsafe {
        (
            *blst::blst_p1_affine_generator(),
            *blst::blst_p2_affine_generator(),
        )
    }
}

fn blst_pairing(p: &blst_p1_affine, q: &blst_p2_affine) -> blst_fp12 {
    let mut f = blst_fp12::default();
    let mut result = blst_fp12::default();
    // SAFETY: all pointers are to values of their types.
    unsafe {
        blst::blst_miller_loop(&mut f, q, p);
        blst::blst_final_exp(&mut result, &f);
    }
    result
}

/// Residues as they lie in memory: in Montgomery form, little-endian.
fn bytes<'a>(residues: impl IntoIterator<Item = &'a blst_fp>) -> Vec<u8> {
    let limbs = residues.into_iter().flat_map(|residue| residue.l);
    limbs.flat_map(u64::to_le_bytes).collect()
}

/// A residue as EIP-2537 has it.
fn encoded(residue: &blst_fp) -> [u8; 64] {
    let mut bytes = [0; 64];
    // SAFETY: blst writes 48 bytes.
    unsafe { blst::blst_bendian_from_fp(bytes[16..].as_mut_ptr(), residue) };
    bytes
}

/// e(P, Q) e(-P, Q) = 1.
fn two_pairs(p: &blst_p1_affine, q: &blst_p2_affine) -> Vec<u8> {
    let mut minus_y = blst_fp::default();
    // SAFETY: both pointers are to residues.
    unsafe { blst::blst_fp_cneg(&mut minus_y, &p.y, true) };
    let [x0, x1, y0, y1] = [q.x.fp[0], q.x.fp[1], q.y.fp[0], q.y.fp[1]];
    let pairs = [[p.x, p.y, x0, x1, y0, y1], [p.x, minus_y, x0, x1, y0, y1]];
    pairs.iter().flatten().flat_map(encoded).collect()
}

/// All ways to execute a contract, with their names.
fn setups() -> impl Iterator<Item = (String, Setup)> {
    Interface::ON_MEMORY.into_iter().flat_map(|interface| {
        Backend::available().flat_map(move |backend| {
            [false, true].map(|engine| {
                let name = if engine { "engine" } else { "revm" };
                let setup = Setup {
                    interface,
                    schedule: GasSchedule::MODEL_A,
                    backend,
                    engine,
                };
                (format!("{name}, {interface}, {}", backend.name()), setup)
            })
        })
    })
}

fn machine(setup: Setup, part: Part) -> Machine {
    let pairing = Pairing {
        part,
        interface: setup.interface,
        goal: Goal::Time,
    };
    Machine::new(setup, pairing.program().code)
}

fn one_pairing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one pairing");
    let (p, q) = points();
    let input = bytes([&p.x, &p.y, &q.x.fp[0], &q.x.fp[1], &q.y.fp[0], &q.y.fp[1]]);
    let result = blst_pairing(&p, &q);
    let coordinates = result.fp6.iter().flat_map(|six| &six.fp2);
    let expected = Bytes::from(bytes(coordinates.flat_map(|two| &two.fp)));
    group.bench_function("blst", |b| {
        b.iter(|| blst_pairing(black_box(&p), black_box(&q)));
    });
    for (name, setup) in setups() {
        let mut machine = machine(setup, Part::Pairing);
        let mut call = || machine.call(input.clone().into(), GAS).expect("ordinary");
        assert_eq!(call().output(), Some(&expected));
        group.bench_function(name, |b| b.iter(&mut call));
    }
    group.finish();
}

fn check_of_two_pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check of two pairs");
    let (p, q) = points();
    let input = two_pairs(&p, &q);
    let returned = precompile(&input, GAS).expect("valid").bytes;
    assert_eq!(returned.last(), Some(&1));
    group.bench_function("precompile", |b| {
        b.iter(|| precompile(black_box(&input), GAS));
    });
    for (name, setup) in setups() {
        let mut machine = machine(setup, Part::Check);
        let mut call = || machine.call(input.clone().into(), GAS).expect("ordinary");
        assert_eq!(call().output(), Some(&returned));
        group.bench_function(name, |b| b.iter(&mut call));
    }
    group.finish();
}

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for interface in Interface::ON_MEMORY {
        let pairing = Pairing {
            part: Part::Check,
            interface,
            goal: Goal::Time,
        };
        let code = interface.analyze(pairing.program().code.into());
        assert!(Decoded::new(interface, &code).operation_count() > 1000);
        let name = format!("{interface}, {} bytes", code.len());
        group.bench_function(name, |b| {
            b.iter(|| Decoded::new(interface, black_box(&code)));
        });
    }
    group.finish();
}

criterion_group!(benches, one_pairing, check_of_two_pairs, decoding);
criterion_main!(benches);
