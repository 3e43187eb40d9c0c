"use strict";
const $ = id => document.getElementById(id);
const number = n => n >= 1e6 ? (n / 1e6).toFixed(1) + " M" : n.toLocaleString("en");
const bytes = n => {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) { n /= 1000; i++; }
  return (i ? n.toFixed(1) : n) + " " + units[i];
};
const span = s => s < 120 ? Math.round(s) + " s" : s < 7200 ? Math.round(s / 60) + " min" :
  s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " d";

// All text comes from servers, so it is never set as HTML.
const make = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
const fill = (parent, children) => parent.replaceChildren(...children);
const row = cells => {
  const tr = make("tr");
  tr.append(...cells);
  return tr;
};

const tile = (name, value, note) => {
  const div = make("div"), dd = make("dd", value);
  if (note) dd.append(" ", make("small", note));
  div.append(make("dt", name), dd);
  return div;
};

function drawChart(rates) {
  const top = Math.max(1, ...rates.map(r => r[0] + r[1])), n = rates.length || 1;
  const svg = "http://www.w3.org/2000/svg", bars = [];
  rates.forEach(([fresh, same], i) => {
    let base = 120;
    for (const [value, cls] of [[fresh, "bar-new"], [same, "bar-same"]]) {
      const height = 116 * value / top, bar = document.createElementNS(svg, "rect");
      base -= height;
      for (const [k, v] of Object.entries({
        x: 600 * i / n, y: base, width: 600 / n * .85, height, class: cls,
      })) bar.setAttribute(k, v);
      bars.push(bar);
    }
  });
  fill($("chart"), bars);
  $("chart-range").textContent = `pages per second, last ${span(n)}, peak ${top.toFixed(1)};`;
}

let hosts = [], order = { key: "queued", up: false };
function drawHosts() {
  const sign = order.up ? 1 : -1, key = order.key;
  hosts.sort((a, b) => sign * (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0));
  fill($("hosts").tBodies[0], hosts.map(h => row([
    make("td", h.host), make("td", number(h.queued), "n"), make("td", number(h.pages), "n"),
    make("td", h.load.toFixed(1), "n"), make("td", h.failures || "", "n"), why(h)])));
}

// why says what a host waits for, with a button to pause it or to resume it.
function why(h) {
  const td = make("td", h.paused ? "paused by the operator " : h.why + " ");
  const button = make("button", h.paused ? "resume" : "pause", "act");
  button.addEventListener("click", async () => {
    button.disabled = true;
    await fetch(`api/${h.paused ? "resume" : "pause"}?host=${encodeURIComponent(h.host)}`, { method: "POST" });
  });
  td.append(button);
  return td;
}
for (const button of $("hosts").tHead.querySelectorAll("button")) {
  button.addEventListener("click", () => {
    const key = button.dataset.key;
    order = { key, up: order.key === key ? !order.up : key === "host" };
    for (const th of $("hosts").tHead.querySelectorAll("th")) th.removeAttribute("aria-sort");
    button.closest("th").setAttribute("aria-sort", order.up ? "ascending" : "descending");
    drawHosts();
  });
}

const time = text => new Date(text).toLocaleTimeString();

function draw(s) {
  fill($("tiles"), [
    tile("pages per second", s.rate.toFixed(1), "in the last 10 s"),
    tile("new or changed", number(s.pages)), tile("unchanged", number(s.unchanged)),
    tile("bodies", bytes(s.bytes)),
    tile("first byte", s.latency < 1 ? (1000 * s.latency).toFixed(1) + " ms" : s.latency.toFixed(2) + " s",
      "recent mean"),
    tile("hosts", number(s.hosts)), tile("addresses", number(s.addresses)),
    tile("archive", bytes(s.archive.Bytes), number(s.archive.Captures) + " captures"),
    ...s.limits.map(l => tile(l.name, l.text)),
    tile("memory", bytes(s.memory), number(s.goroutines) + " goroutines"),
  ]);
  drawChart(s.rates);
  fill($("flow"), s.flow.map(f => {
    const li = make("li");
    li.append(make("b", number(f.count)), make("span", f.name));
    return li;
  }));
  fill($("fates").tBodies[0], s.fates.map(f =>
    row([make("td", number(f.count), "n"), make("td", f.says)])));
  hosts = s.hostTable;
  drawHosts();
  $("hosts-note").textContent = hosts.length === 0 ? "No host has pages in the queue." :
    s.hosts > hosts.length ?
      `The ${number(hosts.length)} hosts with the most pages in the queue, of ${number(s.hosts)}.` : "";
  $("rank-section").hidden = !s.top;
  fill($("rank").tBodies[0], (s.top || []).map(p =>
    row([make("td", p.score.toExponential(2), "n"), make("td", p.url)])));
  fill($("errors").tBodies[0], s.failures.map(f => row([
    make("td", time(f.time), "when"), make("td", f.says),
    make("td", f.more ? `${f.host} (${number(f.more + 1)} times), last ${f.url}` : f.url),
    make("td", f.why || "")])));
}

async function refresh() {
  const state = $("state");
  try {
    const answer = await fetch("api/status");
    if (!answer.ok) throw new Error(answer.status);
    const s = await answer.json();
    draw(s);
    $("browse").hidden = !s.browse;
    if (s.browse) $("browse").href = s.browse;
    state.className = s.trouble ? "lost" : "";
    state.textContent = s.trouble ? "waiting: " + s.trouble : s.state;
  } catch (err) {
    state.className = "lost";
    state.textContent = "the crawler does not answer; it may have ended";
  }
  setTimeout(refresh, document.hidden ? 10000 : 1000);
}

// ask shows the answer to what is in the box.
async function ask(what, method) {
  const q = $("q").value.trim();
  if (!q) return;
  try {
    const answer = await fetch(`api/${what}?q=${encodeURIComponent(q)}`, { method });
    const lines = answer.ok ? await answer.json() : [{ name: "error", text: await answer.text() }];
    fill($("answer"), lines.flatMap(l => [make("dt", l.name), make("dd", l.text)]));
  } catch (err) {
    fill($("answer"), [make("dt", "error"), make("dd", "the crawler does not answer")]);
  }
}
$("explain").addEventListener("submit", event => {
  event.preventDefault();
  ask("explain", "GET");
});
$("visit").addEventListener("click", () => ask("visit", "POST"));
refresh();
