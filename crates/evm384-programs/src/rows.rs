//! Contracts beside what they stand for: measurements that check results before they time them.

use std::time::{Duration, Instant};

use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12, blst_p1_affine, blst_p2_affine};
use revm::precompile::{EthPrecompileResult, bls12_381 as eip2537, bn254};
use revm::primitives::Bytes;

use crate::bls12_381::{Goal, Group, Part};
use crate::programs::verkle::Statement;
use crate::{AMPLE_GAS, BuiltIn};
use arbor_evm384::{Backend, GasSchedule, Interface, Machine, Offsets, Operation, Setup, apply};

/// One way to a result.
pub struct Row {
    /// What computes it.
    pub name: String,
    /// What it costs, if that is known.
    pub gas: Option<u64>,
    /// The shortest time so far.
    pub fastest: Duration,
    run: Box<dyn FnMut() -> Option<Bytes>>,
}

/// Ways to the same result.
pub struct Table {
    /// What is computed.
    pub name: &'static str,
    /// How.
    pub rows: Vec<Row>,
    /// Rows, each with one that makes every product twice.
    twice: Vec<(usize, usize)>,
}

/// Two rows of a table disagree, or one has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{table}: {row} has another result than the first row, or none")]
pub struct Different {
    table: &'static str,
    row: String,
}

/// How many operations a contract executes on its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Multiplications.
    pub mul: u64,
    /// Additions and subtractions.
    pub add: u64,
}

impl Row {
    /// Anything that has a result.
    pub fn new(
        name: impl Into<String>,
        gas: Option<u64>,
        run: impl FnMut() -> Option<Bytes> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            gas,
            fastest: Duration::MAX,
            run: Box::new(run),
        }
    }

    fn of_contract(contract: BuiltIn, setup: Setup) -> Self {
        let mut machine = machine(contract, setup);
        let sample: Bytes = contract.sample().into();
        let gas = machine
            .call(sample.clone(), AMPLE_GAS)
            .map(|outcome| outcome.gas_used);
        let executor = if setup.engine { "engine" } else { "revm" };
        let name = if contract.uses_operations() {
            format!("{executor}, {}, {}", setup.interface, setup.backend.name())
        } else {
            format!("{executor}, plain EVM")
        };
        Self::new(name, gas.ok(), move || {
            let outcome = machine.call(sample.clone(), AMPLE_GAS).ok()?;
            outcome.output().cloned()
        })
    }

    /// Native code for what a contract takes and returns in Montgomery form, which is blst's own.
    fn of_blst(contract: BuiltIn) -> Option<Self> {
        let BuiltIn::Pairing(part) = contract else {
            return None;
        };
        let sample = residues(&contract.sample());
        let mut run: Box<dyn FnMut() -> Bytes> = match (part, sample.as_slice()) {
            (Part::Pairing, &[x, y, x0, x1, y0, y1]) => {
                let p = blst_p1_affine { x, y };
                let [x, y] = [[x0, x1], [y0, y1]].map(|fp| blst_fp2 { fp });
                let q = blst_p2_affine { x, y };
                Box::new(move || bytes(&blst_fp12::miller_loop(&q, &p).final_exp()))
            }
            (Part::FinalExponentiation, &[a, b, c, d, e, f, g, h, i, j, k, l]) => {
                let fp6 = |parts: [[blst_fp; 2]; 3]| blst_fp6 {
                    fp2: parts.map(|fp| blst_fp2 { fp }),
                };
                let (low, high) = ([[a, b], [c, d], [e, f]], [[g, h], [i, j], [k, l]]);
                let f = blst_fp12 {
                    fp6: [low, high].map(fp6),
                };
                Box::new(move || bytes(&f.final_exp()))
            }
            _ => return None,
        };
        Some(Self::new("blst", None, move || Some(run())))
    }

    fn of_precompile(contract: BuiltIn) -> Option<Self> {
        let precompile: fn(&[u8]) -> EthPrecompileResult = match contract {
            BuiltIn::Pairing(Part::Check) => |input| eip2537::pairing::pairing(input, AMPLE_GAS),
            BuiltIn::Addition(Group::G1) => |input| eip2537::g1_add::g1_add(input, AMPLE_GAS),
            BuiltIn::Addition(Group::G2) => |input| eip2537::g2_add::g2_add(input, AMPLE_GAS),
            BuiltIn::Multiples(Group::G1) => |input| eip2537::g1_msm::g1_msm(input, AMPLE_GAS),
            BuiltIn::Multiples(Group::G2) => |input| eip2537::g2_msm::g2_msm(input, AMPLE_GAS),
            BuiltIn::MapToG2 => |input| eip2537::map_fp2_to_g2::map_fp2_to_g2(input, AMPLE_GAS),
            BuiltIn::Bn254Multiple => {
                |input| bn254::run_mul(input, bn254::mul::ISTANBUL_MUL_GAS_COST, AMPLE_GAS)
            }
            _ => return None,
        };
        let sample = contract.sample();
        let gas = precompile(&sample).ok().map(|output| output.gas_used);
        Some(Self::new("precompile", gas, move || {
            precompile(&sample).ok().map(|output| output.bytes)
        }))
    }
}

