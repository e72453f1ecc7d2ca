//! EIP-6690 against a model on whole integers that does what the EIP's text says, gas and memory included.

use std::collections::HashMap;

use alloy_primitives::{U256, Uint};
use arbor_evm384::{Backend, End, GasSchedule, Interface, Machine, Operation, RegisterGas, Setup};
use proptest::prelude::*;

type Wide = Uint<1600, 25>;

/// A part of a contract.
#[derive(Clone, Debug)]
enum Step {
    /// Name, offset and length of the modulus, number of registers.
    Set([u16; 4]),
    /// First word pushed last.
    Load([u16; 3]),
    Store([u16; 3]),
    Operate(Operation, [u8; 7]),
    /// MLOAD.
    Grow(u16),
    /// KECCAK256 of so many bytes at an offset.
    Hash([u16; 2]),
}

fn code(memory: &[u8], steps: &[Step]) -> Vec<u8> {
    let mut code = Vec::new();
    for (index, word) in memory.chunks_exact(32).enumerate() {
        code.push(0x7f);
        code.extend_from_slice(word);
        code.push(0x61);
        code.extend_from_slice(&(index as u16 * 32).to_be_bytes());
        code.push(0x52);
    }
    let mut with_words = |words: &[u16], ops: &[u8]| {
        for word in words.iter().rev() {
            code.push(0x61);
            code.extend_from_slice(&word.to_be_bytes());
        }
        code.extend_from_slice(ops);
    };
    for step in steps {
        match step {
            Step::Set(words) => with_words(words, &[0xc0]),
            Step::Load(words) => with_words(words, &[0xc1]),
            Step::Store(words) => with_words(words, &[0xc2]),
            Step::Operate(operation, immediate) => {
                with_words(&[], &[0xc3 + *operation as u8]);
                with_words(&[], immediate);
            }
            Step::Grow(offset) => with_words(&[*offset], &[0x51, 0x50]),
            Step::Hash(words) => with_words(words, &[0x20, 0x50]),
        }
    }
    code.extend_from_slice(&[0x59, 0x5f, 0xf3]);
    code
}

#[derive(Clone)]
struct Field {
    modulus: Wide,
    limbs: usize,
    registers: Vec<Wide>,
}

#[derive(Default)]
struct Model {
    memory: Vec<u8>,
    gas: u64,
    fields: HashMap<u16, Field>,
    active: Option<u16>,
}

/// A failed assertion.
struct Refused;

fn must(condition: bool) -> Result<(), Refused> {
    if condition { Ok(()) } else { Err(Refused) }
}

impl Model {
    fn register_bytes(&self) -> usize {
        let bytes = |field: &Field| field.registers.len() * field.limbs * 8;
        self.fields.values().map(bytes).sum()
    }

    /// Gas of all memory and registers.
    fn space_gas(&self) -> u64 {
        let words = self.memory.len() / 32 + self.register_bytes().div_ceil(32);
        (3 * words + words * words / 512) as u64
    }

    fn grow(&mut self, end: usize) {
        let length = end.next_multiple_of(32).max(self.memory.len());
        self.memory.resize(length, 0);
    }

    fn active(&mut self) -> Result<&mut Field, Refused> {
        let id = self.active.ok_or(Refused)?;
        self.fields.get_mut(&id).ok_or(Refused)
    }

    fn transfer(&mut self, count: usize) -> Result<usize, Refused> {
        let field = self.active()?;
        let size = field.limbs * 8;
        let gas = if field.modulus.bit(0) {
            count as u64 * u64::from(RegisterGas::EIP_6690.mul[field.limbs - 1])
        } else {
            3 * (count * size).div_ceil(32) as u64
        };
        self.gas += gas + 1;
        Ok(size)
    }

