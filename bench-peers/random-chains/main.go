// Command random-chains makes random valid chains with go-ethereum, and blocks beside them that go-ethereum refuses.
//
// For each seed it writes a folder with genesis.json, chain.rlp (like `geth export`), dump.jsonl (the last state, like
// `geth dump`), receipts.txt, counts.json, and mutants/ (mutants.go).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// options are the command line's.
type options struct {
	blocks  int
	long    bool
	mutants int
	trace   uint64
	drop    []string
	without []string
}

// dropped reports whether a part of a block is left out: a transaction by its ordinal, or "u" for the ommer.
func (o options) dropped(block int, part string) bool {
	return slices.Contains(o.drop, fmt.Sprintf("%d:%s", block, part))
}

func (o options) leavesOut(what string) bool { return slices.Contains(o.without, what) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// makeChain makes, checks and writes one chain.
func makeChain(seed int64, folder string, o options) (err error) {
	defer func() { // geth's own functions panic for some of the states that chance brings about
		if cause := recover(); cause != nil {
			if os.Getenv("GOTRACEBACK") != "" {
				panic(cause)
			}
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	m := newMaker(seed, o)
	if err := m.run(); err != nil {
		return err
	}
	return m.write(folder)
}

func main() {
	var o options
	seed := flag.Int64("seed", 1, "first seed")
	count := flag.Int("count", 1, "number of chains")
	out := flag.String("out", "chains", "folder in which each chain gets a folder named by its seed")
	drop := flag.String("drop", "", "leave out transactions and ommers: BLOCK:ORDINAL,BLOCK:u,...")
	without := flag.String("without", "", "leave out what is known to differ: delegation-shapes,empty-ripemd")
	flag.IntVar(&o.blocks, "blocks", 0, "make only the first N blocks")
	flag.BoolVar(&o.long, "long", false, "make more than 256 blocks of few transactions")
	flag.IntVar(&o.mutants, "mutants", 24, "make N mutated blocks for each chain")
	flag.Uint64Var(&o.trace, "trace", 0, "print the instructions of block N")
	flag.Parse()
	o.drop, o.without = strings.Split(*drop, ","), strings.Split(*without, ",")
	failed := false
	for s := *seed; s < *seed+int64(*count); s++ {
		if err := makeChain(s, filepath.Join(*out, fmt.Sprint(s)), o); err != nil {
			fmt.Fprintf(os.Stderr, "seed %d: %v\n", s, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
