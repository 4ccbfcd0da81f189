// Applies the chosen colors before the first paint: a browser waits for a script in the head, but not for modules.

try {
	document.documentElement.dataset.theme = localStorage.getItem("polymux.theme") ?? "";
} catch {
	// The browser does not allow storage.
}
