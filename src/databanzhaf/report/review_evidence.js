"use strict";
// What speaks about a row: its picture or text, the models, and the rows nearest to it.

// What the row is, if cells do not show it.
function seen(row) {
  const parts = row.picture ? [Object.assign(picture(row), { className: "picture" })] : [];
  if (row.text === null) return parts;
  return [...parts, scroll("Text of the row", Object.assign(make("p", row.text, "text"), { dir: "auto" }))];
}

function numbersOf(row) {
  const facts = [["Models that disagree", row.agreement === null ? null : percents.format(row.agreement)],
    ["Margin", row.margin === null ? null : short.format(row.margin)], ["Value of the row", row.value]];
  return facts.filter(([, text]) => text !== null).map(([name, text]) => {
    const fact = make("div");
    fact.append(make("dt", name), make("dd", text));
    return fact;
  });
}

function heard(row) {
  const named = row.conflicts.map(([number, own]) => `row ${number} (${inside(data.labels[own])})`).join(", ");
  const conflict = make("p", `The same cells with another label: ${named}.`, "contradiction");
  return [...(named ? [conflict] : []), ...(row.judges.length ? [make("h2", "What the models say"), judges(row)] : [])];
}

function table(titles, lines) {
  const made = make("table"), top = made.createTHead().insertRow(), body = made.createTBody();
  for (const title of titles) {
    const th = Object.assign(make("th"), { scope: "col" });
    th.append(title);
    top.append(th);
  }
  for (const cells of lines) {
    const tr = body.insertRow();
    for (const text of cells) tr.insertCell().append(text);
  }
  return made;
}

function judges(row) {
  const known = row.judges.some(([, , own, other]) => own !== null || other !== null);
  const titles = ["model", data.regression ? "expects" : "says", ...(known ? [isolated(row.label, 16), isolated(row.suggested, 16)] : [])];
  const lines = row.judges.map(([name, says, own, other]) => [data.judges[name], isolated(data.labels[says], 40), ...(known ? [chance(own), chance(other)] : [])]);
  const made = table(titles, lines);
  for (const tr of made.rows) for (const cell of [...tr.cells].slice(2)) cell.classList.add("number");
  return scroll("What the models say", made);
}

// ---------------------------------------------------------------- the rows nearest to it

const near = ([place, distance]) => ({ ...who(place), distance, picture: rows[place]?.picture });

// One line for each column: this row, then the nearest with its label and the nearest with the suggested one.
function compared(row) {
  const own = row.near_own.map(near), other = row.near_suggested.map(near), around = [...own, ...other];
  const order = [...data.columns.keys()].sort((a, b) => apart(row.cells[b], b, own) - apart(row.cells[a], a, own) || a - b);
  const lines = order.map((k) => [visible(data.columns[k], 60), row.cells[k], ...around.map((each) => (each.cells ? each.cells[k] : "…"))]);
  if (data.regression && around.length) lines.unshift([visible(data.target, 60), ...[row, ...around].map((each) => each.label)]);
  if (row.picture && around.length) lines.unshift(["picture", ...[row, ...around].map((each) => (each.picture ? picture(each) : ""))]);
  if (!lines.length) return [];
  const name = around.length ? "This row and those nearest to it" : "This row", notes = [];
  if (own.length && order.length > 1) notes.push(`Columns in which it differs most from ${data.regression ? "these" : "the rows with its label"} come first; cells equal to its own are grey.`);
  if (around.some((each) => !each.cells)) notes.push("Cells marked … are in the table only.");
  return [make("h2", name), scroll(name, comparison(row, own, other, lines)), ...notes.map((words) => make("p", words, "faint"))];
}

function comparison(row, own, other, lines) {
  const around = [...own, ...other], made = table(["column", "this row", ...around.map((each) => `row ${each.row}`)], lines);
  for (const tr of made.tBodies[0].rows) dress(tr, 2 + own.length);
  if (around.length) {
    made.tHead.prepend(sides(row, own.length, other.length));
    made.tHead.append(distances(around));
  }
  return made;
}

// The name of the column, this row's cell, and the others: grey where they are equal, with a line between the two groups.
function dress(tr, second) {
  tr.cells[0].replaceWith(Object.assign(make("th", tr.cells[0].textContent), { scope: "row", dir: "auto" }));
  const [, mine, ...others] = tr.cells;
  mine.classList.add("mine");
  for (const td of [mine, ...others]) td.dir = "auto";
  for (const td of others) if (td.textContent === mine.textContent) td.classList.add("faint");
  for (const k of [2, second]) tr.cells[k]?.classList.add("edge");
}

function sides(row, own, other) {
  const tr = make("tr");
  tr.append(Object.assign(make("td"), { colSpan: 2 }));
  for (const [span, text] of [[own, row.label], [other, row.suggested]]) {
    const th = Object.assign(make("th", data.regression ? "nearest rows" : "nearest with label ", "edge"), { colSpan: span, scope: "colgroup" });
    if (!data.regression) th.append(isolated(text, 24));
    if (span) tr.append(th);
  }
  return tr;
}

function distances(around) {
  const tr = make("tr", undefined, "distance");
  for (const words of ["distance", "", ...around.map(({ distance }) => (distance === null ? "" : short.format(distance)))]) tr.append(make("td", words));
  return tr;
}

// How far a cell is from those of the rows with its label: in standard deviations, or as the share that differs.
function apart(text, k, own) {
  const cells = own.filter((each) => each.cells).map((each) => each.cells[k]), numbers = cells.map(numeric);
  if (!cells.length) return 0;
  if (!(spread(k) > 0) || [numeric(text), ...numbers].some(Number.isNaN)) return cells.filter((each) => each !== text).length / cells.length;
  return Math.abs(numeric(text) - numbers.reduce((a, b) => a + b, 0) / numbers.length) / spread(k);
}
