// Command geth-sizes prints, as JSON, what a closed geth database holds by kind of record.
//
// geth's own `db inspect` stops at an error on a path-scheme database ("unknown tail group", 1.17.7), and it does not say
// what the records of a kind take on disk. For each kind this prints the number of records, the bytes of their
// keys and values, and the bytes that the tables give to the kind's key range.
//
// Kinds are told apart by the first byte of the key and its length, as geth's core/rawdb/schema.go defines them.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// kind is one sort of record: all keys that begin with prefix and have a length within bounds.
type kind struct {
	name        string
	prefix      byte
	least, most int
}

const (
	hash   = 32
	number = 8
)

var kinds = []kind{
	{"headers", 'h', 1 + number + hash, 1 + number + hash},
	{"canonical_hashes", 'h', 1 + number + 1, 1 + number + 1},
	{"header_numbers", 'H', 1 + hash, 1 + hash},
	{"bodies", 'b', 1 + number + hash, 1 + number + hash},
	{"receipts", 'r', 1 + number + hash, 1 + number + hash},
	{"transaction_lookups", 'l', 1 + hash, 1 + hash},
	{"flat_accounts", 'a', 1 + hash, 1 + hash},
	{"flat_slots", 'o', 1 + 2*hash, 1 + 2*hash},
	{"account_nodes", 'A', 1, 1 + 2*hash},
	{"storage_nodes", 'O', 1 + hash, 1 + 3*hash},
	{"code", 'c', 1 + hash, 1 + hash},
	{"state_ids", 'L', 1 + hash, 1 + hash},
	{"state_history_index", 'm', 3, 1 << 10},
}

// size is what is known of one kind.
type size struct {
	Records      uint64 `json:"records"`
	LogicalBytes uint64 `json:"logical_bytes"`
	TableBytes   uint64 `json:"table_bytes"`
}

func measure(dir string) (map[string]*size, error) {
	db, err := pebble.Open(dir, &pebble.Options{FS: vfs.Default, ReadOnly: true, Logger: silent{}})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	defer db.Close()

	sizes := map[string]*size{"other": {}}
	for _, k := range kinds {
		sizes[k.name] = &size{}
		// Kinds that share a first byte share the range; the larger of them is meant.
		if sizes[k.name].TableBytes, err = db.EstimateDiskUsage([]byte{k.prefix}, []byte{k.prefix + 1}); err != nil {
			return nil, fmt.Errorf("estimating %s: %w", k.name, err)
		}
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		s := sizes[nameOf(it.Key())]
		s.Records++
		s.LogicalBytes += uint64(len(it.Key()) + len(it.Value()))
	}
	return sizes, it.Error()
}

func nameOf(key []byte) string {
	for _, k := range kinds {
		if len(key) > 0 && key[0] == k.prefix && len(key) >= k.least && len(key) <= k.most {
			return k.name
		}
	}
	return "other"
}

// silent drops the messages of opening a database; errors are returned.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "geth-sizes: "+format+"\n", args...)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: geth-sizes DATADIR/geth/chaindata")
		os.Exit(2)
	}
	sizes, err := measure(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "geth-sizes:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(sizes); err != nil {
		fmt.Fprintln(os.Stderr, "geth-sizes:", err)
		os.Exit(1)
	}
}
