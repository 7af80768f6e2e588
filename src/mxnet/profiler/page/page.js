"use strict";
(() => {
  const profiles = JSON.parse(document.getElementById("data").textContent);
  const first = profiles[0], second = profiles[1];
  const COLORS = ["#3b78b5", "#d98032", "#5a9e4b", "#b8475a", "#8a67b0", "#8b9098", "#4aa3a2", "#b59d3b"];
  const ms = (value) => value === undefined ? "" : value.toLocaleString("en", {minimumFractionDigits: 3, maximumFractionDigits: 3});

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const repaint = [];  // what draws on a canvas does so again in the other theme

  function make(tag, text, parent, attributes) {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    if (parent) parent.appendChild(element);
    return element;
  }

  function section(id, title) {
    const found = document.getElementById(id);
    make("h2", title, found);
    return found;
  }

  // A table that sorts by the column whose head is clicked, and shows the rows whose name holds what is searched for.
  function table(parent, columns, rows) {
    const search = make("input", null, parent, {type: "search", placeholder: "search", "aria-label": "search"});
    const box = make("div", null, parent, {class: "table"});
    const whole = make("table", null, box), head = make("tr", null, make("thead", null, whole)), body = make("tbody", null, whole);
    let by = 1, up = false;
    const show = () => {
      const wanted = search.value.toLowerCase();
      const found = rows.filter((row) => row[0].toLowerCase().includes(wanted));
      found.sort((a, b) => {
        const x = a[by] === undefined ? -Infinity : a[by], y = b[by] === undefined ? -Infinity : b[by];
        return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
      });
      body.replaceChildren();
      for (const row of found.slice(0, 500)) {
        const line = make("tr", null, body);
        row.forEach((value, i) => make("td", i === 0 || columns[i] === "count" ? value : columns[i] === "%" ? value.toFixed(1) : ms(value), line));
      }
      if (found.length > 500) make("td", `${found.length - 500} more`, make("tr", null, body));
      [...head.children].forEach((cell, i) => { cell.className = i === by ? (up ? "sorted up" : "sorted") : ""; });
    };
    columns.forEach((name, i) => make("th", name, head).addEventListener("click", () => {
      up = i === by ? !up : i === 0;
      by = i;
      show();
    }));
    search.addEventListener("input", show);
    show();
  }

  function times(id, title, key) {
    const parent = section(id, title);
    const all = first[key].reduce((sum, r) => sum + r.own, 0) || 1;
    const rows = first[key].map((r) => [r.name, r.own, 100 * r.own / all, r.total, r.longest, r.calls]);
    if (!second) return table(parent, ["name", "own ms", "%", "total ms", "longest ms", "count"], rows);
    const others = new Map(second[key].map((r) => [r.name, r])), mine = new Map(first[key].map((r) => [r.name, r]));
    const names = [...new Set([...mine.keys(), ...others.keys()])];
    table(parent, ["name", `own ms, ${first.name}`, `own ms, ${second.name}`, "difference ms"], names.map((name) => {
      const a = mine.get(name), b = others.get(name);
      return [name, a && a.own, b && b.own, (b ? b.own : 0) - (a ? a.own : 0)];
    }));
  }

  function shares(parent, title, wall, parts, kind) {
    make("p", title, parent);
    const bar = make("div", null, parent, {class: "bar"}), key = make("div", null, parent, {class: `key ${kind}`});
    Object.entries(parts).forEach(([name, value], i) => {
      if (!value) return;
      const part = 100 * value / (wall || 1);
      make("div", null, bar, {title: `${name}: ${ms(value)} ms`}).style.cssText = `width:${part}%;background:${COLORS[i % COLORS.length]}`;
      const label = make("span", null, key);
      make("i", null, label).style.background = COLORS[i % COLORS.length];
      label.append(`${name}: ${ms(value)} ms (${part.toFixed(1)} %)`);
    });
  }

  const PHASES = Object.keys(first.phases);
  const phaseColor = (name) => COLORS[PHASES.indexOf(name) % COLORS.length];

  // The time of each training step as a bar of its phases; of many steps, the mean of neighbours.
  function steps(parent, profile) {
    const all = profile.steps;
    if (!all.length) return make("p", `${profile.name}: no optimizer has updated parameters.`, parent, {class: "count"});
    const sorted = all.map((s) => s.duration).sort((a, b) => a - b);
    const at = (part) => ms(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]);
    make("p", `${profile.name}: ${all.length} steps, median ${at(0.5)} ms, 95 % within ${at(0.95)} ms, longest ${at(1)} ms`, parent, {class: "count"});
    const several = Math.ceil(all.length / 250), bars = [];
    for (let i = 0; i < all.length; i += several) {
      const group = all.slice(i, i + several), mean = (key) => group.reduce((sum, s) => sum + s[key], 0) / group.length;
      bars.push({label: several > 1 ? `steps ${i + 1} to ${i + group.length}, mean` : `step ${i + 1}`, duration: mean("duration"),
        parts: Object.fromEntries(PHASES.map((name) => [name, mean(name)]))});
    }
    const most = Math.max(...bars.map((b) => b.duration)) || 1, box = make("div", null, parent, {class: "steps"});
    for (const bar of bars) {
      const text = PHASES.filter((name) => bar.parts[name]).map((name) => `${name} ${ms(bar.parts[name])} ms`).join("\n");
      const column = make("div", null, box, {class: "step", title: `${bar.label}: ${ms(bar.duration)} ms\n${text}`});
      column.style.height = `${100 * bar.duration / most}%`;
      for (const name of PHASES) {
        if (bar.parts[name]) make("div", null, column).style.cssText = `flex:${bar.parts[name]} 0 0;background:${phaseColor(name)}`;
      }
    }
  }

  // What calls what, with the width for the time; a click on a call shows it alone, one on the topmost bar everything.
  function flame(parent, profile) {
    make("p", profile.name, parent);
    const box = make("div", null, parent, {class: "flame"}), tip = make("div", "", parent, {class: "tip"}), ROW = 18;
    const whole = profile.tree[1] || 1;
    function show(top, above) {
      box.replaceChildren();
      let deepest = 0;
      const place = (node, path, left, width, fade) => {
        if (width < 0.0007) return;
        deepest = Math.max(deepest, path.length);
        const [name, time, calls, children] = node, part = `${(100 * time / whole).toFixed(1)} %`;
        const element = make("div", `${name} ${part}`, box);
        let hash = 0;
        for (const c of name) hash = (hash * 31 + c.charCodeAt(0)) % 360;
        element.style.cssText = `left:${100 * left}%;width:${100 * width}%;top:${path.length * ROW}px;background:hsl(${hash} 45% var(--shade))`;
        element.style.opacity = fade ? 0.6 : 1;
        element.addEventListener("click", () => (node === top && path.length ? show(path[path.length - 1], path.slice(0, -1)) : show(node, path)));
        element.addEventListener("mousemove", () => { tip.textContent = `${name}: ${ms(time)} ms in ${calls} calls, ${part}`; });
        if (fade) return;
        for (const child of children) {
          const part = width * child[1] / (time || 1);
          place(child, [...path, node], left, part);
          left += part;
        }
      };
      above.forEach((node, depth) => place(node, above.slice(0, depth), 0, 1, true));
      place(top, above, 0, 1);
      box.style.height = `${(deepest + 1) * ROW}px`;
    }
    show(profile.tree, []);
  }

  // Threads as bands, what lies in what below one another. The wheel zooms, dragging moves, a double click shows all again.
  function timeline(parent, profile) {
    make("p", profile.name + (profile.left_out ? `: the ${profile.intervals.length} longest of ${profile.intervals.length + profile.left_out} events` : ""), parent);
    const search = make("input", null, parent, {type: "search", placeholder: "search the timeline", "aria-label": "search the timeline"});
    const count = make("span", "", parent, {class: "count"});
    const tip = make("div", "", null, {class: "tip"}), canvas = make("canvas", null, parent, {class: "line"});
    parent.appendChild(tip);
    const ROW = 15, depths = profile.threads.map(() => 0);
    for (const [, , , thread, depth] of profile.intervals) depths[thread] = Math.max(depths[thread], depth + 1);
    const tops = [];
    let height = 18;
    depths.forEach((depth, i) => { tops[i] = height; height += depth * ROW + 22; });
    const end = profile.intervals.reduce((most, i) => Math.max(most, i[1] + i[2]), 1);
    const view = {from: 0, to: end, matches: 0};
    const lanes = profile.threads.map(() => []);
    for (const interval of profile.intervals) lanes[interval[3]].push(interval);
    const color = new Map();
    repaint.push(() => { color.clear(); draw(); });
    const shade = (name) => {
      if (!color.has(name)) {
        let hash = 0;
        for (const c of name.replace("_backward_", "")) hash = (hash * 31 + c.charCodeAt(0)) % 360;
        color.set(name, `hsl(${hash} 45% ${parseInt(css("shade"), 10) - (name.startsWith("_backward_") ? 13 : 0)}%)`);
      }
      return color.get(name);
    };
    let wanted = "";
    const fits = (i) => wanted && profile.names[i[0]].some((text) => text.toLowerCase().includes(wanted));
    function draw() {
      const scale = window.devicePixelRatio || 1, width = canvas.clientWidth || 1000;
      canvas.width = width * scale;
      canvas.height = height * scale;
      canvas.style.height = `${height}px`;
      const g = canvas.getContext("2d"), perPixel = (view.to - view.from) / width;
      g.scale(scale, scale);
      g.clearRect(0, 0, width, height);
      g.font = "11px system-ui, sans-serif";
      g.fillStyle = css("quiet");
      for (let k = 0; k <= 6; k++) g.fillText(`${((view.from + (view.to - view.from) * k / 6) / 1000).toFixed(3)} ms`, width * k / 6 * 0.93 + 2, 12);
      view.drawn = 0;
      lanes.forEach((lane, thread) => {
        g.fillStyle = css("quiet");
        g.fillText(profile.threads[thread], 2, tops[thread] + 12);
        const last = [];
        for (const i of lane) {
          if (i[1] > view.to) break;
          if (i[1] + i[2] < view.from) continue;
          const x = Math.max((i[1] - view.from) / perPixel, -1), right = Math.min((i[1] + i[2] - view.from) / perPixel, width + 1);
          const hit = fits(i);
          if (right - (last[i[4]] ?? -9) < 0.5 && !hit) continue;  // nothing of it would be seen
          last[i[4]] = right;
          const y = tops[thread] + 16 + i[4] * ROW, wide = Math.max(right - x, 0.7), name = profile.names[i[0]][0];
          g.fillStyle = wanted ? (hit ? "#d23b3b" : css("faint")) : shade(name);
          g.fillRect(x, y, wide, ROW - 1);
          view.drawn++;
          if (wide > 30) {
            g.fillStyle = hit ? "#fff" : css("text");
            g.fillText(name.slice(0, Math.floor(wide / 6.2)), x + 2, y + 11);
          }
        }
      });
    }
    function at(event) {
      const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      const time = view.from + (view.to - view.from) * x / box.width;
      for (let thread = 0; thread < lanes.length; thread++) {
        const depth = Math.floor((y - tops[thread] - 16) / ROW);
        if (depth < 0 || depth >= depths[thread]) continue;
        return lanes[thread].find((i) => i[4] === depth && i[1] <= time && time <= i[1] + i[2]);
      }
    }
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect(), part = (event.clientX - box.left) / box.width;
      const middle = view.from + (view.to - view.from) * part, factor = event.deltaY < 0 ? 0.8 : 1.25;
      const span = Math.min(Math.max((view.to - view.from) * factor, 0.05), end);
      view.from = Math.max(0, Math.min(middle - span * part, end - span));
      view.to = view.from + span;
      draw();
    }, {passive: false});
    let held = null;
    canvas.addEventListener("mousedown", (event) => { held = {x: event.clientX, from: view.from, to: view.to}; });
    window.addEventListener("mouseup", () => { held = null; });
    canvas.addEventListener("mousemove", (event) => {
      if (held) {
        const span = held.to - held.from, moved = (event.clientX - held.x) / canvas.clientWidth * span;
        view.from = Math.max(0, Math.min(held.from - moved, end - span));
        view.to = view.from + span;
        draw();
        return;
      }
      const found = at(event);
      if (!found) return;
      const [name, category, node] = profile.names[found[0]];
      tip.textContent = `${name} (${category}): ${ms(found[2] / 1000)} ms from ${ms(found[1] / 1000)} ms on` + (node ? `\n${node}` : "");
    });
    canvas.addEventListener("dblclick", () => { view.from = 0; view.to = end; draw(); });
    search.addEventListener("input", () => {
      wanted = search.value.toLowerCase();
      const found = profile.intervals.filter(fits);
      view.matches = found.length;
      count.textContent = wanted ? `${found.length} events, ${ms(found.reduce((sum, i) => sum + i[2], 0) / 1000)} ms` : "";
      draw();
    });
    window.addEventListener("resize", draw);
    draw();
    return view;
  }

  function memory(parent, profile) {
    for (const [name, [at, used]] of Object.entries(profile.memory)) {
      if (used.length < 2) {  // what it was used for is told once, when the profile ended
        make("p", `${profile.name}, ${name}: ${(used[0] / 1000).toFixed(1)} MB`, parent);
        continue;
      }
      const peak = used.reduce((most, value, i) => value > used[most] ? i : most, 0);
      make("p", `${profile.name}, ${name}: at most ${(used[peak] / 1000).toFixed(1)} MB, at ${ms(at[peak] / 1000)} ms`, parent);
      const marked = used.map((value, i) => i === peak ? value / 1000 : null);
      const chart = new uPlot({width: Math.min(parent.clientWidth || 1000, 1200), height: 220, scales: {x: {time: false}},
        axes: [{label: "ms", stroke: () => css("quiet"), grid: {stroke: () => css("line")}}, {label: "MB", size: 70, stroke: () => css("quiet"), grid: {stroke: () => css("line")}}],
        series: [{label: "ms"}, {label: "MB", stroke: COLORS[0], fill: "#3b78b522", paths: uPlot.paths.stepped({align: 1}), points: {show: false}},
          {label: "peak", stroke: COLORS[3], points: {size: 9, fill: COLORS[3]}}]},
        [at.map((t) => t / 1000), used.map((value) => value / 1000), marked], make("div", null, parent));
      repaint.push(() => chart.redraw());
    }
  }

  const theme = (name) => { document.documentElement.dataset.theme = name; repaint.forEach((again) => again()); };
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  theme(preferred.matches ? "dark" : "light");
  preferred.addEventListener("change", () => theme(preferred.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  document.getElementById("title").textContent = profiles.map((p) => p.name).join(" and ");
  const advice = section("advice", "What to try");
  for (const profile of profiles) {
    if (second) make("p", profile.name, advice);
    const list = make("ol", null, advice);
    for (const item of profile.advice) {
      const line = make("li", `${item.text} `, list);
      make("span", item.number, line, {class: "number"});
    }
    if (!profile.advice.length) make("p", "Nothing stands out.", advice);
  }
  const where = section("where", "Where the time of the main thread went");
  for (const profile of profiles) {
    shares(where, `${profile.name}: ${ms(profile.wall)} ms`, profile.wall, profile.shares, "kinds");
    shares(where, "The same time by phase of training", profile.wall, profile.phases, "phases");
  }
  const step = section("steps", "Time of each training step");
  profiles.forEach((profile) => steps(step, profile));
  const line = section("timeline", "Timeline");
  make("p", "The wheel zooms, dragging moves, a double click shows all.", line);
  window.profileViews = profiles.map((profile) => timeline(line, profile));
  const calls = section("flame", "Flame graph of the main thread");
  make("p", "Equal calls are taken together. A click on a bar enlarges it, a click on the enlarged one goes back.", calls);
  profiles.forEach((profile) => flame(calls, profile));
  times("operators", "Time by operator", "operators");
  times("layers", "Time by layer", "layers");
  const used = section("memory", "Memory of arrays");
  profiles.forEach((profile) => memory(used, profile));
  times("others", "Other calls", "others");
})();
