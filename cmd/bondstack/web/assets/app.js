"use strict";
// What the page shows, each second anew.

const $ = id => document.getElementById(id);
const pollMs = 1000;
let points = [];
let status = null;
let bond = new URLSearchParams(location.search).get("bond") || "";

// colours keeps each slave's colour for as long as the page is open.
const seen = [];
function colour(name) {
  if (!seen.includes(name)) seen.push(name);
  return seen.indexOf(name) % 8;
}

function dot(name) { return el("i", {class: "dot s" + colour(name), "aria-hidden": "true"}); }

// names are all slaves that the chart has: those that left too, in the order of
// their colours.
function chartNames() {
  for (const p of points) Object.keys(p.slaves).forEach(colour);
  status.slaves.forEach(s => colour(s.name));
  return seen.filter(n => points.some(p => p.slaves[n]));
}

// rate is what is counted by a slave in a second, over the last points.
function rate(name, key) {
  if (points.length < 2) return 0;
  const b = points[points.length - 1], a = points[Math.max(0, points.length - 3)];
  if (!b.slaves[name] || !a.slaves[name]) return 0;
  return Math.max(0, b.slaves[name][key] - a.slaves[name][key]) / ((b.time_ms - a.time_ms) / 1000);
}

function total(key) { return status.slaves.reduce((n, s) => n + rate(s.name, key), 0); }

function now() { return points.length ? points[points.length - 1].time_ms : Date.now(); }

function showHead() {
  const st = status;
  document.title = `${st.name}: ${st.carrier ? "carrier" : "no carrier"} · bondstack`;
  $("name").textContent = st.name;
  const addresses = (st.addresses || []).map(a => a.prefix + (a.state === "assigned" ? "" : ` (${a.state})`));
  $("identity").textContent = [st.mode, ...addresses, st.mac_address, "MTU " + st.mtu].join(" · ");
  $("warnings").replaceChildren(...[...st.warnings, ...(st.absent || []).map(n => `slave ${n} has not appeared yet`)].map(w => el("li", {}, w)));
}

// showBonds links to the bonds, where there are several. A bond that has gone makes
// way for the first.
function showBonds(names) {
  $("bonds").hidden = names.length < 2;
  $("bonds").replaceChildren(...names.map(n => el("a", {href: "?bond=" + encodeURIComponent(n), "aria-current": n === (bond || names[0]) ? "page" : null}, n)));
  if (bond && !names.includes(bond)) location.search = "";
}

function tile(label, value, note, kind) {
  return el("div", {class: "tile " + (kind || "")}, el("span", {class: "label"}, label), el("strong", {}, value), el("span", {class: "note"}, note));
}

function showTiles() {
  const st = status, up = st.slaves.filter(s => s.mii_status === "up").length;
  const last = st.failovers[st.failovers.length - 1], failovers = last ? last.seq : 0;
  const lost = st.counters.tx_dropped + st.counters.rx_dropped;
  $("tiles").replaceChildren(
    tile("Sending", bits(total("tx_bytes")), `${count(total("tx_packets"))} packets/s`),
    tile("Receiving", bits(total("rx_bytes")), `${count(total("rx_packets"))} packets/s`),
    tile("Carrier", st.carrier ? "on" : "off", st.carrier ? speed(st.speed_mbps) : "nothing can be sent", st.carrier ? "good" : "bad"),
    st.active_slave ? tile("Active slave", st.active_slave, `${up} of ${st.slaves.length} links up`, up < st.slaves.length ? "warn" : "good")
      : tile("Links up", `${up} of ${st.slaves.length}`, st.mode, up === 0 ? "bad" : up < st.slaves.length ? "warn" : "good"),
    tile("Failovers", count(failovers), last ? `${last.cause}, ${ago(now() - Date.parse(last.time))}` : "none so far"),
    tile("Packets lost", count(lost), lost ? "see drops" : "none so far", lost ? "warn" : ""));
}

function showChart() {
  const names = chartNames();
  $("legend").replaceChildren(...names.map(n => el("span", {}, dot(n), n)));
  drawChart($("chart"), series(points, names), names, status.failovers, now());
}

// meter shows a share of the traffic.
function meter(name, part, whole) {
  const share = whole > 0 ? part / whole : 0;
  const bar = el("i", {class: "s" + colour(name)});
  bar.style.width = (share * 100).toFixed(1) + "%";
  return el("span", {class: "meter", title: (share * 100).toFixed(1) + " % of the bond's"}, bar);
}

