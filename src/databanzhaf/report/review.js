"use strict";
// The review: one row at a time, by keys or buttons. Then what both screens share, and the start.

const view = { queue: [], at: 0, shown: null }, past = [];
const current = () => view.queue[view.at];
const reviewing = () => !by("review").hidden;

// ---------------------------------------------------------------- in and out

function enter(queue, row) {
  Object.assign(view, { queue, at: Math.max(0, queue.indexOf(row)) });
  location.hash = "review";
  reveal();
}

const begin = () => enter(queued, undecided(queued)[0]);

function reveal() {
  by("overview").hidden = true;
  by("review").hidden = false;
  view.shown = null;
  draw();
  by("heading").focus({ preventScroll: true });
}

function leave() {
  if (!reviewing()) return;
  const row = current();
  by("review").hidden = true;
  by("overview").hidden = false;
  location.hash = "list";
  overview();
  ((row && document.querySelector(`button.open[data-row="${row.row}"]`)) || by("begin")).focus();
}

// The browser's own way back, and a page that is opened again in the middle of a review.
function follow() {
  if (location.hash === "#review" && !reviewing() && queued.length) begin();
  if (location.hash === "#list" || location.hash === "") leave();
}

// ---------------------------------------------------------------- moves and decisions

function step(steps) {
  view.at = Math.max(0, Math.min(view.queue.length - 1, view.at + steps));
  draw();
}

// To the next row without a decision, the earlier ones last. Without one: the end, or the next row if a decision was changed.
function onward(changed) {
  const { queue, at } = view, next = undecided([...queue.slice(at + 1), ...queue.slice(0, at + 1)])[0];
  if (next) view.at = queue.indexOf(next);
  else view.at = changed ? at + 1 : queue.length;
}

function decide(decision, new_label = "") {
  const row = current();
  if (!row || (decision === "fix" && !allowed(new_label))) return;
  if (decision === "fix" && new_label === row.label) [decision, new_label] = ["keep", ""];
  const before = decisions.get(row.row) || null;
  past.push({ row, before });
  put(row.row, { row: row.row, id: row.id || "", label: row.label, decision, new_label });
  remember();
  onward(before !== null);
  draw(`Row ${row.row} ${outcome(row)}.`);
}

const keep = () => decide("keep");
const drop = () => decide("drop");
const fix = () => { if (!by("fix").disabled) decide("fix", current()?.suggested); };

// Take back the last decision; before any, that of the row on the screen.
function undo() {
  const shown = current() && decisions.has(current().row) ? { row: current(), before: null } : undefined, last = past.pop() || shown;
  if (!last) return;
  put(last.row.row, last.before);
  remember();
  if (!view.queue.includes(last.row)) view.queue = [...view.queue, last.row];
  view.at = view.queue.indexOf(last.row);
  draw(`Row ${last.row.row}: decision taken back.`);
}

// ---------------------------------------------------------------- what the screen shows

function draw(words = "") {
  const row = current(), n = view.queue.length;
  by("row").hidden = !row;
  by("finished").hidden = Boolean(row);
  Object.assign(by("done"), { max: n || 1, value: n - undecided(view.queue).length });
  by("said").textContent = words;
  by("tally").textContent = tally(view.queue);
  by("now").textContent = row ? `. Now row ${row.row}, label ${inside(row.label)}, suggested ${inside(row.suggested)}.` : "";
  by("undo").disabled = past.length === 0 && !(row && decisions.has(row.row));
  by("previous").disabled = view.at === 0;
  by("following").disabled = view.at >= n - 1;
  saving();
  if (row) face(row);
  else finish();
  if (row !== view.shown) arrive(row);
  const here = document.activeElement;
  // What had the focus may be gone, hidden or disabled.
  if (here === document.body || here.disabled || !here.getClientRects().length) by(row ? "heading" : "finish").focus({ preventScroll: true });
}

// A row that has just come begins at its top, with a short fade.
function arrive(row) {
  view.shown = row;
  scrollTo(0, 0);
  by("row").classList.remove("fresh");
  void by("row").offsetWidth; // so that the fade begins again
  by("row").classList.add("fresh");
}

