#!/usr/bin/env python3
"""Reads the rows of a comparison with pyarrow and with DuckDB, and compares both with blocks.csv.

    scripts/report_rows.py FOLDER
"""

import csv
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet


def value(name, text):
    """A cell of the CSV file as Parquet has it."""
    if text == "":
        return None
    if name in ("tree", "block_hash"):
        return text
    return float(text) if name.endswith("_s") else int(text)


def main():
    folder = Path(sys.argv[1])
    with open(folder / "blocks.csv", newline="") as file:
        expected = [{name: value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]
    if not expected:
        sys.exit("blocks.csv has no rows")
    path = folder / "blocks.parquet"
    if pyarrow.parquet.read_table(path).to_pylist() != expected:
        sys.exit("pyarrow reads other rows than blocks.csv has")
    query = duckdb.sql(f"select * from read_parquet('{path}')")
    if [dict(zip(query.columns, row)) for row in query.fetchall()] != expected:
        sys.exit("DuckDB reads other rows than blocks.csv has")
    print(f"pyarrow and DuckDB read {len(expected)} rows of {len(query.columns)} columns as they are in blocks.csv")


if __name__ == "__main__":
    main()
