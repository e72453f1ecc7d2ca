package main

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// counts says what a chain has, so that a reader sees what many chains have covered.
type counts struct {
	Seed         int64
	First, Last  string
	Blocks       int
	Transactions int
	Failed       int
	Withdrawals  int
	Ommers       int
	Delegations  int
	Requests     int
	Calls        int
	FailedCalls  int
	Destroyed    int
	Created      int
	Recreated    int
	Mutants      map[string]int
	Kinds        map[string]int
	Types        map[string]int
	Refused      map[string]int
	Instructions map[string]int
}

func newCounts() counts {
	empty := func() map[string]int { return map[string]int{} }
	return counts{Mutants: empty(), Kinds: empty(), Types: empty(), Refused: empty(), Instructions: empty()}
}

func (c *counts) add(kind string, tx *types.Transaction, receipt *types.Receipt) {
	c.Transactions++
	c.Kinds[kind]++
	c.Types[fmt.Sprint(tx.Type())]++
	if len(receipt.PostState) == 0 && receipt.Status == types.ReceiptStatusFailed {
		c.Failed++
	}
}

// leadingWords returns an error without its values.
func leadingWords(err error) string {
	text, _, _ := strings.Cut(err.Error(), ":")
	return text
}

// observer counts what the chain runs, and prints the instructions of one block if asked to.
type observer struct {
	*counts
	trace     uint64
	tracing   bool
	destroyed map[common.Address]bool
}

func (o *observer) hooks() *tracing.Hooks {
	o.destroyed = map[common.Address]bool{}
	return &tracing.Hooks{
		OnBlockStart: func(e tracing.BlockEvent) { o.tracing = e.Block.NumberU64() == o.trace },
		OnTxStart: func(_ *tracing.VMContext, tx *types.Transaction, from common.Address) {
			o.print(0, "transaction %v from %v to %v", tx.Hash(), from, tx.To())
		},
		OnOpcode: o.instruction,
		OnEnter:  o.enter,
		OnExit: func(depth int, output []byte, used uint64, err error, _ bool) {
			o.print(depth, "< used %d %v output %x", used, err, output[:min(40, len(output))])
			if depth > 0 && err != nil {
				o.FailedCalls++
			}
		},
	}
}

func (o *observer) print(depth int, format string, values ...any) {
	if o.tracing {
		fmt.Printf("%*s"+format+"\n", append([]any{2 * depth, ""}, values...)...)
	}
}

func (o *observer) instruction(at uint64, code byte, gas, cost uint64, scope tracing.OpContext, _ []byte, depth int, err error) {
	op := vm.OpCode(code)
	if o.tracing {
		stack := scope.StackData()
		var top []string
		for i := len(stack) - 1; i >= max(0, len(stack)-7); i-- {
			top = append(top, stack[i].Hex())
		}
		o.print(depth, "%d %v gas %d cost %d %s %v", at, op, gas, cost, strings.Join(top, " "), err)
	}
	o.Instructions[op.String()]++
	if op == vm.SELFDESTRUCT && err == nil {
		o.Destroyed++
		o.destroyed[scope.Address()] = true
	}
}

func (o *observer) enter(depth int, code byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
	op := vm.OpCode(code)
	o.print(depth, "> %v %v -> %v value %v gas %d input %x", op, from, to, value, gas, input[:min(40, len(input))])
	if depth > 0 && op != vm.SELFDESTRUCT {
		o.Calls++
	}
	if op == vm.CREATE || op == vm.CREATE2 {
		o.Created++
		if o.destroyed[to] {
			o.Recreated++
		}
	}
}
