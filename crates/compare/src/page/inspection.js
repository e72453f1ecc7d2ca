// The page of an inspection.

const [tree] = trees;
const found = data.inspections[tree];

function lead() {
  document.getElementById("lead").textContent =
    `The database ${data.settings.db} with the tree ${tree} after block ${show.plain(found.block)}: `
    + `${show.bytes(found.diskBytes)} on the disk, ${show.count(found.accounts)} accounts, `
    + `${show.count(found.storage.slots)} slots of ${show.count(found.storage.accounts)} accounts, `
    + `${show.count(found.codes.codes)} codes of ${show.bytes(found.codes.bytes)} together.`;
  notice(found.complete ? "" : found.fault
    ? `A record cannot be read, and the figures are those of the records read until then: ${found.fault}`
    : "The inspection was stopped: the figures are those of the records read until then.");
}

function summarySection() {
  const rows = found.tables.map((table) => [table.complete ? table.table : `${table.table} (a part)`,
    show.count(table.records), show.bytes(table.keyBytes), show.bytes(table.valueBytes)]);
  const table = tableOf(["table", "records", "bytes of keys", "bytes of values"], rows);
  table.classList.add("whole");
  document.getElementById("summary").append(
    element("p", { class: "explain" }, "1 KiB is 1,024 bytes. The store compresses records, and "
      + "keeps replaced records until it merges its files: the size on the disk is another one."), table);
}

function plots() {
  const { storage, codes, occupancy, history } = found;
  return [
    sizesByTable(),
    recordsByTable(),
    depths(true),
    histogram("occupancy", "Values in a leaf", "Leaves of a Verkle tree, each of which has up to 256 values.",
      ["values", "leaves"], occupancy),
    histogram("slots", "Slots of an account", "Accounts by the number of their slots that have a record.",
      ["slots", "accounts"], storage.slotsPerAccount),
    histogram("codes", "Bytes of a code", "Codes by their length.", ["bytes", "codes"], codes.byBytes),
    barPlot("history", "History by table", "What undo records keep of each table, so that earlier blocks can be read.",
      { categories: history.map((of) => of.table), y: { name: "bytes", format: show.bytes }, stacked: true, sideways: true,
        bars: [{ name: "keys", values: history.map((of) => of.keyBytes) },
          { name: "earlier values", values: history.map((of) => of.oldValueBytes) }] }),
  ];
}

function largest() {
  const section = document.getElementById("about");
  const add = (title, columns, rows) => {
    if (rows.length > 0) section.append(element("h3", {}, title), tableOf(columns, rows));
  };
  add("Accounts with the most slots", ["account", "slots"],
    found.storage.largest.map((of) => [of.address ?? "unknown", show.plain(of.slots)]));
  add("Largest codes", ["first account", "bytes", "accounts with it", "hash"],
    found.codes.largest.map((of) => [of.address ?? "unknown", show.plain(of.bytes), show.plain(of.accounts), of.codeHash]));
}

function about() {
  const { versions } = data;
  const pairs = [
    ["database", data.settings.db],
    ["tree", tree],
    ["block", show.plain(found.block)],
    ["root", found.root],
    ["arbor", `${versions.arbor}, commit ${versions.commit ?? "unknown"}`],
    ["counted", data.started],
  ];
  document.getElementById("about").append(element("dl", {}, ...pairs.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)])));
}

lead();
summarySection();
plotSection(plots());
largest();
about();
drawAlways();
