#!/usr/bin/env bash
# Builds the peers from their Go modules into the user's cache; needs Go. Done once: some minutes on two cores.
set -euo pipefail

geth_version=v1.17.7
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export GOBIN="${XDG_CACHE_HOME:-$HOME/.cache}/arboretum/peers/bin"
mkdir -p "$GOBIN"

if ! command -v go >/dev/null; then
    echo "Go is needed to build the peers (the version in bench-peers/geth-sizes/go.mod or later)" >&2
    exit 1
fi
if [[ "$("$GOBIN/geth" version 2>/dev/null | sed -n 's/^Version: //p')" != "${geth_version#v}"* ]]; then
    # The flag lets one of geth's dependencies reach into the Go runtime, which newer linkers forbid.
    go install -ldflags=-checklinkname=0 "github.com/ethereum/go-ethereum/cmd/geth@$geth_version"
fi
(cd "$here/geth-sizes" && go build -o "$GOBIN/geth-sizes" .)
"$GOBIN/geth" version | sed -n '1,2p'
echo "peers are in $GOBIN"
