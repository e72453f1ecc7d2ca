// Fills, changes and proves a go-verkle tree of the keys and values of crates/tree-verkle/benches/tree.rs, under the same row names.
//
// Usage: go-verkle-bench [-keys N]; GOMAXPROCS sets the threads. Writes one JSON object.
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

	"github.com/ethereum/go-verkle"
)

type row struct {
	Name string  `json:"name"`
	Keys int     `json:"keys"`
	S    float64 `json:"s"`
	Root string  `json:"root"`
}

var (
	rows []row
	tree verkle.VerkleNode
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

func done(name string, keys int, begin time.Time, root string) {
	seconds := time.Since(begin).Seconds()
	rows = append(rows, row{name, keys, seconds, root})
	fmt.Fprintf(os.Stderr, "%-14s %8d keys %9.2f us/key\n", name, keys, seconds/float64(keys)*1e6)
}

func root() string {
	bytes := tree.Commitment().Bytes()
	return hex.EncodeToString(bytes[:])
}

// Sets keys to values of some kind, and commits.
func set(name string, from, count int, kind string) {
	keys, values := make([][]byte, count), make([][]byte, count)
	for i := range count {
		keys[i], values[i] = random("key", from+i), random(kind, from+i)
	}
	begin := time.Now()
	for i := range count {
		check(tree.Insert(keys[i], values[i], nil))
	}
	tree.Commit()
	done(name, count, begin, root())
}

func prove(size, step, first int) {
	keys := make([][]byte, size)
	for i := range size {
		keys[i] = random("key", i*step+first)
	}
	before := tree.Commitment().Bytes()
	begin := time.Now()
	proof, _, _, _, err := verkle.MakeVerkleMultiProof(tree, nil, keys, nil)
	check(err)
	serialized, diff, err := verkle.SerializeProof(proof)
	check(err)
	done(fmt.Sprintf("prove/%d", size), size, begin, root())
	begin = time.Now()
	// Without new values the root after is the one before.
	check(verkle.Verify(serialized, before[:], before[:], diff))
	done(fmt.Sprintf("verify/%d", size), size, begin, root())
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
	count := flag.Int("keys", 100_000, "to begin with")
	flag.Parse()
	// Tables are made outside all figures.
	verkle.GetConfig()
	tree = verkle.New()
	set("insert", 0, *count, "value")
	afterInsert := peakMemory()
	next := *count
	for _, batch := range [][2]int{{1_000, 5}, {10_000, 3}} {
		size, times := batch[0], batch[1]
		for range times {
			set(fmt.Sprintf("new/%d", size), next, size, "value")
			next += size
		}
		for i := range times {
			set(fmt.Sprintf("updated/%d", size), next-(i+1)*size, size, "second")
		}
	}
	for _, proofs := range [][2]int{{1_000, 3}, {10_000, 3}} {
		for i := range proofs[1] {
			prove(proofs[0], *count/proofs[0], i)
		}
	}
	peak := peakMemory()
	nodes, err := tree.(*verkle.InternalNode).BatchSerialize()
	check(err)
	bytes := 0
	for _, node := range nodes {
		bytes += len(node.SerializedBytes)
	}
	result := map[string]any{"rows": rows, "insert_peak_bytes": afterInsert, "peak_bytes": peak, "stored_bytes": bytes, "stored_keys": next}
	check(json.NewEncoder(os.Stdout).Encode(result))
}