function role(s) {
  const words = [s.state];
  if (s.draining) words.push("draining");
  else if (s.stands_back) words.push("held back");
  if (!s.enabled) words.push("disabled");
  if (s.silenced) words.push("silenced");
  return el("span", {class: "pills"}, words.map((w, i) => pill(w, i ? "warn" : w === "active" ? "info" : "")));
}

function showSlaves() {
  const num = name => ({name, num: true});
  const columns = [{name: "Slave"}, {name: "Role"}, {name: "Link"}, num("Speed"), num("Failures"), num("Sending"), num("Receiving"), num("Sent"), num("Received"), num("Lost")];
  const tx = total("tx_bytes"), rx = total("rx_bytes");
  $("slaves").replaceChildren(table(columns, status.slaves.map(s => [
    el("b", {}, dot(s.name), s.name), role(s), pill(s.mii_status, linkKind(s.mii_status)), speed(s.speed_mbps), count(s.link_failure_count),
    el("span", {class: "rate"}, bits(rate(s.name, "tx_bytes")), meter(s.name, rate(s.name, "tx_bytes"), tx)),
    el("span", {class: "rate"}, bits(rate(s.name, "rx_bytes")), meter(s.name, rate(s.name, "rx_bytes"), rx)),
    bytes(s.counters.tx_bytes), bytes(s.counters.rx_bytes), count(s.counters.tx_dropped + s.counters.rx_dropped),
  ])));
}

const flagLetters = [["activity", "A"], ["timeout", "T"], ["aggregation", "G"], ["synchronization", "S"], ["collecting", "C"], ["distributing", "D"], ["defaulted", "F"], ["expired", "E"]];

// flags shows the bits of a port state as lit letters, those of trouble in their
// colour.
function flags(end) {
  return el("span", {class: "flags", "aria-label": end.port_state_flags.join(", ") || "none"}, flagLetters.map(([name, letter]) =>
    el("abbr", {title: name, class: !end.port_state_flags.includes(name) ? "" : name === "defaulted" || name === "expired" ? "bad" : "on"}, letter)));
}

function showLACP() {
  const st = status;
  $("lacp-card").hidden = !st.lacp;
  if (!st.lacp) return;
  const a = st.lacp.active_aggregator;
  $("aggregator").textContent = a ? `aggregator ${a.aggregator_id}: ${a.number_of_ports} port${a.number_of_ports === 1 ? "" : "s"}, partner ${a.partner_mac_address}, keys ${a.actor_key} and ${a.partner_key}` : "no active aggregator";
  const columns = ["Port", "Aggregator", "Actor", "Partner", "Machines", "Churn", "LACPDUs", "What it does"].map(name => ({name}));
  $("lacp").replaceChildren(table(columns, st.slaves.filter(s => s.lacp && s.lacp.actor.port_state_flags).map(s => {
    const p = s.lacp, churned = [p.actor_churn_state, p.partner_churn_state].includes("churned");
    return [el("b", {}, dot(s.name), s.name), String(p.aggregator_id || "none"), flags(p.actor),
      el("span", {class: "stack"}, flags(p.partner), el("small", {}, `${p.partner.system_mac_address} port ${p.partner.port_number}`)),
      el("span", {class: "stack"}, pill((p.mux_machine || "–").toLowerCase().replaceAll("_", " "), /DISTRIBUTING/.test(p.mux_machine) ? "good" : "warn"),
        el("small", {}, `receive ${p.receive_machine.toLowerCase().replaceAll("_", " ")}, ${p.selection.toLowerCase()}`)),
      pill(churned ? "churned" : "no", churned ? "bad" : ""), `${count(p.counters.lacpdu_tx)} out, ${count(p.counters.lacpdu_rx)} in`,
      el("span", {class: "explanation"}, p.explanation)];
  })));
}

const mild = new Set(["by hand", "primary returned", "link returned", "drain", "selection", "released", "disabled"]);

function showFailovers() {
  const list = [...status.failovers].reverse();
  $("failovers").replaceChildren(...(list.length ? list : [null]).map(f => f === null ? el("li", {class: "none"}, "none so far") :
    el("li", {class: mild.has(f.cause) ? "mild" : "hard"},
      el("div", {class: "what"}, el("b", {}, f.from || "none", " → ", f.to || "none"), pill(f.cause, mild.has(f.cause) ? "" : "warn"), el("time", {datetime: f.time, title: f.time}, `${clock(f.time)}, ${ago(now() - Date.parse(f.time))}`)),
      el("div", {class: "numbers"}, `found in ${micros(f.detection_us)} · `,
        f.to === "" ? "no slave left" : f.outage_us === null ? "nothing sent yet" : `outage ${micros(f.outage_us)}`, ` · ${count(f.frames_lost)} lost`))));
}

