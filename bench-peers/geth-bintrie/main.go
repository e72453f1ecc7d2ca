// Fills and changes go-ethereum's binary tree (trie/bintrie) with the slots of crates/tree-eip7864/benches/tree.rs, under the same row names.
//
// Usage: geth-bintrie [-keys N] [-depth LEVELS] [-reopen]; GOMAXPROCS sets the threads. Writes one JSON object.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie/bintrie"
	"github.com/ethereum/go-ethereum/triedb/database"
)

type row struct {
	Name string  `json:"name"`
	Keys int     `json:"keys"`
	S    float64 `json:"s"`
	Root string  `json:"root"`
}

// nodes in memory by path: what a commit wrote.
type nodes map[string][]byte

func (n nodes) NodeReader(common.Hash) (database.NodeReader, error) { return n, nil }

func (n nodes) Node(_ common.Hash, path []byte, _ common.Hash) ([]byte, error) {
	return n[string(path)], nil
}

var (
	rows   []row
	stored = nodes{}
	tree   *bintrie.BinaryTrie
	depth  = flag.Int("depth", 8, "levels of the tree in one record, 1 to 8")
	reopen = flag.Bool("reopen", false, "forget all nodes in memory after each commit, as arbor does")
)

// pseudo-random bytes number i of some kind.
func random(kind string, i int) []byte {
	number := binary.LittleEndian.AppendUint64([]byte(kind), uint64(i))
	sum := sha256.Sum256(number)
	return sum[:]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func open(root common.Hash) {
	var err error
	tree, err = bintrie.NewBinaryTrie(root, stored, *depth)
	check(err)
}

// Sets slots to values of some kind, and commits.
func set(name string, from, count int, kind string) {
	addresses, slots, values := make([]common.Address, count), make([][]byte, count), make([][]byte, count)
	for i := range count {
		addresses[i] = common.BytesToAddress(random("address", from+i)[:20])
		slots[i], values[i] = random("slot", from+i), random(kind, from+i)
	}
	begin := time.Now()
	for i := range count {
		check(tree.UpdateStorage(addresses[i], slots[i], values[i]))
	}
	root, set := tree.Commit(false)
	for path, node := range set.Nodes {
		if len(node.Blob) == 0 {
			delete(stored, path)
		} else {
			stored[path] = node.Blob
		}
	}
	if *reopen {
		open(root)
	}
	rows = append(rows, row{name, count, time.Since(begin).Seconds(), hex.EncodeToString(root[:])})
}

func peakMemory() int {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " kB"))
			return kib * 1024
		}
	}
	return 0
}

func main() {
	count := flag.Int("keys", 1_000_000, "to begin with")
	flag.Parse()
	open(types.EmptyBinaryHash)
	for begin := 0; begin < *count; begin += 10_000 {
		set("insert", begin, min(10_000, *count-begin), "value")
	}
	next := *count
	for _, batch := range [][2]int{{1_000, 5}, {10_000, 3}} {
		size, times := batch[0], batch[1]
		for range times {
			set(fmt.Sprintf("new/%d", size), next, size, "value")
			next += size
		}
		for i := range times {
			set(fmt.Sprintf("changed/%d", size), next-(i+1)*size, size, "second")
		}
	}
	bytes := 0
	for path, blob := range stored {
		bytes += len(path) + len(blob)
	}
	result := map[string]any{"rows": rows, "peak_bytes": peakMemory(), "stored_bytes": bytes}
	check(json.NewEncoder(os.Stdout).Encode(result))
}
