// The Chat view: streams answers and renders them as Markdown. The user can stop an answer.

import { announce, button, copyButton, empty, failure, fill, icon, make } from "./dom.js";
import { growing } from "./markdown.js";
import { ask } from "./server.js";
import { streamed } from "./streaming.js";
import { seconds } from "./text.js";

const CHATS = ["chat", "free_chat"];
/** The messages of the conversation. They survive a change of view, but not a reload. */
let talk = [];

export function showChat(place, { operations }) {
	const chat = new Chat(operations.filter((one) => CHATS.includes(one.name)));
	place.append(chat.element);
	chat.offerModels();
	return () => chat.stop();
}

class Chat {
	constructor(services) {
		this.services = services;
		this.aborting = null;
		this.picture = null;
		this.log = make("div.talk", { role: "log", "aria-label": "Conversation", "aria-live": "off", tabIndex: 0 });
		this.buildSettings();
		this.buildComposer();
		const fresh = button("New chat", { name: "plus", class: "quiet", onclick: () => this.clear() });
		const head = make("header.heading", make("h1", "Chat"), make("div.actions", fresh));
		this.element = make("div.chat", head, this.settings, this.log, this.composer);
		this.drawTalk();
	}

	buildSettings() {
		this.models = make("datalist", { id: "chat-models" });
		const options = this.services.map((one) => make("option", { value: one.name }, one.title));
		this.service = make("select", { id: "chat-service", onchange: () => this.offerModels() }, ...options);
		this.model = make("input", { id: "chat-model", list: "chat-models", value: "default", autocomplete: "off", spellcheck: "false" });
		this.system = make("textarea", { id: "chat-system", rows: 2, placeholder: "You are a helpful assistant." });
		this.temperature = make("input", { id: "chat-temperature", type: "number", min: "0", max: "2", step: "any", placeholder: "1" });
		this.longest = make("input", { id: "chat-longest", type: "number", min: "1", step: "1", placeholder: "no limit" });
		const labelled = (words, input, kind = "") => make(`div.field${kind}`, make("label", { for: input.id }, words), input);
		this.onlyChat = [labelled("Temperature", this.temperature), labelled("Maximum output tokens", this.longest)];
		const fields = make("div.grid", labelled("Operation", this.service), labelled("Model", this.model), ...this.onlyChat, labelled("System prompt", this.system, ".wide-field"));
		this.settings = make("details.fold.card", make("summary", "Model and system prompt"), fields, this.models);
	}

	buildComposer() {
		this.input = make("textarea", { id: "chat-input", rows: 2, placeholder: "Write a message", "aria-describedby": "chat-hint", onkeydown: (event) => this.pressed(event) });
		this.send = button("Send", { name: "send", class: "primary", type: "submit" });
		this.halt = button("Stop", { name: "stop", class: "danger", hidden: true, onclick: () => this.stop() });
		this.file = make("input.unseen", { type: "file", accept: "image/*", id: "chat-picture", onchange: () => this.pick() });
		this.attach = make("label.button.quiet", { for: "chat-picture" }, this.file, icon("picture"), make("span", "Image"));
		this.picked = make("span.picked");
		const hint = make("span.note", { id: "chat-hint" }, "Enter to send, Shift+Enter for a new line.");
		this.composer = make(
			"form.composer.card",
			{ onsubmit: () => this.say() },
			make("label.unseen", { for: "chat-input" }, "Message"),
			this.input,
			make("div.row", this.attach, this.picked, hint, make("div.actions", this.halt, this.send)),
		);
	}

	/** Fills the model list of the selected operation. */
	async offerModels() {
		const free = this.service.value === "free_chat";
		const choices = this.services.find((one) => one.name === this.service.value)?.variants[0].fields.find((one) => one.name === "model")?.choices;
		for (const one of [...this.onlyChat, this.attach]) one.hidden = free;
		this.model.value = free ? choices?.[0] ?? "" : "default";
		const names = free ? choices : await ask("v1/models").then((response) => ["default", ...response.data.map((one) => one.id)], () => ["default"]);
		fill(this.models, (names ?? []).map((one) => make("option", { value: one })));
	}

	pressed(event) {
		if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
		event.preventDefault();
		this.composer.requestSubmit();
	}

	pick() {
		const [file] = this.file.files;
		if (!file) return;
		const reader = new FileReader();
		reader.onload = () => {
			this.picture = reader.result;
			const clear = button("Remove image", { name: "cross", small: true, onclick: () => this.drop() });
			fill(this.picked, make("img.thumb", { src: this.picture, alt: file.name }), clear);
		};
		reader.readAsDataURL(file);
	}