    fn step(&mut self, step: &Step) -> Result<(), Refused> {
        match *step {
            Step::Set([id, offset, length, count]) => {
                self.gas += 4 * 3 + 1;
                must(id <= 256)?;
                self.active = Some(id);
                if self.fields.contains_key(&id) {
                    return Ok(());
                }
                let (offset, length) = (usize::from(offset), usize::from(length));
                must(length <= 96 && offset + length <= self.memory.len())?;
                let modulus = &self.memory[offset..offset + length];
                let modulus = Wide::try_from_be_slice(modulus).expect("96 bytes");
                must(modulus.bit(0) || modulus.count_ones() == 1)?;
                must(modulus >= Wide::from(3) && count > 0 && count <= 256)?;
                let limbs = modulus.bit_len().div_ceil(64);
                if modulus.bit(0) {
                    self.gas += (limbs as f64 * 3.13 + 19.94).round() as u64;
                }
                let registers = vec![Wide::ZERO; usize::from(count)];
                self.fields.insert(
                    id,
                    Field {
                        modulus,
                        limbs,
                        registers,
                    },
                );
                must(self.register_bytes() <= 24_576)
            }
            Step::Load([to, first, count]) => {
                self.gas += 3 * 3;
                let [to, first, count] = [to, first, count].map(usize::from);
                let size = self.transfer(count)?;
                let field = self.active()?;
                must(first + count <= field.registers.len())?;
                let values = field.registers[first..first + count].to_vec();
                must(to + count * size <= self.memory.len())?;
                for (index, value) in values.into_iter().enumerate() {
                    let bytes = value.to_be_bytes::<200>();
                    self.memory[to + index * size..][..size].copy_from_slice(&bytes[200 - size..]);
                }
                Ok(())
            }
            Step::Store([first, from, count]) => {
                self.gas += 3 * 3;
                let [first, from, count] = [first, from, count].map(usize::from);
                let size = self.transfer(count)?;
                let memory = self.memory.clone();
                let field = self.active()?;
                must(first + count <= field.registers.len())?;
                must(from + count * size <= memory.len())?;
                for index in 0..count {
                    let bytes = &memory[from + index * size..][..size];
                    let value = Wide::try_from_be_slice(bytes).expect("96 bytes");
                    must(value < field.modulus)?;
                    field.registers[first + index] = value;
                }
                Ok(())
            }
            Step::Operate(operation, immediate) => {
                let [out, out_step, x, x_step, y, y_step, count] = immediate.map(usize::from);
                must(out_step > 0 && count > 0)?;
                let field = self.active()?;
                let m = field.modulus;
                let before = field.registers.clone();
                let limbs = field.limbs;
                for index in 0..count {
                    let at = |first, step| first + index * step;
                    let x = *before.get(at(x, x_step)).ok_or(Refused)?;
                    let y = *before.get(at(y, y_step)).ok_or(Refused)?;
                    let result = match operation {
                        Operation::Add => (x + y) % m,
                        Operation::Sub => (x + m - y) % m,
                        Operation::Mul => x * y % m,
                    };
                    *field.registers.get_mut(at(out, out_step)).ok_or(Refused)? = result;
                }
                let limbs_squared = 0.08 * (limbs * limbs) as f64;
                let one = match operation {
                    Operation::Mul => limbs_squared - 0.06 * limbs as f64 + 0.75,
                    Operation::Add | Operation::Sub => 0.12 * limbs as f64 + 0.58,
                };
                self.gas += count as u64 * one.round() as u64;
                Ok(())
            }
            Step::Grow(offset) => {
                self.gas += 3 + 3 + 2;
                self.grow(usize::from(offset) + 32);
                Ok(())
            }
            Step::Hash([offset, length]) => {
                let words = u64::from(length).div_ceil(32);
                self.gas += 2 * 3 + 30 + 6 * words + 2;
                if length > 0 {
                    self.grow(usize::from(offset) + usize::from(length));
                }
                Ok(())
            }
        }
    }
}

/// What memory is in the end and all of the gas, or nothing if it halts.
fn model(memory: &[u8], steps: &[Step]) -> Option<(Vec<u8>, u64)> {
    let mut model = Model {
        memory: memory.to_vec(),
        gas: memory.len() as u64 / 32 * 9,
        ..Model::default()
    };
    for step in steps {
        model.step(step).ok()?;
    }
    let gas = model.gas + model.space_gas() + 4;
    Some((model.memory, gas))
}

fn run(backend: Backend, code: Vec<u8>, gas: u64) -> (End, u64) {
    let setup = Setup {
        backend,
        ..Setup::new(Interface::Registers, GasSchedule::DRAFT)
    };
    let mut machine = Machine::new(setup, code);
    let outcome = machine.call(Vec::new().into(), gas).expect("ordinary");
    (outcome.end, outcome.gas_used)
}

fn check(memory: &[u8], steps: &[Step]) {
    let code = code(memory, steps);
    let expected = model(memory, steps);
    for backend in Backend::available() {
        let (end, gas) = run(backend, code.clone(), 1_000_000);
        match &expected {
            Some((memory, expected_gas)) => {
                assert_eq!(end, End::Returned(memory.clone().into()), "{steps:?}");
                assert_eq!(gas, *expected_gas, "{steps:?}");
                let (end, _) = run(backend, code.clone(), gas - 1);
                assert!(matches!(end, End::Halted(_)), "one gas less: {end:?}");
            }
            None => assert!(matches!(end, End::Halted(_)), "{steps:?}: {end:?}"),
        }
    }
}

