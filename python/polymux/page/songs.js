// The Songs view: searches songs by name, and links to the operation that identifies a recording.

import { announce, button, empty, failure, fill, heading, make, skeleton } from "./dom.js";
import { ask } from "./server.js";
import { songCards } from "./songcards.js";

const MOST = 50;
const FIRST = 12;

export function showSongs(place, { operations }) {
	const operation = operations.find((one) => one.name === "search_music");
	const input = make("input", { id: "song", type: "search", required: true, autocomplete: "off", placeholder: "Title, artist, or both" });
	const found = make("div", { "aria-live": "polite" }, empty("songs", "Search for a song", make("p", "Each song has a page with its cover.")));
	const more = button("Load more", { class: "quiet", hidden: true, onclick: () => search(MOST) });
	const form = make(
		"form.search.card",
		{ role: "search", onsubmit: () => search(FIRST) },
		make("label", { for: "song" }, "Song"),
		make("div.row", input, button("Search", { class: "primary", type: "submit" })),
	);
	const listen = make("a.button.quiet", { href: "#/playground/identify_song" }, "Identify a song");
	place.append(heading("Songs", "Search the music library and the configured search services.", listen), form, found, more);
	let turn = 0;

	async function search(limit) {
		const mine = ++turn;
		const words = input.value.trim();
		if (!words) return;
		fill(found, skeleton(4));
		more.hidden = true;
		try {
			const songs = await ask(operation.path, { method: "POST", body: { song: words, limit: String(limit) } });
			if (mine !== turn) return;
			fill(found, songs.length ? songCards(songs) : empty("songs", "No match found"));
			more.hidden = songs.length < limit || limit === MOST;
			announce(`${songs.length} songs found`);
		} catch (error) {
			if (mine === turn) fill(found, failure(error));
		}
	}
}
