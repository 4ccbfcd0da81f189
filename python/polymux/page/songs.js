// The Songs view: the music library, search, and identification of recordings.

import { announce, button, empty, failure, fill, heading, icon, make, skeleton } from "./dom.js";
import { LongList } from "./longlist.js";
import { ask, nextOf, own, send } from "./server.js";
import { songCards } from "./songcards.js";
import { clock } from "./text.js";
import { t } from "./texts.js";

const MOST = 50;
const FIRST = 12;
/** Enough for a match in most cases. */
const RECORDING_S = 12;

export function showSongs(place, { operations }) {
	const named = (name) => operations.find((one) => one.name === name);
	const library = new Library();
	const identification = named("identify_song") && new Identification(named("identify_song"));
	place.append(heading(t("songs"), t("songsLead")), make("div.split.songs", identification?.element, search(named("search_music"))), library.element);
	library.more();
	return () => {
		library.leave();
		identification?.leave();
	};
}

function search(operation) {
	const input = make("input", { id: "song", type: "search", required: true, autocomplete: "off", placeholder: t("songPlaceholder") });
	const found = make("div", { "aria-live": "polite" });
	const more = button(t("loadMore"), { class: "quiet", hidden: true, onclick: () => look(MOST) });
	const form = make("form.search", { role: "search", onsubmit: () => look(FIRST) }, make("label", { for: "song" }, t("song")), make("div.row", input, button(t("searchSongs"), { class: "primary", type: "submit" })));
	let turn = 0;

	async function look(limit) {
		const mine = ++turn;
		const words = input.value.trim();
		if (!words) return;
		fill(found, skeleton(4));
		more.hidden = true;
		try {
			const songs = await ask(operation.path, { method: "POST", body: { song: words, limit: String(limit) } });
			if (mine !== turn) return;
			fill(found, songs.length ? songCards(songs) : empty("songs", t("noSongFound")));
			more.hidden = songs.length < limit || limit === MOST;
			announce(t("songsFound", { count: songs.length }));
		} catch (error) {
			if (mine === turn) fill(found, failure(error));
		}
	}
	return make("section.card.stack", make("h2", t("searchSong")), form, found, more);
}

/** Identifies a recording from a file or the microphone. */
class Identification {
	constructor(operation) {
		this.path = operation.path;
		this.recorder = null;
		this.result = make("div", { "aria-live": "polite" });
		const file = make("input.unseen", { type: "file", accept: "audio/*,video/*", id: "recording", onchange: () => file.files[0] && this.identify(file.files[0]) });
		this.listening = button(t("listen"), { name: "mic", onclick: () => (this.recorder ? this.recorder.stop() : this.listen()) });
		// Browsers offer the microphone only over HTTPS and on the same machine.
		this.listening.hidden = !navigator.mediaDevices?.getUserMedia || !window.MediaRecorder;
		this.picker = make("label.button", { for: "recording" }, icon("up"), make("span", t("chooseRecording")), file);
		this.element = make("section.card.stack", make("h2", t("identifySong")), make("p.hint", t("identifyHint")), make("div.row", this.picker, this.listening), this.result);
		for (const kind of ["dragover", "drop"]) this.element.addEventListener(kind, (event) => this.drag(event, kind));
	}

	leave() {
		this.isLeft = true;
		this.recorder?.stop();
	}

	drag(event, kind) {
		const file = event.dataTransfer?.files[0];
		if (kind === "drop" && file) this.identify(file);
	}

	async listen() {
		let stream;
		try {
			stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
		} catch {
			fill(this.result, failure({ message: t("noMicrophone"), code: "" }));
			return;
		}
		const parts = [];
		const recorder = new MediaRecorder(stream);
		this.recorder = recorder;
		recorder.ondataavailable = ({ data }) => parts.push(data);
		recorder.onstop = () => {
			clearTimeout(timer);
			for (const track of stream.getTracks()) track.stop();
			this.recorder = null;
			this.listening.lastChild.textContent = t("listen");
			const type = recorder.mimeType.split(";")[0];
			if (!this.isLeft) this.identify(new File(parts, `recording.${type.split("/")[1]}`, { type }));
		};
		recorder.start();
		const timer = setTimeout(() => recorder.state === "recording" && recorder.stop(), RECORDING_S * 1000);
		this.listening.lastChild.textContent = t("stopListening");
		fill(this.result, make("p.note", { role: "status" }, t("listening", { seconds: RECORDING_S })));
	}

	async identify(file) {
		fill(this.result, skeleton(2));
		const form = new FormData();
		form.set("file", file);
		try {
			const { value } = await send(this.path, form);
			fill(this.result, songCards([value]));
			announce(value.song_name);
		} catch (error) {
			const isUnknown = error.code === "no_match";
			fill(this.result, isUnknown ? empty("songs", t("noSongMatches")) : failure(error));
		}
	}
}

/** The songs of the music library, with a player. */
class Library {
	constructor() {
		this.next = "";
		this.isLoading = false;
		this.songs = [];
		this.count = make("p.note");
		this.message = make("div", skeleton(3));
		this.audio = make("audio", { controls: true, hidden: true, preload: "none" });
		this.playing = make("p.note", { role: "status" });
		this.list = new LongList(t("library"), (song) => this.row(song), () => this.songs.length && this.next && this.more());
		this.element = make("section.stack", make("div.row", make("h2", t("library")), this.count), make("div.now-playing", this.playing, this.audio), this.message, this.list.element);
	}

	leave() {
		this.list.leave();
		this.audio.pause();
	}

	async more() {
		if (this.isLoading) return;
		this.isLoading = true;
		try {
			const page = await ask(`api/v1/songs${this.next}`);
			this.next = nextOf(page);
			this.songs.push(...page.results);
			fill(this.message, !this.songs.length && empty("songs", t("noSongs"), make("p", t("noSongsHint")), make("code", "polymux songs add FOLDER")));
			this.count.textContent = page.count ? t("songCount", { count: page.count }) : "";
			this.list.show(this.songs);
		} catch (error) {
			fill(this.message, failure(error));
		}
		this.isLoading = false;
	}

	row(song) {
		const name = song.artist ? `${song.title} - ${song.artist}` : song.title;
		const cover = own(song.cover_url);
		const page = own(song.page_url);
		const audio = song.audio_url && own(song.audio_url);
		const picture = cover ? make("img.job-thumb", { src: cover, alt: "", loading: "lazy" }) : make("span.job-thumb", icon("songs"));
		const title = page ? make("a", { href: page, target: "_blank", rel: "noopener noreferrer" }, song.title) : make("strong", song.title);
		const about = [song.artist, song.album, song.year].filter(Boolean).join(" · ");
		const play = audio && button(t("playSong", { name }), { name: "play", small: true, onclick: () => this.play(audio, name) });
		return make("li.song-row", play ?? make("span"), picture, make("div", title, make("span.subject", about)), make("span.note", clock(song.duration_s)));
	}

	async play(href, name) {
		this.audio.hidden = false;
		this.audio.src = href;
		this.audio.setAttribute("aria-label", name);
		this.playing.textContent = name;
		try {
			await this.audio.play();
		} catch {
			this.playing.textContent = t("cannotPlay", { name });
		}
	}
}
