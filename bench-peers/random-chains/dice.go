package main

import (
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
)

// dice is a source of random decisions. Every block and every transaction has dice of its own, so that leaving one
// out does not change the others.
type dice struct{ *rand.Rand }

// diceFor returns the dice for one part of a seed's chain.
func diceFor(seed int64, part, item int) dice {
	return dice{rand.New(rand.NewPCG(uint64(seed), uint64(uint32(part))<<32|uint64(uint32(item))))}
}

func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func (d dice) percent(p int) bool { return d.IntN(100) < p }

func (d dice) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return b
}

func (d dice) randomHash() common.Hash { return common.BytesToHash(d.bytes(32)) }

// slot returns one of the few storage slots that all contracts use, so that they meet.
func (d dice) slot() uint64 { return uint64(d.IntN(5)) }

// pick returns one of the values, each as likely as the others.
func pick[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// weighted is something to do, as often as its weight says.
type weighted struct {
	weight int
	do     func()
}

func (d dice) oneOf(options ...weighted) {
	total := 0
	for _, o := range options {
		total += o.weight
	}
	at := d.IntN(total)
	for _, o := range options {
		if at < o.weight {
			o.do()
			return
		}
		at -= o.weight
	}
}
