"use strict";
// Numbers as people read them, and small pieces of the page.

const data = JSON.parse(document.getElementById("data").textContent);
const trees = data.trees.map((tree) => tree.name);

function prefixed(value, units, step = 1000) {
  let size = Math.abs(value);
  let index = 0;
  while (size >= step && index + 1 < units.length) { size /= step; index += 1; }
  const digits = size === 0 || Number.isInteger(size) ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0;
  const text = Number(size.toFixed(digits)).toString();
  return (value < 0 ? "-" : "") + text + units[index];
}

const show = {
  count: (value) => prefixed(value, ["", " k", " M", " G", " T"]),
  bytes: (value) => prefixed(value, [" B", " KiB", " MiB", " GiB", " TiB"], 1024),
  time: (value) => {
    if (value === 0) return "0 s";
    if (Math.abs(value) < 1) return prefixed(value * 1e6, [" µs", " ms", " s"]);
    return prefixed(value, [" s", " ks"]);
  },
  percent: (value) => `${Number(value.toFixed(1))} %`,
  ratio: (value) => `${value.toFixed(2)} ×`,
  plain: (value) => value.toLocaleString("en"),
};
show.observed = show.bytes;
show.neutral = show.count;

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// A table: names of columns, then rows of cells; numbers are given as text.
function tableOf(columns, rows) {
  const row = (kind, cells) => element("tr", {}, ...cells.map((cell) => element(kind, {}, cell)));
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, row("th", columns)),
    element("tbody", {}, ...rows.map((cells) => row("td", cells)))));
}

// Colours that people with colour blindness can tell apart (after Okabe and Ito), by the number of the tree.
const light = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a3fb0", "#444444"];
const dark = ["#56b4e9", "#ff8c42", "#2fd3a0", "#f0a3cc", "#e6c229", "#9fd3ff", "#c39bff", "#bbbbbb"];
const darkMode = window.matchMedia("(prefers-color-scheme: dark)");
const palette = () => (darkMode.matches ? dark : light);
const colour = (index) => palette()[index % palette().length];
// Others, for parts of a whole, so that no part looks like a tree.
const lightParts = ["#4c78a8", "#f2a03d", "#72b069", "#b07aa1", "#9c755f", "#a9b4be", "#e15759", "#76b7b2", "#d4a6c8", "#2f4b7c", "#c7a500"];
const darkParts = ["#7aa6d6", "#ffbf70", "#93d08a", "#d3a1c5", "#c79f86", "#7d8894", "#ff8b8d", "#9ad9d4", "#f0cfe6", "#5c7ec2", "#e8d04a"];
const partColour = (index) => (darkMode.matches ? darkParts : lightParts)[index % lightParts.length];
const theme = () => {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return { ink: value("--ink"), faint: value("--faint"), line: value("--line"), page: value("--page") };
};

function figure(name) {
  return data.figures.find((row) => row.name === name);
}

// The median of a figure for each tree; undefined where a tree does not have it.
function medians(name) {
  const row = figure(name);
  return trees.map((_, index) => row?.trees[index]?.median);
}
