"use strict";
// Slow calls as they come: one event per second, while the page is looked at.
const maxCalls = 500;
const slow = document.getElementById("slow"), body = slow.tBodies[0], filter = document.getElementById("filter");
const pause = document.getElementById("pause"), feed = document.getElementById("feed");
let events = null, held = [], paused = false, newest = 0;

function caller(call) {
	return call.whose === "own" ? "slowpath" : call.process || call.client.replace(/:\d+$/, "") || "–";
}

function longest(call) {
	let best = null;
	for (const s of call.segments) {
		if (!best || s.to_ns - s.from_ns > best.to_ns - best.from_ns) best = s;
	}
	return best;
}

function row(call) {
	const mostly = longest(call), text = mostly ? `${mostly.name}${mostly.culprit ? ` ${mostly.culprit}` : ""}` : "–";
	const cell = (head, value, c) => sp.element("td", { "data-head": head, class: c }, value);
	const tr = sp.element("tr", { class: `call ${call.whose === "own" ? "own" : ""}`, tabindex: 0, role: "button",
		"aria-expanded": "false" },
	sp.element("th", {}, sp.exact(call.time)), cell("Took", sp.duration(call.ns), "r"),
	cell("Command", call.error ? `${call.op} (${call.error})` : call.op), cell("Caller", caller(call)),
	cell("Node", call.node), cell("Mostly", text));
	tr.call = call;
	tr.hidden = !fits(call);
	return tr;
}

function fits(call) {
	const wanted = filter.value.trim().toLowerCase();
	const texts = [call.op, caller(call), call.client, call.node];
	for (const s of call.segments) texts.push(s.name, s.culprit);
	return !wanted || texts.join(" ").toLowerCase().includes(wanted);
}

// waterfall is where the time of a call went, as in reports.
function waterfall(call) {
	const fall = sp.element("div", { class: "fall" });
	const segments = call.segments.length ? call.segments : [{ actor: "", name: "not divided: no source saw its parts",
		culprit: "", from_ns: 0, to_ns: call.ns }];
	for (const s of segments) {
		const bar = sp.element("i", { class: ["server", "proxy", "network", "client", "app"].includes(s.actor)
			? s.actor : "" });
		const from = Math.min(Math.max(s.from_ns, 0), call.ns), to = Math.min(Math.max(s.to_ns, from), call.ns);
		bar.style.left = `${100 * from / call.ns}%`;
		bar.style.width = `${100 * (to - from) / call.ns}%`;
		fall.append(sp.element("div", { class: "part" }, sp.element("span", { class: "time" }, bar),
			sp.element("span", { class: "r" }, sp.duration(to - from)),
			sp.element("span", { class: "what" }, `${s.name} ${s.culprit}`)));
	}
	return fall;
}

function toggle(tr) {
	const open = tr.getAttribute("aria-expanded") === "true";
	tr.setAttribute("aria-expanded", String(!open));
	if (open) {
		tr.nextElementSibling.remove();
		return;
	}
	const where = sp.element("p", { class: "dim" }, [`${sp.date(tr.call.time)} ${sp.exact(tr.call.time)}`, tr.call.op,
		tr.call.client, tr.call.process, tr.call.node].filter(Boolean).join(" · "));
	tr.after(sp.element("tr", { class: "fold" }, sp.element("td", { colspan: 6, class: "fell" }, where,
		waterfall(tr.call))));
}

function add(calls) {
	const fresh = calls.filter((c) => c.number > newest);
	if (!fresh.length) return;
	newest = fresh[0].number;
	body.prepend(...fresh.map(row));
	while (body.rows.length > maxCalls) body.lastElementChild.remove();
	slow.hidden = false;
	document.getElementById("none").hidden = true;
}

function show(event) {
	document.getElementById("threshold").textContent = `Calls of ${sp.brief(event.slow_threshold_ns)} and longer.${
		event.more_slow ? " There are more than can be shown: only the newest of each second are." : ""}`;
	const nodes = document.getElementById("nodes").tBodies[0];
	nodes.replaceChildren(...event.nodes.map((n) => {
		const cell = (head, value) => sp.element("td", { class: "r", "data-head": head }, value);
		return sp.element("tr", { class: n.whose === "own" ? "own" : "" }, sp.element("th", {}, n.node),
			sp.element("td", { "data-head": "Whose calls" }, n.whose === "own" ? "slowpath's own" : "yours"),
			cell("Calls/s", sp.thousands(n.calls)), cell("Slow", sp.thousands(n.slow)),
			cell("Failed", sp.thousands(n.failed)), cell("p50", n.calls ? sp.duration(n.p50_ns) : "–"),
			cell("p99", n.calls ? sp.duration(n.p99_ns) : "–"), cell("Worst", n.calls ? sp.duration(n.max_ns) : "–"));
	}));
	feed.textContent = `The second ${sp.time(event.second)}.${event.nodes.length ? "" : " No call was seen in it."}`;
	if (paused) {
		held = event.slow.concat(held).slice(0, maxCalls);
		pause.textContent = `Go on (${held.length} more)`;
	} else {
		add(event.slow);
	}
}

async function start() {
	if (events) return;
	try {
		const now = await sp.get("/api/v1/slow?limit=200");
		document.getElementById("threshold").textContent = `Calls of ${sp.brief(now.slow_threshold_ns)} and longer.`;
		add(now.calls);
	} catch (error) {
		feed.textContent = error.message;
	}
	events = new EventSource("/api/v1/live");
	events.onmessage = (message) => show(JSON.parse(message.data));
	events.onerror = () => { feed.textContent = "The agent does not answer; trying again…"; };
}

function stop() {
	if (events) events.close();
	events = null;
}

function setPaused(on) {
	paused = on;
	pause.setAttribute("aria-pressed", String(on));
	pause.textContent = on ? "Go on" : "Pause";
	if (!on) {
		add(held);
		held = [];
	}
}

pause.addEventListener("click", () => setPaused(!paused));
filter.addEventListener("input", () => {
	for (const tr of body.querySelectorAll("tr.call")) {
		tr.hidden = !fits(tr.call);
		if (tr.getAttribute("aria-expanded") === "true") tr.nextElementSibling.hidden = tr.hidden;
	}
});
filter.form.addEventListener("submit", (event) => event.preventDefault());
body.addEventListener("click", (event) => {
	const tr = event.target.closest("tr.call");
	if (tr && !getSelection().toString()) toggle(tr);
});
body.addEventListener("keydown", (event) => {
	const tr = event.target.closest("tr.call");
	if (!tr) return;
	if (event.key === "Enter" || event.key === " ") {
		event.preventDefault();
		toggle(tr);
	} else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
		event.preventDefault();
		const all = [...body.querySelectorAll("tr.call:not([hidden])")];
		all[all.indexOf(tr) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
	}
});
addEventListener("keydown", (event) => {
	if (event.key === "p" && !event.target.closest("input")) setPaused(!paused);
});
// A browser keeps six connections to a server: a page that nobody looks at gives its one back.
document.addEventListener("visibilitychange", () => document.hidden ? stop() : start());
start();
