//! The opcodes in revm's own interpreter: results, gas, memory growth and halts, against a model of a few lines.

use arbor_evm384::engine::FramesContext;
use arbor_evm384::reference::{self, U384};
use arbor_evm384::{Backend, Frames, GasSchedule, Interface, Offsets, Operation};
use proptest::prelude::*;
use revm::MainContext;
use revm::context::{Context, JournalTr};
use revm::database_interface::EmptyDB;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::{EthInterpreter, ExtBytecode};
use revm::interpreter::{
    InputsImpl, InstructionResult, Interpreter, InterpreterAction, SharedMemory, host::DummyHost,
};
use revm::primitives::Address;
use revm::primitives::hardfork::SpecId;

type Host = FramesContext<EmptyDB>;

struct Outcome {
    result: InstructionResult,
    spent: u64,
    memory: Vec<u8>,
}

fn run(interface: Interface, schedule: GasSchedule, code: &[u8], gas: u64) -> Outcome {
    let mut instructions =
        EthInstructions::<EthInterpreter, Host>::new_mainnet_with_spec(SpecId::OSAKA);
    interface.install(&mut instructions, schedule, Backend::detect());
    let bytecode = ExtBytecode::new(interface.analyze(code.to_vec().into()));
    let mut interpreter = Interpreter::<EthInterpreter>::new(
        SharedMemory::new(),
        bytecode,
        InputsImpl::default(),
        false,
        SpecId::OSAKA,
        gas,
    );
    let mut host = Context::mainnet().with_chain(Frames::default());
    host.cfg.set_spec_and_mainnet_gas_params(SpecId::OSAKA);
    // Whoever executes code has loaded its account.
    let account = host.journaled_state.load_account(Address::ZERO);
    account.expect("an empty database");
    let action = interpreter.run_plain(
        instructions.instruction_table(),
        instructions.gas_table(),
        &mut host,
    );
    let memory = interpreter.memory.context_memory().to_vec();
    match action {
        InterpreterAction::Return(returned) => Outcome {
            result: returned.result,
            spent: gas - returned.gas.remaining(),
            memory,
        },
        // There is nobody to call.
        InterpreterAction::NewFrame(_) => Outcome {
            result: InstructionResult::FatalExternalError,
            spent: gas,
            memory,
        },
    }
}

/// Code that fills memory with `bytes`, 32 at a time, then applies the operations.
fn program(interface: Interface, bytes: &[u8], operations: &[(Operation, Offsets)]) -> Vec<u8> {
    let mut code = Vec::new();
    for (index, word) in bytes.chunks_exact(32).enumerate() {
        code.push(0x7f);
        code.extend_from_slice(word);
        code.push(0x61);
        code.extend_from_slice(&(index as u16 * 32).to_be_bytes());
        code.push(0x52);
    }
    for (operation, offsets) in operations {
        code.extend_from_slice(&instruction(interface, *operation, *offsets));
    }
    code.push(0);
    code
}

/// Where the inverse is a word on the stack: any will do.
const PUSHED_INVERSE: u64 = 0x89f3_fffc_fffc_fffd;

fn instruction(interface: Interface, operation: Operation, at: Offsets) -> Vec<u8> {
    let fields = [at.out, at.x, at.y, at.modulus];
    let opcode = match operation {
        Operation::Add => 0xc0,
        Operation::Sub => 0xc1,
        Operation::Mul => 0xc2,
    };
    let mut code = Vec::new();
    match interface {
        Interface::V7 => {
            code.push(0x6f);
            code.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
            code.push(opcode);
        }
        Interface::Immediate => {
            code.push(opcode);
            code.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        }
        Interface::SetMod => {
            code.extend([0x60, 48, 0x63]);
            code.extend(at.modulus.to_be_bytes());
            code.extend([0xc3, opcode]);
            code.extend(fields[..3].iter().flat_map(|&field| {
                let field = field as u16;
                field.to_le_bytes()
            }));
        }
        Interface::Stack => {
            if operation == Operation::Mul {
                code.push(0x67);
                code.extend(PUSHED_INVERSE.to_be_bytes());
            }
            for field in fields.iter().rev() {
                code.push(0x63);
                code.extend(field.to_be_bytes());
            }
            code.push(opcode);
        }
        Interface::Registers => unreachable!("its operands are not in memory"),
    }
    code
}

/// The number below 2^64 whose product with m is -1 modulo 2^64, found bit by bit; 0 if there is none.
fn negated_inverse(m: U384) -> u64 {
    let m = m.as_limbs()[0];
    if m.is_multiple_of(2) {
        return 0;
    }
    (0..64).fold(0, |inverse, bit| {
        // All ones below this bit; make it one too.
        let product = m.wrapping_mul(inverse);
        inverse | u64::from(product >> bit & 1 == 0) << bit
    })
}

