package main

import (
	"bytes"
	"fmt"

	goipa "github.com/crate-crypto/go-ipa"
	"github.com/crate-crypto/go-ipa/bandersnatch/fr"
	"github.com/crate-crypto/go-ipa/banderwagon"
	"github.com/crate-crypto/go-ipa/common"
)

// Operations that are repeated in one timing, as many as arbor does together.
const (
	batch  = 1024
	leafed = 64
	keyed  = 256
)

func keccaks(s *study) {
	message := digest("message", 0)
	var sink [32]byte
	s.measure("keccak/32", 1, nil, func() { sink = keccak(message[:]) })
	_ = sink
}

func vectors(s *study) {
	for _, values := range []int{1, 5, 16, 64, 256} {
		lists := make([][]fr.Element, 64)
		for i := range lists {
			lists[i] = make([]fr.Element, values)
			for k := range lists[i] {
				lists[i][k] = scalar(uint64(256*i + k))
			}
		}
		var results []byte
		for _, list := range lists {
			point := s.config.Commit(list).Bytes()
			results = append(results, point[:]...)
		}
		s.measure(fmt.Sprintf("vector/%d", values), len(lists), results, func() {
			for _, list := range lists {
				s.config.Commit(list)
			}
		})
	}
}

// mapped is the images of points, with one inversion.
func mapped(points ...*banderwagon.Element) []fr.Element {
	images := make([]fr.Element, len(points))
	pointers := make([]*fr.Element, len(points))
	for i := range images {
		pointers[i] = &images[i]
	}
	if err := banderwagon.BatchMapToScalarField(pointers, points); err != nil {
		panic(err)
	}
	return images
}

type leaf struct {
	stem   fr.Element
	values []value
}

// halves are the vectors of C1 and C2.
func (l leaf) halves() (halves [2][256]fr.Element) {
	for _, value := range l.values {
		at := 2 * (value.suffix % 128)
		half := &halves[value.suffix/128]
		half[at], half[at+1] = valueScalars(value.bytes)
	}
	return halves
}

type committed struct {
	c1, c2, c banderwagon.Element
	f1, f2    fr.Element
}

// commitLeaf maps both halves with one inversion, as go-verkle does.
func (s *study) commitLeaf(l leaf) committed {
	halves := l.halves()
	made := committed{c1: s.config.Commit(halves[0][:]), c2: s.config.Commit(halves[1][:])}
	images := mapped(&made.c1, &made.c2)
	made.f1, made.f2 = images[0], images[1]
	made.c = s.config.Commit([]fr.Element{fr.One(), l.stem, made.f1, made.f2})
	return made
}

// batchOfLeaves is go-ipa's best for many: images of all halves with one inversion, and of all leaves.
func (s *study) batchOfLeaves(leaves []leaf) []fr.Element {
	points := make([]banderwagon.Element, 2*len(leaves))
	pointers := make([]*banderwagon.Element, 2*len(leaves))
	for i, l := range leaves {
		halves := l.halves()
		points[2*i], points[2*i+1] = s.config.Commit(halves[0][:]), s.config.Commit(halves[1][:])
		pointers[2*i], pointers[2*i+1] = &points[2*i], &points[2*i+1]
	}
	images := mapped(pointers...)
	for i, l := range leaves {
		points[i] = s.config.Commit([]fr.Element{fr.One(), l.stem, images[2*i], images[2*i+1]})
	}
	return mapped(pointers2(points[:len(leaves)])...)
}

func pointers2(points []banderwagon.Element) []*banderwagon.Element {
	pointers := make([]*banderwagon.Element, len(points))
	for i := range points {
		pointers[i] = &points[i]
	}
	return pointers
}

func bytesOf(scalars []fr.Element) (all []byte) {
	for _, scalar := range scalars {
		bytes := scalar.BytesLE()
		all = append(all, bytes[:]...)
	}
	return all
}

func leaves(s *study) {
	for _, count := range []int{1, 4, 16, 64, 256} {
		number := leafed
		if count <= 16 {
			number = keyed
		}
		made := make([]leaf, number)
		for i := range made {
			made[i] = leaf{stem(uint64(i)), leafValues(uint64(i), count)}
		}
		s.measure(fmt.Sprintf("leaf/%d", count), len(made), bytesOf(s.batchOfLeaves(made)), func() {
			s.batchOfLeaves(made)
		})
	}
}

func updates(s *study) {
	for _, count := range []int{1, 4, 16, 64, 256} {
		before := make([]committed, leafed)
		changes := make([][2]fr.Element, leafed)
		for i := range before {
			values := leafValues(uint64(i), count)
			before[i] = s.commitLeaf(leaf{stem(uint64(i)), values})
			oldLow, oldHigh := valueScalars(values[0].bytes)
			newLow, newHigh := valueScalars(digest("changed", uint64(256*i)))
			changes[i][0].Sub(&newLow, &oldLow)
			changes[i][1].Sub(&newHigh, &oldHigh)
		}
		update := func() []fr.Element {
			points := make([]banderwagon.Element, leafed)
			for i, change := range changes {
				delta := s.config.Commit(change[:])
				points[i].Add(&before[i].c1, &delta)
			}
			images := mapped(pointers2(points)...)
			for i, image := range images {
				var terms [3]fr.Element
				terms[2].Sub(&image, &before[i].f1)
				delta := s.config.Commit(terms[:])
				points[i].Add(&before[i].c, &delta)
			}
			return mapped(pointers2(points)...)
		}
		s.measure(fmt.Sprintf("update/%d", count), leafed, bytesOf(update()), func() { update() })
	}
}

