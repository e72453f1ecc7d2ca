// Options of the chart library, from plain descriptions of plots.

// An axis with a name, a unit in its labels, and minor ticks.
function axis(name, format, extra = {}) {
  const { faint, line } = theme();
  const isNumber = (extra.type ?? "value") !== "category";
  return {
    type: "value",
    name,
    nameLocation: "middle",
    nameGap: 8,
    nameTextStyle: { color: faint, fontSize: 12 },
    axisLabel: { color: faint, fontSize: 11, hideOverlap: true, formatter: isNumber ? format : undefined },
    axisLine: { show: true, lineStyle: { color: line } },
    axisTick: { show: true, lineStyle: { color: line } },
    minorTick: { show: isNumber, splitNumber: 5, lineStyle: { color: line } },
    splitLine: { show: isNumber, lineStyle: { color: line, opacity: 0.6 } },
    ...extra,
  };
}

// What a linear axis of bytes needs, so that its ticks are whole numbers of a binary unit.
function byteTicks(most) {
  const step = Math.max(most, 1) / 5;
  const unit = 1024 ** Math.floor(Math.log(step) / Math.log(1024));
  const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024].find((count) => count * unit >= step);
  const interval = whole * unit;
  return { interval, max: interval * Math.ceil(most / interval) };
}

// The most of all numbers in a list of lists.
const mostOf = (lists) => lists.reduce((most, list) =>
  list.reduce((most, value) => Math.max(most, Number(value) || 0), most), 0);

// A value at a place of a line. Lines of different trees have points at different places: the nearest point counts, if
// the line reaches that far.
function nearest(line, at) {
  const { points } = line;
  if (points.length === 0 || at < points[0][0] || at > points.at(-1)[0]) return -1;
  let place = 0;
  points.forEach(([value], index) => { if (Math.abs(value - at) < Math.abs(points[place][0] - at)) place = index; });
  return place;
}

// How lines look in a legend.
const SOLID = "path://M0,3 h18 v4 h-18 z";
const DASHED = "path://M0,3 h7 v4 h-7 z M11,3 h7 v4 h-7 z";

function frame(x, y, legend, tooltip) {
  const { ink, faint, line, page } = theme();
  return {
    animation: false,
    backgroundColor: "transparent",
    color: palette(),
    textStyle: { color: ink, fontFamily: "inherit" },
    grid: { left: 6, right: 24, top: legend.length > 4 ? 62 : 36, bottom: 6,
      outerBoundsMode: "same", outerBoundsContain: "all" },
    legend: { type: "plain", top: 0, left: 0, right: 0, data: legend, itemWidth: 18, itemHeight: 10, icon: SOLID,
      textStyle: { color: ink, fontSize: 12 }, inactiveColor: faint },
    tooltip: { backgroundColor: page, borderColor: line, textStyle: { color: ink, fontSize: 12 },
      confine: true, ...tooltip },
    xAxis: { ...x, nameGap: 24 },
    yAxis: y,
  };
}

function hoverText(title, lines) {
  const node = element("div", {}, element("strong", {}, title));
  for (const [mark, text] of lines) {
    const swatch = element("span", { class: "swatch", style: `background:${mark}` });
    node.append(element("div", {}, swatch, text));
  }
  return node;
}

