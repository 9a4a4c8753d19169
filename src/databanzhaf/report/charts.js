"use strict";
// Small charts in SVG: axes, points, lines, bands, intervals and boxes. Texts are set as text, never as markup.

function element(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Round numbers from low to high, about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => +((first + i) * step).toPrecision(12));
}

const label = (number) => (number !== 0 && (Math.abs(number) >= 1e6 || Math.abs(number) < 1e-4) ? number.toExponential() : number.toLocaleString("en", { maximumSignificantDigits: 6 }));

function range(numbers, zero) {
  const known = numbers.filter((v) => v !== null && Number.isFinite(v));
  if (zero) known.push(0);
  const low = Math.min(...known), high = Math.max(...known), room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

// Axes in a box; returns where numbers lie and a group to draw in.
function axes(box, { x, y, xlabel, ylabel, names, right, rightlabel }) {
  const width = Math.max(260, box.clientWidth), height = Math.max(220, box.clientHeight);
  const long = names ? Math.min(110, 8 + 6.5 * Math.max(...names.map((name) => name.length))) : 0;
  const tilted = names && names.length * Math.max(...names.map((name) => name.length)) * 7 > width - 90;
  const m = { left: 64, right: right ? 64 : 14, top: 10, bottom: (tilted ? long : 24) + (xlabel ? 24 : 6) };
  const sx = (v) => m.left + ((v - x[0]) / (x[1] - x[0])) * (width - m.left - m.right);
  const scale = (r) => (v) => height - m.bottom - ((v - r[0]) / (r[1] - r[0])) * (height - m.top - m.bottom);
  const sy = scale(y), sr = right && scale(right);
  const picture = element("svg", { width: "100%", height: "100%", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const write = (text, px, py, more) => picture.append(element("text", Object.assign({ x: px, y: py, class: "tick" }, more), text));
  for (const v of ticks(y[0], y[1], height / 60)) {
    picture.append(element("line", { x1: m.left, x2: width - m.right, y1: sy(v), y2: sy(v), class: v === 0 ? "zero" : "grid" }));
    write(label(v), m.left - 8, sy(v) + 4, { "text-anchor": "end" });
  }
  if (right) for (const v of ticks(right[0], right[1], height / 60)) write(label(v), width - m.right + 8, sr(v) + 4, { "text-anchor": "start" });
  const foot = height - m.bottom + 16;
  if (names) {
    names.forEach((name, i) => {
      const at = sx(i), more = tilted ? { "text-anchor": "end", transform: `rotate(-45 ${at} ${foot})` } : { "text-anchor": "middle" };
      write(name, at, foot, more);
    });
  } else for (const v of ticks(x[0], x[1], width / 110)) write(label(v), sx(v), foot, { "text-anchor": "middle" });
  if (xlabel) write(xlabel, (m.left + width - m.right) / 2, height - 6, { "text-anchor": "middle", class: "title" });
  const middle = (m.top + height - m.bottom) / 2;
  if (ylabel) write(ylabel, 14, middle, { "text-anchor": "middle", class: "title", transform: `rotate(-90 14 ${middle})` });
  if (rightlabel) write(rightlabel, width - 12, middle, { "text-anchor": "middle", class: "title", transform: `rotate(90 ${width - 12} ${middle})` });
  box.replaceChildren(picture);
  return { box, picture, sx, sy, sr, width, height, m, x, y };
}

const known = (points) => points.filter(([a, b]) => a !== null && b !== null && Number.isFinite(a) && Number.isFinite(b));

function line(chart, xs, ys, kind, scale) {
  const points = known(xs.map((v, i) => [v, ys[i]])).map(([a, b]) => `${chart.sx(a).toFixed(1)},${(scale || chart.sy)(b).toFixed(1)}`);
  chart.picture.append(element("polyline", { points: points.join(" "), class: "line " + kind }));
}

function band(chart, xs, low, high) {
  const at = xs.map((v, i) => i).filter((i) => low[i] !== null && high[i] !== null);
  const inside = (v) => chart.sy(Math.min(Math.max(v, chart.y[0]), chart.y[1])).toFixed(1);
  const up = at.map((i) => `${chart.sx(xs[i]).toFixed(1)},${inside(high[i])}`);
  const down = at.map((i) => `${chart.sx(xs[i]).toFixed(1)},${inside(low[i])}`).reverse();
  chart.picture.append(element("polygon", { points: [...up, ...down].join(" "), class: "band" }));
}

// Dots and crosses as one path: ten thousand of them stay light. What lies beyond the axis sits at its end.
function dots(chart, xs, ys, kind, size) {
  const cross = kind === "bad", r = size || (cross ? 3.5 : 0);
  const path = known(xs.map((v, i) => [v, ys[i]])).map(([a, b]) => {
    const px = chart.sx(a), py = chart.sy(Math.min(Math.max(b, chart.y[0]), chart.y[1]));
    const [left, top] = [(px - r).toFixed(1), (py - r).toFixed(1)];
    return cross ? `M${left} ${top}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` : `M${px.toFixed(1)} ${py.toFixed(1)}h0`;
  });
  chart.picture.append(element("path", { d: path.join(""), class: (cross ? "cross " : "dot ") + kind }));
}

function whiskers(chart, xs, low, high, kind) {
  const inside = (v) => chart.sy(Math.min(Math.max(v, chart.y[0]), chart.y[1])).toFixed(1);
  const path = xs.map((v, i) => (low[i] === null || high[i] === null ? "" : `M${chart.sx(v).toFixed(1)} ${inside(low[i])}V${inside(high[i])}`));
  chart.picture.append(element("path", { d: path.join(""), class: "whisker " + kind }));
}

// A box from the first to the third quartile, its median, and whiskers to the last value within 1.5 boxes.
function boxes(chart, groups) {
  const slot = chart.sx(1) - chart.sx(0), wide = Math.min(48, slot * 0.6);
  groups.forEach((values, i) => {
    const list = [...values].sort((a, b) => a - b), at = (p) => list[Math.round(p * (list.length - 1))];
    const [q1, q2, q3] = [at(0.25), at(0.5), at(0.75)], reach = 1.5 * (q3 - q1), px = chart.sx(i);
    const near = list.filter((v) => v >= q1 - reach && v <= q3 + reach), far = list.filter((v) => v < q1 - reach || v > q3 + reach);
    whiskers(chart, [i], [near[0]], [near[near.length - 1]], "main");
    chart.picture.append(element("rect", { x: px - wide / 2, width: wide, y: chart.sy(q3), height: Math.max(1, chart.sy(q1) - chart.sy(q3)), class: "box" }));
    chart.picture.append(element("line", { x1: px - wide / 2, x2: px + wide / 2, y1: chart.sy(q2), y2: chart.sy(q2), class: "line main" }));
    dots(chart, far.map(() => i), far, "main");
  });
}

// What each mark means, above the chart.
function legend(box, entries) {
  const list = document.createElement("p");
  list.className = "legend";
  for (const [kind, text] of entries) {
    const key = Object.assign(document.createElement("span"), { className: "key " + kind });
    const item = document.createElement("span");
    item.append(key, text);
    list.append(item);
  }
  if (box.previousElementSibling && box.previousElementSibling.className === "legend") box.previousElementSibling.remove();
  box.before(list);
}

// The words for the nearest point, where the pointer is.
function tell(chart, xs, ys, words) {
  const note = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
  const ring = element("circle", { r: 6, class: "ring", visibility: "hidden" });
  chart.picture.append(ring);
  chart.box.append(note);
  chart.box.onpointermove = (event) => {
    const place = chart.box.getBoundingClientRect(), zoom = chart.width / place.width;
    const px = (event.clientX - place.left) * zoom, py = (event.clientY - place.top) * zoom;
    let best = -1, least = 900;
    xs.forEach((v, i) => {
      if (ys[i] === null) return;
      const dy = chart.sy(Math.min(Math.max(ys[i], chart.y[0]), chart.y[1])) - py, far = (chart.sx(v) - px) ** 2 + dy ** 2 / 9;
      if (far < least) [best, least] = [i, far];
    });
    note.hidden = best < 0;
    ring.setAttribute("visibility", best < 0 ? "hidden" : "visible");
    if (best < 0) return;
    const cx = chart.sx(xs[best]), cy = chart.sy(Math.min(Math.max(ys[best], chart.y[0]), chart.y[1]));
    ring.setAttribute("cx", cx);
    ring.setAttribute("cy", cy);
    note.textContent = words(best);
    note.style.left = Math.min(Math.max(4, cx / zoom + 10), Math.max(4, place.width - note.offsetWidth - 4)) + "px";
    note.style.top = Math.max(4, cy / zoom - 44) + "px";
  };
  chart.box.onpointerleave = () => { note.hidden = true; ring.setAttribute("visibility", "hidden"); };
}

// Bars of one width, `first` of them from zero; below zero they are bad. Heights are roots of the counts, so that one row is seen beside many.
function histogram(box, first, width, counts, what) {
  const wide = Math.max(220, box.clientWidth), high = 130, foot = 22, last = first + counts.length;
  const [low, end] = [Math.min(first, 0) * width, Math.max(last, 0) * width], sx = (v) => 12 + ((v - low) / (end - low || 1)) * (wide - 24);
  const most = Math.sqrt(Math.max(1, ...counts)), total = counts.reduce((a, b) => a + b, 0);
  const picture = element("svg", { width: "100%", viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true" });
  const at = (k) => label(+((first + k) * width).toPrecision(6));
  counts.forEach((count, k) => {
    if (!count) return;
    const tall = Math.max(3, (Math.sqrt(count) / most) * (high - foot - 8)), left = sx((first + k) * width);
    const bar = element("rect", { x: left + 0.5, width: Math.max(1, sx((first + k + 1) * width) - left - 1), y: high - foot - tall, height: tall, class: first + k < 0 ? "bar bad" : "bar main" });
    bar.append(element("title", {}, `${count.toLocaleString("en")} of ${total.toLocaleString("en")} from ${at(k)} to ${at(k + 1)}`));
    picture.append(bar);
  });
  picture.append(element("line", { x1: 12, x2: wide - 12, y1: high - foot, y2: high - foot, class: "grid" }));
  picture.append(element("line", { x1: sx(0), x2: sx(0), y1: 4, y2: high - foot, class: "zero" }));
  for (const v of ticks(low, end, wide / 90)) picture.append(element("text", { x: sx(v), y: high - foot + 16, "text-anchor": "middle", class: "tick" }, label(v)));
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", `Histogram of ${total} ${what}, from ${label(+low.toPrecision(3))} to ${label(+end.toPrecision(3))}`);
  box.replaceChildren(picture);
}
