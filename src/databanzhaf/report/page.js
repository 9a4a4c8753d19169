"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// ---------------------------------------------------------------- charts

function layout(title, x, y, more) {
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("faint"), linecolor: colour("line"), automargin: true };
  return Object.assign(
    {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("ink"), family: "inherit", size: 13 },
      margin: { l: 56, r: 16, t: innerWidth < 640 ? 72 : 36, b: 48 }, xaxis: Object.assign({ title: { text: x } }, axis), yaxis: Object.assign({ title: { text: y } }, axis),
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, hovermode: "closest", showlegend: true,
    },
    more || {},
  );
}

function draw(id, traces, shape) {
  const box = document.getElementById(id);
  if (box) Plotly.react(box, traces, shape, { responsive: true, displaylogo: false, displayModeBar: false });
}

// Names come from the user's data; Plotly reads some HTML in them.
function safe(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").slice(0, 60);
}

function sorted() {
  const { places, values, low, high, names, suspect } = data;
  const dots = (which, name, mark) => {
    const pick = (column) => column.filter((_, i) => suspect[i] === which);
    return {
      type: "scatter", mode: "markers", name, x: pick(places), y: pick(values), text: pick(names).map(safe),
      hovertemplate: "%{text}<br>value %{y:.5f}<extra></extra>", marker: mark,
    };
  };
  const band = { type: "scatter", mode: "lines", line: { width: 0 }, hoverinfo: "skip", x: places };
  const traces = high.every((v) => v === null) ? [] : [
    Object.assign({}, band, { y: high, showlegend: false }),
    Object.assign({}, band, { y: low, fill: "tonexty", fillcolor: colour("band") + "99", name: "95% interval" }),
  ];
  traces.push(dots(false, "not suspect", { color: colour("main"), size: 5 }));
  if (suspect.some((flag) => flag)) traces.push(dots(true, "suspect", { color: colour("bad"), size: 7, symbol: "x" }));
  const gaps = low.some((v) => v === null) && low.some((v) => v !== null);
  draw("sorted", few || gaps ? bars(dots) : traces, layout("", data.who + ", lowest value first", "value", axis()));
}

// Few enough to show each by its name, with its own interval.
const few = data.names.length <= 40;

function bars(dots) {
  const { values, low, high, suspect } = data;
  return [[false, "not suspect", "main"], [true, "suspect", "bad"]].filter(([which]) => suspect.includes(which)).map(([which, name, hue]) => {
    const pick = (column) => column.filter((_, i) => suspect[i] === which), at = pick(values.map((_, i) => i));
    const reach = (end, sign) => at.map((i) => (end[i] === null ? 0 : sign * (end[i] - values[i])));
    return Object.assign(dots(which, name, { color: colour(hue), size: few ? 9 : 5, symbol: which ? "x" : "circle" }), {
      error_y: { type: "data", symmetric: false, array: reach(high, 1), arrayminus: reach(low, -1), color: colour(few ? hue : "band"), width: few ? 4 : 0 },
    });
  });
}

function axis() {
  const made = Object.assign(layout("", data.who + ", lowest value first", "").xaxis, { zeroline: false, range: [0.5 - data.table.all / 100, data.table.all * 1.01 + 0.5] });
  const names = { tickvals: data.places, ticktext: data.names.map((name) => safe(name).slice(0, 24)) };
  return { xaxis: few ? Object.assign(made, names) : made };
}

function parts(id, labels) {
  if (!labels) return;
  const sums = new Map();
  labels.forEach((label, i) => {
    if (!sums.has(label)) sums.set(label, []);
    sums.get(label).push(data.values[i]);
  });
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const names = [...sums.keys()].sort((a, b) => mean(sums.get(a)) - mean(sums.get(b))).slice(0, 40);
  const traces = names.map((name) => ({
    type: "box", y: sums.get(name), name: safe(name) + " (" + sums.get(name).length + ")", marker: { color: colour("main"), size: 3 },
    boxpoints: "outliers", line: { width: 1.5 },
  }));
  draw(id, traces, layout("", "", "value", { showlegend: false }));
}

function progress() {
  if (!data.series) return;
  const { evaluations, std_error, stability } = data.series;
  draw("progress", [
    { type: "scatter", mode: "lines+markers", name: "rank stability", x: evaluations, y: stability, line: { color: colour("main") } },
    { type: "scatter", mode: "lines+markers", name: "median standard error", x: evaluations, y: std_error, yaxis: "y2",
      line: { color: colour("bad"), dash: "dot" }, marker: { symbol: "square" } },
  ], layout("", "evaluations", "rank stability", {
    yaxis2: { title: { text: "standard error" }, overlaying: "y", side: "right", showgrid: false, automargin: true, rangemode: "tozero", tickmode: "auto", nticks: 6 },
  }));
}