impl Table {
    /// A contract under every interface, in revm's interpreter and in the engine, beside blst, the precompile and plain EVM code where there are any.
    #[must_use]
    pub fn of(contract: BuiltIn) -> Self {
        let native = [Row::of_blst(contract), Row::of_precompile(contract)];
        let mut rows: Vec<Row> = native.into_iter().flatten().collect();
        if let Some(of_words) = contract.of_words() {
            rows.extend(contracts(of_words));
        }
        rows.extend(contracts(contract));
        let mut table = Self {
            name: contract.name(),
            rows,
            twice: Vec::new(),
        };
        if contract == BuiltIn::Pairing(Part::Pairing) {
            table.add_comparisons(contract);
        }
        table
    }

    /// Offsets on the stack one by one instead of packed, and each product made twice.
    fn add_comparisons(&mut self, contract: BuiltIn) {
        let setup = |interface, engine| Setup {
            engine,
            ..Setup::new(interface, GasSchedule::MODEL_A)
        };
        let row = Row::of_contract(contract, setup(Interface::Stack, false));
        self.rows.push(row);
        let usual = setup(Interface::V7, false);
        if usual.backend != Backend::MulxAdx {
            return;
        }
        for engine in [false, true] {
            let setup = Setup { engine, ..usual };
            let once = Row::of_contract(contract, setup).name;
            let once = self.rows.iter().position(|row| row.name == once);
            let backend = Backend::ProductsTwice;
            let twice = Row::of_contract(contract, Setup { backend, ..setup });
            self.twice.extend(once.map(|once| (once, self.rows.len())));
            self.rows.push(twice);
        }
    }

    /// The share of products in the time of rows for which that was measured: what making them twice adds.
    pub fn product_shares(&self) -> impl Iterator<Item = (&str, f64)> {
        self.twice.iter().map(|&(once, twice)| {
            let [once, twice] = [once, twice].map(|index| &self.rows[index]);
            let added = twice.fastest.as_secs_f64() - once.fastest.as_secs_f64();
            (once.name.as_str(), added / once.fastest.as_secs_f64())
        })
    }

    /// All that is measured.
    #[must_use]
    pub fn measured() -> [BuiltIn; 14] {
        [
            BuiltIn::Pairing(Part::MillerLoop),
            BuiltIn::Pairing(Part::FinalExponentiation),
            BuiltIn::Pairing(Part::Pairing),
            BuiltIn::Pairing(Part::Check),
            BuiltIn::Addition(Group::G1),
            BuiltIn::Addition(Group::G2),
            BuiltIn::Multiples(Group::G1),
            BuiltIn::Multiples(Group::G2),
            BuiltIn::MapToG2,
            BuiltIn::VerifySignature,
            BuiltIn::Bn254Multiple,
            BuiltIn::Poseidon,
            BuiltIn::Sha1,
            BuiltIn::InnerProduct(Statement::Opening),
        ]
    }

