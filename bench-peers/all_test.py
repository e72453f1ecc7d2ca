"""Tests of all.py and its pages, without any peer: `python3 -m unittest discover -s bench-peers -p '*_test.py'`."""

import json
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

import all as command
import comparisons
import pages
from comparisons import ALL, Comparison, row
from peers import Peer, known

HERE = Path(__file__).resolve().parent
REPORTS = "import json, sys; json.dump({'seconds': 2.0}, open(sys.argv[1], 'w')); sys.exit(1)"
CHAINS = SimpleNamespace(folders=[], all=lambda: [])


def compared(code, *words, peers=(), rows=None):
    """A comparison that runs Python."""
    made = rows or (lambda report: [row("one/wall", "wall | time", "s", report["seconds"], {"<peer>": 1.0, "slow": 3.0})])
    words = [sys.executable, "-c", code, *words]
    return Comparison("one", "A <title>", "Nothing.", list(peers), words, words, made, "wall", limits=(1, 1))


def entry(comparison, peers=None, build=True):
    peers = {"arbor": Peer("arbor", "1", places=[Path(sys.executable)])} | (peers or {})
    return command.entry(comparison, SimpleNamespace(quick=True, no_build=not build), peers, CHAINS, Path("/none/arbor"))


def results(*entries):
    machine = {"cpu": "Example(R) CPU @ 2 GHz", "cores": 2, "memory_bytes": 24 << 30, "simd": ["avx2"], "os": "Linux 6.1", "arch": "x86_64"}
    versions = {"arbor": "0.1.0", "commit": "0123456789ab"}
    return {"machine": machine, "versions": versions, "settings": {"quick": True}, "started": "2026-11-28T00:00:00Z", "results": list(entries)}


class Attempts(unittest.TestCase):
    def test_a_missed_goal_is_measured_all_the_same(self):
        found = entry(compared(REPORTS, "REPORT"))
        self.assertEqual((found["state"], found["why"], len(found["rows"])), ("measured", None, 1))

    def test_a_failure_is_an_entry_with_its_last_words_and_without_folders(self):
        found = entry(compared("import sys; sys.exit('leaf/256: the results differ: /home/somebody/report.json')"))
        self.assertEqual(found["state"], "failed")
        self.assertEqual(found["why"], "Exit status 1: leaf/256: the results differ: report.json")

    def test_a_comparison_ends_at_its_limit_with_its_children(self):
        found = entry(compared("import subprocess; subprocess.run(['sleep', '60'])"))
        self.assertEqual(found["why"], "It was stopped after 1 s, its limit.")
        self.assertLess(found["seconds"], 30)

    def test_a_report_of_another_form_is_a_failure(self):
        found = entry(compared(REPORTS, "REPORT", rows=lambda report: report["rows"]))
        self.assertEqual((found["state"], found["rows"]), ("failed", []))

    def test_a_peer_that_cannot_be_built_says_why(self):
        for peer, why in [
            (Peer("other", "1", never="It is not for sale."), "other: It is not for sale."),
            (Peer("other", "1", ["no-such-tool"], build=["true"]), "other: no-such-tool must be installed first."),
            (Peer("other", "1", build=[sys.executable, "-c", "import sys; sys.exit('no /usr/lib/gold')"]), "other: Its build failed: no gold"),
        ]:
            found = entry(compared(REPORTS, "REPORT", peers=["other"]), {"other": peer})
            self.assertEqual((found["state"], found["why"]), ("not built", why))
        found = entry(compared(REPORTS, "REPORT", peers=["other"]), {"other": Peer("other", "1", build=["true"])}, build=False)
        self.assertEqual(found["why"], "other: It is not built, and --no-build was given.")

    def test_figures_are_quoted_if_the_peer_is_missing(self):
        comparison = compared(REPORTS, "REPORT", peers=["other"])
        comparison.without = {"other": (["--peer", "quoted"], "Quoted.")}
        found = entry(comparison, {"other": Peer("other", "1", never="Too large.")})
        self.assertEqual((found["state"], found["note"]), ("measured", "other: Too large. Quoted."))
        self.assertTrue(found["command"].endswith("--peer quoted"))

    def test_entries_of_an_earlier_run_stay(self):
        names = [each["name"] for each in command.merged([{"name": "senders"}, {"name": "serve", "old": 1}], [{"name": "serve"}])]
        self.assertEqual(names, ["serve", "senders"])

    def test_the_folder_is_named_by_the_machine(self):
        self.assertEqual(command.folder_name(results()["machine"]), "example-2-cores-24-gib-linux-6.1")


