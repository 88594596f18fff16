"use strict";
// How numbers, times and elements are written.

// el makes an element. Strings become text, never markup: names and warnings
// come from elsewhere.
function el(tag, attrs, ...children) {
  const svg = ["svg", "path", "line", "text", "rect", "g", "circle", "title"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  for (const c of children.flat()) {
    if (c !== null && c !== undefined) e.append(c);
  }
  return e;
}

const grouped = new Intl.NumberFormat("en", {useGrouping: true});

// count writes a whole number, in thin groups: 1 234 567.
function count(n) { return grouped.format(Math.round(n)).replaceAll(",", "\u202f"); }

// scaled writes a number with three digits and a decimal prefix.
function scaled(n, unit) {
  let i = 0;
  while (n >= 999.5 && i < 5) { n /= 1000; i++; }
  const digits = n >= 99.5 || n === 0 ? 0 : n >= 9.95 ? 1 : 2;
  return (i === 0 && n >= 1 ? n.toFixed(0) : n.toFixed(digits)) + "\u00a0" + ["", "k", "M", "G", "T", "P"][i] + unit;
}

function bits(bytesPerSecond) { return scaled(bytesPerSecond * 8, "bit/s"); }
function bytes(n) { return scaled(n, "B"); }
function speed(mbps) { return mbps === null ? "unknown" : scaled(mbps * 1e6, "bit/s"); }

// micros writes microseconds in the unit that fits.
function micros(us) {
  if (us === null || us === undefined) return "–";
  if (us < 1000) return us + "\u00a0µs";
  if (us < 1e6) return (us / 1000).toFixed(us < 1e5 ? 1 : 0) + "\u00a0ms";
  return (us / 1e6).toFixed(us < 1e7 ? 2 : 1) + "\u00a0s";
}

// ago writes how long ago a time was.
function ago(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return s + "\u00a0s ago";
  if (s < 3600) return Math.floor(s / 60) + "\u00a0min ago";
  if (s < 86400) return Math.floor(s / 3600) + "\u00a0h ago";
  return Math.floor(s / 86400) + "\u00a0d ago";
}

function clock(t) { return new Date(t).toLocaleTimeString("en-GB"); }

// pill is a word with a colour and a mark of its kind: good, warn, bad, or none.
function pill(word, kind) { return el("span", {class: "pill " + (kind || "")}, word); }

function linkKind(state) { return state === "up" ? "good" : state === "down" ? "bad" : "warn"; }

// table makes a table whose cells carry their column's name, so that a narrow
// page can show each row as a card.
function table(columns, rows) {
  const head = el("tr", {}, columns.map(c => el("th", {scope: "col", class: c.num ? "num" : null}, c.name)));
  const body = rows.map(row => el("tr", {}, row.map((cell, i) =>
    el("td", {"data-column": columns[i].name, class: columns[i].num ? "num" : i === 0 ? "first" : null}, cell))));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, body));
}
