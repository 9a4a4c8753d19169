"use strict";
// The first screen: the answer with its chart, and the list of rows.

// ---------------------------------------------------------------- the answer

const FIRST = 50; // rows to review where none is flagged
const queued = flagged.length ? flagged : rows.slice(0, FIRST);
const undecided = (queue) => queue.filter((row) => !decisions.has(row.row));
const rowsOf = (n) => `${count(n)} ${n === 1 ? "row" : "rows"}`;

function tally(queue) {
  const fixed = queue.filter((row) => decisions.get(row.row)?.decision === "fix").length;
  return `${count(queue.length - undecided(queue).length)} of ${count(queue.length)} decided, ${count(fixed)} fixed`;
}

function answer() {
  const left = undecided(queued).length, n = queued.length;
  by("begin").hidden = n === 0;
  if (left < n) by("begin").textContent = left ? `Continue: ${rowsOf(left)} left` : `Review ${rowsOf(n)} again`;
  else by("begin").textContent = flagged.length || n === 1 ? `Review ${rowsOf(n)}` : `Review the ${count(n)} most doubtful rows`;
  by("so-far").textContent = left < n ? `${tally(queued)}.` : "";
  by("pairs").hidden = data.pairs.length === 0;
  by("pairs").textContent = `Most frequent: ${data.pairs.slice(0, 3).map(pairWords).join(", ")}.`;
}

const pairWords = ([from, to, times]) => `${inside(data.labels[from])} → ${inside(data.labels[to])} (${count(times)})`;

// ---------------------------------------------------------------- the chart

function expected(box) {
  const [lengths, wrong] = data.curve, longest = Math.max(...lengths);
  const to = { x: [0, longest * 1.02], y: [0, Math.max(...wrong, 1) * 1.1] }, entries = [["main", "expected"], ["faint dashed", "if all were wrong"]];
  const chart = axes(box, { ...to, xlabel: "length of the list", ylabel: "wrong rows" }), end = Math.min(longest, to.y[1]);
  line(chart, [0, end], [0, end], "faint dashed");
  if (data.flagged) line(chart, [data.flagged, data.flagged], to.y, "faint");
  line(chart, lengths, wrong, "main");
  legend(box, data.flagged ? [...entries, ["faint", "flagged"]] : entries);
  tell(chart, lengths, wrong, (i) => `${short.format(wrong[i])} of the first ${count(lengths[i])}`);
  box.setAttribute("aria-label", `Wrong rows to expect by the length of the list: ${short.format(wrong.at(-1))} of ${count(lengths.at(-1))}`);
}

function probabilities(box) {
  legend(box, [["main", "rows by the probability that the label is wrong"]]);
  histogram(box, 0, 1 / data.histogram.length, data.histogram, "probabilities");
}

const CHARTS = new Map();
if (data.curve) CHARTS.set("Expected wrong rows", expected);
if (data.histogram.length) CHARTS.set("Probabilities", probabilities);
let drawn = [...CHARTS.keys()][0];

function chart() {
  const box = by("chart");
  box.closest("figure").hidden = CHARTS.size === 0;
  if (CHARTS.size === 0) return;
  box.classList.toggle("strip", CHARTS.get(drawn) === probabilities);
  box.onpointermove = null;
  CHARTS.get(drawn)(box);
  by("choices").replaceChildren();
  for (const name of CHARTS.size > 1 ? CHARTS.keys() : []) {
    const choice = button(() => { drawn = name; chart(); by("choices").querySelector("[aria-pressed=true]").focus(); }, "quiet", name);
    choice.setAttribute("aria-pressed", String(name === drawn));
    by("choices").append(choice);
  }
}

// ---------------------------------------------------------------- the list

const SIZE = 25; // rows of a page
const HEAD = [
  { name: "Rank", kind: "number", of: (row) => row.rank },
  { name: "Row", of: (row) => row.row },
  { name: data.regression ? "Value → expected" : "Label → suggested", of: (row) => `${row.label} → ${row.suggested}` },
  { name: "Wrong", kind: "number", of: (row) => row.p_wrong },
  { name: "Decision", of: (row) => outcome(row) },
  ...data.columns.map((name, k) => ({ name, kind: Number.isNaN(spread(k)) ? "" : "number", of: (row) => row.cells[k] })),
];
const SHOWN = {
  flagged: ["flagged", (row) => row.flag],
  open: ["flagged, not decided", (row) => row.flag && !decisions.has(row.row)],
  decided: ["decided", (row) => decisions.has(row.row)],
  all: ["all", () => true],
};
const state = { words: "", which: flagged.length ? "flagged" : "all", pair: "", column: 0, down: false, page: 0 };
const searched = new Map(rows.map((row) => [row, [row.row, row.id, row.label, row.suggested, ...row.cells].join(" ").toLowerCase()]));

