"use strict";
const data = JSON.parse(document.getElementById("data").textContent), proof = data.evidence;

// Few enough to show each by its name, with its own interval.
const few = data.names.length <= 40;

// ---------------------------------------------------------------- charts

const cut = (text) => String(text).slice(0, 24);

// The axis shows nearly all values: a few that lie far out sit at its ends, and the words below say how many.
function main(values, low, high) {
  const order = values.filter((v) => v !== null).sort((a, b) => a - b), n = order.length;
  const at = (p) => order[Math.round(p * (n - 1))];
  const [first, last] = [at(0.02), at(0.98)], room = 3 * (last - first) || Math.abs(last) || 1;
  const far = n > 50 ? order.filter((v) => v < first - room || v > last + room).length : 0;
  const near = far ? order.filter((v) => v >= first - room && v <= last + room) : order;
  const ends = [...low, ...high].filter((v) => v !== null && (!far || (v >= near[0] - room && v <= near[near.length - 1] + room)));
  const middle = few || !far ? ends : [];
  return [range([...near, ...middle], true), far];
}

function sorted() {
  const box = document.getElementById("sorted");
  const { places, values, low, high, names, suspect } = data;
  const [y, far] = main(values, low, high);
  const at = few ? values.map((_, i) => i) : places;
  const x = few ? [-0.7, values.length - 0.3] : [0, data.table.all + 1];
  const chart = axes(box, { x, y, xlabel: data.who + ", lowest value first", ylabel: "value", names: few ? names.map(cut) : null });
  const measured = high.some((v) => v !== null), entries = [];
  const pick = (column, which) => column.filter((_, i) => suspect[i] === which);
  for (const [which, kind] of [[false, "main"], [true, "bad"]]) {
    if (few) whiskers(chart, pick(at, which), pick(low, which), pick(high, which), kind);
  }
  if (measured && !few) band(chart, at, low, high);
  if (measured) entries.push([few ? "whisker" : "band", "95% interval"]);
  dots(chart, pick(at, false), pick(values, false), "main");
  if (suspect.includes(false)) entries.push(["main", "not suspect"]);
  dots(chart, pick(at, true), pick(values, true), "bad");
  if (suspect.includes(true)) entries.push(["bad", "suspect"]);
  if (far) entries.push(["", `${far} beyond the axis, drawn at its ends`]);
  legend(box, entries);
  tell(chart, at, values, (i) => `${names[i].slice(0, 60)}: ${values[i].toLocaleString("en", { maximumSignificantDigits: 4 })}`);
}

function parts(id, labels) {
  const box = document.getElementById(id);
  if (!labels || !box) return;
  const sums = new Map();
  labels.forEach((name, i) => {
    if (!sums.has(name)) sums.set(name, []);
    sums.get(name).push(data.values[i]);
  });
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const names = [...sums.keys()].sort((a, b) => mean(sums.get(a)) - mean(sums.get(b))).slice(0, 40);
  const groups = names.map((name) => sums.get(name)), [y] = main(groups.flat(), [], []);
  const chart = axes(box, { x: [-0.6, names.length - 0.4], y, ylabel: "value", names: names.map((name) => cut(name) + " (" + sums.get(name).length + ")") });
  boxes(chart, groups);
}

function progress() {
  const box = document.getElementById("progress");
  if (!data.series || !box) return;
  const { evaluations, std_error, stability } = data.series;
  const chart = axes(box, {
    x: range(evaluations), y: range([...stability, 0, 1]), right: range(std_error, true),
    xlabel: "evaluations", ylabel: "rank stability", rightlabel: "standard error",
  });
  line(chart, evaluations, stability, "main");
  dots(chart, evaluations, stability, "main");
  line(chart, evaluations, std_error, "bad dashed", chart.sr);
  legend(box, [["main", "rank stability"], ["bad dashed", "median standard error"]]);
  tell(chart, evaluations, stability, (i) => `${evaluations[i].toLocaleString("en")} evaluations: ${stability[i].toFixed(2)}`);
}

