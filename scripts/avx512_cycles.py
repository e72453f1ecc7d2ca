#!/usr/bin/env python3
"""Cycles of the AVX-512 IFMA code on an Ice Lake server, as llvm-mca foretells them: where no such processor is at hand.

    scripts/avx512_cycles.py target/release/arbor

Takes the longest straight pieces of each function with products of 52 bits and has llvm-mca run each fifty times in a row. For a piece: its products (of eight
lanes; one takes 105 multiplications in the base field), all its 512-bit instructions, which two ports share, and its cycles. Needs objdump, nm and llvm-mca (Debian: binutils, llvm).
"""

import re
import subprocess
import sys

MULTIPLICATIONS = 105  # of a product: 25 low and 25 high halves, and five rounds of reduction with 11
ROUNDS = 50
PIECES = 3


def functions(binary):
    """Name and instructions (address, text) of each function."""
    symbols = subprocess.run(["nm", "-C", "--defined-only", "-n", binary], check=True, capture_output=True, text=True).stdout
    entries = [line.split(maxsplit=2) for line in symbols.splitlines()]
    for (start, _, name), (end, *_) in zip(entries, entries[1:]):
        if "lanes::avx512::run" not in name:
            continue
        cut = [f"--start-address=0x{start}", f"--stop-address=0x{end}"]
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *cut, binary], check=True, capture_output=True, text=True).stdout
        lines = re.findall(r"^\s*([0-9a-f]+):\t([^#<\n]*)", code, re.M)
        yield f"{name} at {start.lstrip('0')}", [(int(at, 16), text.strip()) for at, text in lines]


def pieces(instructions):
    """The code between jumps and their targets."""
    targets = {int(m[1], 16) for _, text in instructions if (m := re.match(r"j\w+\s+([0-9a-f]+)", text))}
    piece = []
    for at, text in instructions:
        if at in targets and piece:
            yield piece
            piece = []
        if re.match(r"j\w+|ret|call", text):
            if piece:
                yield piece
            piece = []
        else:
            piece.append(text)
    if piece:
        yield piece


def cycles(piece):
    command = ["llvm-mca", "-mcpu=icelake-server", f"-iterations={ROUNDS}", "-instruction-info=0", "-resource-pressure=0"]
    report = subprocess.run(command, input="\n".join(piece), check=True, capture_output=True, text=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / ROUNDS


def main():
    print("| function | products of eight | 512-bit instructions | bound of two ports | cycles | for each product |\n|---|---|---|---|---|---|")
    for name, instructions in functions(sys.argv[1]):
        found = sorted(pieces(instructions), key=lambda piece: -sum("vpmadd52" in text for text in piece))
        for piece in found[:PIECES]:
            products = sum("vpmadd52" in text for text in piece) / MULTIPLICATIONS
            if products < 1:
                continue
            wide = sum("zmm" in text and not text.startswith("vmov") for text in piece)
            took = cycles(piece)
            print(f"| {name} | {products:.1f} | {wide} | {wide / 2:.0f} | {took:.0f} | {took / products:.0f} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
