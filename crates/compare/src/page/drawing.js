// Plots: a chart and a table of the same figures. When all charts are drawn, the root element has data-drawn with their
// number; errors are counted in data-errors.

const root = document.documentElement;
root.dataset.errors = "0";
window.addEventListener("error", () => { root.dataset.errors = String(Number(root.dataset.errors) + 1); });

// Shows a text above everything else, unless it is empty.
function notice(text) {
  const place = document.getElementById("notice");
  place.hidden = text === "";
  place.textContent = text;
}

function tableOfLines({ x, y, lines }) {
  const places = [...new Set(lines.flatMap((line) => line.points.map(([at]) => at)))].sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(places.length / 100));
  const rows = places.filter((_, place) => place % step === 0 || place === places.length - 1).map((at) => [
    (x.hover ?? x.format)(at),
    ...lines.map((line) => {
      const found = line.points[nearest(line, at)];
      return found?.[1] == null ? "" : y.format(found[1]);
    }),
  ]);
  return tableOf([x.name, ...lines.map((line) => line.name)], rows);
}

function tableOfBars({ categories, y, bars }) {
  const rows = categories.map((name, place) => [name,
    ...bars.map((bar) => bar.values[place] == null ? "" : y.format(bar.values[place]))]);
  return tableOf(["", ...bars.map((bar) => bar.name)], rows);
}

const linePlot = (id, title, explain, plot) =>
  plot.lines.some((line) => line.points.length > 0)
    ? { id, title, explain, option: () => lineOption(plot), table: () => tableOfLines(plot) } : null;
const barPlot = (id, title, explain, plot) =>
  plot.categories.length > 0 && plot.bars.length > 0
    ? { id, title, explain, option: () => barOption(plot), table: () => tableOfBars(plot) } : null;

const charts = [];

// Puts the plots on the page; those without data are null.
function plotSection(plots) {
  const section = document.getElementById("plots");
  section.append(element("h2", {}, "Plots"));
  const grid = element("div", { class: "grid" });
  section.append(grid);
  for (const plot of plots.filter((plot) => plot !== null)) {
    const place = element("div", { class: "chart", role: "img", "aria-label": plot.title });
    const table = element("details", {}, element("summary", {}, "as a table"));
    table.addEventListener("toggle", () => { if (table.children.length === 1) table.append(plot.table()); });
    grid.append(element("article", { class: "plot", id: plot.id },
      element("h3", {}, plot.title), element("p", { class: "explain" }, plot.explain), place, table));
    charts.push({ plot, place });
  }
}

// Shades the right edge of a table that is wider than the window, until its last column is in sight.
function hintAtColumns() {
  for (const place of document.querySelectorAll(".scroll")) {
    const hint = () =>
      place.classList.toggle("more", place.scrollLeft + place.clientWidth < place.scrollWidth - 1);
    place.onscroll = hint;
    hint();
  }
}

function draw() {
  let left = charts.length;
  for (const entry of charts) {
    entry.chart?.dispose();
    entry.chart = echarts.init(entry.place, null, { renderer: "canvas" });
    const drawn = () => {
      entry.chart.off("finished", drawn);
      entry.place.dataset.drawn = "true";
      left -= 1;
      if (left === 0) {
        root.dataset.drawn = String(charts.length);
        root.dataset.drawnMs = performance.now().toFixed(0);
      }
    };
    entry.chart.on("finished", drawn);
    entry.chart.setOption(entry.plot.option());
  }
}

// Draws, and draws again when colours change or the window gets another width.
function drawAlways() {
  draw();
  hintAtColumns();
  document.addEventListener("toggle", hintAtColumns, true);
  darkMode.addEventListener("change", draw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    for (const { chart } of charts) chart.resize();
    hintAtColumns();
  });
}
