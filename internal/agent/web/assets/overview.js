"use strict";
// The heat map: how many calls took how long, by time; below it the rates.
const heat = document.getElementById("heat"), map = document.getElementById("map");
const at = (id) => document.getElementById(id);
let shown = null, cursor = -1, first = 0, last = 0;

const narrow = () => innerWidth < 640;

async function load() {
	at("heat-wait").hidden = !!shown;
	try {
		shown = await sp.get(`${heat.dataset.api}&columns=${narrow() ? 90 : 180}`);
		at("heat-error").hidden = true;
		heat.hidden = false;
		draw();
	} catch (error) {
		at("heat-error").textContent = `The times cannot be shown: ${error.message}`;
		at("heat-error").hidden = false;
	}
	at("heat-wait").hidden = true;
}

// rows are those with calls, and that of the slow threshold: at least six.
function chooseRows() {
	first = shown.up_to_ns.length;
	last = -1;
	for (const column of shown.columns) {
		column.counts.forEach((n, row) => {
			if (n > 0) {
				first = Math.min(first, row);
				last = Math.max(last, row);
			}
		});
	}
	if (last < 0) [first, last] = [4, 9];
	const threshold = shown.up_to_ns.findIndex((ns) => ns >= shown.slow_threshold_ns);
	if (threshold >= 0) last = Math.max(last, threshold);
	last = Math.min(Math.max(last, first + 5), shown.up_to_ns.length - 1);
	first = Math.max(0, Math.min(first, last - 5));
}

const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// canvas prepares one for drawing, in CSS pixels.
function canvas(id) {
	const c = at(id), box = c.getBoundingClientRect(), scale = devicePixelRatio || 1;
	c.width = Math.round(box.width * scale);
	c.height = Math.round(box.height * scale);
	const g = c.getContext("2d");
	g.scale(scale, scale);
	return { g, width: box.width, height: box.height };
}

function draw() {
	chooseRows();
	const rows = last - first + 1, n = shown.columns.length;
	at("upto").replaceChildren();
	for (let row = last; row >= first; row--) {
		at("upto").append(sp.element("span", {}, row === shown.up_to_ns.length - 1 ? "longer"
			: sp.brief(shown.up_to_ns[row])));
	}
	map.style.height = `${rows}rem`;
	drawCells(rows, n);
	drawLane("calls", (c) => c.calls / shown.step_seconds, colour("--blue"), sp.rate);
	drawLane("slow", (c) => c.slow, colour("--red"), sp.thousands);
	drawLane("failed", (c) => c.failed, colour("--purple"), sp.thousands);
	drawLimit(rows);
	drawMarks();
	drawTimes(n);
	map.setAttribute("aria-valuemax", n - 1);
	const whose = shown.whose === "users" ? "your calls" : "slowpath's own calls (yours are not seen)";
	at("time-title").textContent = `How long ${whose} took, over time`;
	at("heat-note").textContent = `Each column is ${step()}, each row the calls that took up to the time at its ` +
		"left; the stronger the colour, the more calls, and red are slow ones. The dashed line is the slow " +
		`threshold, ${sp.brief(shown.slow_threshold_ns)}. Hatched: nothing was watched.`;
	point(cursor >= 0 && cursor < n ? cursor : -1);
}

function step() {
	const s = shown.step_seconds;
	if (s < 60) return `${s} s`;
	return s < 3600 ? `${s / 60} min` : `${s / 3600} h`;
}

function drawCells(rows, n) {
	const { g, width, height } = canvas("cells"), w = width / n, h = height / rows;
	let most = 1;
	for (const c of shown.columns) most = Math.max(most, ...c.counts);
	const blue = `rgb(${colour("--heat")})`, red = colour("--red");
	shown.columns.forEach((c, i) => {
		if (c.seen_seconds === 0) {
			g.fillStyle = colour("--line");
			for (let y = i % 2 * 3; y < height; y += 6) g.fillRect(i * w, y, Math.max(w - .5, 1), 1);
		}
		c.counts.forEach((count, row) => {
			if (count === 0 || row < first || row > last) return;
			const isSlow = row > 0 && shown.up_to_ns[row - 1] >= shown.slow_threshold_ns;
			g.globalAlpha = .15 + .85 * Math.log1p(count) / Math.log1p(most);
			g.fillStyle = isSlow ? red : blue;
			g.fillRect(i * w, (last - row) * h, Math.max(w - .5, 1), h - 1);
		});
		g.globalAlpha = 1;
	});
}

