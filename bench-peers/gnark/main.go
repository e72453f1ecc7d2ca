// Times gnark-crypto's arithmetic on the inputs of bench-peers/arithmetic, under the same row names; prints rows as JSON.
//
// Usage: gnark-bench [MILLISECONDS], for each row.
package main

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/bandersnatch"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/crypto/sha3"
)

const (
	count   = 1024
	terms   = 256
	divisor = 0x9e37_79b9_7f4a_7c15
)

type row struct {
	Library string  `json:"library"`
	Name    string  `json:"name"`
	Ns      float64 `json:"ns"`
	Digest  string  `json:"digest"`
}

var (
	budget = 300 * time.Millisecond
	rows   []row
)

// measure runs job, which does so many operations, until the budget is spent, and keeps the least time.
func measure(name string, operations int, job func(), results func() []byte) {
	job()
	hash := sha3.NewLegacyKeccak256()
	hash.Write(results())
	least := time.Duration(1 << 62)
	for begin := time.Now(); time.Since(begin) < budget; {
		start := time.Now()
		job()
		least = min(least, time.Since(start))
	}
	ns := float64(least.Nanoseconds()) / float64(operations)
	rows = append(rows, row{"gnark-crypto", name, ns, hex.EncodeToString(hash.Sum(nil))})
}

func bytesOf(elements ...fr.Element) (all []byte) {
	for _, element := range elements {
		bytes := element.Bytes()
		all = append(all, bytes[:]...)
	}
	return all
}

// images are x/y as numbers modulo the order (EIP-6800).
func images(points ...bandersnatch.PointExtended) (all []byte) {
	curve := bandersnatch.GetEdwardsCurve()
	for i := range points {
		var affine bandersnatch.PointAffine
		affine.FromExtended(&points[i])
		var quotient fr.Element
		quotient.Div(&affine.X, &affine.Y)
		var number big.Int
		quotient.BigInt(&number)
		number.Mod(&number, &curve.Order)
		all = append(all, number.FillBytes(make([]byte, 32))...)
	}
	return all
}

func main() {
	if len(os.Args) > 1 {
		ms, err := strconv.Atoi(os.Args[1])
		if err != nil {
			panic(err)
		}
		budget = time.Duration(ms) * time.Millisecond
	}
	field()
	curve()
	json.NewEncoder(os.Stdout).Encode(rows)
}

func field() {
	var step fr.Element
	step.SetUint64(divisor).Inverse(&step)
	a, squares, results := make([]fr.Element, count), make([]fr.Element, count), make([]fr.Element, count)
	for i := range a {
		a[i].SetUint64(uint64(i+1)).Mul(&a[i], &step)
		squares[i].Square(&a[i])
	}
	b := a[17]
	all := func() []byte { return bytesOf(results...) }
	each := func(name string, of func(result, x *fr.Element)) {
		measure(name, count, func() {
			for i := range a {
				of(&results[i], &a[i])
			}
		}, all)
	}
	each("field/mul", func(result, x *fr.Element) { result.Mul(x, &b) })
	var last fr.Element
	measure("field/mul, each on the last", count, func() {
		last = a[3]
		for range count {
			last.Mul(&last, &b)
		}
	}, func() []byte { return bytesOf(last) })
	each("field/square", func(result, x *fr.Element) { result.Square(x) })
	each("field/inverse", func(result, x *fr.Element) { result.Inverse(x) })
	var inverses []fr.Element
	measure("field/inverse, together", count, func() { inverses = fr.BatchInvert(a) }, func() []byte { return bytesOf(inverses...) })
	symbols := make([]byte, count)
	measure("field/legendre", count, func() {
		for i := range a {
			symbols[i] = byte(a[i].Legendre())
		}
	}, func() []byte { return symbols })
	measure("field/sqrt", count, func() {
		for i := range squares {
			results[i].Sqrt(&squares[i])
		}
	}, func() []byte {
		roots := slices.Clone(results)
		for i := range roots {
			if bytes := roots[i].Bytes(); bytes[31]%2 == 1 {
				roots[i].Neg(&roots[i])
			}
		}
		return bytesOf(roots...)
	})
}

func curve() {
	var step big.Int
	order := bandersnatch.GetEdwardsCurve().Order
	step.SetUint64(divisor).ModInverse(&step, &order)
	base := bandersnatch.GetEdwardsCurve().Base
	points, scalars := make([]bandersnatch.PointAffine, terms), make([]big.Int, terms)
	for i := range points {
		number := big.NewInt(int64(i + 1))
		points[i].ScalarMultiplication(&base, number)
		scalars[i].Mul(number, &step).Mod(&scalars[i], &order)
	}
	var start, result bandersnatch.PointExtended
	start.FromAffine(&points[7])
	one := func() []byte { return images(result) }
	measure("curve/add", terms, func() {
		result = start
		for i := range points {
			result.MixedAdd(&result, &points[i])
		}
	}, one)
	measure("curve/double", 256, func() {
		result = start
		for range 256 {
			result.Double(&result)
		}
	}, one)
	multiples := make([]bandersnatch.PointExtended, terms)
	measure("curve/multiple", terms, func() {
		for i := range scalars {
			multiples[i].ScalarMultiplication(&start, &scalars[i])
		}
	}, func() []byte { return images(multiples...) })
}