class Pages(unittest.TestCase):
    def test_above_one_is_ahead_of_the_best_peer(self):
        self.assertEqual(pages.times(row("", "", "s", 2.0, {"a": 1.0, "b": 4.0})), 0.5)
        self.assertEqual(pages.times(row("", "", "1/s", 2.0, {"a": 1.0, "b": 4.0}, "more")), 0.5)
        self.assertIsNone(pages.times(row("", "", "s", 2.0, {"a": None})))

    def test_figures_have_units(self):
        texts = [pages.figure(value, unit) for value, unit in [(1.5e-7, "s"), (0.02, "s"), (1.25e9, "B"), (12345, "1/s"), (5.8, "Keccaks")]]
        self.assertEqual(texts, ["150 ns", "20.0 ms", "1.25 GB", "12,345/s", "5.80 Keccaks"])

    def test_pages_have_everything_and_ask_for_nothing(self):
        failed = entry(compared("import sys; sys.exit('no luck')")) | {"name": "two"}
        found = results(entry(compared(REPORTS, "REPORT")), failed)
        text, page = pages.markdown(found), pages.html(found)
        for part in [pages.NOT_FOR_PUBLICATION, "no luck", "0.50"]:
            self.assertIn(part, text)
            self.assertIn(part, page)
        self.assertIn("wall \\| time", text)
        self.assertIn("A &lt;title&gt;", page)
        for outside in ["http", "<script", "src=", "<peer>"]:
            self.assertNotIn(outside, page)


class Rows(unittest.TestCase):
    """Reports in the forms that the scripts write."""

    def test_of_trees_of_keys(self):
        report = {"rows": [{"name": "insert", "go_s": 2.0, "arbor_s": 0.5}, {"name": "peak_bytes", "go": 10, "arbor": 2}]}
        self.assertEqual([pages.times(row) for row in comparisons.of_verkle_tree(report)], [4.0, 5.0])
        report = {"rows": [{"name": "insert", "geth_s": 2.0, "arbor_s": 0.5}, {"name": "peak_bytes", "geth": 10, "arbor": 2}]}
        self.assertEqual([pages.times(row) for row in comparisons.of_bintrie(report)], [4.0, 5.0])

    def test_of_arithmetic_leaves_out_a_library_without_the_operation(self):
        (found,) = comparisons.of_arithmetic({"rows": [{"name": "field/mul", "arbor_ns": 2.0, "peers_ns": {"blst": 3.0, "arkworks": None}}]})
        self.assertEqual(found["others"], {"blst": 3e-9})

    def test_of_pairings_has_the_engines_contracts_next_to_all_peers(self):
        arbor = [["blst", 1.0, None], ["engine, v7, mulx-adx", 1.25, 5], ["engine, plain EVM", 9.0, 9], ["revm, v7, mulx-adx", 2.0, 5]]
        table = {"peers": [["blst", 1.0], ["wasmcurves, wasmi", 9.0]], "arbor": arbor}
        found = comparisons.of_pairings({"tables": {"pairing": table, "pairing-check": table}})
        self.assertEqual([row["key"] for row in found[:2]], ["pairing/engine, v7", "pairing/engine, v7/times"])
        self.assertEqual((len(found), found[1]["ours"], pages.times(found[0])), (4, 1.25, 0.8))

    def test_of_the_published_load_test_needs_the_published_root(self):
        rows = next(each.rows for each in ALL if each.name == "zksync-published")
        results = {"root": "0x" + comparisons.PUBLISHED_ROOT, "blocks": [{"wall_s": 2.0}], "verify_s": 22.0}
        self.assertEqual([row["ours"] for row in rows({"results": results})], [2.0, 22.0])
        with self.assertRaises(ValueError):
            rows({"results": results | {"root": "0x00"}})

    def test_of_the_load_test_marks_quoted_figures(self):
        ours = {"s": 10.0, "disk": 5, "compacted": 4, "written": 3, "memory": 2, "verify_s": 1.0, "root": "0x00"}
        peer = {"s": 20.0, "disk": 5, "written": 6, "memory": 2, "verify_s": 9.0}
        for theirs, quoted in [(peer, True), (peer | {"root": "0x00"}, False)]:
            found = comparisons.of_loadtest({"results": {"insert": {"arbor": [ours], "zksync": [theirs]}}})
            self.assertEqual({row["quoted"] for row in found}, {quoted})
            self.assertEqual(pages.times(found[0]), 2.0)


class Lists(unittest.TestCase):
    def test_every_comparison_can_be_run(self):
        peers = known()
        for comparison in ALL:
            self.assertLessEqual(set(comparison.peers), peers.keys())
            for words in filter(None, [comparison.full, comparison.quick]):
                self.assertTrue(words[0] in ("ARBOR", "none") or (HERE / words[0]).is_file(), words)
                self.assertTrue(words[0] == "none" or {"REPORT", "OUT"} & set(words), words)
        self.assertEqual(len({comparison.name for comparison in ALL}), len(ALL))

    def test_sources_name_comparisons(self):
        names = {comparison.name for comparison in ALL}
        data = json.loads((HERE / "sources.json").read_text())
        self.assertEqual(len(data["sources"]), 5)
        for figure in (figure for source in data["sources"] for figure in source["figures"]):
            for reference in (figure["row"], figure.get("next_to", figure["row"])):
                self.assertIn(reference.split()[0], names)


if __name__ == "__main__":
    unittest.main()