function removal() {
  if (!data.curve) return;
  const { counts, utility, mean, low, high } = data.curve;
  const band = { type: "scatter", mode: "lines", line: { width: 0 }, hoverinfo: "skip", x: counts };
  draw("removal", [
    Object.assign({}, band, { y: high, showlegend: false }),
    Object.assign({}, band, { y: low, fill: "tonexty", fillcolor: colour("band") + "99", name: "random, 95% band" }),
    { type: "scatter", mode: "lines", name: "random order", x: counts, y: mean, line: { color: colour("faint"), dash: "dash" } },
    { type: "scatter", mode: "lines+markers", name: "lowest value first", x: counts, y: utility, line: { color: colour("main") } },
  ], layout("", data.who + " removed", "score"));
}

function charts() {
  sorted();
  parts("classes", data.classes);
  parts("groups", data.groups);
  progress();
  removal();
}

// ---------------------------------------------------------------- the table

const state = { column: 0, down: false, page: 0, size: 25, words: "", only: data.table.suspects.length > 0 && !few };
const body = document.querySelector("#rows tbody"), head = document.querySelector("#rows thead tr");
const numbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const ours = new Set(["value", "std_error", "ci_low", "ci_high"]);
const flags = new Set(data.table.suspects);
const lines = data.table.rows.map((cells, i) => ({ i, cells, text: cells.join(" ").toLowerCase() }));

function compare(a, b) {
  const x = a.cells[state.column], y = b.cells[state.column];
  const known = (v) => v !== "" && v !== null;
  if (known(x) !== known(y)) return known(x) ? -1 : 1;
  const by = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
  return (state.down ? -by : by) || a.i - b.i;
}

function show() {
  const words = state.words.toLowerCase();
  const found = lines.filter((line) => (!state.only || flags.has(line.i)) && line.text.includes(words)).sort(compare);
  const pages = Math.max(1, Math.ceil(found.length / state.size));
  state.page = Math.min(state.page, pages - 1);
  body.replaceChildren(...found.slice(state.page * state.size, (state.page + 1) * state.size).map(row));
  [...head.children].forEach((th, k) => {
    const order = k - data.offset === state.column ? (state.down ? "descending" : "ascending") : "none";
    if (k >= data.offset) th.setAttribute("aria-sort", order);
    const arrow = th.querySelector("span");
    if (arrow) arrow.textContent = order === "ascending" ? " ▲" : order === "descending" ? " ▼" : "";
  });
  document.getElementById("count").textContent =
    found.length.toLocaleString("en") + " of " + whose + data.who + ", page " + (state.page + 1) + " of " + pages;
  document.getElementById("before").disabled = state.page === 0;
  document.getElementById("after").disabled = state.page >= pages - 1;
}

const count = (number) => number.toLocaleString("en") + " ";
const whose = lines.length < data.table.all ? "the " + count(lines.length) + "lowest of " + count(data.table.all) : count(data.table.all);

function row(line) {
  const tr = document.createElement("tr");
  if (flags.has(line.i)) tr.className = "suspect";
  if (data.offset) {
    const td = tr.insertCell(), address = data.table.pictures[line.i];
    if (address) {
      const picture = document.createElement("img");
      picture.src = address;
      picture.alt = "row " + line.cells[0];
      td.append(picture);
    }
  }
  line.cells.forEach((value, k) => {
    const td = tr.insertCell();
    td.dir = "auto";
    if (typeof value === "number") {
      td.className = "number";
      td.textContent = Number.isInteger(value) ? value : (ours.has(data.table.columns[k]) ? short : numbers).format(value);
    } else {
      td.textContent = value === null ? "" : value;
      if (td.textContent.length <= 24) td.classList.add("short");
      if (data.table.columns[k] === "flag" && value) td.classList.add("mark");
    }
  });
  return tr;
}

function listen() {
  if (data.offset) head.append(Object.assign(document.createElement("th"), { textContent: "picture", scope: "col" }));
  data.table.columns.forEach((name, k) => {
    const th = document.createElement("th"), button = document.createElement("button"), arrow = document.createElement("span");
    th.scope = "col";
    if (lines.length && typeof lines[0].cells[k] === "number") th.className = "number";
    button.type = "button";
    button.title = name.slice(0, 200);
    button.textContent = name.slice(0, 60);
    arrow.setAttribute("aria-hidden", "true");
    button.append(arrow);
    button.addEventListener("click", () => {
      state.down = state.column === k && !state.down;
      state.column = k;
      state.page = 0;
      show();
    });
    th.append(button);
    head.append(th);
  });
  state.column = Math.max(0, data.table.columns.indexOf("rank"));
  const words = document.getElementById("words"), only = document.getElementById("only"), size = document.getElementById("size");
  only.checked = state.only;
  words.addEventListener("input", () => { state.words = words.value; state.page = 0; show(); });
  only.addEventListener("change", () => { state.only = only.checked; state.page = 0; show(); });
  size.addEventListener("change", () => { state.size = Number(size.value); state.page = 0; show(); });
  document.getElementById("before").addEventListener("click", () => { state.page -= 1; show(); });
  document.getElementById("after").addEventListener("click", () => { state.page += 1; show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", charts);
}

listen();
show();
charts();
document.documentElement.dataset.ready = "yes";
