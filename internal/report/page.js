"use strict";
// Copies a command. Without the clipboard's permission (a page from a file) the text is selected instead.
for (const button of document.querySelectorAll("button[data-copy]")) {
	button.hidden = false;
	button.addEventListener("click", async () => {
		const text = button.parentElement.querySelector("pre");
		try {
			await navigator.clipboard.writeText(text.textContent);
			button.textContent = "Copied";
		} catch {
			getSelection().selectAllChildren(text);
			button.textContent = "Selected: copy it";
		}
	});
}
