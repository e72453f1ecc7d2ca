// The plots of a comparison: what each shows, in words, as a chart and as a table.

const blockAxis = { name: "block", format: show.count, hover: show.plain };
const series = trees.map((name) => data.series[name]);

// A line along the chain for each tree that has the column.
function along(column, x = (rows) => rows.block) {
  return trees.flatMap((name, tree) => {
    const rows = series[tree];
    const values = rows?.[column];
    if (!values || values.every((value) => value == null)) return [];
    const isBand = Array.isArray(values.find((value) => value != null));
    const points = x(rows).map((at, place) => [at, isBand ? values[place]?.[1] : values[place]]);
    const end = data.ends[name]?.[column];
    if (end != null) points[points.length - 1][1] = end;
    return [{ name, colour: tree, points, band: isBand ? values.map((value) => [value[0], value[2]]) : undefined }];
  });
}

// Differences of a growing column over windows of about the same time, divided by the seconds of each.
function rates(column) {
  return trees.flatMap((name, tree) => {
    const rows = series[tree];
    if (!rows) return [];
    // Blocks whose roots came together have one time, which says nothing of each.
    const whole = figure("blocks_s")?.trees[tree]?.median;
    if (whole != null && rows.elapsed.at(-1) < whole / 2) return [];
    const length = rows.elapsed.at(-1) / 40;
    const points = [];
    let [since, sum] = [0, 0];
    rows.elapsed.forEach((now, place) => {
      sum += rows[column][place];
      if (now - since < length) return;
      points.push([rows.block[place], sum / (now - since)]);
      [since, sum] = [now, 0];
    });
    return [{ name, colour: tree, points }];
  });
}

function phases() {
  const parts = [["start_s", "start"], ["execution_s", "execution"], ["keys_s", "key hashing"], ["tree_s", "tree"],
    ["store_s", "store"], ["source_s", "waiting for blocks"], ["backlog_s", "waiting for roots"],
    ["rest_s", "rest"], ["end_s", "end"]];
  const bars = parts.map(([name, label]) => ({ name: label, values: medians(name) }));
  return barPlot("phases", "Time by part of the work",
    "Seconds of each part. With one thread they add up to the wall time. With several threads, key hashing, tree and store "
    + "run next to execution, so that the sum may be more. Waiting is time in which execution stood still. The start makes "
    + "the tree's tables, loads the genesis and opens the database; the end closes it. The last flush is part of the store. "
    + "The rest is mostly waiting for the last roots.",
    { categories: trees, y: { name: "seconds", format: show.time }, bars, stacked: true, sideways: true });
}

function delays() {
  const bars = [["p50_s", "half of the roots"], ["p90_s", "9 in 10"], ["p99_s", "99 in 100"]].map(([name, label]) =>
    ({ name: label, values: trees.map((tree) => data.delays[tree]?.[name]) }));
  const groups = trees.map((tree) => [tree, data.delays[tree]?.group_max]).filter(([, most]) => most > 1)
    .map(([tree, most]) => `${tree}: ${data.delays[tree].group_mean.toFixed(1)} on average, ${most} at most`);
  const together = groups.length === 0 ? "" : ` Some trees compute the roots of several blocks in one step, and a block `
    + `then waits until its step is done. Blocks in a step: ${groups.join("; ")}.`;
  return barPlot("root-delay", "From the end of a block's execution until its root is known",
    `The time within which this share of all roots was known.${together}`,
    { categories: trees, y: { name: "seconds (logarithmic)", format: show.time, log: true, scale: 1e9 }, bars });
}

function operations() {
  const rows = data.figures.filter((row) => data.counters.includes(row.name) && row.kind === "count");
  const bars = trees.map((name, tree) =>
    ({ name, tree, values: rows.map((row) => row.trees[tree]?.median || undefined) }));
  return barPlot("operations", "Expensive operations",
    "Hash function calls, operations on elliptic curves, and requests to the store. A missing bar means none.",
    { categories: rows.map((row) => row.label), y: { name: "count (logarithmic)", format: show.count, log: true },
      bars, sideways: true });
}

function hits() {
  const lines = along("hits").map((line) => ({ ...line, points: line.points.map(([at, hits], place) => {
    const all = hits + series[line.colour].misses[place];
    return [at, all === 0 ? null : 100 * hits / all];
  }) }));
  return linePlot("cache", "Reads answered from memory",
    "Of all reads by key until each block, the part that was answered without asking the store.",
    { x: blockAxis, y: { name: "per cent", format: show.percent }, lines });
}

// Whether lines say something about the chain: on a short one, all is written by the flush at the end.
const isAlongChain = (lines) => lines.some(({ points }) => {
  const end = points.at(-1)[1];
  return points.slice(0, -1).some(([, value]) => value != null && value > end / 20);
});

// The last values of lines, for a chain that is too short for lines.
function barsAtEnd(id, title, explain, lines) {
  const values = (of) => trees.map((_, tree) => of.find((line) => line.colour === tree)?.points.at(-1)[1]);
  return barPlot(id, title, `${explain} The chain is so short that the flush after its last block writes nearly all: these `
    + "are the figures at the end.",
    { categories: trees, y: { name: "bytes", format: show.bytes }, sideways: true,
      bars: lines.map(([name, of]) => ({ name, values: values(of) })) });
}

function diskAlong() {
  const lines = along("disk");
  const [title, explain] = ["Database on the disk along the chain", "Bytes of the store's files."];
  if (lines.length > 0 && !isAlongChain(lines)) {
    return barsAtEnd("disk", "Database on the disk", explain, [["store's files", lines]]);
  }
  return linePlot("disk", title,
    `${explain} They grow by new files and shrink when files are merged. The last point is after the flush at the end.`,
    { x: blockAxis, y: { name: "bytes", format: show.bytes }, lines });
}