/// A modulus in 96 bytes and values below it in the bytes behind.
fn memory() -> impl Strategy<Value = Vec<u8>> {
    let modulus = (1usize..=96, any::<[u8; 32]>(), 0u8..4, any::<bool>());
    (modulus, prop::collection::vec(any::<u8>(), 512)).prop_map(
        |((length, digits, kind, small), noise)| {
            let mut modulus: Vec<u8> = digits.iter().cycle().take(length).copied().collect();
            match kind {
                0 => {
                    modulus.fill(0);
                    modulus[0] = 1 << (digits[0] % 8);
                }
                1 => modulus.fill(0xff),
                2 => {}
                _ => modulus[length - 1] |= 1,
            }
            let mut memory = vec![0; 96 - length];
            memory.extend(&modulus);
            let bytes = modulus.len().next_multiple_of(8);
            for value in noise.chunks(bytes) {
                let mut value = value.to_vec();
                // Mostly below the modulus.
                let zeros = bytes - length + usize::from(!small || modulus[0] == 0);
                let zeros = zeros.min(value.len());
                value[..zeros].fill(0);
                memory.extend(value);
            }
            memory.resize(608, 0);
            memory
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small = || prop_oneof![8 => 0u16..6, 1 => 0u16..20];
    let place = || prop_oneof![6 => (0u16..4).prop_map(|n| 96 + 48 * n), 1 => 0u16..600];
    let byte = || prop_oneof![8 => 0u8..3, 1 => 0u8..12];
    let set = (0u16..3, small()).prop_map(|(id, count)| Step::Set([id, 0, 96, count + 6]));
    let operation = prop::sample::select(Operation::ALL.to_vec());
    let immediate = (byte(), 1u8..3, byte(), byte(), byte(), byte(), 1u8..4)
        .prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g]);
    let step = prop_oneof![
        2 => set,
        1 => (0u16..258, 0u16..610, 0u16..100, 0u16..258).prop_map(|(a, b, c, d)| Step::Set([a, b, c, d])),
        4 => (place(), small(), small()).prop_map(|(a, b, c)| Step::Load([a, b, c])),
        6 => (small(), place(), 0u16..3).prop_map(|(a, b, c)| Step::Store([a, b, c])),
        12 => (operation, immediate).prop_map(|(o, i)| Step::Operate(o, i)),
        2 => (0u16..3000).prop_map(Step::Grow),
        1 => (0u16..3000, 0u16..500).prop_map(|(a, b)| Step::Hash([a, b])),
    ];
    prop::collection::vec(step, 0..12).prop_map(|mut steps| {
        steps.insert(0, Step::Set([1, 0, 96, 9]));
        steps.insert(1, Step::Store([0, 96, 2]));
        steps
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn it_does_what_the_model_does(memory in memory(), steps in steps()) {
        check(&memory, &steps);
    }
}

/// Of every length, so that all functions run, with operands at the edges.
#[test]
fn every_length_of_a_modulus_computes() {
    for bits in (2..=768)
        .step_by(6)
        .chain([63, 64, 65, 383, 384, 385, 767, 768])
    {
        let top: Wide = Wide::ONE << (bits - 1);
        for modulus in [top, top + Wide::ONE, (top << 1) - Wide::ONE] {
            let length = modulus.bit_len().div_ceil(64) * 8;
            let bytes = |value: Wide| value.to_be_bytes::<200>()[200 - length..].to_vec();
            let mut memory = modulus.to_be_bytes::<200>()[104..].to_vec();
            let third = modulus / Wide::from(3);
            for value in [modulus - Wide::ONE, third, Wide::ONE, modulus - third] {
                memory.extend(bytes(value));
            }
            memory.resize(96 + 16 * 96, 0);
            let operate = |operation, out| Step::Operate(operation, [out, 1, 0, 1, 3, 0, 4]);
            check(
                &memory,
                &[
                    Step::Set([256, 0, 96, 16]),
                    Step::Store([0, 96, 4]),
                    operate(Operation::Mul, 4),
                    operate(Operation::Add, 8),
                    operate(Operation::Sub, 12),
                    Step::Operate(Operation::Mul, [0, 1, 0, 1, 0, 1, 4]),
                    Step::Load([96, 0, 16]),
                ],
            );
        }
    }
}

#[test]
fn limits_hold() {
    let mut memory = vec![0; 96];
    memory[95] = 7;
    let set = |id, count| Step::Set([id, 0, 96, count]);
    // 256 registers of 96 bytes are all that a frame may have; of 8 bytes, 12 such fields.
    let mut twelve: Vec<Step> = (0..12).map(|id| set(id, 256)).collect();
    check(&memory, &twelve);
    twelve.push(set(12, 1));
    check(&memory, &twelve);
    check(&memory, &[set(0, 257)]);
    check(&memory, &[set(257, 1)]);
    check(&memory, &[set(0, 0)]);
    for modulus in [0, 1, 2, 3, 4, 6] {
        memory[95] = modulus;
        check(&memory, &[set(0, 1)]);
    }
    // The last register is in reach, the one behind it is not.
    memory[95] = 7;
    for last in [3, 4] {
        let operate = Step::Operate(Operation::Add, [last, 1, 0, 0, 0, 0, 1]);
        check(&memory, &[set(0, 4), operate]);
    }
}

#[test]
fn words_beyond_any_memory_are_refused() {
    for position in 0..4 {
        let mut words = [U256::ONE, U256::ONE, U256::ZERO, U256::ZERO];
        for huge in [U256::MAX, U256::from(u64::MAX), U256::from(1) << 64] {
            words[position] = huge;
            let mut code = vec![0x60, 7, 0x5f, 0x53];
            for word in words {
                code.push(0x7f);
                code.extend(word.to_be_bytes::<32>());
            }
            let with = |opcode: u8| [code.clone(), vec![opcode]].concat();
            for opcode in 0xc0..=0xc2 {
                let (end, _) = run(Backend::detect(), with(opcode), 1_000_000);
                assert!(matches!(end, End::Halted(_)), "{end:?}");
            }
        }
    }
}
