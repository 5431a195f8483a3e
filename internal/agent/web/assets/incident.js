"use strict";
// The report is in a frame of its own: its parts can be linked to as /incidents/ID#cause-1.
const incident = document.getElementById("incident"), report = document.getElementById("report");
function follow() {
	if (!report || !/^#[a-z][a-z0-9-]*$/.test(location.hash)) return;
	report.src = `${report.src.split("#")[0]}${location.hash}`;
}
follow();
addEventListener("hashchange", follow);
// A verdict of an incident that goes on is the first one: the last one follows.
if (["watching", "judging"].includes(incident.dataset.state)) {
	sp.every(2000, async () => {
		const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
		const now = page.getElementById("incident");
		if (now && (now.dataset.state !== incident.dataset.state || !report !== !page.getElementById("report"))) {
			location.reload();
		}
	});
}
