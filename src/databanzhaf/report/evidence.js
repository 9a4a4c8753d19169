"use strict";
// What a line of the table shows when it is opened. Texts are set as text, never as markup.

const opened = new Set();
const signed = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, signDisplay: "exceptZero" });
const share = new Intl.NumberFormat("en", { style: "percent" });

function make(tag, words, kind) {
  const made = document.createElement(tag);
  if (words !== undefined) made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

// The button in a line's first cell, in front of its number.
function opener(line, tr) {
  const button = make("button", String(line.cells[0]), "open"), id = "evidence-" + line.i;
  const say = () => {
    button.setAttribute("aria-expanded", String(opened.has(line.i)));
    if (opened.has(line.i)) button.setAttribute("aria-controls", id);
    else button.removeAttribute("aria-controls");
  };
  button.type = "button";
  button.setAttribute("aria-label", "Evidence for row " + line.cells[0]);
  button.addEventListener("click", () => {
    if (opened.delete(line.i)) tr.nextElementSibling.remove();
    else {
      opened.add(line.i);
      tr.after(evidence(line));
      strip(tr.nextElementSibling);
    }
    say();
  });
  say();
  return button;
}

function evidence(line) {
  const tr = make("tr", undefined, "evidence"), td = tr.insertCell(), panel = make("div", undefined, "panel");
  const { same, other, copies, jury, swayed } = proof.rows[line.i];
  tr.id = "evidence-" + line.i;
  tr.dataset.line = line.i;
  td.colSpan = data.table.columns.length + data.offset;
  td.append(panel);
  panel.append(make("h3", "Nearest rows"));
  for (const [label, rows, count] of copies) {
    const more = count > rows.length ? ` and ${count - rows.length} more` : "";
    const words = `The same cells, ${proof.classes ? "label" : "target"} ${label}: ${count === 1 ? "row" : "rows"} ${rows.map(named).join(", ")}${more}.`;
    panel.append(make("p", words, "contradiction"));
  }
  panel.append(neighbors(line, same, other));
  panel.append(make("p", "Distance is taken over the columns that the models see: numbers in standard deviations, categories as 0 or 1.", "faint"));
  panel.append(make("h3", "Effect over the jury"));
  if (jury) panel.append(...judged(jury));
  if (proof.note) panel.append(make("p", proof.note, "faint"));
  if (swayed) panel.append(...moved(swayed));
  return tr;
}

const cellsOf = (k) => (k < lines.length ? lines[k].cells : proof.cells[k - lines.length]);
const named = (k) => (proof.label === 2 ? `${cellsOf(k)[0]} (${String(cellsOf(k)[1]).slice(0, 40)})` : cellsOf(k)[0]);

// Lines of the table in a small one: who and what label, the distance, value and flag, then the columns of the user's.
function neighbors(line, same, other) {
  const { label } = proof, columns = data.table.columns, rest = columns.map((_, k) => k).slice(label + 7);
  const scroll = make("div", undefined, "scroll"), table = make("table"), head = table.createTHead().insertRow();
  const order = [...columns.keys()].slice(0, label + 1), ours = [label + 2, label + 1];
  const kind = (k) => (shown.some((each) => typeof each[k] === "number") ? "number" : "");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Rows nearest to row " + line.cells[0]);
  const titles = [...(data.offset ? ["picture"] : []), ...order.map((k) => columns[k]), "distance", ...[...ours, ...rest].map((k) => columns[k])];
  const shown = [line.i, ...same.map(([k]) => k), ...other.map(([k]) => k)].map(cellsOf);
  const kinds = [...(data.offset ? [""] : []), ...order.map(kind), "number", ...[...ours, ...rest].map(kind)];
  titles.forEach((title, k) => head.append(Object.assign(make("th", title.slice(0, 60), kinds[k]), { scope: "col" })));
  const part = (words, rows) => {
    const group = table.createTBody(), th = Object.assign(make("th", words), { scope: "rowgroup", colSpan: titles.length });
    group.insertRow().append(th);
    for (const [k, distance] of rows) {
      const tr = group.insertRow();
      if (data.offset) picture(tr.insertCell(), k);
      for (const c of order) fill(tr.insertCell(), cellsOf(k)[c], columns[c]);
      Object.assign(tr.insertCell(), { className: "number", textContent: distance === null ? "" : short.format(distance) });
      for (const c of [...ours, ...rest]) fill(tr.insertCell(), cellsOf(k)[c], columns[c]);
    }
  };
  part("This row", [[line.i, null]]);
  if (!proof.classes) part("Nearest", same);
  else {
    part(same.length ? "Nearest with the same label" : "No other row has this label", same);
    part(other.length ? "Nearest with another label" : "No row has another label", other);
  }
  scroll.append(table);
  return scroll;
}

function judged({ judges, hurt, clear, worst, best }) {
  const count = (number) => number.toLocaleString("en");
  let words = `With this row in training, models score lower on ${count(hurt)} of ${count(judges)} judging rows (${share.format(judges ? hurt / judges : 0)}). `;
  if (!clear) words += "How much of this is noise is unknown: two or more --repeats would measure it.";
  else if (clear[0] || clear[1]) words += `Beyond noise it hurts ${count(clear[0])} and helps ${count(clear[1])}; the other effects are too small to tell.`;
  else words += "The effects on single judging rows are within noise: only their mean, the value, can be read.";
  const both = make("div", undefined, "jury"), figure = make("figure");
  figure.append(make("div", undefined, "strip"), make("figcaption", "Change of the score on each judging row. Bar heights are square roots of the counts.", "faint"));
  const sides = [["Hurts the most", worst], ["Helps the most", best]].filter(([, rows]) => rows.length);
  both.append(figure, ...sides.map(([title, rows]) => ranked(title, rows)));
  return [make("p", words), both];
}

// The training rows that moved the prediction for this row, which models judged that had not seen it.
function moved({ worst, best }) {
  const both = make("div", undefined, "jury");
  const sides = [["Hurt it the most", worst], ["Helped it the most", best]].filter(([, rows]) => rows.length);
  both.append(...sides.map(([title, rows]) => ranked(title, rows)));
  const words = "What the score of this row, by models that have not seen it, gains when another row joins. All of them: databanzhaf explain.";
  return [make("h3", "The prediction for this row"), make("p", words), both];
}

// Judging rows with their labels and the effect on each.
function ranked(title, rows) {
  const { label, across } = proof, columns = data.table.columns, table = make("table");
  table.append(make("caption", title));
  const head = table.createTHead().insertRow();
  const titles = across ? columns.slice(0, label + 1) : ["judging row", columns[label]];
  const shown = rows.map(([k]) => (across ? cellsOf(k).slice(0, label + 1) : proof.judges[k]));
  const kinds = [...shown[0].map((value) => (typeof value === "number" ? "number" : "")), "number"];
  [...titles, "effect"].forEach((each, k) => head.append(Object.assign(make("th", each.slice(0, 60), kinds[k]), { scope: "col" })));
  const group = table.createTBody();
  for (const [at, [, effect, clear]] of rows.entries()) {
    const tr = group.insertRow();
    shown[at].forEach((value) => fill(tr.insertCell(), value));
    const td = Object.assign(tr.insertCell(), { className: "number", textContent: signed.format(effect) });
    if (!clear) td.append(make("span", "within noise", "faint"));
  }
  return table;
}

// The effects on all judging rows as bars, once the panel has its width.
function strip(tr) {
  const box = tr.querySelector(".strip"), { jury } = proof.rows[tr.dataset.line];
  if (box) histogram(box, ...jury.bars, "effects on judging rows");
}
