// The message field of the chat: text, images, and the buttons to send and stop.

import { button, fill, icon, make } from "./dom.js";
import { t } from "./texts.js";

const MOST_IMAGES = 8;
/** Unsent texts by the ID of their conversation. They survive a change of view. */
const drafts = new Map();

export class Composer {
	constructor({ onSend, onStop }) {
		this.onSend = onSend;
		/** The ID of the conversation, empty for a new one. */
		this.id = "";
		this.images = [];
		this.isBusy = false;
		this.input = make("textarea", {
			id: "chat-input", rows: 1, placeholder: t("placeholder"), "aria-describedby": "chat-hint",
			onkeydown: (event) => this.pressed(event),
			onpaste: (event) => this.paste(event),
		});
		this.send = button(t("send"), { name: "send", class: "primary", type: "submit" });
		this.halt = button(t("stop"), { name: "stop", class: "danger", hidden: true, onclick: onStop });
		this.file = make("input.unseen", { type: "file", accept: "image/*", multiple: true, id: "chat-image", onchange: () => this.pick() });
		this.attach = make("label.button.quiet.small", { for: "chat-image", title: t("attach") }, this.file, icon("picture"), make("span.unseen", t("attach")));
		this.picked = make("div.picked");
		this.problem = make("p.field-error", { role: "alert" });
		this.element = make(
			"form.composer.card",
			{ onsubmit: () => this.submit() },
			this.picked,
			this.problem,
			make("label.unseen", { for: "chat-input" }, t("message")),
			make("div.composer-row", this.attach, this.input, this.halt, this.send),
			make("span.note", { id: "chat-hint" }, t("hint")),
		);
	}

	/** Shows the draft of a conversation. */
	open(id, isBusy) {
		this.id = id;
		const draft = drafts.get(id) ?? { text: "", images: [] };
		this.input.value = draft.text;
		this.images = draft.images;
		this.drawImages();
		this.busy(isBusy);
	}

	keepDraft() {
		if (this.input.value || this.images.length) drafts.set(this.id, { text: this.input.value, images: this.images });
		else drafts.delete(this.id);
	}

	focus() {
		this.input.focus();
	}

	complain(message) {
		this.problem.textContent = message;
	}

	allowImages(are) {
		this.attach.hidden = !are;
	}

	/** Shows Stop instead of Send, at the same position, and moves the focus along. */
	busy(is) {
		if (is === this.isBusy) return;
		this.isBusy = is;
		const had = [this.send, this.halt].includes(document.activeElement);
		this.send.hidden = is;
		this.halt.hidden = !is;
		if (had) (is ? this.halt : this.send).focus();
	}

	pressed(event) {
		if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
		event.preventDefault();
		this.element.requestSubmit();
	}

	submit() {
		const text = this.input.value.trim();
		if (this.isBusy || (!text && !this.images.length)) return;
		const parts = [...this.images.map((one) => ({ type: "image_url", image_url: { url: one.url } })), ...(text ? [{ type: "text", text }] : [])];
		const content = this.images.length ? parts : text;
		drafts.delete(this.id);
		this.input.value = "";
		this.images = [];
		this.drawImages();
		this.onSend(content);
	}

	paste(event) {
		const files = [...event.clipboardData.files];
		if (!files.length) return;
		event.preventDefault();
		this.addImages(files);
	}

	pick() {
		this.addImages([...this.file.files]);
		this.file.value = "";
	}

	/** Adds files that the browser can show as images. */
	async addImages(files) {
		this.complain("");
		if (this.attach.hidden) return;
		for (const file of files) {
			if (this.images.length >= MOST_IMAGES) {
				this.complain(t("tooManyImages", { limit: MOST_IMAGES }));
				break;
			}
			const url = await readImage(file);
			if (url) this.images.push({ url, name: file.name });
			else this.complain(t("unsupportedImage", { name: file.name }));
		}
		this.drawImages();
	}

	drawImages() {
		const shown = this.images.map((one, n) => {
			const remove = () => {
				this.images.splice(n, 1);
				this.drawImages();
				this.input.focus();
			};
			return make("span.row", make("img.thumb", { src: one.url, alt: one.name }), button(t("removeImage"), { name: "cross", small: true, onclick: remove }));
		});
		fill(this.picked, ...shown);
	}
}

/** The image as data URL, or null if the file is not an image that the browser can decode. */
async function readImage(file) {
	try {
		(await createImageBitmap(file)).close();
	} catch {
		return null;
	}
	const { promise, resolve } = Promise.withResolvers();
	const reader = new FileReader();
	reader.onload = () => resolve(reader.result);
	reader.onerror = () => resolve(null);
	reader.readAsDataURL(file);
	return promise;
}