	drop() {
		this.picture = null;
		this.file.value = "";
		fill(this.picked);
	}

	/** Shows Stop instead of Send, at the same position, and moves the focus along. */
	busy(is) {
		const had = this.composer.contains(document.activeElement) && document.activeElement !== this.input;
		this.send.hidden = is;
		this.halt.hidden = !is;
		if (had) (is ? this.halt : this.send).focus();
	}

	stop() {
		this.aborting?.abort();
	}

	clear() {
		this.stop();
		talk = [];
		this.drawTalk();
		this.input.focus();
	}

	drawTalk() {
		const first = empty("chat", "Ask a question to start", make("p", "The conversation stays in this tab. Each request sends all of its messages."));
		fill(this.log, talk.length ? talk.map((one) => bubble(one).element) : first);
		this.log.scrollTop = this.log.scrollHeight;
	}

	body() {
		const system = this.system.value.trim();
		const messages = [...(system ? [{ role: "system", content: system }] : []), ...talk.map(({ role, content }) => ({ role, content }))];
		if (this.service.value === "free_chat") return { messages, ...(this.model.value && { model: this.model.value }) };
		return {
			model: this.model.value || "default",
			messages,
			stream_options: { include_usage: true },
			...(this.temperature.value !== "" && { temperature: Number(this.temperature.value) }),
			...(this.longest.value !== "" && { max_completion_tokens: Number(this.longest.value) }),
		};
	}

	async say() {
		const text = this.input.value.trim();
		if (this.aborting || (!text && !this.picture)) return;
		const parts = this.picture && [{ type: "image_url", image_url: { url: this.picture } }, ...(text ? [{ type: "text", text }] : [])];
		if (!talk.length) this.log.replaceChildren();
		const mine = { role: "user", content: parts || text };
		talk.push(mine);
		this.log.append(bubble(mine).element);
		this.input.value = "";
		this.drop();
		await this.answer();
	}

	async answer() {
		const answer = { role: "assistant", content: "" };
		const shown = bubble(answer);
		this.log.append(shown.element);
		this.log.scrollTop = this.log.scrollHeight;
		this.aborting = new AbortController();
		this.busy(true);
		const body = this.body();
		const operation = this.services.find((one) => one.name === this.service.value);
		const conversation = talk;
		const onText = (text) => {
			const follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80;
			answer.content = text;
			shown.draw(text);
			if (follows) this.log.scrollTop = this.log.scrollHeight;
		};
		try {
			const found = await streamed(operation, body, { signal: this.aborting.signal, onText });
			shown.end(measured(found));
			announce("Response complete");
		} catch (error) {
			const isStopped = error.name === "AbortError";
			shown.end(isStopped ? "Stopped" : "", isStopped ? null : error);
			if (isStopped) announce("Stopped");
		}
		// A question without an answer is removed from the conversation. `conversation` belongs to this request:
		// "New chat" may have replaced `talk` in the meantime.
		if (answer.content) conversation.push(answer);
		else conversation.pop();
		this.aborting = null;
		this.busy(false);
		this.log.scrollTop = this.log.scrollHeight;
	}
}

function measured({ usage, seconds: took, firstSeconds, model }) {
	const tokens = usage?.completion_tokens;
	const speed = tokens > 1 && took > firstSeconds && `${((tokens - 1) / (took - firstSeconds)).toFixed(1)} tokens/s`;
	const used = tokens !== undefined && `${usage.prompt_tokens ?? 0} tokens in, ${tokens} out`;
	return [model, used, speed, seconds(took)].filter(Boolean).join(" · ");
}

function bubble({ role, content }) {
	const text = typeof content === "string" ? content : content.map((one) => one.text ?? "").join("");
	const pictures = typeof content === "string" ? [] : content.filter((one) => one.image_url);
	const prose = make("div.prose");
	const note = make("p.note");
	const foot = make("div.row.bubble-foot", note);
	const images = pictures.map((one) => make("img.thumb", { src: one.image_url.url, alt: "Attached image" }));
	const name = role === "user" ? "You" : "Model";
	const element = make(`article.bubble.${role}`, { "aria-label": name }, make("h2.who", name), ...images, prose, foot);
	const show = growing(prose);
	let now = text;
	if (role === "user") prose.append(make("p.as-is", text));
	else if (text) {
		show(text);
		foot.append(copyButton(() => now));
	} else element.setAttribute("aria-busy", "true");
	return {
		element,
		draw(whole) {
			now = whole;
			show(whole);
		},
		end(status, error = null) {
			element.removeAttribute("aria-busy");
			note.textContent = status;
			if (now) foot.append(copyButton(() => now));
			if (error) element.append(failure(error));
		},
	};
}