func keys(s *study) {
	headers, slots, repeated := make([][64]byte, keyed), make([][64]byte, keyed), make([][64]byte, keyed)
	for i := range headers {
		addressed, index := address(uint64(i)), slotIndex(uint64(i))
		copy(headers[i][:], addressed[:])
		copy(slots[i][:], addressed[:])
		copy(slots[i][32:], index[:])
		addressed = address(uint64(i % 8))
		copy(repeated[i][:], addressed[:])
		copy(repeated[i][32:], index[:])
	}
	var prefix fr.Element
	prefix.SetUint64(2 + 256*64)
	commit := func(key [64]byte) banderwagon.Element {
		terms := [5]fr.Element{prefix, fromLE(key[:16]), fromLE(key[16:32]), fromLE(key[32:48]), fromLE(key[48:])}
		return s.config.Commit(terms[:])
	}
	stems := func(points []banderwagon.Element) (stems []byte) {
		for _, image := range mapped(pointers2(points)...) {
			bytes := image.BytesLE()
			stems = append(stems, bytes[:31]...)
		}
		return stems
	}
	for _, of := range []struct {
		name string
		keys [][64]byte
	}{{"key/header", headers}, {"key/slot", slots}} {
		all := func() []byte {
			points := make([]banderwagon.Element, keyed)
			for i, key := range of.keys {
				points[i] = commit(key)
			}
			return stems(points)
		}
		s.measure(of.name, keyed, all(), func() { all() })
	}
	// The address' part is kept, as go-verkle's cache does.
	kept := make([]banderwagon.Element, 8)
	for i := range kept {
		kept[i] = s.config.Commit([]fr.Element{prefix, fromLE(repeated[i][:16]), fromLE(repeated[i][16:32])})
	}
	all := func() []byte {
		points := make([]banderwagon.Element, keyed)
		for i, key := range repeated {
			terms := [5]fr.Element{3: fromLE(key[32:48]), 4: fromLE(key[48:])}
			delta := s.config.Commit(terms[:])
			points[i].Add(&kept[i%8], &delta)
		}
		return stems(points)
	}
	s.measure("key/slot-repeated", keyed, all(), func() { all() })
}

func pointRows(s *study) {
	points := make([]banderwagon.Element, batch)
	for i := range points {
		points[i] = s.config.Commit([]fr.Element{scalar(uint64(256 * i))})
	}
	pointers := pointers2(points)
	s.measure("point/map", batch, bytesOf(mapped(pointers...)), func() { mapped(pointers...) })
	encodings := banderwagon.ElementsToBytes(pointers...)
	var all []byte
	for _, encoding := range encodings {
		all = append(all, encoding[:]...)
	}
	s.measure("point/compress", batch, all, func() { banderwagon.ElementsToBytes(pointers...) })
	s.measure("point/decompress", batch, all, func() {
		for _, encoding := range encodings {
			var point banderwagon.Element
			if err := point.SetBytes(encoding[:]); err != nil {
				panic(err)
			}
		}
	})
}

func proofs(s *study) {
	const bases = 256
	polynomials := make([][]fr.Element, bases)
	commitments := make([]banderwagon.Element, bases)
	for i := range polynomials {
		polynomials[i] = make([]fr.Element, 256)
		for k := range polynomials[i] {
			polynomials[i][k] = scalar(uint64(256*i + k))
		}
		commitments[i] = s.config.Commit(polynomials[i])
	}
	for _, count := range []int{1, 100, 1000, 10000} {
		cs, ys := make([]*banderwagon.Element, count), make([]*fr.Element, count)
		fs, zs := make([][]fr.Element, count), make([]uint8, count)
		for i := range cs {
			a, b := i%(bases/2), bases/2+i/(bases/2)%(bases/2)
			cs[i], fs[i] = new(banderwagon.Element), make([]fr.Element, 256)
			cs[i].Add(&commitments[a], &commitments[b])
			for k := range fs[i] {
				fs[i][k].Add(&polynomials[a][k], &polynomials[b][k])
			}
			zs[i] = uint8(37 * i % 256)
			ys[i] = &fs[i][zs[i]]
		}
		var proof *goipa.MultiProof
		prove := func() {
			var err error
			if proof, err = goipa.CreateMultiProof(common.NewTranscript("vt"), s.config, cs, fs, zs); err != nil {
				panic(err)
			}
		}
		prove()
		var encoding bytes.Buffer
		if err := proof.Write(&encoding); err != nil {
			panic(err)
		}
		s.measure(fmt.Sprintf("prove/%d", count), 1, encoding.Bytes(), prove)
		s.measure(fmt.Sprintf("verify/%d", count), 1, nil, func() {
			ok, err := goipa.CheckMultiProof(common.NewTranscript("vt"), s.config, proof, cs, ys, zs)
			if err != nil || !ok {
				panic("the proof does not verify")
			}
		})
	}
}
