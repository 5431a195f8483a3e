"use strict";
// Copies a command. Where the clipboard may not be used, the text is selected instead.
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
// On paper all is open.
let closed = [];
addEventListener("beforeprint", () => {
	closed = [...document.querySelectorAll("details:not([open])")];
	for (const one of closed) one.open = true;
});
addEventListener("afterprint", () => {
	for (const one of closed) one.open = false;
});
