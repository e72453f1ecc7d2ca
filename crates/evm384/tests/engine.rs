//! The engine against revm's interpreter: the same result, gas, output, stack and memory, wherever gas or stack runs out.

use arbor_evm384::engine::{Decoded, Engine, FramesContext};
use arbor_evm384::{Backend, Frames, GasSchedule, Interface, Offsets, Operation};
use proptest::prelude::*;
use revm::MainContext;
use revm::context::{Context, JournalTr};
use revm::database_interface::EmptyDB;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::{EthInterpreter, ExtBytecode};
use revm::interpreter::{
    Gas, InputsImpl, InstructionResult, Interpreter, InterpreterAction, SharedMemory,
};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, Bytes, U256, keccak256};

/// All that a frame leaves.
#[derive(Clone, Debug, PartialEq)]
struct Left {
    /// None if it calls.
    result: Option<InstructionResult>,
    gas: Gas,
    output: Bytes,
    stack: Vec<U256>,
    memory: Vec<u8>,
}

struct Machine {
    interface: Interface,
    instructions: EthInstructions<EthInterpreter, FramesContext<EmptyDB>>,
    engine: Engine,
}

impl Machine {
    fn new(interface: Interface, schedule: GasSchedule) -> Self {
        let backend = Backend::detect();
        let mut instructions = EthInstructions::new_mainnet_with_spec(SpecId::OSAKA);
        interface.install(&mut instructions, schedule, backend);
        Self {
            interface,
            instructions,
            engine: Engine::new(interface, backend),
        }
    }

    fn run(&mut self, code: &[u8], gas: u64, engine: bool) -> Left {
        let bytecode = self.interface.analyze(code.to_vec().into());
        let bytecode = ExtBytecode::new_with_hash(bytecode, keccak256(code));
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
        let (instructions, gas_table) = (
            self.instructions.instruction_table(),
            self.instructions.gas_table(),
        );
        let action = if engine {
            self.engine
                .run(&mut interpreter, instructions, gas_table, &mut host)
        } else {
            interpreter.run_plain(instructions, gas_table, &mut host)
        };
        let memory = interpreter.memory.context_memory().to_vec();
        let stack = interpreter.stack.data().clone();
        match action {
            // What a halted frame leaves is thrown away with it: gas is spent, memory and stack are gone.
            InterpreterAction::Return(returned) if returned.result.is_halt() => Left {
                result: Some(returned.result),
                gas: Gas::new(0),
                output: returned.output,
                stack: Vec::new(),
                memory: Vec::new(),
            },
            InterpreterAction::Return(returned) => Left {
                result: Some(returned.result),
                gas: returned.gas,
                output: returned.output,
                stack,
                memory,
            },
            InterpreterAction::NewFrame(_) => Left {
                result: None,
                gas: interpreter.gas,
                output: Bytes::new(),
                stack,
                memory,
            },
        }
    }
}

impl Left {
    fn halted(&self) -> bool {
        self.result.is_some_and(InstructionResult::is_halt)
    }
}