// harmless are drops of what was not for the bond, or not by this slave.
const harmless = new Set(["rx_inactive", "rx_own", "rx_other_host", "rx_copy"]);

function showDrops() {
  const st = status, reasons = Object.keys(st.counters.drops).sort().filter(r => st.counters.drops[r] > 0);
  if (!reasons.length) {
    $("drops").replaceChildren(el("p", {class: "none"}, "nothing was dropped"));
    return;
  }
  const columns = [{name: "Reason"}, ...st.slaves.map(s => ({name: s.name, num: true})), {name: "Bond", num: true}];
  $("drops").replaceChildren(table(columns, reasons.map(r => [
    el("span", {class: harmless.has(r) ? "harmless" : "lost", title: harmless.has(r) ? "not for the bond, or not by this slave" : "lost"}, r),
    ...st.slaves.map(s => count(s.counters.drops[r] || 0)), count(st.counters.drops[r])])));
}

function showFacts() {
  const st = status, facts = [["Up", st.up ? "yes" : "no: no stack or device has it"], ["MAC address", st.mac_address], ["Duplex", st.duplex],
    ["Sent", `${bytes(st.counters.tx_bytes)}, ${count(st.counters.tx_packets)} packets`],
    ["Received", `${bytes(st.counters.rx_bytes)}, ${count(st.counters.rx_packets)} packets`]];
  for (const s of st.slaves) {
    facts.push([`Monitors of ${s.name}`, Object.entries(s.monitors).map(([m, w]) => `${m} ${w.replaceAll("_", " ")}`).join(", ") || "none"]);
    if (s.probe) facts.push([`Probes of ${s.name}`, `${s.probe.verdict}, ${s.probe.peers.length} peers`]);
  }
  const r = st.reorder, b = st.balance;
  if (r) facts.push(["Order of streams", `${r.on ? "on" : "off"}; ${count(r.held)} held, ${count(r.late)} late, ${count(r.overflow)} overflowed`]);
  if (b) facts.push(["Balance", b.dynamic ? `by load, ${count(b.rebalances)} rebalances` : "by hash"]);
  if (b && b.clients) facts.push(["Clients", `${count(b.clients.count)} of at most ${count(b.clients.max)}`]);
  if (st.device) facts.push(["Device", st.device.name + (st.device.netns ? ` in ${st.device.netns}` : "")]);
  if (st.version) facts.push(["bondstack", `${st.version}, process ${st.pid}`]);
  $("facts").replaceChildren(...facts.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
}

function showOptions() {
  const wanted = $("filter").value.trim().toLowerCase();
  const list = Object.entries(status.options).sort().filter(([k, v]) => `${k} ${v}`.toLowerCase().includes(wanted));
  $("options").replaceChildren(...list.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {class: v === "" ? "none" : null}, v || "not set")]));
}

function show() {
  [showHead, showTiles, showChart, showSlaves, showLACP, showFailovers, showDrops, showFacts, showOptions].forEach(f => f());
}

function live(word, kind) {
  $("live").textContent = word;
  $("live").className = kind;
  document.documentElement.dataset.live = kind;
}

async function get(path) {
  const answer = await fetch(path, {cache: "no-store"});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function poll() {
  try {
    const since = points.length ? points[points.length - 1].time_ms : 0;
    showBonds(await get("api/bonds"));
    const which = bond ? "bond=" + encodeURIComponent(bond) : "";
    const [st, more] = await Promise.all([get("api/status?" + which), get(`api/history?since=${since}&${which}`)]);
    if (status && status.name !== st.name) points = []; // the first is another one now
    status = st;
    points = [...points, ...more].filter(p => p.time_ms > (more.length ? more[more.length - 1].time_ms : since) - windowMs - 1500);
    show();
    live("live", "good");
  } catch (e) {
    live("no answer; asking again", "bad");
  }
  setTimeout(poll, pollMs);
}

$("filter").addEventListener("input", () => status && showOptions());
addEventListener("resize", () => status && showChart());
poll();
