"use strict";
// What was decided, row by row: kept by this browser, written to and read from decisions.csv.

const COLUMNS = ["row", "id", "label", "decision", "new_label", "table", "target"];
const DECISIONS = new Set(["keep", "fix", "drop"]);
const STORE = `databanzhaf decisions ${data.table} ${data.target}`;

// Row → { row, id, label, decision, new_label }, and what of it is not from an earlier review:
// row → the same, or null where an earlier decision was taken back.
const decisions = new Map(), changed = new Map();
const listed = new Map(data.pool.map(([row, id, own]) => [row, { row, id: id || "", label: data.labels[own] }]));

// ---------------------------------------------------------------- the browser's store

const sound = (entry) => entry === null || (typeof entry === "object" && DECISIONS.has(entry.decision));

// Everything that this browser remembers of the table. Whether it can remember is said by `remember`.
function recall() {
  let stored = {};
  try {
    stored = JSON.parse(localStorage.getItem(STORE)) || {};
  } catch { /* no storage, or nothing that this page has written */ }
  decisions.clear();
  changed.clear();
  for (const [row, id, label, decision, new_label] of data.decided) decisions.set(row, { row, id, label, decision, new_label });
  for (const [row, entry] of Object.entries(stored)) if (sound(entry)) put(Number(row), entry);
}

function remember() {
  let kept = true;
  try {
    localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(changed)));
  } catch {
    kept = false;
  }
  document.getElementById("storage").hidden = kept;
}

function put(row, entry) {
  changed.set(row, entry);
  if (entry) decisions.set(row, entry);
  else decisions.delete(row);
}

// ---------------------------------------------------------------- decisions.csv (RFC 4180, lines end with \n)

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function written() {
  const lines = [...decisions.values()].sort((a, b) => a.row - b.row);
  const cells = lines.map((each) => COLUMNS.map((name) => ({ ...each, table: data.table, target: data.target })[name]));
  return [COLUMNS, ...cells].map((line) => line.map((text) => quoted(String(text))).join(",") + "\n").join("");
}

// Lines of cells; null where a quote stands at a wrong place.
function parsed(text) {
  const field = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|$)/y, lines = [[]];
  for (let end = ","; end === "," || field.lastIndex < text.length; ) {
    const found = field.exec(text);
    if (!found) return null;
    lines.at(-1).push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
    end = found[3];
    if (end !== "," && end !== "") lines.push([]);
  }
  return lines.filter((line) => line.length > 1 || line[0]);
}

// One record as a decision. What is refused is said in a sentence: the rule, what came, the remedy.
function decided(cells, number) {
  const refuse = (rule, got) => { throw new Error(`Decision ${number} of the file: ${rule}; got ${got}. Nothing was loaded.`); };
  if (cells.length !== COLUMNS.length) refuse(`there must be ${COLUMNS.length} cells`, cells.length);
  const [row, id, label, decision, new_label, table, target] = cells, mine = listed.get(Number(row));
  if (table !== data.table || target !== data.target) {
    const got = target === data.target ? `the table ${table}` : `target “${target}” of the table ${table}`;
    refuse(`the decisions must be about this table, ${data.table}, and its target “${data.target}”`, got);
  }
  if (!/^\d{1,15}$/.test(row)) refuse("`row` must be a whole number", `“${row}”`);
  if (!DECISIONS.has(decision)) refuse("`decision` must be keep, fix or drop", `“${decision}”`);
  if (mine && mine.label !== label) refuse(`row ${row} has the label “${mine.label.slice(0, 80)}”`, `“${label.slice(0, 80)}”`);
  if (decision === "fix" && !allowed(new_label)) refuse(`\`new_label\` must be ${data.regression ? "a number" : "a label"}`, `“${new_label.slice(0, 80)}”`);
  if (decision === "fix" && new_label === label) refuse("a fix must change the label", `“${label.slice(0, 80)}” again`);
  if (decision !== "fix" && new_label) refuse("only a fix may have a `new_label`", `“${new_label.slice(0, 80)}”`);
  return { ...(mine || { row: Number(row), id, label }), decision, new_label };
}

// What a fix may write: some label, or a number of a regression.
const allowed = (text) => (data.regression ? /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) : text !== "");

// The decisions of a file, all of them or an error.
function read(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("The file must be UTF-8 text; got other bytes. Save it as CSV UTF-8, or choose a decisions.csv that this page wrote.");
  }
  const lines = parsed(text);
  if (!lines || String(lines[0]) !== String(COLUMNS)) {
    const first = text.split("\n", 1)[0].slice(0, 80);
    throw new Error(`The file must begin with the line ${COLUMNS}; got “${first}”. Choose a decisions.csv that this page wrote.`);
  }
  const entries = lines.slice(1).map((cells, at) => decided(cells, at + 1)), seen = new Set();
  const twice = entries.find(({ row }) => seen.has(row) || !seen.add(row));
  if (twice) throw new Error(`Each row must have one decision; got two for row ${twice.row}. Nothing was loaded.`);
  return entries;
}
