// Each frame is an <svg class="f"> whose x and width are shares of the whole in per cent: to zoom is to set other
// shares, and a window of another size needs nothing.
"use strict";
for (const section of document.querySelectorAll(".flame")) {
  const svg = section.querySelector("svg"), tip = section.querySelector(".tip");
  const input = section.querySelector("input"), found = section.querySelector("output");
  const back = section.querySelector("button"), row = +svg.dataset.row;
  const frames = [...svg.querySelectorAll(".f")].map(g => ({
    g,
    x: parseFloat(g.getAttribute("x")),
    w: parseFloat(g.getAttribute("width")),
    level: +g.dataset.l,
    title: g.querySelector("title").textContent,
    name: g.dataset.n,
  }));
  if (!frames.length) continue;
  const root = frames[0], eps = 1e-4, byElement = new Map(frames.map(f => [f.g, f]));
  const inside = (a, b) => a.x >= b.x - eps && a.x + a.w <= b.x + b.w + eps;
  let zoomed = root, current = root;

  const narrow = f => f.g.classList.toggle("n", f.shown * svg.clientWidth / 100 < 26);
  const show = to => {
    zoomed = to;
    let deepest = 0;
    for (const f of frames) {
      const up = f.level < to.level && inside(to, f), below = f.level >= to.level && inside(f, to);
      f.g.classList.toggle("gone", !up && !below);
      f.g.classList.toggle("up", up);
      f.shown = up ? 100 : 100 * f.w / to.w;
      f.g.setAttribute("x", (up ? 0 : 100 * (f.x - to.x) / to.w) + "%");
      f.g.setAttribute("width", f.shown + "%");
      narrow(f);
      if (up || below) deepest = Math.max(deepest, f.level);
    }
    svg.setAttribute("height", (deepest + 1) * row);
    back.disabled = to === root;
  };
  const toggle = f => show(f === zoomed ? root : f);
  const say = f => {
    const below = zoomed !== root && f.level > zoomed.level;
    tip.textContent = f.title + (below ? ", " + (100 * f.w / zoomed.w).toFixed(1) + " % of " + zoomed.name : "");
  };
  const focus = f => {
    if (!f) return;
    current.g.setAttribute("tabindex", -1);
    current = f;
    f.g.setAttribute("tabindex", 0);
    f.g.focus({preventScroll: false});
  };
  // Where an arrow leads: to the caller above, to the widest function below, to the nearest on either side.
  const visible = level => frames.filter(f => f.level === level && !f.g.classList.contains("gone"));
  const next = {
    ArrowUp: f => visible(f.level - 1).find(c => inside(f, c)),
    ArrowDown: f => visible(f.level + 1).filter(c => inside(c, f)).sort((a, b) => b.w - a.w)[0],
    ArrowLeft: f => visible(f.level).filter(c => c.x < f.x - eps).sort((a, b) => b.x - a.x)[0],
    ArrowRight: f => visible(f.level).filter(c => c.x > f.x + eps).sort((a, b) => a.x - b.x)[0],
  };
  const on = (type, act) => svg.addEventListener(type, e => {
    const f = byElement.get(e.target.closest(".f"));
    if (f) act(f);
  });
  on("mouseover", say);
  on("focusin", say);
  on("click", f => { toggle(f); focus(f); say(f); });
  svg.addEventListener("keydown", e => {
    if (next[e.key]) focus(next[e.key](current));
    else if (e.key === "Enter" || e.key === " ") { toggle(current); say(current); }
    else if (e.key === "Escape" || e.key === "Backspace") show(root);
    else return;
    e.preventDefault();
  });
  // The share of what is found: a function that calls itself counts once.
  const search = () => {
    const want = input.value.trim().toLowerCase(), outer = [];
    let share = 0, count = 0;
    for (const f of frames) {
      const hit = want !== "" && f.name.toLowerCase().includes(want);
      f.g.classList.toggle("hit", hit);
      if (!hit) continue;
      count++;
      if (!outer.some(o => o.level < f.level && inside(f, o))) { outer.push(f); share += f.w; }
    }
    if (want === "") found.textContent = "";
    else if (count === 0) found.textContent = "nothing has that name";
    else found.textContent = `${share.toFixed(2)} % is in or below ${count} frame${count === 1 ? "" : "s"}`;
  };
  input.addEventListener("input", search);
  input.addEventListener("keydown", e => { if (e.key === "Escape") { input.value = ""; search(); } });
  back.addEventListener("click", () => { show(root); focus(root); });
  addEventListener("resize", () => frames.forEach(narrow));
  show(root);
  section.querySelector(".bar").hidden = false;
}
addEventListener("keydown", e => {
  if (e.key !== "/" || e.target.tagName === "INPUT") return;
  const near = [...document.querySelectorAll(".flame")].find(s => s.getBoundingClientRect().bottom > 0);
  if (near) { near.querySelector("input").focus(); e.preventDefault(); }
});
