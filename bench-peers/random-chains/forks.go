package main

import (
	"math/big"

	"github.com/ethereum/go-ethereum/params"
)

type fork int

const (
	frontier fork = iota
	homestead
	tangerineWhistle
	spuriousDragon
	byzantium
	constantinople
	petersburg
	istanbul
	berlin
	london
	paris
	shanghai
	cancun
	prague
	osaka
	bpo1
	bpo2
	forkCount
)

var forkNames = [forkCount]string{"frontier", "homestead", "tangerine", "spurious", "byzantium", "constantinople", "petersburg",
	"istanbul", "berlin", "london", "paris", "shanghai", "cancun", "prague", "osaka", "bpo1", "bpo2"}

// secondsPerBlock is the usual distance between two blocks.
const secondsPerBlock = 10

// schedule says which forks a chain goes through, and at which block each starts.
type schedule struct {
	first, last fork
	// start has the first block of each fork: 0 up to the fork of the genesis block, -1 for forks that do not come.
	start [forkCount]int
}

func drawSchedule(d dice, blocks int) schedule {
	s := schedule{first: fork(d.IntN(int(forkCount)))}
	if d.oneIn(4) { // most rules are of the later forks
		s.first = shanghai + fork(d.IntN(int(forkCount-shanghai)))
	}
	s.last = s.first
	if !d.oneIn(4) {
		s.last += fork(d.IntN(int(forkCount - s.first)))
		if s.last > s.first+5 && !d.oneIn(3) {
			s.last = s.first + 1 + fork(d.IntN(4))
		}
	}
	at := 0
	for f := range s.start {
		switch f := fork(f); {
		case f <= s.first:
			s.start[f] = 0
		case f > s.last:
			s.start[f] = -1
		default:
			step := 1 + d.IntN(1+2*(blocks-at)/int(s.last-f+2))
			if at > 0 && d.oneIn(8) {
				step = 0 // two forks in one block
			}
			at = max(1, min(at+step, blocks))
			s.start[f] = at
		}
	}
	return s
}

// comes reports whether the chain ever has the fork's rules.
func (s schedule) comes(f fork) bool { return s.start[f] >= 0 }

func (s schedule) block(f fork) *big.Int {
	if !s.comes(f) {
		return nil
	}
	return big.NewInt(int64(s.start[f]))
}

// config returns geth's configuration for the schedule. The terminal total difficulty is a placeholder until the
// chain is made.
func (s schedule) config(d dice, genesisTime uint64) *params.ChainConfig {
	c := &params.ChainConfig{
		ChainID:             big.NewInt(pick(d, int64(1337), 1, 77, 1<<40)),
		Ethash:              new(params.EthashConfig),
		HomesteadBlock:      s.block(homestead),
		EIP150Block:         s.block(tangerineWhistle),
		EIP155Block:         s.block(spuriousDragon),
		EIP158Block:         s.block(spuriousDragon),
		ByzantiumBlock:      s.block(byzantium),
		ConstantinopleBlock: s.block(constantinople),
		PetersburgBlock:     s.block(petersburg),
		IstanbulBlock:       s.block(istanbul),
		BerlinBlock:         s.block(berlin),
		LondonBlock:         s.block(london),
		MergeNetsplitBlock:  s.block(paris),
	}
	if d.oneIn(2) { // the forks that only delayed the difficulty bomb
		c.MuirGlacierBlock = s.block(istanbul)
	}
	if d.oneIn(2) {
		c.ArrowGlacierBlock = s.block(london)
		if d.oneIn(2) {
			c.GrayGlacierBlock = s.block(london)
		}
	}
	switch {
	case s.start[paris] == 0:
		c.TerminalTotalDifficulty = new(big.Int)
	case s.comes(paris):
		c.TerminalTotalDifficulty = new(big.Int).Lsh(big.NewInt(1), 100)
	}
	earliest := uint64(0)
	time := func(f fork) *uint64 {
		if !s.comes(f) {
			return nil
		}
		t := uint64(0)
		if s.start[f] > 0 {
			t = genesisTime + secondsPerBlock*uint64(s.start[f]) - uint64(d.IntN(secondsPerBlock))
		}
		earliest = max(earliest, t)
		t = earliest
		return &t
	}
	c.ShanghaiTime, c.CancunTime, c.PragueTime, c.OsakaTime = time(shanghai), time(cancun), time(prague), time(osaka)
	c.BPO1Time, c.BPO2Time = time(bpo1), time(bpo2)
	if s.comes(cancun) {
		c.BlobScheduleConfig = s.blobs(d)
	}
	return c
}

func (s schedule) blobs(d dice) *params.BlobScheduleConfig {
	known := params.DefaultBlobSchedule
	b := &params.BlobScheduleConfig{Cancun: known.Cancun}
	if d.oneIn(3) { // a market in which the price moves within a few blocks
		b.Cancun = &params.BlobConfig{Target: 1, Max: 2, UpdateFraction: 100_000}
	}
	if s.comes(prague) {
		b.Prague = known.Prague
	}
	if s.comes(bpo1) {
		b.BPO1 = &params.BlobConfig{Target: 3, Max: 5, UpdateFraction: 3_338_477}
	}
	if s.comes(bpo2) {
		b.BPO2 = &params.BlobConfig{Target: 10, Max: 15, UpdateFraction: 8_346_193}
	}
	return b
}
