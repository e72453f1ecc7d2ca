// The page of a comparison.

function lead() {
  const { chain, settings } = data;
  const blocks = `blocks ${show.plain(chain.first_block)} to ${show.plain(chain.last_block)}`;
  document.getElementById("lead").textContent =
    `${blocks} of ${settings.chain.join(", ")}: ${show.plain(chain.transactions)} transactions, `
    + `${(chain.gas / 1e9).toFixed(3)} billion gas. Every tree replayed all of them from the same state, `
    + `in a process of its own, with the same memory, and ended at the same block.`;
  const told = [];
  if (data.ran_once_more) {
    told.push(`Repetitions differed by more than ${100 * data.spread_limit} % of their median and were run once more.`);
  }
  told.push(...data.failed.map((failed) => `Failed: ${failed}.`));
  notice(told.join(" "));
}

// One row for each figure: medians of all trees, and ratios to the first.
function summary(rows) {
  const columns = ["", ...trees.flatMap((name, index) => index === 0 ? [name] : [name, `to ${trees[0]}`])];
  const lines = rows.map((row) => {
    const cells = trees.flatMap((_, index) => {
      const median = row.trees[index]?.median;
      const text = median == null ? "" : show[row.kind](median);
      const ratio = row.ratios[index];
      return index === 0 ? [text] : [text, ratio == null ? "" : show.ratio(ratio)];
    });
    return [row.label, ...cells];
  });
  const table = tableOf(columns, lines);
  table.classList.add("whole");
  return table;
}

function summarySection() {
  const section = document.getElementById("summary");
  const spread = ["runs, spread of wall time", ...data.trees.flatMap((tree, index) => {
    const text = tree.runs === 1 ? "1 run" : `${tree.runs} runs, ${(100 * tree.spread).toFixed(1)} %`;
    return index === 0 ? [text] : [text, ""];
  })];
  const rows = data.headlines.map(figure).filter((row) => row);
  const table = summary(rows);
  const last = element("tr", {}, ...spread.map((cell) => element("td", {}, cell)));
  table.querySelector("tbody").append(last);
  section.append(
    element("p", { class: "explain" }, "Medians of all runs, and what they are of the first tree's. 1 KiB is 1,024 bytes. "
      + "The spread of wall times is the distance from the shortest to the longest, as a part of the median."),
    table,
    element("details", {}, element("summary", {}, "All figures"), summary(data.figures)));
}

// What each technique is worth: costs of the tree with all of them, then ratios without each.
function ablationSection() {
  const { ablation } = data;
  if (!ablation) return;
  const costs = ["blocks_s", "cpu_s", "store_bytes", "disk_bytes"];
  const kinds = ["time", "time", "bytes", "observed"];
  const spread = (part) => part == null ? "" : `${(100 * part).toFixed(1)} %`;
  const all = ["(nothing: all are on)", "",
    ...costs.map((name, at) => ablation.all_on[name] == null ? "" : show[kinds[at]](ablation.all_on[name])), spread(ablation.spread)];
  const lines = ablation.without.map((without) => [without.technique, without.word,
    ...costs.map((name) => without.ratios[name] == null ? "" : show.ratio(without.ratios[name])), spread(without.spread)]);
  const table = tableOf(["without", "switched off by", "time of blocks", "CPU time", "to the store", "on disk", "spread of the time"],
    [all, ...lines]);
  table.classList.add("whole");
  document.getElementById("summary").append(
    element("p", { class: "explain" }, "What the replay takes without each technique, as a ratio to the replay with all of "
      + "them. A ratio within the spread of the runs says nothing. The time of blocks leaves out the start and the end of "
      + "the process; the CPU time has them."),
    table);
}

function about() {
  const section = document.getElementById("about");
  const { machine, versions, settings } = data;
  const pairs = [
    ["processor", `${machine.cpu ?? "unknown"}, ${machine.cores ?? "?"} threads, ${machine.simd.join(" ")}`],
    ["memory", machine.memory_bytes == null ? "unknown" : show.bytes(machine.memory_bytes)],
    ["system", `${machine.os}, ${machine.arch}`],
    ["arbor", `${versions.arbor}, commit ${versions.commit ?? "unknown"}, ${versions.rustc ?? ""}`],
    ["started", data.started],
    ["memory of each run", show.bytes(settings.memory_bytes)],
    ["threads of each run", String(settings.threads)],
    ["instructions", settings.backend],
    ["history kept", settings.retain],
    ["cache of files", data.trees[0].cache],
    ["slow disk", settings.throttle ?? "no"],
    ["checked", "every header field and receipt; the root of each block where headers carry the tree's roots; "
      + (settings.no_verify ? "not the whole databases (--no-verify)"
        : "all nodes and the state at the last block of each tree's first run (arbor verify), outside the times")],
  ];
  if (settings.workload) pairs.push(["state", `${settings.state}, with the workload ${settings.workload}`]);
  section.append(element("dl", {}, ...pairs.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)])));
  const begin = (tree) => {
    if (!tree.start) return [];
    const words = tree.settings.length === 0 ? "" : ` --tree-settings ${tree.settings.join(",")}`;
    const load = `arbor replay --to 0 --retain none --tree ${tree.tree}${words} --db ${tree.start} ${settings.chain.join(" ")}`;
    const copy = `cp -r ${tree.start} ${/--db (\S+)/.exec(tree.commands[0])?.[1] ?? "DB"}`;
    return settings.workload ? [`${load}  # once`, copy] : [copy];
  };
  const commands = data.trees.flatMap((tree) => [`# ${tree.name}`, ...begin(tree), ...tree.commands]);
  section.append(element("details", {}, element("summary", {}, "The commands of each tree's first run"),
    element("pre", {}, commands.join("\n"))));
  section.append(element("p", { class: "explain" }, "The plots along the chain show the run with the median time of each "
    + "tree. Neighbouring blocks are put together so that this page stays small; blocks.csv and blocks.parquet next to it "
    + "have a row for each block."));
}

lead();
ablationSection();
summarySection();
plotSection(plots());
about();
drawAlways();