/// A piece of code.
#[derive(Clone, Debug)]
enum Piece {
    Operation(Operation, Offsets, usize),
    Bytes(Vec<u8>),
    /// So many words on the stack.
    Fill(usize),
    /// Under SETMOD, a modulus of so many bytes at a place.
    Modulus(u8, u8),
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let operation = prop::sample::select(Operation::ALL.to_vec());
    let near = prop_oneof![8 => 0u32..300, 1 => 0u32..70_000];
    let offsets = (0u32..300, near, 0u32..300, 0u32..300)
        .prop_map(|(out, x, y, modulus)| Offsets { out, x, y, modulus });
    let plain = prop_oneof![
        // MSIZE, GAS, JUMPDEST, POP, DUP1, SWAP1, ADD, MLOAD
        prop::sample::select(vec![0x59, 0x5a, 0x5b, 0x50, 0x80, 0x90, 0x01, 0x51])
            .prop_map(|op| vec![op]),
        // MSTORE of a small value at a small offset
        (any::<u8>(), any::<u8>()).prop_map(|(value, at)| vec![0x60, value, 0x60, at, 0x52]),
        // A jump, to anywhere
        any::<u8>().prop_map(|to| vec![0x60, to, 0x56]),
        // A conditional jump
        (any::<u8>(), 0u8..2).prop_map(|(to, condition)| vec![0x60, condition, 0x60, to, 0x57]),
        // A push that no operation follows
        prop::collection::vec(any::<u8>(), 14).prop_map(|word| [vec![0x6d], word].concat()),
        // An operation that finds whatever is there
        (0xc0u8..=0xc2).prop_map(|op| vec![op]),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    let piece = prop_oneof![
        12 => (operation, offsets, 13usize..=17).prop_map(|(o, at, width)| Piece::Operation(o, at, width)),
        5 => plain.prop_map(Piece::Bytes),
        1 => (1018usize..1026).prop_map(Piece::Fill),
        2 => (0u8..50, any::<u8>()).prop_map(|(length, at)| Piece::Modulus(length, at)),
    ];
    prop::collection::vec(piece, 0..40)
}

fn assemble(interface: Interface, pieces: &[Piece]) -> Vec<u8> {
    let mut code = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => code.extend_from_slice(bytes),
            Piece::Fill(words) => code.extend(std::iter::repeat_n(0x58, *words)),
            Piece::Modulus(length, at) if interface == Interface::SetMod => {
                code.extend([0x60, *length, 0x60, *at, 0xc3]);
            }
            Piece::Modulus(..) => {}
            Piece::Operation(operation, at, width) => match interface {
                Interface::V7 => {
                    let word = at.to_word().to_be_bytes();
                    let padded = [vec![0xff; 1], word.to_vec()].concat();
                    let digits = &padded[17 - width..];
                    code.push(0x5f + *width as u8);
                    code.extend_from_slice(digits);
                    code.push(operation.opcode());
                }
                Interface::Immediate => {
                    code.push(operation.opcode());
                    for field in [at.out, at.x, at.y, at.modulus] {
                        code.extend_from_slice(&field.to_le_bytes());
                    }
                }
                Interface::SetMod => {
                    code.push(operation.opcode());
                    for field in [at.out, at.x, at.y] {
                        code.extend_from_slice(&(field as u16).to_le_bytes());
                    }
                }
                Interface::Registers | Interface::Stack => unreachable!("it has no runs"),
            },
        }
    }
    code
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_engine_does_what_the_interpreter_does(
        interface in prop::sample::select(Interface::ON_MEMORY.to_vec()),
        schedule in prop::sample::select(GasSchedule::NAMED.map(|(_, schedule)| schedule).to_vec()),
        pieces in pieces(),
        gas in 0u64..40_000,
        short in 0u64..40,
    ) {
        let code = assemble(interface, &pieces);
        let mut machine = Machine::new(interface, schedule);
        let enough = machine.run(&code, gas, false);
        prop_assert_eq!(&machine.run(&code, gas, true), &enough);
        // With just what was used, and with a little less.
        if !enough.halted() {
            let used = gas - enough.gas.remaining();
            for gas in [used, used.saturating_sub(1), used.saturating_sub(short)] {
                prop_assert_eq!(machine.run(&code, gas, true), machine.run(&code, gas, false));
            }
        }
    }
}

fn chain_of_operations(interface: Interface, length: usize) -> Vec<u8> {
    let at = Offsets {
        out: 48,
        x: 0,
        y: 96,
        modulus: 144,
    };
    let pieces = [
        vec![Piece::Modulus(48, 144)],
        vec![Piece::Operation(Operation::Mul, at, 14); length],
    ];
    assemble(interface, &pieces.concat())
}

/// At every amount of gas, so that it runs out at each instruction of a run and in its memory expansion.
#[test]
fn gas_runs_out_at_the_same_place() {
    for interface in Interface::ON_MEMORY {
        let mut machine = Machine::new(interface, GasSchedule::DRAFT);
        let code = [chain_of_operations(interface, 10), vec![0x5a, 0x59]].concat();
        for gas in 0..150 {
            assert_eq!(
                machine.run(&code, gas, true),
                machine.run(&code, gas, false),
                "{interface}, {gas} gas"
            );
        }
    }
}

#[test]
fn a_full_stack_has_no_room_for_a_push() {
    for full in [1023, 1024] {
        let code = [vec![0x58; full], chain_of_operations(Interface::V7, 3)].concat();
        let mut machine = Machine::new(Interface::V7, GasSchedule::DRAFT);
        let left = machine.run(&code, 100_000, true);
        assert_eq!(left, machine.run(&code, 100_000, false));
        assert_eq!(
            left.result == Some(InstructionResult::StackOverflow),
            full == 1024
        );
    }
}

#[test]
fn code_of_operations_alone_is_one_run() {
    for interface in Interface::ON_MEMORY {
        let code = chain_of_operations(interface, 1000);
        // The last one with an immediate ends the code, and is left to its instruction.
        let expected = if interface == Interface::V7 {
            1000
        } else {
            999
        };
        let decoded = Decoded::new(interface, &interface.analyze(code.into()));
        assert_eq!(decoded.operation_count(), expected);
    }
}

#[test]
fn code_without_operations_is_left_to_the_interpreter() {
    let code = [vec![0x6f; 17], vec![0x60, 0xc2, 0x00]].concat();
    for interface in Interface::ON_MEMORY {
        let decoded = Decoded::new(interface, &interface.analyze(code.clone().into()));
        assert!(!decoded.has_runs());
    }
}

/// More codes than the cache holds, each again after all others.
#[test]
fn codes_beyond_the_cache_are_decoded_again() {
    let mut machine = Machine::new(Interface::V7, GasSchedule::DRAFT);
    for _ in 0..2 {
        for salt in 0..60u16 {
            let mut code = chain_of_operations(Interface::V7, 1300);
            code.extend([vec![0x61], salt.to_be_bytes().to_vec()].concat());
            let left = machine.run(&code, 100_000, true);
            assert_eq!(left.stack, [U256::from(salt)]);
        }
    }
}
