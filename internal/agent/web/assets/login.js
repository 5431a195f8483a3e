"use strict";
// The cookie of a login is not sent when a link on another site leads here. A request of this page has it: who is
// logged in goes on.
fetch("/api/v1/session").then((reply) => {
	const next = document.querySelector("form.login").dataset.next;
	if (reply.status === 204 && next.startsWith("/") && !next.startsWith("//")) location.replace(next);
}).catch(() => {});
