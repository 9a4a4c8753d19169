"use strict";
// What the review page holds, and how its texts are shown: as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const all = (selector) => document.querySelectorAll(selector);

// A row by its place: those of the list come first, then others that are near them.
function who(place) {
  const [row, id, own, cells] = data.pool[place];
  return { row, id, label: data.labels[own], cells };
}

// The list, the most doubtful first; labels and rows of the evidence stay places.
const rows = data.rows.map((line, place) => {
  const more = Object.fromEntries(data.fields.map((name, k) => [name, line[k]]));
  return { ...who(place), ...more, suggested: data.labels[more.suggested] };
});
const flagged = rows.filter((row) => row.flag);
const classes = data.labels.slice(0, data.classes);

// The keys of the first ten labels: their numbers, the tenth is 0. Labels that are digits are their own keys.
const CHIPS = 10;
const digits = classes.length > 1 && classes.every((text) => /^[0-9]$/.test(text));
const KEYED = new Map(classes.slice(0, CHIPS).map((text, k) => [digits ? text : String((k + 1) % 10), text]));

// ---------------------------------------------------------------- numbers

const percents = new Intl.NumberFormat("en", { style: "percent" }), short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const count = (number) => number.toLocaleString("en");
const chance = (p) => (p === null ? "" : p > 0.995 ? "> 99%" : p < 0.005 ? "< 1%" : percents.format(p));
const numeric = (text) => (text.trim() === "" ? NaN : Number(text));

// The standard deviation of a column over the list; NaN if the column has other texts than numbers.
const spreads = new Map();
function spread(k) {
  if (!spreads.has(k)) {
    const numbers = rows.map((row) => row.cells[k]).filter((text) => text.trim() !== "").map(Number), n = numbers.length;
    const mean = numbers.reduce((a, b) => a + b, 0) / n;
    spreads.set(k, Math.sqrt(numbers.reduce((a, b) => a + (b - mean) ** 2, 0) / n));
  }
  return spreads.get(k);
}

// ---------------------------------------------------------------- texts

function make(tag, words, kind) {
  const made = document.createElement(tag);
  if (words !== undefined) made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

function button(act, kind, ...words) {
  const made = Object.assign(make("button", undefined, kind), { type: "button", onclick: act });
  made.append(...words);
  return made;
}

function key(name) {
  const made = make("kbd", name);
  made.setAttribute("aria-hidden", "true");
  return made;
}

// A text of the user's for the eye: not too long, and to be seen if it is empty.
function visible(text, most) {
  if (text.trim() === "") return text === "" ? "(empty)" : `"${text}"`;
  return text.length > most ? text.slice(0, most) + "…" : text;
}

// Its direction of writing ends with it: as an element, and within a sentence.
const isolated = (text, most) => make("bdi", visible(text, most), text.trim() === "" ? "faint" : "");
const inside = (text) => `\u2068${visible(text, 40)}\u2069`;

const picture = (row) => Object.assign(make("img"), { src: row.picture, alt: `row ${row.row}` });

// A box that scrolls, by keyboard too.
function scroll(name, inner) {
  const made = Object.assign(make("div", undefined, "scroll"), { tabIndex: 0 });
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", name);
  made.append(inner);
  return made;
}