    /// Runs every row once for its result, then all of them in turns, so many rounds.
    ///
    /// # Errors
    ///
    /// [`Different`] if results are not equal.
    pub fn measure(&mut self, rounds: u32) -> Result<(), Different> {
        let expected = self.rows.first_mut().and_then(|row| (row.run)());
        for row in &mut self.rows {
            let result = (row.run)();
            if result.is_none() || result != expected {
                return Err(Different {
                    table: self.name,
                    row: row.name.clone(),
                });
            }
        }
        for _ in 0..rounds {
            for row in &mut self.rows {
                let begin = Instant::now();
                std::hint::black_box((row.run)());
                row.fastest = row.fastest.min(begin.elapsed());
            }
        }
        Ok(())
    }
}

impl Executed {
    /// Of a contract written for time, on its sample: what gas says under schedules in which only one kind costs anything.
    #[must_use]
    pub fn by(contract: BuiltIn) -> Option<Self> {
        let gas = |mul: u16, add: u16| {
            let schedule = GasSchedule {
                mul,
                add,
                sub: add,
                ..GasSchedule::MODEL_A
            };
            let mut machine = machine(contract, Setup::new(Interface::V7, schedule));
            let outcome = machine.call(contract.sample().into(), AMPLE_GAS).ok()?;
            Some(outcome.gas_used)
        };
        let nothing = gas(0, 0)?;
        Some(Self {
            mul: gas(1, 0)? - nothing,
            add: gas(0, 1)? - nothing,
        })
    }

    /// How long the operations alone take.
    #[must_use]
    pub fn estimate(self, backend: Backend) -> [Duration; 2] {
        let seconds = |operation, count: u64| {
            Duration::from_secs_f64(seconds_each(backend, operation) * count as f64)
        };
        [
            seconds(Operation::Mul, self.mul),
            seconds(Operation::Add, self.add),
        ]
    }
}

/// Seconds of an operation among others of its kind, each of which reads what the one before wrote.
fn seconds_each(backend: Backend, operation: Operation) -> f64 {
    const TIMES: u32 = 10_000;
    let modulus = crate::bls12_381::MODULUS;
    let mut memory = vec![0; 4 * 64];
    memory[..48].copy_from_slice(&modulus.to_le_bytes::<48>());
    memory[48..56].copy_from_slice(&0x89f3_fffc_fffc_fffd_u64.to_le_bytes());
    for slot in [64, 128] {
        memory[slot..slot + 48].copy_from_slice(
            &(modulus / arbor_evm384::reference::U384::from(slot)).to_le_bytes::<48>(),
        );
    }
    let offsets = Offsets {
        out: 64,
        x: 64,
        y: 128,
        modulus: 0,
    };
    let rounds = (0..20).map(|_| {
        let begin = Instant::now();
        for _ in 0..TIMES {
            apply(backend, operation, &mut memory, offsets);
        }
        begin.elapsed().as_secs_f64() / f64::from(TIMES)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// Residues of 48 bytes each, little-endian.
fn residues(bytes: &[u8]) -> Vec<blst_fp> {
    let (residues, _) = bytes.as_chunks::<48>();
    let limbs = |residue: &[u8; 48]| {
        let (limbs, _) = residue.as_chunks::<8>();
        std::array::from_fn(|index| u64::from_le_bytes(limbs[index]))
    };
    let residues = residues.iter().map(|residue| blst_fp { l: limbs(residue) });
    residues.collect()
}

fn bytes(f: &blst_fp12) -> Bytes {
    let residues = f
        .fp6
        .iter()
        .flat_map(|six| &six.fp2)
        .flat_map(|two| &two.fp);
    let limbs = residues.flat_map(|residue| residue.l);
    limbs.flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into()
}

fn machine(contract: BuiltIn, setup: Setup) -> Machine {
    let code = contract.program(setup.interface, Goal::Time).code;
    Machine::with_others(setup, code, &contract.others(setup.interface, Goal::Time))
}

fn contracts(contract: BuiltIn) -> Vec<Row> {
    let interfaces = if contract.uses_operations() {
        &Interface::ON_MEMORY[..]
    } else {
        &Interface::ON_MEMORY[..1]
    };
    let mut rows = Vec::new();
    for &interface in interfaces {
        for engine in [false, true] {
            let setup = Setup {
                engine,
                ..Setup::new(interface, GasSchedule::MODEL_A)
            };
            rows.push(Row::of_contract(contract, setup));
        }
    }
    rows
}