function face(row) {
  const made = decisions.get(row.row), fixed = made?.decision === "fix" ? made.new_label : null, same = row.suggested === row.label;
  by("heading").replaceChildren(`Row ${row.row}`, ...(row.id ? [" ", isolated(row.id, 60)] : []));
  by("about").textContent = [`${count(view.at + 1)} of ${count(view.queue.length)}`, `rank ${count(row.rank)} of ${count(data.n)}`, outcome(row)].filter(Boolean).join(" · ");
  by("seen").replaceChildren(...seen(row));
  card("own", data.regression ? "Value in the table" : "Label in the table", row.label, row.p_wrong, "wrong with probability");
  card("suggested", data.regression ? "Expected value" : "Suggested label", row.suggested, row.p_suggested, "right with probability", row.interval);
  by("numbers-of-row").replaceChildren(...numbersOf(row));
  action("keep", made?.decision === "keep", "Keep ", isolated(row.label, 30));
  action("fix", fixed !== null && fixed === row.suggested, ...(same ? ["No other label"] : ["Fix to ", isolated(row.suggested, 30)]));
  action("drop", made?.decision === "drop", "Drop");
  by("fix").disabled = same || !allowed(row.suggested);
  for (const chip of by("others").children) {
    const chosen = made?.decision === "keep" ? row.label : fixed, other = fixed !== null && fixed !== row.suggested && ![...KEYED.values()].includes(fixed);
    chip.setAttribute("aria-pressed", String(chip.dataset.key ? KEYED.get(chip.dataset.key) === chosen : other));
  }
  by("heard").replaceChildren(...heard(row));
  by("compared").replaceChildren(...compared(row));
}

function card(id, title, text, p, words, interval) {
  const big = make("p", undefined, text.length > 16 ? "label long" : "label"), bar = make("div", undefined, "share");
  big.append(isolated(text, 400));
  bar.style.setProperty("--p", p);
  by(id).replaceChildren(make("h2", title), big, ...(p === null ? [] : [bar, make("p", `${words} ${chance(p)}`, "probability")]));
  if (interval) by(id).append(make("p", `expected range ${interval}`, "probability"));
}

function action(id, pressed, ...words) {
  const text = make("span");
  text.append(...(pressed ? ["✓ "] : []), ...words);
  by(id).replaceChildren(key(by(id).getAttribute("aria-keyshortcuts").toUpperCase()), text);
  by(id).setAttribute("aria-pressed", String(pressed));
}

// The labels that have a key, and a way to all of them; of a regression any number.
function others() {
  if (data.regression) by("others").append(button(ask, "chip", key("E"), "Another value…"));
  if (classes.length > 2) {
    for (const [name, text] of KEYED) {
      const chip = button(() => decide("fix", text), "chip", key(name), isolated(text, 24));
      chip.dataset.key = name;
      chip.disabled = !allowed(text);
      by("others").append(chip);
    }
  }
  if (classes.length > CHIPS) by("others").append(button(pick, "chip", key("L"), `All ${count(classes.length)} labels…`));
}

function finish() {
  const n = view.queue.length, made = (decision) => count(view.queue.filter((row) => decisions.get(row.row)?.decision === decision).length);
  by("finish").textContent = n === 1 ? "The row is decided" : `All ${count(n)} rows are decided`;
  by("outcome").textContent = `${made("fix")} fixed, ${made("keep")} kept, ${made("drop")} dropped.`;
}

// ---------------------------------------------------------------- dialogs

const help = () => by("keys").showModal();

function pick() {
  if (classes.length < 2 || !current()) return;
  by("filter").value = "";
  options();
  by("labels").showModal();
  by("filter").focus();
}

function options() {
  const words = by("filter").value.toLowerCase(), shown = [...classes.entries()].filter(([, text]) => allowed(text) && text.toLowerCase().includes(words));
  const item = ([k, text]) => {
    const made = make("li"), choose = () => { by("labels").close(); decide("fix", text); };
    made.append(button(choose, "chip", make("span", count(k + 1), "faint"), isolated(text, 200)));
    return made;
  };
  by("options").replaceChildren(...shown.map(item));
  by("none").textContent = shown.length ? "" : "No label contains this text.";
}

// Enter takes the first label of the filter; the arrows move through the labels.
function walk(event) {
  const stops = [by("filter"), ...all("#options button")], at = stops.indexOf(event.target);
  const next = at < 0 ? undefined : { ArrowDown: stops[at + 1], ArrowUp: stops[at - 1] }[event.key];
  if (next) next.focus();
  else if (event.key === "Enter" && at === 0) stops[1]?.click();
  else return;
  event.preventDefault();
}

function ask() {
  if (!current()) return;
  by("number").value = decisions.get(current().row)?.new_label || current().suggested;
  by("wrong").textContent = "";
  by("numbers").showModal();
  by("number").select();
}

function answered(event) {
  const text = by("number").value.trim();
  if (allowed(text)) return decide("fix", text);
  event.preventDefault();
  by("wrong").textContent = "The value must be a number with a decimal point, as in 3.5.";
  return by("number").focus();
}

// ---------------------------------------------------------------- decisions.csv

