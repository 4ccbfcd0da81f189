// Song cards: the cover, the name, and a link to the song's page.

import { icon, linkOut, make } from "./dom.js";
import { own } from "./server.js";
import { t } from "./texts.js";

function card(song) {
	const ours = own(song.songid_url);
	const page = ours ?? (/^https?:/.test(song.songid_url) && URL.canParse(song.songid_url) ? song.songid_url : null);
	// Covers on other servers are not loaded: a request would reveal the user to them.
	const cover = own(song.song_image);
	const picture = cover ? make("img.cover", { src: cover, alt: "", width: 72, height: 72, loading: "lazy" }) : make("span.cover", icon("songs"));
	const name = page ? linkOut(page, song.song_name) : song.song_name;
	return make("li.card.song", picture, make("div", make("strong", name || t("untitledSong")), page && make("span.note", ours ? t("songPage") : new URL(page).host)));
}

export function songCards(songs) {
	return make("ul.cards", ...songs.map(card));
}
