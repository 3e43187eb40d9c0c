// All works without this, too. Keys: [ and ] step through the versions of a page, / goes to the
// search.
"use strict";

// A part of the page that the address names is shown in the frame, too.
const frame = document.querySelector("iframe");
const show = () => {
	if (frame && location.hash) {
		frame.src = frame.getAttribute("src").split("#")[0] + location.hash;
	}
};
window.addEventListener("hashchange", show);
show();

document.addEventListener("keydown", (event) => {
	// On many keyboards a bracket needs Alt, or AltGr, which is Alt with Ctrl.
	if (event.metaKey || (event.ctrlKey && !event.altKey)) {
		return;
	}
	if (event.target instanceof Element && event.target.closest("input, textarea, select")) {
		return;
	}
	const to = { "[": "previous", "]": "next" }[event.key];
	const link = to && document.getElementById(to);
	if (link) {
		link.click();
	}
	if (event.key === "/") {
		const search = document.getElementById("url");
		search.focus();
		search.select();
		event.preventDefault();
	}
});
