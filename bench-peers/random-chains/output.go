package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/rlp"
)

// write writes the chain's folder, and imports the chain from it: geth reads the genesis file that others read.
func (m *maker) write(folder string) error {
	raw, err := json.MarshalIndent(m.genesis, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, "mutants"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "genesis.json"), raw, 0o644); err != nil {
		return err
	}
	read := new(core.Genesis)
	if err := json.Unmarshal(raw, read); err != nil {
		return err
	}
	seen := observer{counts: &m.made, trace: m.trace}
	chain, err := openChain(read, vm.Config{Tracer: seen.hooks()})
	if err != nil {
		return err
	}
	defer chain.Stop()
	mutants, err := m.insert(chain)
	if err != nil {
		return err
	}
	if err := m.writeMutants(filepath.Join(folder, "mutants"), mutants); err != nil {
		return err
	}
	states, err := chain.State()
	if err != nil {
		return err
	}
	m.finishCounts(mutants)
	return errors.Join(
		writeFile(folder, "chain.rlp", func(w *bufio.Writer) error { return chain.Export(w) }),
		writeFile(folder, "receipts.txt", func(w *bufio.Writer) error { return m.writeReceipts(w, chain) }),
		writeFile(folder, "dump.jsonl", func(w *bufio.Writer) error {
			states.IterativeDump(&state.DumpConfig{}, json.NewEncoder(w))
			return nil
		}),
		writeFile(folder, "counts.json", func(w *bufio.Writer) error { return json.NewEncoder(w).Encode(m.made) }),
	)
}

func writeFile(folder, name string, write func(*bufio.Writer) error) error {
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	defer file.Close()
	buffer := bufio.NewWriter(file)
	if err := write(buffer); err != nil {
		return err
	}
	return buffer.Flush()
}

// insert imports the blocks. Before each, it offers geth the block's mutants.
func (m *maker) insert(chain *core.BlockChain) ([]*mutant, error) {
	planned := make([]int, len(m.blocks))
	d := diceFor(m.seed, -2, -1)
	for range m.mutants {
		planned[d.IntN(len(planned))]++
	}
	var mutants []*mutant
	for i, block := range m.blocks {
		parent := chain.GetHeaderByNumber(block.NumberU64() - 1)
		for n := range planned[i] {
			mutator := mutator{dice: diceFor(m.seed, -3-i, n), maker: m, block: block, parent: parent}
			made := mutator.mutate()
			if made == nil {
				continue
			}
			made.Block, made.File = i+1, fmt.Sprintf("%d-%d.rlp", i+1, n)
			made.offer(chain)
			mutants = append(mutants, made)
		}
		if _, err := chain.InsertChain(types.Blocks{block}); err != nil {
			return nil, fmt.Errorf("geth refuses block %d of the written chain: %w", i+1, err)
		}
	}
	return mutants, nil
}

// offer records whether geth accepts the mutant.
func (m *mutant) offer(chain *core.BlockChain) {
	defer func() {
		if cause := recover(); cause != nil {
			m.Reason = fmt.Sprintf("panic: %v", cause)
		}
	}()
	var block types.Block
	if err := rlp.DecodeBytes(m.encoded, &block); err != nil {
		m.Reason = err.Error()
		return
	}
	m.Header = &mutantHeader{block.Number().String(), block.Hash(), block.Root(), block.ReceiptHash()}
	if _, err := chain.InsertChain(types.Blocks{&block}); err != nil {
		m.Reason = err.Error()
		return
	}
	m.Accepted = true
}

func (m *maker) writeMutants(folder string, mutants []*mutant) error {
	for _, mutant := range mutants {
		if err := os.WriteFile(filepath.Join(folder, mutant.File), mutant.encoded, 0o644); err != nil {
			return err
		}
	}
	return writeFile(folder, "list.jsonl", func(w *bufio.Writer) error {
		lines := json.NewEncoder(w)
		for _, mutant := range mutants {
			if err := lines.Encode(mutant); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *maker) finishCounts(mutants []*mutant) {
	c := &m.made
	c.Seed, c.First, c.Last, c.Blocks = m.seed, forkNames[m.first], forkNames[m.schedule.last], len(m.blocks)
	for _, block := range m.blocks {
		if hash := block.Header().RequestsHash; hash != nil && *hash != types.EmptyRequestsHash {
			c.Requests++
		}
	}
	for _, mutant := range mutants {
		verdict := "refused"
		if mutant.Accepted {
			verdict = "accepted"
		}
		c.Mutants[verdict+" "+mutant.Kind]++
	}
}

func (m *maker) writeReceipts(w *bufio.Writer, chain *core.BlockChain) error {
	for i, block := range m.blocks {
		receipts := chain.GetReceiptsByHash(block.Hash())
		for j, tx := range block.Transactions() {
			to := "creation"
			if tx.To() != nil {
				to = tx.To().Hex()
			}
			r := receipts[j]
			if _, err := fmt.Fprintf(w, "%s type %d to %s value %v gas %d used %d status %d logs %d\n", m.kinds[i][j], tx.Type(), to,
				tx.Value(), tx.Gas(), r.GasUsed, r.Status, len(r.Logs)); err != nil {
				return err
			}
		}
	}
	return nil
}
