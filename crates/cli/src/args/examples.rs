//! Examples at the end of each command's help.

pub(super) const REPLAY: &str = "\
Examples:
  arbor replay --db db chain
  arbor replay --db db --tree verkle --check-state 100 chain
  arbor replay --db sepolia --genesis sepolia era1/*.era1 --metrics 9400
  arbor replay --db db --rpc http://127.0.0.1:8545 --genesis genesis.json
  arbor replay --witness witness.json.gz
  arbor replay --witness answer.json --witness-chain chain";
pub(super) const COMPARE: &str = "\
Every run is checked, outside the times: all runs end at the same block, runs of one tree have the same roots, and `arbor verify` accepts the database of each tree's first run. If a run fails, its log is named, the other trees are compared, and the exit code is 1. After Ctrl-C the run under way comes to its end. The runs that are done are kept, and the same command continues.

Examples:
  arbor compare --trees mpt,verkle,ar16mt --out compared chain
  arbor compare --trees verkle,verkle:published --out layouts chain
  arbor compare --trees mpt,eip7864 --state state --workload read --out read
  arbor compare --trees mpt --threads 1 --out before chain
  arbor compare --trees mpt --threads 1 --out after --baseline before chain";
pub(super) const ACCESSES: &str = "\
The files get their names when all rows are written. After Ctrl-C, no files are left.

Examples:
  arbor accesses chain --out accesses
  arbor accesses chain --tree verkle --from 100 --to 200 --out verkle-accesses
  duckdb -c \"select kind, count(*) from 'accesses/accesses.parquet' where changed group by kind\"";
pub(super) const BENCH: &str = "\
Examples:
  arbor bench senders --batches 1,8,64
  arbor bench database --db db
  arbor bench witnesses chain --trees mpt,verkle";
pub(super) const EVM384: &str = "\
Examples:
  arbor evm384 asm examples/evm384/product.easm > product.hex
  arbor evm384 run pairing-check
  arbor evm384 gas pairing --schedule a";
pub(super) const PREIMAGES: &str = "\
Examples:
  arbor preimages export --db db --out preimages.bin
  arbor preimages audit --from snapshot.jsonl.zst --preimages preimages.bin";
pub(super) const STATUS: &str = "\
Examples:
  arbor status --db db
  arbor status --db db --json";
pub(super) const GET: &str = "\
If an account or slot is absent, the command says that it is absent. That is not an error.

Examples:
  arbor get --db db 0xADDRESS
  arbor get --db db 0xADDRESS 3 --at -10
  arbor get --db db 0xADDRESS --code --at 0xBLOCKHASH";
pub(super) const ROOTS: &str = "\
Examples:
  arbor roots --db db --from -9
  arbor roots --db db --csv > roots.csv";
pub(super) const DUMP: &str = "\
The form is that of `geth dump --iterative`: first a line with the root, then a line for each account.

Examples:
  arbor dump --db db > state.jsonl
  arbor dump --db db --at -100 | gzip > state.jsonl.gz";
pub(super) const ORACLE: &str = "\
Each line has a key, a value, and the account and field, slot or chunk of code that the leaf stands for.
Leaves are listed for the trees that `arbor diff --tree` takes. For other trees only the root and proofs are printed.

The root of a database is the one that it has. Its leaves include the zeros that some trees keep of what is gone. With
another tree, or for a state without a history (genesis, dump, alloc), the root is that of a new tree with the accounts.

Examples:
  arbor oracle --tree eip8297 genesis.json
  arbor oracle --tree eip8297 --json sepolia > leaves.json
  arbor oracle --tree eip8297 --prove 0xADDRESS:1,2 state.jsonl.zst
  arbor dump --db db | arbor oracle --tree eip7864 -
  arbor oracle db";
pub(super) const DIFF: &str = "\
Each leaf that differs is printed with its account and field, slot or chunk of code, if one of the two names it.
Leaves of different trees have different keys. They are not compared, unless --tree names one tree for two databases.
Exit code 1: some leaves differ, there are none, or the trees differ.

Examples:
  arbor diff leaves.json other-leaves.json
  arbor diff db lines-with-key-and-value.txt
  arbor diff --tree eip8297 db other-db";
pub(super) const PROVE: &str = "\
Examples:
  arbor prove --db db 0xADDRESS 0 1 --at latest > proof.json
  arbor prove --db db 0xADDRESS --out proof.json.gz
  arbor prove --db db 0xADDRESS --also 0xOTHER:0,1";
pub(super) const VERIFY_PROOF: &str = "\
Examples:
  arbor verify-proof proof.json --root 0xROOT
  arbor verify-proof proof.json --root 0xROOT --tree verkle --of 0xADDRESS:0,1";
pub(super) const WITNESS: &str = "\
Examples:
  arbor witness --db db --block latest chain --out witness.json.gz
  arbor witness --db db --block -9 --to latest chain --out witnesses
  arbor witness --rpc http://127.0.0.1:8545 --block latest --out w.json.gz
  arbor witness diff a.json b.json --witness-chain chain";
pub(super) const WITNESS_DIFF: &str = "\
Exit code 1: the witnesses differ.

Examples:
  arbor witness diff geth.json reth.json --witness-chain chain
  arbor witness diff a.json.gz b.json.gz --json";
pub(super) const VERIFY_WITNESS: &str = "\
Examples:
  arbor verify-witness witness.json.gz
  arbor verify-witness witnesses/*.ssz --root 0xROOT --json";
pub(super) const SERVE: &str = "\
GET /health and GET /metrics are answered at the same address. No method writes.

Examples:
  arbor serve --db db
  arbor serve --db db --chain chain --http 8545
  arbor serve --db db --http 0.0.0.0:8545 --hosts state.example.org
  cast balance 0xADDRESS --rpc-url http://127.0.0.1:8545";
pub(super) const VERIFY: &str = "\
Examples:
  arbor verify --db db
  arbor verify --db db --threads 4 --metrics 9400
  arbor verify --db db --part 1/2 --to part-1
  arbor verify --db db --part 2/2 --to part-2
  arbor verify --db db --join part-1 part-2";
pub(super) const REPAIR: &str = "\
Examples:
  arbor repair --db db
  arbor repair --db copy --accept-store";
pub(super) const ROLLBACK: &str = "\
Examples:
  arbor rollback --db db --to -10
  arbor rollback --db db --to 1200";
pub(super) const PRUNE: &str = "\
Pruning deletes records. Their space on disk comes back when the store merges its files: `arbor compact` merges them.

Examples:
  arbor prune --db db --retain 128
  arbor prune --db db --before -1000
  arbor prune --db db --retain none && arbor compact --db db";
pub(super) const SNAPSHOT: &str = "\
Examples:
  arbor snapshot --db db --out state.snapshot
  arbor snapshot --db db --at -100 --out state.snapshot
  arbor snapshot --db zdb --out leaves.snapshot --order index";
pub(super) const RECOVER: &str = "\
Examples:
  arbor recover --db other state.snapshot --root 0xROOT
  arbor recover --db other state.snapshot --genesis genesis.json";
pub(super) const CONVERT: &str = "\
Examples:
  arbor convert --from db --to verkle-db --tree verkle
  arbor convert --from db --at -100 --to copy --tree mpt --memory 512MiB
  arbor convert --from state.snapshot --to other --tree eip8297
  arbor convert --from dump.jsonl.zst --ancestors chain --to db --tree mpt";
pub(super) const CONVERT_JOIN: &str = "\
Examples:
  arbor convert --from db --to part-1 --tree verkle --part 1/2
  arbor convert --from db --to part-2 --tree verkle --part 2/2
  arbor convert join --to verkle-db part-1 part-2";
pub(super) const PREIMAGES_AUDIT: &str = "\
Exit code 1: a hashed key has no preimage.

Examples:
  arbor preimages audit --from snapshot.jsonl.zst --preimages preimages.rlp
  arbor preimages audit --from db --preimages preimages.bin --json";
pub(super) const PREIMAGES_EXPORT: &str = "\
Example:
  arbor preimages export --db db --out preimages.bin";
pub(super) const PREIMAGES_IMPORT: &str = "\
Examples:
  arbor preimages import framed.bin --out preimages.bin
  arbor preimages import names.rlp.gz --from dump.jsonl --out names.bin";
pub(super) const GENERATE: &str = "\
Examples:
  arbor generate --preset demo --out chain
  arbor generate --blocks 1000 --mix transfer=1,swap=3 --seed 7 --out chain
  arbor generate --state accounts=1M --out state";
pub(super) const MAN: &str = "\
Example:
  arbor man --out ~/.local/share/man/man1";
pub(super) const LOADTEST: &str = "\
Examples:
  arbor loadtest 20 150000
  arbor loadtest 20 150000 --tree mpt --report report.json";
pub(super) const BENCH_COMMITMENTS: &str = "\
Example:
  arbor bench commitments --report commitments.json";
pub(super) const BENCH_READS: &str = "\
Example:
  arbor bench reads --db db --reads 100000 --back 0 100";
pub(super) const BENCH_WITNESSES: &str = "\
Example:
  arbor bench witnesses chain --trees mpt,verkle --plot witnesses.svg";
pub(super) const BENCH_ABLATION: &str = "\
`arbor replay --help` lists the settings that switch techniques off. Every run is checked, outside the times, and all runs must have the same roots. If a run fails, its log is named, the others are compared, and the exit code is 1. After Ctrl-C the run under way comes to its end. The runs that are done are kept, and the same command continues.

Examples:
  arbor bench ablation chain --tree verkle --out ablation
  arbor bench ablation chain --tree mpt --out ablation --repeat 5 --to 1000";
pub(super) const BENCH_ENGINE: &str = "\
Example:
  arbor bench engine chain --to 1000 --rounds 5";
pub(super) const BENCH_PARALLEL: &str = "\
Example:
  arbor bench parallel chain --json";
pub(super) const BENCH_SENDERS: &str = "\
Example:
  arbor bench senders --batches 1,8,64 --json";
pub(super) const BACKUP: &str = "\
The copy has the last flushed block, and the history that is retained. A process that writes the database is not stopped.
If the command is killed, the folder DIR.unfinished is left; the next backup to DIR removes it.

Examples:
  arbor backup --db db --to backups/db-1
  arbor backup --db db --to copy && arbor replay --db copy chain";
pub(super) const HISTORY_PROOFS: &str = "\
Without them the first proof of an older state goes through all that changed since. With them it costs what a proof of the latest state costs, and the database grows. States that are committed later are kept, too. If it is stopped or killed, the same command goes on. Space that --drop frees comes back when the store merges its files: `arbor compact` merges them.

Examples:
  arbor history-proofs --db db
  arbor history-proofs --db db --drop && arbor compact --db db";
pub(super) const COMPACT: &str = "\
The state and its history stay as they are. No other process can write the database meanwhile.
The merge needs free space for a copy of the files. If it is killed or the disk is full, nothing is lost.

Example:
  arbor compact --db db";
pub(super) const INSPECT: &str = "\
Every record is read once. If the command is stopped, it prints the figures of the records read so far.

Examples:
  arbor inspect --db db
  arbor inspect --db db --html inspection.html
  arbor inspect --db db --top 50 --csv figures --json > inspect.json";
pub(super) const DEMO: &str = "\
Example:
  arbor demo --out demo";
pub(super) const COMPLETIONS: &str = "\
Example:
  arbor completions bash > ~/.local/share/bash-completion/completions/arbor";
pub(super) const BENCH_DATABASE: &str = "\
Examples:
  arbor bench database --db db
  arbor bench database --db db chain --witnesses 100 --json > database.json";
pub(super) const EVM384_RUN: &str = "\
Examples:
  arbor evm384 run pairing-check
  arbor evm384 run code.hex --calldata 0x00ff --json";
pub(super) const EVM384_GAS: &str = "\
Example:
  arbor evm384 gas pairing --schedule a";
pub(super) const EVM384_DEBUG: &str = "\
Example:
  arbor evm384 debug examples/evm384/product.easm";
pub(super) const EVM384_ASM: &str = "\
Example:
  arbor evm384 asm examples/evm384/product.easm > product.hex";
pub(super) const EVM384_DISASM: &str = "\
Example:
  arbor evm384 disasm product.hex";
pub(super) const EVM384_BENCH: &str = "\
Example:
  arbor evm384 bench --json";
pub(super) const EVM384_VECTORS: &str = "\
Example:
  arbor evm384 vectors > vectors.json";

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory, Parser};

    use crate::args::Arbor;

    /// The lines of a command's help that begin with the program's name, and those of its subcommands.
    fn examples(command: &Command, found: &mut Vec<String>) {
        let texts = [command.get_after_help(), command.get_long_about()];
        for text in texts.into_iter().flatten().map(ToString::to_string) {
            let lines = text.lines().map(str::trim);
            let lines = lines.filter(|line| line.starts_with("arbor "));
            found.extend(lines.map(str::to_owned));
        }
        for word in command.get_subcommands() {
            examples(word, found);
        }
    }

    /// The texts below the flags of a command and of its subcommands, by name.
    fn closing_texts(command: &Command, name: &str, found: &mut Vec<(String, String)>) {
        let name = format!("{name} {}", command.get_name());
        let text = command.get_after_help().map(ToString::to_string);
        found.push((name.clone(), text.unwrap_or_default()));
        for word in command.get_subcommands() {
            closing_texts(word, &name, found);
        }
    }

    /// The help of `compare` was broken by hand, and again by a narrow terminal: an example ended with a line `chain`.
    /// The groups of commands had no examples.
    #[test]
    fn every_command_has_examples_that_fit_a_terminal() {
        let mut found = Vec::new();
        closing_texts(&Arbor::command(), "", &mut found);
        assert!(found.len() > 40, "{}", found.len());
        for (name, text) in found.iter().skip(1) {
            let examples: Vec<&str> = text
                .lines()
                .filter(|line| line.starts_with("  arbor "))
                .collect();
            assert!(!examples.is_empty(), "{name}: {text}");
            let heading = match examples.len() {
                1 => "Example:",
                _ => "Examples:",
            };
            assert!(text.lines().any(|line| line == heading), "{name}: {text}");
            for line in examples {
                assert!(line.chars().count() <= 79, "{name}: {line}");
            }
        }
    }

    /// An example in the help of `evm384 bench` had a flag that there was not.
    #[test]
    fn every_example_is_understood() {
        let mut found = Vec::new();
        examples(&Arbor::command(), &mut found);
        assert!(found.len() > 50, "{found:?}");
        for line in found {
            let address = format!("0x{}", "11".repeat(20));
            let hash = format!("0x{}", "22".repeat(32));
            let filled = line
                .replace("0xADDRESS", &address)
                .replace("0xOTHER", &address)
                .replace("0xBLOCKHASH", &hash)
                .replace("0xROOT", &hash);
            for command in filled.split(" && ") {
                let words = command.split_whitespace();
                let words = words.take_while(|word| !["|", ">"].contains(word));
                if let Err(error) = Arbor::try_parse_from(words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
