"use strict";
// Throughput of the last two minutes: sent above the axis, received below it,
// slaves stacked, failovers as marks.

const windowMs = 120000;

// series makes rates of points: for each but the first, its time and each slave's
// bytes a second, in the order of names.
function series(points, names) {
  const list = [];
  for (let i = 1; i < points.length; i++) {
    const seconds = (points[i].time_ms - points[i - 1].time_ms) / 1000;
    const rate = key => names.map(n => {
      const now = points[i].slaves[n], before = points[i - 1].slaves[n];
      return now && before && seconds > 0 ? Math.max(0, now[key] - before[key]) / seconds : 0;
    });
    list.push({t: points[i].time_ms, tx: rate("tx_bytes"), rx: rate("rx_bytes")});
  }
  return list;
}

// nice returns a step for about n lines up to max, in bits: 1, 2 or 5 by a power of ten.
function nice(max, n) {
  const raw = Math.max(max, 8) / n, power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find(f => f * power >= raw);
}

// tick writes a round number of bits a second without needless zeros.
function tick(n) { return scaled(n, "bit/s").replace(/(\.\d*?)0+(?=\D)/, "$1").replace(/\.(?=\D)/, ""); }

function sum(list) { return list.reduce((a, b) => a + b, 0); }

function drawChart(box, rates, names, failovers, now) {
  const width = Math.max(box.clientWidth, 280), height = width < 500 ? 240 : 300;
  const left = 74, right = 10, top = 20, bottom = 24;
  const inner = height - top - bottom;
  const x = t => width - right - (now - t) / windowMs * (width - left - right);
  const maxTx = Math.max(0, ...rates.map(r => sum(r.tx))) * 8, maxRx = Math.max(0, ...rates.map(r => sum(r.rx))) * 8;
  const step = nice(Math.max(maxTx, maxRx), 3);
  const up = Math.max(1, Math.ceil(maxTx / step)), down = Math.max(1, Math.ceil(maxRx / step));
  const zero = top + inner * up / (up + down), unit = inner / (up + down) / step * 8;

  const svg = el("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `Throughput of the last two minutes by slave, sent above and received below: ${names.join(", ")}`});
  for (let i = -down; i <= up; i++) {
    const y = zero - i * step / 8 * unit;
    svg.append(el("line", {x1: left, x2: width - right, y1: y, y2: y, class: i === 0 ? "axis" : "grid"}));
    svg.append(el("text", {x: left - 8, y: y + 4, class: "tick end"}, i === 0 ? "0" : tick(Math.abs(i) * step)));
  }
  for (let s = 120; s >= 0; s -= width < 500 ? 60 : 30) {
    svg.append(el("text", {x: x(now - s * 1000), y: height - 6, class: "tick " + (s === 0 ? "end" : s === 120 ? "" : "middle")}, s === 0 ? "now" : `−${s} s`));
  }
  for (const [key, sign] of [["tx", -1], ["rx", 1]]) {
    names.forEach((name, n) => {
      const edge = k => rates.map(r => `${x(r.t).toFixed(1)},${(zero + sign * sum(r[key].slice(0, k)) * unit).toFixed(1)}`);
      if (rates.length < 2) return;
      const outer = edge(n + 1);
      svg.append(el("path", {class: `area s${n % 8}`, d: `M${outer.join("L")}L${edge(n).reverse().join("L")}Z`}));
      const own = rates.map(r => r[key][n] > 0); // a slave that carries nothing has no edge
      const pieces = outer.map((at, i) => i && (own[i] || own[i - 1]) ? `M${outer[i - 1]}L${at}` : "").join("");
      if (pieces) svg.append(el("path", {class: `edge s${n % 8}`, d: pieces}));
    });
  }
  svg.append(el("text", {x: left + 8, y: top + 12, class: "side"}, "sent"), el("text", {x: left + 8, y: height - bottom - 6, class: "side"}, "received"));
  let last = Infinity;
  for (const f of [...failovers].reverse()) { // the latest first: it keeps its label
    const at = x(Date.parse(f.time));
    if (at < left) continue;
    svg.append(el("line", {x1: at, x2: at, y1: top - 4, y2: height - bottom, class: "mark"}));
    if (last - at > 90) {
      const end = at > width - 80;
      svg.append(el("text", {x: at + (end ? -4 : 4), y: top - 8, class: "mark-label" + (end ? " end" : "")}, f.cause));
      last = at;
    }
  }
  hover(svg, rates, names, {x, left, right, top, bottom, width, height});
  box.replaceChildren(svg);
}

// hovered is where the pointer is, so that a new drawing shows it again.
let hovered = null;

function hover(svg, rates, names, g) {
  const group = el("g", {class: "hover"});
  const show = () => {
    group.replaceChildren();
    if (hovered === null || rates.length === 0) return;
    const r = rates.reduce((a, b) => Math.abs(g.x(b.t) - hovered) < Math.abs(g.x(a.t) - hovered) ? b : a);
    const at = g.x(r.t), w = 268, h = 22 + 17 * names.length;
    const left = at + 12 + w > g.width ? at - 12 - w : at + 12;
    group.append(el("line", {x1: at, x2: at, y1: g.top, y2: g.height - g.bottom, class: "cross"}),
      el("rect", {x: left, y: g.top + 6, width: w, height: h, rx: 6}),
      el("text", {x: left + 10, y: g.top + 22, class: "when"}, clock(r.t)),
      ...names.flatMap((name, n) => [el("circle", {cx: left + 14, cy: g.top + 34 + 17 * n, r: 4, class: `dot s${n % 8}`}),
        el("text", {x: left + 24, y: g.top + 38 + 17 * n}, name),
        el("text", {x: left + w - 10, y: g.top + 38 + 17 * n, class: "end"}, `↑ ${bits(r.tx[n])}  ↓ ${bits(r.rx[n])}`)]));
  };
  svg.addEventListener("pointermove", e => { hovered = e.offsetX; show(); });
  svg.addEventListener("pointerleave", () => { hovered = null; show(); });
  svg.append(group);
  show();
}