function drawLane(id, value, fill, text) {
	const { g, width, height } = canvas(id), w = width / shown.columns.length;
	const most = Math.max(...shown.columns.map(value));
	g.fillStyle = fill;
	shown.columns.forEach((c, i) => {
		const v = value(c);
		if (v > 0) {
			const h = Math.max(height * v / most, 1.5);
			g.fillRect(i * w, height - h, Math.max(w - .5, 1), h);
		}
	});
	const name = { calls: "Calls/s", slow: "Slow", failed: "Failed" }[id];
	at(`${id}-name`).replaceChildren(name, sp.element("b", {}, most > 0 ? `≤ ${text(most)}` : "0"));
}

function drawLimit(rows) {
	const row = shown.up_to_ns.findIndex((ns) => ns >= shown.slow_threshold_ns), limit = at("limit");
	limit.hidden = row <= 0 || row < first || row > last;
	if (limit.hidden) return;
	const [low, high] = [shown.up_to_ns[row - 1], shown.up_to_ns[row]];
	const above = Math.log(high / shown.slow_threshold_ns) / Math.log(high / low);
	limit.style.top = `${100 * (last - row + above) / rows}%`;
}

// share is where a time is, in percent of the width.
function share(t) {
	const [from, to] = [Date.parse(shown.from), Date.parse(shown.to)];
	return Math.min(100, Math.max(0, 100 * (Date.parse(t) - from) / (to - from)));
}

function drawMarks() {
	const lane = at("marks");
	if (lane.contains(document.activeElement)) return;
	lane.replaceChildren();
	for (const one of shown.incidents) {
		const from = share(one.start), to = share(one.end || shown.to);
		const link = sp.element("a", {
			href: `/incidents/${encodeURIComponent(one.id)}`, title: said(one), "aria-label": said(one),
			class: ["healthy", "findings", "inconclusive"].includes(one.verdict) ? one.verdict
				: one.state === "watching" ? "findings" : "inconclusive",
		});
		link.style.left = `min(${from}%, 100% - .7rem)`;
		link.style.width = `${Math.max(0, to - from)}%`;
		lane.append(link);
	}
	for (const mark of shown.marks) {
		const flag = sp.element("span", { title: `${sp.time(mark.time)} ${mark.text}`, role: "img",
			"aria-label": `mark at ${sp.time(mark.time)}: ${mark.text}` });
		flag.style.left = `${share(mark.time)}%`;
		lane.append(flag);
	}
}

function said(one) {
	return `${sp.time(one.start)}–${one.end ? sp.time(one.end) : "now"}: ${one.summary || one.trigger}`;
}

function drawTimes(n) {
	const times = at("times"), long = Date.parse(shown.to) - Date.parse(shown.from) > 36 * 3600e3;
	times.replaceChildren();
	const most = Math.max(2, Math.floor(times.getBoundingClientRect().width / (long ? 130 : 90)));
	const span = Date.parse(shown.to) - Date.parse(shown.from);
	const each = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800]
		.map((s) => s * 1000).find((ms) => span / ms <= most) || 604800e3;
	for (let i = 0; i < n; i++) {
		const t = shown.columns[i].start;
		if (Date.parse(t) % each >= shown.step_seconds * 1000 || i / n > 1 - .6 / most) continue;
		const label = long ? `${sp.date(t).slice(5)} ${sp.time(t, false)}`
			: sp.time(t, each < 60e3);
		const text = sp.element("span", { class: "dim" }, label);
		text.style.left = `min(${100 * i / n}%, 100% - ${label.length}ch)`; // it fits until it is drawn anew, too
		times.append(text);
	}
}