/// The specification: what memory holds afterwards, and what all of it costs.
fn model(
    interface: Interface,
    schedule: GasSchedule,
    bytes: &[u8],
    operations: &[(Operation, Offsets)],
) -> (Vec<u8>, u64) {
    let mut memory = bytes.to_vec();
    let mut gas = bytes.len() as u64 / 32 * 9;
    for &(operation, at) in operations {
        let in_memory = matches!(interface, Interface::V7 | Interface::Immediate);
        let with_inverse = operation == Operation::Mul && in_memory;
        let modulus_bytes = if with_inverse { 56 } else { 48 };
        let ends = [
            at.out + 48,
            at.x + 48,
            at.y + 48,
            at.modulus + modulus_bytes,
        ];
        let end = ends.map(|end| (end as usize).next_multiple_of(32));
        memory.resize(end.into_iter().fold(memory.len(), usize::max), 0);
        let read = |offset: u32| U384::from_le_slice(&memory[offset as usize..][..48]);
        let (x, y, m) = (read(at.x), read(at.y), read(at.modulus));
        let (result, cost) = match operation {
            Operation::Add => (reference::add(x, y, m), schedule.add),
            Operation::Sub => (reference::sub(x, y, m), schedule.sub),
            Operation::Mul => {
                let inverse = match interface {
                    Interface::SetMod => negated_inverse(m),
                    Interface::Stack => PUSHED_INVERSE,
                    _ => {
                        let inverse = memory[at.modulus as usize + 48..][..8].try_into();
                        u64::from_le_bytes(inverse.expect("eight bytes"))
                    }
                };
                (reference::mul(x, y, m, inverse), schedule.mul)
            }
        };
        memory[at.out as usize..][..48].copy_from_slice(&result.to_le_bytes::<48>());
        gas += u64::from(cost);
        gas += match interface {
            Interface::V7 => 3,
            Interface::SetMod => 6 + u64::from(schedule.set_modulus),
            Interface::Stack => 3 * (4 + u64::from(operation == Operation::Mul)),
            _ => 0,
        };
    }
    let words = memory.len() as u64 / 32;
    (memory, gas + 3 * words + words * words / 512)
}

fn interface() -> impl Strategy<Value = Interface> {
    let mut interfaces = Interface::ON_MEMORY.to_vec();
    interfaces.push(Interface::Stack);
    prop::sample::select(interfaces)
}

fn operations(limit: u32) -> impl Strategy<Value = Vec<(Operation, Offsets)>> {
    let operation = prop::sample::select(Operation::ALL.to_vec());
    let offsets = [0..limit, 0..limit, 0..limit, 0..limit]
        .prop_map(|[out, x, y, modulus]| Offsets { out, x, y, modulus });
    prop::collection::vec((operation, offsets), 0..12)
}