function saving() {
  const fixed = [...decisions.values()].filter((each) => each.decision === "fix").length, { elsewhere } = data;
  const lost = elsewhere ? ` Earlier decisions on ${rowsOf(elsewhere)} that this page does not list are not in its decisions.csv.` : "";
  by("summary").textContent = (decisions.size ? `${count(decisions.size)} decided, ${count(fixed)} fixed.` : "There are no decisions yet.") + lost;
  for (const each of all(".download")) each.disabled = decisions.size === 0;
}

function download() {
  const link = Object.assign(make("a"), { download: "decisions.csv", href: URL.createObjectURL(new Blob([written()], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function load() {
  const [file] = by("file").files;
  if (!file) return;
  by("loaded").textContent = await file.arrayBuffer().then(taken).catch((error) => error.message);
  by("file").value = "";
}

function taken(bytes) {
  const entries = read(bytes);
  for (const each of entries) put(each.row, each);
  remember();
  overview();
  return `Decisions on ${rowsOf(entries.length)} were loaded.`;
}

async function copy(event) {
  const copier = event.currentTarget, code = copier.parentElement.querySelector("code");
  getSelection().selectAllChildren(code);
  try {
    await navigator.clipboard.writeText(code.textContent);
    copier.textContent = "Copied";
  } catch {
    copier.textContent = "Selected";
  }
}

// ---------------------------------------------------------------- keys and buttons

const HELP = [
  [["K"], "keep the label"],
  [["F"], `fix to the ${data.regression ? "expected value" : "suggested label"}`],
  ...(data.regression ? [[["E"], "enter another value"]] : [[[...KEYED.keys()], byNumber()]]),
  ...(classes.length > CHIPS ? [[["L"], "choose from all labels"]] : []),
  [["D"], "drop the row"],
  [["U"], "undo"],
  [["→", "J"], "next row, without a decision"],
  [["←", "Shift J"], "previous row"],
  [["Esc"], "back to the list"],
  [["?"], "show these keys"],
];

function byNumber() {
  if (classes.length <= 2) return `label ${classes.map(inside).join(", label ")}`;
  return digits ? "the label that is this digit" : "the label with this number";
}

const MOVES = { arrowright: () => step(1), arrowleft: () => step(-1), j: (event) => step(event.shiftKey ? -1 : 1) };
const ACTS = { k: keep, f: fix, d: drop, u: undo, escape: leave, ...(data.regression ? { e: ask } : { l: pick }) };

// Nobody is typing, and the key is not one of the browser's.
function meant(event) {
  const typing = event.target.closest?.("input, select, textarea, [contenteditable]") || document.querySelector("dialog[open]");
  return !typing && !event.ctrlKey && !event.altKey && !event.metaKey && !event.isComposing;
}

function pressed(event) {
  const name = event.key.toLowerCase(), scrolls = name.startsWith("arrow") && event.target.closest?.(".scroll");
  if (!meant(event) || scrolls) return;
  const labelled = KEYED.has(name) && (() => decide("fix", KEYED.get(name)));
  const act = name === "?" ? help : reviewing() && (MOVES[name] || (!event.repeat && (ACTS[name] || labelled)));
  if (!act) return;
  event.preventDefault();
  act(event);
}

const ON_CLICK = { begin, keep, fix, drop, undo, help, back: leave, home: leave, previous: () => step(-1), following: () => step(1),
  load: () => by("file").click(), cancel: () => by("numbers").close(), before: () => { state.page -= 1; show(); }, after: () => { state.page += 1; show(); } };

function listen() {
  const on = (id, type, act) => by(id).addEventListener(type, act);
  for (const [id, act] of Object.entries(ON_CLICK)) on(id, "click", () => act());
  for (const id of ["words", "which", "pair"]) on(id, "input", ({ target }) => { Object.assign(state, { [id]: target.value, page: 0 }); show(); });
  for (const each of all(".download")) each.addEventListener("click", download);
  for (const each of all(".copy")) each.addEventListener("click", copy);
  on("file", "change", load);
  on("filter", "input", options);
  on("labels", "keydown", walk);
  on("numbered", "submit", answered);
  addEventListener("keydown", pressed);
  addEventListener("hashchange", follow);
  // Another tab has decided.
  addEventListener("storage", (event) => { if (event.key === STORE) { recall(); (reviewing() ? () => draw() : overview)(); } });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width && !reviewing()) chart(); width = innerWidth; });
}

// ---------------------------------------------------------------- the start

function overview() {
  answer();
  filters();
  saving();
  show();
  chart();
}

function start() {
  recall();
  remember();
  head();
  others();
  for (const [names, words] of HELP) {
    const dt = make("dt");
    dt.append(...names.map((name) => make("kbd", name)));
    document.querySelector("#keys dl").append(dt, make("dd", words));
  }
  listen();
  overview();
  follow();
  document.documentElement.dataset.ready = "yes";
}

start();