// Lines over a numeric axis. A line has a name, points [x, y] and, if rows were thinned, their least
// and greatest values as a band.
function lineOption({ x, y, lines }) {
  const series = [];
  lines.forEach((line, index) => {
    const tree = line.colour ?? index;
    const common = { type: "line", name: line.name, showSymbol: line.symbols === true, symbolSize: 5,
      itemStyle: { color: colour(tree) }, emphasis: { disabled: true } };
    if (line.band) {
      const of = (values) => line.points.map(([at], place) => [at, values[place]]);
      const bare = { ...common, showSymbol: false, silent: true, lineStyle: { opacity: 0 }, stack: `band ${index}`,
        stackStrategy: "all", tooltip: { show: false } };
      series.push({ ...bare, data: of(line.band.map(([least]) => least)) });
      series.push({ ...bare, data: of(line.band.map(([least, most]) => most - least)),
        areaStyle: { color: colour(tree), opacity: 0.16 } });
    }
    series.push({ ...common, data: line.points, isLine: true,
      lineStyle: { width: 1.8, color: colour(tree), type: line.dashed ? "dashed" : "solid" } });
  });
  const hover = (items) => {
    const at = items[0].axisValue;
    const told = lines.flatMap((line, index) => {
      const place = nearest(line, at);
      if (place < 0 || line.points[place][1] == null) return [];
      const band = line.band?.[place];
      const range = band && band[1] > band[0] ? ` (${y.format(band[0])} to ${y.format(band[1])})` : "";
      return [[colour(line.colour ?? index), `${line.name}: ${y.format(line.points[place][1])}${range}`]];
    });
    return hoverText(`${x.name}: ${(x.hover ?? x.format)(at)}`, told);
  };
  const legend = lines.map((line, index) => ({ name: line.name, icon: line.dashed ? DASHED : SOLID,
    itemStyle: { color: colour(line.colour ?? index), opacity: 1 } }));
  const bytes = y.format !== show.bytes ? {}
    : y.log ? { logBase: 4 }
      : byteTicks(mostOf(lines.map((line) =>
        [...line.points.map(([, value]) => value), ...(line.band ?? []).map(([, most]) => most)])));
  return {
    ...frame(
      axis(x.name, x.format, { type: x.log ? "log" : "value", min: x.min ?? "dataMin", max: x.max ?? "dataMax" }),
      axis(y.name, y.format, { type: y.log ? "log" : "value", nameGap: 8, min: y.log ? undefined : 0, ...bytes }),
      legend, { trigger: "axis", formatter: hover, axisPointer: { type: "line" } }),
    series,
  };
}

// Bars by category: groups of one bar each side by side, or stacked on top of each other. Bars of a tree have its number as
// `tree`; others are parts, whose colour `part` chooses if it is the same in several plots. Parts of no interest are `grey`.
function barOption({ categories, name = "", y, bars, stacked = false, sideways = false }) {
  const colourOf = (bar, index) => {
    if (bar.tree != null) return colour(bar.tree);
    return bar.grey ? theme().faint : partColour(bar.part ?? index);
  };
  // The library draws bars on a logarithmic axis from one on.
  const scale = y.log ? y.scale ?? 1 : 1;
  const names = axis(name, undefined, { type: "category", data: categories, inverse: sideways,
    axisLabel: { color: theme().faint, fontSize: 12, interval: 0, width: sideways ? 130 : 100, overflow: "break" } });
  const values = axis(y.name, (value) => y.format(value / scale), { type: y.log ? "log" : "value",
    min: y.log ? (range) => 10 ** (Math.ceil(Math.log10(range.min)) - 1) : 0 });
  if (y.format === show.bytes && !y.log) {
    const sums = categories.map((_, place) => bars.reduce((sum, bar) => sum + (bar.values[place] ?? 0), 0));
    Object.assign(values, byteTicks(mostOf(stacked ? [sums] : bars.map((bar) => bar.values))));
  }
  const hover = (items) => {
    const place = items[0].dataIndex;
    const told = bars.flatMap((bar, index) => bar.values[place] == null ? []
      : [[colourOf(bar, index), `${bar.name}: ${y.format(bar.values[place])}`]]);
    return hoverText(categories[place], told);
  };
  const legend = bars.map((bar) => ({ name: bar.name, icon: "rect" }));
  const option = frame(names, values, legend,
    { trigger: "axis", formatter: hover, axisPointer: { type: "shadow" } });
  if (sideways) {
    [option.xAxis, option.yAxis] = [{ ...values, nameGap: 24 }, names];
  }
  option.series = bars.map((bar, index) => ({
    type: "bar", name: bar.name, stack: stacked ? "all" : undefined, barMaxWidth: 38,
    data: bar.values.map((value) => (value == null ? "-" : value * scale)),
    itemStyle: { color: colourOf(bar, index) },
  }));
  return option;
}