fn schedule() -> impl Strategy<Value = GasSchedule> {
    prop::sample::select(GasSchedule::NAMED.map(|(_, schedule)| schedule).to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn memory_and_gas_are_those_of_the_specification(
        interface in interface(),
        schedule in schedule(),
        words in prop::collection::vec(any::<[u8; 32]>(), 0..10),
        operations in operations(600),
    ) {
        let bytes = words.concat();
        let code = program(interface, &bytes, &operations);
        let (memory, gas) = model(interface, schedule, &bytes, &operations);
        let outcome = run(interface, schedule, &code, 1_000_000);
        prop_assert_eq!(outcome.result, InstructionResult::Stop);
        prop_assert_eq!(outcome.memory, memory);
        prop_assert_eq!(outcome.spent, gas);
        // One gas less is not enough.
        let short = run(interface, schedule, &code, gas.saturating_sub(1));
        if gas > 0 {
            prop_assert!(short.result.is_halt(), "{:?}", short.result);
        }
    }

    #[test]
    fn no_operand_and_no_code_panics(
        interface in prop::sample::select(Interface::ALL.to_vec()),
        code in prop::collection::vec(
            prop_oneof![0xc0u8..=0xc5, 0u8..16, Just(0x60), Just(0x6f), Just(0x5b), Just(0x56), any::<u8>()],
            0..200,
        ),
        gas in 0u64..100_000,
    ) {
        let outcome = run(interface, GasSchedule::DRAFT, &code, gas);
        prop_assert!(outcome.spent <= gas || outcome.result.is_halt());
        prop_assert!(outcome.memory.len() <= 32 * 33_334);
    }
}

#[test]
fn offsets_near_four_gigabytes_run_out_of_gas() {
    for interface in Interface::ON_MEMORY {
        for operation in Operation::ALL {
            for field in 0..4 {
                let mut fields = [0; 4];
                fields[field] = u32::MAX;
                let [out, x, y, modulus] = fields;
                let offsets = Offsets { out, x, y, modulus };
                let code = instruction(interface, operation, offsets);
                if interface == Interface::SetMod && field < 3 {
                    // Two bytes do not reach so far.
                    continue;
                }
                let outcome = run(interface, GasSchedule::DRAFT, &code, 30_000_000);
                assert_eq!(outcome.result, InstructionResult::MemoryOOG);
                assert!(outcome.memory.is_empty(), "nothing was allocated");
            }
        }
    }
}

#[test]
fn the_upper_half_of_the_stack_word_is_ignored() {
    let mut code = vec![0x7f];
    code.extend_from_slice(&[0xff; 16]);
    code.extend_from_slice(&[0; 16]);
    code.push(0xc0);
    let outcome = run(Interface::V7, GasSchedule::DRAFT, &code, 1000);
    assert_eq!(outcome.result, InstructionResult::Stop);
    assert_eq!((outcome.spent, outcome.memory.len()), (3 + 3 + 6, 64));
}

#[test]
fn an_empty_stack_halts_under_v7_alone() {
    let result = |interface| run(interface, GasSchedule::DRAFT, &[0xc1], 1000).result;
    assert_eq!(result(Interface::V7), InstructionResult::StackUnderflow);
    assert_eq!(result(Interface::Immediate), InstructionResult::Stop);
    assert_eq!(result(Interface::SetMod), InstructionResult::NotActivated);
}

#[test]
fn no_jump_lands_in_an_immediate() {
    // PUSH1 4, JUMP, then an operation whose immediate is a JUMPDEST at 4, and one behind it at 20.
    let mut code = vec![0x60, 4, 0x56, 0xc0];
    code.extend_from_slice(&[0x5b; 16]);
    code.extend_from_slice(&[0x5b, 0x00]);
    let into = run(Interface::Immediate, GasSchedule::DRAFT, &code, 1000);
    assert_eq!(into.result, InstructionResult::InvalidJump);
    code[1] = 20;
    let behind = run(Interface::Immediate, GasSchedule::DRAFT, &code, 1000);
    assert_eq!(behind.result, InstructionResult::Stop);
}

#[test]
fn an_immediate_that_looks_like_a_push_hides_nothing() {
    // JUMP over an operation whose last immediate byte is PUSH32 to the JUMPDEST behind it.
    let mut code = vec![0x60, 20, 0x56, 0xc0];
    code.extend_from_slice(&[0; 15]);
    code.extend_from_slice(&[0x7f, 0x5b, 0x7f]);
    let outcome = run(Interface::Immediate, GasSchedule::DRAFT, &code, 1000);
    assert_eq!(outcome.result, InstructionResult::Stop);
}

#[test]
fn immediates_that_the_code_ends_in_are_zero() {
    for length in 0..=17 {
        let mut code = vec![0xc0];
        code.resize(1 + length, 0);
        let outcome = run(Interface::Immediate, GasSchedule::DRAFT, &code, 1000);
        assert_eq!(outcome.result, InstructionResult::Stop, "{length}");
        assert_eq!(outcome.spent, 3 + 6);
    }
}

#[test]
fn code_that_was_not_analyzed_for_immediates_has_no_such_opcode() {
    let mut instructions =
        EthInstructions::<EthInterpreter, DummyHost>::new_mainnet_with_spec(SpecId::OSAKA);
    Interface::Immediate.install(&mut instructions, GasSchedule::DRAFT, Backend::detect());
    let code = [vec![0xc0; 34], vec![0x7f]].concat();
    let bytecode = ExtBytecode::new(Interface::V7.analyze(code.into()));
    let mut interpreter = Interpreter::<EthInterpreter>::new(
        SharedMemory::new(),
        bytecode,
        InputsImpl::default(),
        false,
        SpecId::OSAKA,
        1000,
    );
    let mut host = DummyHost::new(SpecId::OSAKA);
    let action = interpreter.run_plain(
        instructions.instruction_table(),
        instructions.gas_table(),
        &mut host,
    );
    assert_eq!(
        action.instruction_result(),
        Some(InstructionResult::OpcodeNotFound)
    );
}

#[test]
fn interfaces_have_names() {
    for interface in Interface::ALL {
        assert_eq!(interface.to_string().parse(), Ok(interface));
    }
    let error = "v8".parse::<Interface>().expect_err("no such interface");
    assert_eq!(
        error.to_string(),
        "'v8' is not an interface; there are: v7, immediate, setmod, eip-6690"
    );
}
