// Times go-ipa's operations on the inputs of `arbor bench commitments`, under the same row names.
//
// Usage: go-ipa-bench [-budget 500ms] [-groups keccak,vectors,...] ; GOMAXPROCS sets the threads. Writes one JSON object.
package main

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/crate-crypto/go-ipa/banderwagon"
	"github.com/crate-crypto/go-ipa/ipa"
)

type row struct {
	Name   string  `json:"name"`
	Ns     float64 `json:"ns"`      // processor time of one, the least
	WallNs float64 `json:"wall_ns"` // time by the clock of one, the least
	Digest string  `json:"digest"`
}

type study struct {
	config *ipa.IPAConfig
	budget time.Duration
	rows   []row
}

// cpu is the processor time of this process on all threads, the collector of garbage included.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure runs `job`, which does `operations`, until the budget is spent.
func (s *study) measure(name string, operations int, results []byte, job func()) {
	begin := time.Now()
	job()
	once := max(time.Since(begin), 20*time.Nanosecond)
	together := max(int(5*time.Millisecond/once), 1)
	least, leastWall := time.Duration(1<<62), time.Duration(1<<62)
	begin = time.Now()
	for i := 0; i < 3 || time.Since(begin) < s.budget; i++ {
		start, startWall := cpu(), time.Now()
		for range together {
			job()
		}
		least, leastWall = min(least, cpu()-start), min(leastWall, time.Since(startWall))
	}
	count := float64(together * operations)
	digest := ""
	if len(results) > 0 {
		sum := keccak(results)
		digest = hex.EncodeToString(sum[:])
	}
	s.rows = append(s.rows, row{name, float64(least) / count, float64(leastWall) / count, digest})
	fmt.Fprintln(os.Stderr, name)
}

func main() {
	budget := flag.Duration("budget", 500*time.Millisecond, "for each figure")
	groups := flag.String("groups", "keccak,vectors,leaves,updates,keys,points,proofs", "what to measure")
	flag.Parse()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	// The points, which are no part of the set-up that is compared.
	srs := ipa.GenerateRandomPoints(256)
	points := time.Since(begin)
	begin = time.Now()
	tables, err := banderwagon.NewPrecompMSM(srs)
	setup := time.Since(begin)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil {
		panic(err)
	}
	s := &study{
		config: &ipa.IPAConfig{},
		budget: *budget,
	}
	// The other fields of a configuration are private: it makes its own tables.
	runtime.KeepAlive(&tables)
	if s.config, err = ipa.NewIPASettings(); err != nil {
		panic(err)
	}
	wanted := strings.Split(*groups, ",")
	for _, group := range []struct {
		name string
		run  func(*study)
	}{
		{"keccak", keccaks}, {"vectors", vectors}, {"leaves", leaves}, {"updates", updates},
		{"keys", keys}, {"points", pointRows}, {"proofs", proofs},
	} {
		if slices.Contains(wanted, group.name) {
			group.run(s)
		}
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"points_s":     points.Seconds(),
		"setup_s":      setup.Seconds(),
		"tables_bytes": after.HeapAlloc - before.HeapAlloc,
		"threads":      runtime.GOMAXPROCS(0),
		"rows":         s.rows,
	})
}
