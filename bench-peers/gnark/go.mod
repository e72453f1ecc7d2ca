module arboretum/bench-peers/gnark

go 1.26

require (
	github.com/consensys/gnark-crypto v0.18.1
	golang.org/x/crypto v0.55.0
)

require (
	github.com/bits-and-blooms/bitset v1.20.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