function bytesAlong() {
  if (along("store").length > 0 && !isAlongChain(along("store"))) {
    return barsAtEnd("bytes", "Bytes written",
      "Bytes of records handed to the store, and bytes that the operating system counted as written, which include the "
      + "store's journal and its merging of files.",
      [["handed to the store", along("store")], ["written", along("written")]]);
  }
  const handed = along("store").map((line) => ({ ...line, name: `${line.name}, handed to the store` }));
  const written = along("written").map((line) => ({ ...line, name: `${line.name}, written`, dashed: true }));
  return linePlot("bytes", "Bytes written, summed up along the chain",
    "Bytes of records handed to the store, and bytes that the operating system counted as written, which include the "
    + "store's journal and its merging of files. The last point has the flush at the end, too.",
    { x: blockAxis, y: { name: "bytes", format: show.bytes }, lines: [...handed, ...written] });
}

function surveyLines(list, x, y) {
  return trees.flatMap((name, tree) => {
    const rows = data.surveys[name]?.[list] ?? [];
    return rows.length === 0 ? [] : [{ name, colour: tree, symbols: true, points: rows.map((row) => [x(row), y(row)]) }];
  });
}

// Names the trees that have no witnesses, if witnesses were asked for.
function withoutWitnesses() {
  const names = trees.filter((tree) => data.surveys[tree]?.witnesses?.length === 0);
  return names.length === 0 ? "" : ` Not shown: ${names.join(", ")}, of whose blocks there are no witnesses.`;
}

function witnessShares() {
  const lines = trees.flatMap((name, tree) => {
    const sizes = (data.surveys[name]?.witnesses ?? []).map((block) => block.bytes).sort((a, b) => a - b);
    if (sizes.length === 0) return [];
    const at = (share) => sizes[Math.min(sizes.length - 1, Math.floor(share * sizes.length / 100))];
    return [{ name, colour: tree, points: Array.from({ length: 51 }, (_, step) => [2 * step, at(2 * step)]) }];
  });
  return linePlot("witnesses", "Witness of a block",
    "A witness is all that somebody without the database needs to check a block. The line says how large the witnesses "
    + `of that share of the last blocks are at most.${withoutWitnesses()}`,
    { x: { name: "per cent of the blocks", format: show.percent, min: 0, max: 100 },
      y: { name: "bytes at most", format: show.bytes }, lines });
}

function witnessParts() {
  const withWitnesses = trees.filter((tree) => (data.surveys[tree]?.witnesses ?? []).length > 0);
  const parts = [...new Set(withWitnesses.flatMap((tree) => Object.keys(data.surveys[tree].witnesses[0].parts)))];
  const bars = parts.map((part) => ({ name: part, values: withWitnesses.map((tree) => {
    const blocks = data.surveys[tree].witnesses;
    const all = blocks.map((block) => block.parts[part]).filter((bytes) => bytes != null);
    return all.length === 0 ? undefined : all.reduce((sum, bytes) => sum + bytes, 0) / blocks.length;
  }) }));
  return barPlot("witness-parts", "What witnesses consist of", `Mean bytes of each part of a block's witness.${withoutWitnesses()}`,
    { categories: withWitnesses, y: { name: "bytes", format: show.bytes }, bars, stacked: true, sideways: true });
}

function perSlot() {
  const slots = { name: "slots in the update (logarithmic)", format: show.count, log: true };
  return linePlot("updates", "Cost of an update by its size",
    "Time to compute the new root after so many random slots change, divided by their number: the least of several "
    + "measurements, with all that is read in memory. Larger updates share the upper part of the tree.",
    { x: slots, y: { name: "seconds a slot (logarithmic)", format: show.time, log: true },
      lines: surveyLines("updates", (row) => row.slots, (row) => row.seconds / row.slots) });
}

function proofSizes() {
  const slots = { name: "slots in the proof (logarithmic)", format: show.count, log: true };
  return linePlot("proofs", "Size of a proof by number of slots",
    "Bytes of one proof of so many random slots and their accounts, with keys and values.",
    { x: slots, y: { name: "bytes (logarithmic)", format: show.bytes, log: true },
      lines: surveyLines("proofs", (row) => row.slots, (row) => row.bytes) });
}

function plots() {
  const delayLine = along("delay");
  return [
    phases(),
    linePlot("gas", "Gas per second along the chain",
      "Gas is the measure of work that a block pays for. Each point is a fortieth of the tree's time.",
      { x: blockAxis, y: { name: "gas per second", format: show.count }, lines: rates("gas") }),
    linePlot("blocks", "Blocks per second along the chain", "Each point is a fortieth of the tree's time.",
      { x: blockAxis, y: { name: "blocks per second", format: show.count }, lines: rates("blocks") }),
    delays(),
    linePlot("delay-along", "Time until the root is known, along the chain",
      "Mean of neighbouring blocks; the pale band reaches from the least to the greatest.",
      { x: blockAxis, y: { name: "seconds", format: show.time }, lines: delayLine }),
    bytesAlong(),
    diskAlong(),
    sizesByTable(),
    ...growthByTable(),
    recordsByTable(),
    depths(),
    operations(),
    hits(),
    linePlot("memory", "Memory over time", "Memory of the whole process (resident set), caches and tables included.",
      { x: { name: "seconds since the first block", format: show.time, min: 0 },
        y: { name: "bytes", format: show.bytes }, lines: along("memory", (rows) => rows.elapsed) }),
    witnessShares(),
    witnessParts(),
    proofSizes(),
    perSlot(),
  ];
}