function removal() {
  const box = document.getElementById("removal");
  if (!data.curve || !box) return;
  const { counts, utility, mean, low, high } = data.curve;
  const chart = axes(box, { x: range(counts), y: range([...utility, ...low, ...high]), xlabel: data.who + " removed", ylabel: "score" });
  band(chart, counts, low, high);
  line(chart, counts, mean, "faint dashed");
  line(chart, counts, utility, "main");
  dots(chart, counts, utility, "main");
  legend(box, [["main", "lowest value first"], ["faint dashed", "random order"], ["band", "random, 95% band"]]);
  tell(chart, counts, utility, (i) => `${counts[i].toLocaleString("en")} removed: ${utility[i].toPrecision(4)}`);
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

function found() {
  const words = state.words.toLowerCase();
  return lines.filter((line) => (!state.only || flags.has(line.i)) && line.text.includes(words)).sort(compare);
}

function show() {
  const shown = found(), pages = Math.max(1, Math.ceil(shown.length / state.size));
  state.page = Math.min(state.page, pages - 1);
  const here = shown.slice(state.page * state.size, (state.page + 1) * state.size);
  body.replaceChildren(...here.flatMap((line) => (opened.has(line.i) ? [row(line), evidence(line)] : [row(line)])));
  body.querySelectorAll("tr.evidence").forEach(strip);
  [...head.children].forEach((th, k) => {
    const order = k - data.offset === state.column ? (state.down ? "descending" : "ascending") : "none";
    if (k >= data.offset) th.setAttribute("aria-sort", order);
    const arrow = th.querySelector("span");
    if (arrow) arrow.textContent = order === "ascending" ? " ▲" : order === "descending" ? " ▼" : "";
  });
  document.getElementById("count").textContent =
    shown.length.toLocaleString("en") + " of " + whose + data.who + ", page " + (state.page + 1) + " of " + pages;
  document.getElementById("before").disabled = state.page === 0;
  document.getElementById("after").disabled = state.page >= pages - 1;
}

const count = (number) => number.toLocaleString("en") + " ";
const whose = lines.length < data.table.all ? "the " + count(lines.length) + "lowest of " + count(data.table.all) : count(data.table.all);

function row(line) {
  const tr = document.createElement("tr");
  if (flags.has(line.i)) tr.className = "suspect";
  if (data.offset) picture(tr.insertCell(), line.i);
  line.cells.forEach((value, k) => fill(tr.insertCell(), value, data.table.columns[k]));
  if (proof && proof.rows[line.i]) tr.cells[data.offset].replaceChildren(opener(line, tr));
  return tr;
}

function picture(td, i) {
  const address = data.table.pictures[i];
  if (address) td.append(Object.assign(document.createElement("img"), { src: address, alt: "row " + lines[i].cells[0] }));
}

function fill(td, value, column) {
  td.dir = "auto";
  if (typeof value === "number") {
    td.className = "number";
    td.textContent = Number.isInteger(value) ? value : (ours.has(column) ? short : numbers).format(value);
  } else {
    td.textContent = value === null ? "" : value;
    if (td.textContent.length <= 24) td.classList.add("short");
    if (column === "flag" && value) td.classList.add("mark");
  }
}

// The rows that are shown, on all pages, as a CSV file. A cell that a spreadsheet would run as a formula gets a quote in front.
function save() {
  const quote = (cell) => {
    const text = cell === null ? "" : String(cell), safe = typeof cell !== "number" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };
  const text = [data.table.columns, ...found().map((line) => line.cells)].map((cells) => cells.map(quote).join(",")).join("\r\n") + "\r\n";
  const link = Object.assign(document.createElement("a"), { download: data.who + ".csv", href: "data:text/csv;charset=utf-8," + encodeURIComponent(text) });
  link.click();
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
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; charts(); body.querySelectorAll("tr.evidence").forEach(strip); } });
  document.getElementById("save").addEventListener("click", save);
}

listen();
show();
charts();
document.documentElement.dataset.ready = "yes";
