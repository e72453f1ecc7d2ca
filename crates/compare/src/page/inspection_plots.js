// Plots of what databases consist of, as `arbor inspect` counts it. A page has the inspections of one tree or of several.

const inspected = trees.filter((tree) => data.inspections[tree]);

// All tables, the largest first: a table has the same colour in all plots.
const tableNames = (() => {
  const sums = new Map();
  for (const { table, keyBytes, valueBytes } of inspected.flatMap((tree) => data.inspections[tree].tables)) {
    sums.set(table, (sums.get(table) ?? 0) + keyBytes + valueBytes);
  }
  return [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
})();

// Tables of the databases, in the order of the first tree that has them. Tables that are below a hundredth of every
// database are put together.
function tablesOf(value, categories, tablesAt) {
  const all = categories.map((category) => tablesAt(category).map((table) => [table.table, value(table)]));
  const sums = all.map((tables) => tables.reduce((sum, [, size]) => sum + size, 0));
  const names = [...new Set(all.flatMap((tables) => tables.map(([name]) => name)))];
  const isLarge = (name) => all.some((tables, place) =>
    tables.some(([found, size]) => found === name && size >= sums[place] / 100));
  const bar = (name, isPart) => ({ name, part: tableNames.indexOf(name), values: all.map((tables) => {
    const parts = tables.filter(([found]) => isPart(found));
    return parts.length === 0 ? undefined : parts.reduce((sum, [, size]) => sum + size, 0);
  }) });
  const bars = names.filter(isLarge).map((name) => bar(name, (found) => found === name));
  const others = { ...bar("all others", (found) => !isLarge(found)), grey: true };
  return others.values.some((size) => size > 0) ? [...bars, others] : bars;
}

const tablesAtEnd = (tree) => data.inspections[tree].tables;
const bytesOf = (table) => table.keyBytes + table.valueBytes;

function sizesByTable() {
  return barPlot("tables", "Size of the database by table",
    "Bytes of keys and values at the last block, before the store compresses them.",
    { categories: inspected, y: { name: "bytes", format: show.bytes },
      bars: tablesOf(bytesOf, inspected, tablesAtEnd), stacked: true, sideways: true });
}

function recordsByTable() {
  return barPlot("records", "Records by table",
    "Flat tables have a record for each account and slot. Tables of nodes have the inner nodes of the tree.",
    { categories: inspected, y: { name: "records", format: show.count },
      bars: tablesOf((table) => table.records, inspected, tablesAtEnd), stacked: true, sideways: true });
}

// A plot for each tree whose tables were counted along the chain.
function growthByTable() {
  return trees.map((tree, number) => {
    const points = data.growth[tree] ?? [];
    return barPlot(`growth-${number}`, `Growth of the database by table: ${tree}`,
      "Bytes of keys and values after this block, before the store compresses them. Tables are counted in a replay of its "
      + "own, outside the times.",
      { categories: points.map((point) => show.plain(point.block)), name: "block", y: { name: "bytes", format: show.bytes },
        bars: tablesOf(bytesOf, points, (point) => point.tables), stacked: true });
  });
}

// Nodes by their depth: a line for each trie of each tree, or for each kind of node of a single tree.
function depths(isByKind = false) {
  const lines = inspected.flatMap((tree) => {
    const { nodes } = data.inspections[tree];
    const name = (of) => isByKind ? `${of.trie}, ${of.kind}` : of.trie;
    const names = [...new Set(nodes.map(name))];
    return names.map((trie, index) => {
      const counts = [];
      for (const of of nodes.filter((of) => name(of) === trie)) {
        of.byDepth.forEach((count, depth) => { counts[depth] = (counts[depth] ?? 0) + count; });
      }
      return {
        name: isByKind ? trie : names.length > 1 ? `${tree}, ${trie}` : tree,
        colour: isByKind ? index : trees.indexOf(tree), dashed: !isByKind && index > 0, symbols: true,
        points: counts.map((count, depth) => [depth, count]).filter(([, count]) => count > 0),
      };
    });
  });
  return linePlot("depths", "Nodes by depth",
    "How many nodes, leaves included, lie this number of steps below the root. The root of a storage trie is its own. A step "
    + "is half a byte of the key, or a whole byte under Verkle: trees of wide nodes are less deep.",
    { x: { name: "steps from the root", format: show.count, min: 0 },
      y: { name: "nodes (logarithmic)", format: show.count, log: true }, lines });
}

// Things by their size, in buckets, for a page of one tree.
function histogram(id, title, explain, [unit, what], buckets) {
  const bounds = ({ from, to }) => from === to ? show.plain(from) : `${show.plain(from)} to ${show.plain(to)}`;
  return barPlot(id, title, explain, { categories: buckets.map(bounds), name: unit,
    y: { name: `${what} (logarithmic)`, format: show.count, log: true, scale: 10 },
    bars: [{ name: what, tree: 0, values: buckets.map((bucket) => bucket.count) }] });
}