// within are the incidents and marks of a column.
function within(i) {
	const from = Date.parse(shown.columns[i].start), to = from + shown.step_seconds * 1000;
	return {
		incident: shown.incidents.find((one) => Date.parse(one.start) < to &&
			(one.end ? Date.parse(one.end) : Infinity) >= from),
		marks: shown.marks.filter((m) => Date.parse(m.time) >= from && Date.parse(m.time) < to),
	};
}

// point moves the cursor to a column, and says its numbers; -1: away.
function point(i) {
	cursor = i;
	at("cursor").hidden = at("zoom").hidden = i < 0;
	if (i < 0) {
		at("there").hidden = true;
		at("reading").textContent = "Point at a time, or use ← and →, to see its numbers.";
		map.setAttribute("aria-valuenow", 0);
		map.setAttribute("aria-valuetext", "no time chosen");
		return;
	}
	const c = shown.columns[i], n = shown.columns.length, start = Date.parse(c.start);
	at("cursor").style.left = `${100 * i / n}%`;
	at("cursor").style.width = `${100 / n}%`;
	const { incident, marks } = within(i), end = start + shown.step_seconds * 1000;
	const seconds = shown.step_seconds < 60 || end - start < 60e3;
	let text = `${sp.date(start)} ${sp.time(start, seconds)}–${sp.time(end, seconds)}: `;
	if (c.calls > 0) {
		text += `${sp.rate(c.calls / shown.step_seconds)} calls/s, p50 ${sp.duration(c.p50_ns)}, p99 ${
			sp.duration(c.p99_ns)}, worst ${sp.duration(c.max_ns)}, ${sp.thousands(c.slow)} slow`;
	} else {
		text += c.seen_seconds === 0 ? "nothing was watched" : "no calls";
	}
	if (c.failed > 0) text += `, ${sp.thousands(c.failed)} failed`;
	for (const m of marks) text += ` · ${m.text}`;
	at("reading").textContent = text;
	map.setAttribute("aria-valuenow", i);
	map.setAttribute("aria-valuetext", text);
	const around = Math.max(shown.step_seconds * 10, 60);
	const zoom = new URL(heat.dataset.path, location.href);
	zoom.searchParams.set("from", Math.floor(start / 1000 - around));
	zoom.searchParams.set("to", Math.ceil(end / 1000 + around));
	at("zoom").href = zoom;
	at("zoom").hidden = 2 * around + shown.step_seconds >= (Date.parse(shown.to) - Date.parse(shown.from)) / 1000;
	at("there").hidden = !incident;
	if (incident) at("there").href = `/incidents/${encodeURIComponent(incident.id)}`;
}

map.addEventListener("pointermove", (event) => {
	const box = map.getBoundingClientRect(), n = shown.columns.length;
	point(Math.min(n - 1, Math.max(0, Math.floor(n * (event.clientX - box.left) / box.width))));
});
map.addEventListener("keydown", (event) => {
	const n = shown.columns.length, from = cursor < 0 ? n : cursor;
	const to = { ArrowLeft: from - 1, ArrowRight: from + 1, PageUp: from - 10, PageDown: from + 10, Home: 0,
		End: n - 1 }[event.key];
	if (to !== undefined) {
		event.preventDefault();
		point(Math.min(n - 1, Math.max(0, to)));
	} else if (event.key === "Escape") {
		point(-1);
	} else if (event.key === "Enter" && cursor >= 0) {
		const link = at("there").hidden ? at("zoom") : at("there");
		if (!link.hidden) link.click();
	}
});
if (heat) {
	load();
	addEventListener("resize", () => shown && draw());
	addEventListener("written", () => { load(); sp.refresh("now", "incidents"); });
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());
	sp.every(5000, load);
	sp.every(10000, () => sp.refresh("now", "incidents", "health"));
}
