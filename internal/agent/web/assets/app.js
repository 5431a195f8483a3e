"use strict";
// What all pages use: numbers as reports write them, requests, keys. Texts of others are set as text, never as HTML.
const sp = {
	// significant is a number with three significant digits.
	significant(v) {
		if (v === 0) return "0";
		return v.toFixed(Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v)))));
	},
	duration(ns) {
		for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
			if (ns >= size * .9995) return `${sp.significant(ns / size)}\u00a0${unit}`;
		}
		return `${Math.round(ns)}\u00a0ns`;
	},
	brief(ns) { return sp.duration(ns).replace(/(\.\d*?)0+(?=\u00a0)/, "$1").replace(/\.(?=\u00a0)/, ""); },
	thousands(n) { return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u00a0"); },
	rate(v) { return v >= 100 || v === 0 ? sp.thousands(v) : sp.significant(v); },
	count(n, thing) { return `${sp.thousands(n)} ${thing}${n === 1 ? "" : "s"}`; },
	time(t, seconds = true) { return new Date(t).toISOString().slice(11, seconds ? 19 : 16); },
	exact(t) { return new Date(t).toISOString().slice(11, 23); },
	date(t) { return new Date(t).toISOString().slice(0, 10); },
	// element makes an element with attributes and children; texts become text.
	element(name, attributes = {}, ...children) {
		const e = document.createElement(name);
		for (const [key, value] of Object.entries(attributes)) {
			if (value !== undefined && value !== null) e.setAttribute(key, value);
		}
		e.append(...children);
		return e;
	},
	// get reads a document of the API; its error is the sentence of the server.
	async get(path, options) {
		const reply = await fetch(path, options);
		if (reply.redirected && new URL(reply.url).pathname === "/login" || reply.status === 401) {
			location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
		}
		const body = await reply.json().catch(() => ({}));
		if (!reply.ok) throw new Error(body.error || `the agent answered ${reply.status}`);
		return body;
	},
	post(path, document_) {
		return sp.get(path, {
			method: "POST", body: JSON.stringify(document_), headers: {
				"Content-Type": "application/json",
				"X-CSRF-Token": document.querySelector("meta[name=csrf]").content,
			},
		});
	},
	// refresh loads parts of this page again, and leaves alone what has the focus.
	async refresh(...ids) {
		const reply = await fetch(location.href);
		if (!reply.ok || reply.redirected) return;
		const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
		for (const id of ids) {
			const old = document.getElementById(id), now = fresh.getElementById(id);
			if (old && now && !old.contains(document.activeElement)) old.replaceWith(now);
		}
		const pill = document.querySelector(".status"), now = fresh.querySelector(".status");
		if (pill && now) pill.replaceWith(now);
	},
	// every calls a function again and again while the page is looked at.
	every(ms, f) { setInterval(() => { if (!document.hidden) f().catch(() => {}); }, ms); },
};
for (const form of document.querySelectorAll("form.post")) {
	form.addEventListener("submit", async (event) => {
		event.preventDefault();
		const said = form.querySelector("[role=status]"), button = form.querySelector("button");
		button.disabled = true;
		try {
			const text = form.querySelector("input[name=text]");
			const reply = await sp.post(form.dataset.post, text ? { text: text.value } : {
				reason: "asked for on the page",
			});
			said.textContent = "Done.";
			if (text) text.value = "";
			const link = () => sp.element("a", { href: `/incidents/${reply.id}` }, "It is being recorded");
			if (reply.id) said.replaceChildren(link());
			dispatchEvent(new Event("written"));
		} catch (error) {
			said.textContent = error.message;
		}
		button.disabled = false;
	});
}
for (const button of document.querySelectorAll("button[data-copy]")) {
	button.hidden = false;
	button.addEventListener("click", async () => {
		const text = button.parentElement.querySelector("pre");
		try {
			await navigator.clipboard.writeText(text.textContent);
			button.textContent = "Copied";
			setTimeout(() => { button.textContent = "Copy"; }, 3000);
		} catch {
			getSelection().selectAllChildren(text);
			button.textContent = "Selected: copy it";
		}
	});
}
// Keys of all pages. They are off while somebody types.
let goes = false;
addEventListener("keydown", (event) => {
	const types = event.target.closest("input, select, textarea, dialog");
	if (event.ctrlKey || event.metaKey || event.altKey || types) return;
	const pages = [...document.querySelectorAll("nav[aria-label=Pages] a:not(.brand)")];
	const to = pages.find((page) => page.textContent[0].toLowerCase() === event.key);
	if (goes && to) location.assign(to.href);
	goes = event.key === "g";
	const keys = document.getElementById("keys");
	if (event.key === "?" && keys) keys.showModal();
	if (event.key === "/") {
		event.preventDefault();
		const field = document.querySelector("input[type=search]");
		if (field) field.focus();
		else location.assign(pages.find((page) => page.textContent === "Incidents").href);
	}
});
if (document.body.matches(".incidents") && location.hash === "#search") {
	document.querySelector("input[type=search]").focus();
}