function outcome(row) {
  const made = decisions.get(row.row);
  return made ? { keep: "kept", fix: `fixed to ${inside(made.new_label)}`, drop: "dropped" }[made.decision] : "";
}

// Numbers by size and texts by letters, empty ones last.
function compare(a, b) {
  const [x, y] = [a, b].map((row) => String(HEAD[state.column].of(row))), [first, second] = [numeric(x), numeric(y)];
  const order = Number.isNaN(first) || Number.isNaN(second) ? x.localeCompare(y) : first - second;
  return (x === "") - (y === "") || (state.down ? -order : order) || a.rank - b.rank;
}

function found() {
  const words = state.words.toLowerCase(), [from, to] = (data.pairs[state.pair] || []).map((place) => data.labels[place]);
  const fits = (row) => from === undefined || (row.label === from && row.suggested === to);
  return rows.filter((row) => SHOWN[state.which][1](row) && fits(row) && searched.get(row).includes(words)).sort(compare);
}

function show() {
  const shown = found(), pages = Math.max(1, Math.ceil(shown.length / SIZE));
  state.page = Math.min(state.page, pages - 1);
  document.querySelector("#rows tbody").replaceChildren(...shown.slice(state.page * SIZE, (state.page + 1) * SIZE).map(entry));
  for (const [k, th] of [...all("#rows thead th")].entries()) {
    const order = k === state.column ? (state.down ? "descending" : "ascending") : "none";
    th.setAttribute("aria-sort", order);
    th.querySelector("span").textContent = { ascending: " ▲", descending: " ▼", none: "" }[order];
  }
  const listed = rows.length && rows.length < data.n ? `the ${count(rows.length)} most doubtful of ${count(data.n)}` : count(data.n);
  by("count").textContent = `${count(shown.length)} of ${listed} ${data.n === 1 ? "row" : "rows"}, page ${state.page + 1} of ${pages}`;
  by("before").disabled = state.page === 0;
  by("after").disabled = state.page >= pages - 1;
}

function entry(row) {
  const tr = make("tr"), open = button(() => enter(found(), row), "open", String(row.row));
  const add = (kind, ...parts) => Object.assign(tr.insertCell(), { className: kind }).append(...parts);
  open.setAttribute("aria-label", `Review row ${row.row}`);
  open.dataset.row = row.row;
  tr.onclick = (event) => { if (!event.target.closest("button") && getSelection().isCollapsed) open.click(); };
  add("number", count(row.rank));
  add("who", ...(row.picture ? [picture(row)] : []), open, ...(row.id ? [isolated(row.id, 24)] : []));
  add("pair", isolated(row.label, 40), " → ", isolated(row.suggested, 40));
  add("number chance", chance(row.p_wrong));
  tr.cells[3].style.setProperty("--p", row.p_wrong);
  add("decision", outcome(row));
  row.cells.forEach((text, k) => Object.assign(tr.insertCell(), { textContent: text, dir: "auto", className: HEAD[k + 5].kind || (text.length <= 24 ? "short" : "") }));
  return tr;
}

function head() {
  for (const [k, { name, kind }] of HEAD.entries()) {
    const th = Object.assign(make("th", undefined, kind), { scope: "col" }), arrow = make("span");
    const sort = button(() => { Object.assign(state, { down: state.column === k && !state.down, column: k, page: 0 }); show(); }, "", visible(name, 60), arrow);
    arrow.setAttribute("aria-hidden", "true");
    sort.title = name.slice(0, 200);
    th.append(sort);
    document.querySelector("#rows thead tr").append(th);
  }
}

function filters() {
  const which = Object.entries(SHOWN).map(([name, [words, test]]) => new Option(`${words} (${count(rows.filter(test).length)})`, name));
  by("which").replaceChildren(...which);
  by("which").value = state.which;
  by("pair").closest("label").hidden = data.pairs.length === 0;
  by("pair").replaceChildren(new Option("all pairs", ""), ...data.pairs.map((pair, place) => new Option(pairWords(pair), place)));
  by("pair").value = state.pair;
}
