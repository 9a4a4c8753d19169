// Asks for the run's state every two seconds while the page is seen, and shows what has changed. All texts are set as text, never as markup.

const EVERY = 2000, LOST = "No answer from `databanzhaf watch`: it has ended, or this machine is busy. The page continues when it answers.";
const place = (id) => document.getElementById(id);
let paused = false, timer = 0, drawn = "", series = null;

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function list(id, texts) {
  const node = place(id), old = [...node.children].map((item) => item.textContent);
  if (JSON.stringify(old) === JSON.stringify(texts)) return;
  node.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

// Tiles stay where they are while their names do, so that nothing moves under a reader.
function tiles(pairs) {
  const node = place("tiles");
  if ([...node.querySelectorAll("dt")].map((each) => each.textContent).join() !== pairs.map(([name]) => name).join()) {
    node.replaceChildren(...pairs.map(([name]) => {
      const box = document.createElement("div");
      box.append(Object.assign(document.createElement("dt"), { textContent: name }), document.createElement("dd"));
      return box;
    }));
  }
  node.querySelectorAll("dd").forEach((each, i) => write(each, pairs[i][1]));
}

function bar(done, total) {
  const node = place("progress");
  node.hidden = total === null;
  if (total === null) return;
  node.max = Math.max(1, total);
  node.value = Math.min(done, total);
}

function cells(tag, texts) {
  return texts.map((text, k) => {
    const made = Object.assign(document.createElement(tag), { textContent: text, dir: "auto" });
    if (tag === "th") made.scope = "col";
    else if (text.length <= 24) made.className = "short";
    if (tag === "td" && k === texts.length - 1) made.classList.add("mark");
    return made;
  });
}

function table(values) {
  place("rows").tHead.rows[0].replaceChildren(...cells("th", values.columns));
  place("rows").tBodies[0].replaceChildren(...values.rows.map((texts, i) => {
    const row = document.createElement("tr");
    if (values.suspect[i]) row.className = "suspect";
    row.append(...cells("td", texts));
    return row;
  }));
}

function curve() {
  const box = place("curve"), { evaluations, stability, std_error } = series;
  const some = (numbers) => numbers.filter((each) => each !== null).length > 1;
  const seen = some(stability) || some(std_error);
  place("no-curve").hidden = seen;
  box.hidden = !seen;
  if (!seen) return;
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

function show(state) {
  write(place("title"), "Run " + state.title);
  document.title = state.total ? `${Math.floor((100 * Math.min(state.done, state.total)) / state.total)}% of ${state.title}` : state.title;
  write(place("subject"), state.subject);
  write(place("said"), state.said);
  list("problems", state.problem ? [state.problem] : []);
  list("notes", state.notes);
  tiles(state.tiles);
  bar(state.done, state.total);
  place("values").hidden = state.values === null;
  if (state.values === null) return;
  const { made, ...values } = state.values, text = JSON.stringify(values);
  write(place("made"), made);
  if (text === drawn) return;
  drawn = text;
  write(place("heading"), values.heading);
  write(place("rule"), values.rule);
  write(place("errors"), values.errors);
  table(values);
  series = values.series;
  curve();
}

async function ask() {
  clearTimeout(timer);
  if (paused || document.hidden) return;
  try {
    const answer = await fetch("data", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    show(await answer.json());
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    list("problems", [LOST]);
  }
  clearTimeout(timer);
  timer = setTimeout(ask, EVERY);
}

place("pause").addEventListener("click", () => {
  paused = !paused;
  place("pause").setAttribute("aria-pressed", paused);
  ask();
});
document.addEventListener("visibilitychange", ask);
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width && series) { width = innerWidth; curve(); } });
ask();
