// The Chat view: a conversation, its settings, the message field, and the list of conversations.

import { announce, button, copyButton, empty, failure, fill, icon, make } from "./dom.js";
import { Composer } from "./composer.js";
import { asJson, asMarkdown, chatModels, Conversation, listed, onChange, thought } from "./conversations.js";
import { ConversationList } from "./conversationlist.js";
import { askFor, confirmed } from "./dialogs.js";
import { growing, markdown } from "./markdown.js";
import { isPermanent, written } from "./storage.js";
import { seconds } from "./text.js";
import { number, t } from "./texts.js";

const CHATS = ["chat", "free_chat"];
/** Messages that are drawn at once. Earlier ones are added when the user scrolls up. */
const WINDOW = 40;
/** Within this distance from the end, in px, the log follows a response. */
const FOLLOWED_PX = 80;

/** The conversation that "Chat" in the navigation leads back to. */
let latest = null;

export function showChat(place, { operations }, id) {
	const view = new Chat(operations.filter((one) => CHATS.includes(one.name)));
	view.open(id || latest, place);
	return () => view.leave();
}

class Chat {
	constructor(services) {
		this.services = services;
		this.conversation = null;
		/** The messages that are drawn: {id, element, ...}. */
		this.shown = [];
		this.log = make("div.talk", { role: "log", "aria-label": t("conversation"), "aria-live": "off", tabIndex: 0 });
		this.title = make("h1", t("chat"));
		this.list = new ConversationList({ onNew: () => this.begin(), onRemoved: () => this.begin() });
		this.composer = new Composer({ onSend: (content) => this.say(content), onStop: () => this.conversation.stop() });
		this.settings = this.buildSettings();
		this.actions = this.buildActions();
		const toggle = button(t("conversations"), { name: "jobs", small: true, class: "quiet small list-toggle", "aria-expanded": "false", onclick: () => this.toggleList() });
		this.toggle = toggle;
		const model = make("div.model", make("label.unseen", { for: this.model.id }, t("model")), this.model, this.models);
		const fresh = button(t("newChat"), { name: "plus", small: true, class: "quiet small list-toggle", onclick: () => this.begin() });
		const head = make("header.chat-head", toggle, this.title, model, make("div.actions", this.settings, this.actions, fresh));
		const main = make("div.chat-main", head, this.log, this.composer.element);
		this.element = make("div.chat", this.list.element, main);
		this.element.addEventListener("dragover", (event) => this.drag(event, true));
		this.element.addEventListener("dragleave", (event) => this.drag(event, false));
		this.element.addEventListener("drop", (event) => this.drop(event));
		this.element.addEventListener("keydown", (event) => this.escape(event));
		this.unwatch = onChange((change) => this.changed(change));
		isPermanent().then((is) => !is && this.composer.element.before(make("p.note", { role: "status" }, t("notStored"))));
	}

	leave() {
		this.isLeft = true;
		this.unwatch();
		this.earlier?.disconnect();
		this.composer.keepDraft();
		this.list.leave();
	}

	buildSettings() {
		this.models = make("datalist", { id: "chat-models" });
		this.model = make("input", { id: "chat-model", list: "chat-models", value: "default", autocomplete: "off", spellcheck: "false" });
		const options = this.services.map((one) => make("option", { value: one.name }, one.title));
		this.service = make("select", { id: "chat-service" }, ...options);
		this.system = make("textarea", { id: "chat-system", rows: 3, placeholder: t("systemPlaceholder") });
		this.temperature = make("input", { id: "chat-temperature", type: "number", min: "0", max: "2", step: "any", placeholder: "1" });
		this.longest = make("input", { id: "chat-longest", type: "number", min: "1", step: "1", placeholder: t("noLimit") });
		const labelled = (words, input) => make("div.field", make("label", { for: input.id }, words), input);
		this.onlyChat = [labelled(t("temperature"), this.temperature), labelled(t("maximumTokens"), this.longest)];
		for (const one of [this.model, this.system, this.temperature, this.longest]) one.addEventListener("change", () => this.keepSettings());
		this.service.addEventListener("change", () => {
			this.model.value = this.service.value === "free_chat" ? this.freeModels()[0] ?? "" : "default";
			this.offerModels();
			this.keepSettings();
		});
		const fields = make("div.card.stack", labelled(t("system"), this.system), labelled(t("operation"), this.service), ...this.onlyChat);
		return make("details.menu", make("summary.button.quiet", icon("gauge"), make("span", t("settings"))), fields);
	}

	buildActions() {
		const item = (words, name, onclick) => button(words, { name, class: "quiet", onclick: () => ((this.actions.open = false), onclick()) });
		const items = make(
			"div.card",
			item(t("rename"), "edit", () => this.rename()),
			item(t("exportMarkdown"), "down", () => this.export("md")),
			item(t("exportJson"), "down", () => this.export("json")),
			item(t("delete"), "cross", () => this.remove()),
		);
		return make("details.menu", make("summary.button.quiet.small", { "aria-label": t("more"), title: t("more") }, icon("more")), items);
	}

	/** Escape closes the menus and the list on narrow screens. */
	escape(event) {
		if (event.key !== "Escape") return;
		const menu = event.target.closest("details.menu[open]");
		if (menu) {
			menu.open = false;
			menu.firstChild.focus();
		} else if (this.list.isOpen) this.toggleList();
	}

	toggleList() {
		this.list.isOpen = !this.list.isOpen;
		this.toggle.setAttribute("aria-expanded", String(this.list.isOpen));
		(this.list.isOpen ? this.list.search : this.toggle).focus();
	}

	/** Opens a stored conversation, or an empty one. Only then, the view appears in `place`. */
	async open(id, place = null) {
		const found = id ? await Conversation.load(id) : null;
		const [newest] = found ? [] : await listed();
		if (this.isLeft) return;
		place?.append(this.element);
		if (id && !found) {
			latest = null;
			history.replaceState(null, "", "#/chat");
			announce(t("unknownConversation"));
		}
		this.show(found ?? new Conversation({ operation: newest?.settings.operation, model: newest?.settings.model }));
	}

	/** Begins a new conversation. The one before goes on in the background. */
	async begin() {
		latest = null;
		history.replaceState(null, "", "#/chat");
		this.composer.keepDraft();
		await this.open(null);
		this.composer.focus();
	}

	show(conversation) {
		this.conversation = conversation;
		const { settings } = conversation.record;
		this.service.value = this.services.some((one) => one.name === settings.operation) ? settings.operation : this.services[0]?.name ?? "";
		this.model.value = settings.model ?? "default";
		this.system.value = settings.system ?? "";
		this.temperature.value = settings.temperature ?? "";
		this.longest.value = settings.maximumTokens ?? "";
		this.offerModels();
		this.composer.open(conversation.messages.size ? conversation.id : "", Boolean(conversation.running));
		this.drawHead();
		this.log.replaceChildren();
		this.shown = [];
		this.from = Math.max(0, conversation.path().length - WINDOW);
		this.draw();
		this.log.scrollTop = this.log.scrollHeight;
		if (conversation.messages.size) this.remember();
	}

	/** Makes the URL and the navigation lead to this conversation. */
	remember() {
		latest = this.conversation.id;
		this.composer.id = latest;
		history.replaceState(null, "", `#/chat/${latest}`);
		this.list.mark(latest);
	}

	drawHead() {
		const { record, messages } = this.conversation;
		this.title.textContent = record.title || t("chat");
		this.actions.hidden = !messages.size;
	}

	freeModels() {
		return this.services.find((one) => one.name === "free_chat")?.variants[0].fields.find((one) => one.name === "model")?.choices ?? [];
	}

	/** Fills the model list of the selected operation. */
	async offerModels() {
		const free = this.service.value === "free_chat";
		for (const one of this.onlyChat) one.hidden = free;
		this.composer.allowImages(!free);
		const names = free ? this.freeModels() : ["default", ...(await chatModels().catch(() => []))];
		fill(this.models, names.map((one) => make("option", { value: one })));
	}

	readSettings() {
		const number = (input) => (input.value === "" ? null : Number(input.value));
		return {
			operation: this.service.value,
			model: this.model.value.trim(),
			system: this.system.value.trim(),
			temperature: number(this.temperature),
			maximumTokens: number(this.longest),
		};
	}

	keepSettings() {
		this.conversation.record.settings = this.readSettings();
		if (this.conversation.messages.size) this.conversation.save();
	}

	async say(content) {
		this.conversation.record.settings = this.readSettings();
		const message = await this.conversation.say(content);
		this.remember();
		this.drawHead();
		this.log.scrollTop = this.log.scrollHeight;
		await this.respond(message.id);
	}

	/** Streams a response. With `again`, it replaces that message. */
	async respond(parent, again = null) {
		const { conversation } = this;
		const operation = this.services.find((one) => one.name === conversation.record.settings.operation) ?? this.services[0];
		const message = await conversation.respond(operation, parent, again);
		if (conversation !== this.conversation) return;
		announce(t(message.state === "stopped" ? "stopped" : "responseComplete"));
	}

	changed({ conversation, message, isText }) {
		if (!conversation || conversation !== this.conversation) return;
		if (conversation.isRemoved) {
			this.begin();
			return;
		}
		const follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < FOLLOWED_PX;
		if (isText) this.shown.find((one) => one.id === message.id)?.grow();
		else this.draw();
		this.composer.busy(Boolean(conversation.running));
		if (conversation.isUnsaved) this.composer.complain(t("notSaved"));
		if (follows) this.log.scrollTop = this.log.scrollHeight;
	}

	/** Draws the messages. Those that are drawn already stay, so that they keep the selection. */
	draw() {
		const all = this.conversation.path();
		// Another version may be shorter.
		if (this.from >= all.length) this.from = Math.max(0, all.length - WINDOW);
		const path = all.slice(this.from);
		let same = 0;
		while (same < path.length && this.shown[same]?.id === path[same].id) same++;
		for (const one of this.shown.splice(same)) one.element.remove();
		if (!this.shown.length) this.log.replaceChildren();
		for (const one of path.slice(same)) this.shown.push(new Bubble(one, this));
		this.log.append(...this.shown.slice(same).map((one) => one.element));
		for (const one of this.shown) one.end();
		if (!path.length) this.log.append(empty("chat", t("emptyTitle"), make("p", t("empty"))));
		this.offerEarlier();
	}

	offerEarlier() {
		if (this.from === 0 || this.log.querySelector(".earlier")) return;
		const more = button(t("earlier"), { class: "quiet earlier", onclick: () => this.showEarlier() });
		this.log.prepend(more);
		this.earlier?.disconnect();
		this.earlier = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && this.log.scrollTop < more.offsetHeight && this.showEarlier(), { root: this.log });
		this.earlier.observe(more);
	}

	showEarlier() {
		const fromEnd = this.log.scrollHeight - this.log.scrollTop;
		const before = this.from;
		this.from = Math.max(0, before - WINDOW);
		this.log.querySelector(".earlier")?.remove();
		const bubbles = this.conversation.path().slice(this.from, before).map((one) => new Bubble(one, this));
		for (const one of bubbles) one.end();
		this.log.prepend(...bubbles.map((one) => one.element));
		this.shown.unshift(...bubbles);
		this.offerEarlier();
		this.log.scrollTop = this.log.scrollHeight - fromEnd;
	}

	async rename() {
		const title = await askFor(t("rename"), t("title"), this.conversation.record.title);
		if (!title) return;
		await this.conversation.change({ title });
		this.drawHead();
	}

	export(kind) {
		const text = kind === "md" ? asMarkdown(this.conversation, { names: { user: t("you"), assistant: t("model") } }) : asJson(this.conversation);
		const href = URL.createObjectURL(new Blob([text], { type: kind === "md" ? "text/markdown" : "application/json" }));
		make("a", { href, download: `${this.conversation.record.title.replace(/[^\p{L}\p{N} _-]/gu, "").trim() || "chat"}.${kind}` }).click();
		setTimeout(() => URL.revokeObjectURL(href), 10_000);
	}

	async remove() {
		if (!(await confirmed(t("deleteQuestion", { title: this.conversation.record.title }), t("delete")))) return;
		await this.conversation.remove();
		announce(t("deleted"));
	}

	drag(event, isOver) {
		event.preventDefault();
		this.composer.element.classList.toggle("over", isOver);
	}

	drop(event) {
		this.drag(event, false);
		this.composer.addImages([...event.dataTransfer.files]);
	}
}

/** A message in the log. */
class Bubble {
	constructor(message, view) {
		this.id = message.id;
		this.message = message;
		this.view = view;
		const isUser = message.role === "user";
		const name = t(isUser ? "you" : "model");
		this.prose = make("div.prose");
		this.foot = make("div.row.bubble-foot");
		this.error = make("div.bubble-error");
		this.reasoning = make("div.prose");
		this.reasoned = make("details.fold", { hidden: true }, make("summary", t("reasoning")), this.reasoning);
		this.element = make(`article.bubble.${message.role}`, { "aria-label": name }, make("h2.who", name), this.reasoned, this.prose, this.foot, this.error);
		if (isUser) this.drawUser();
		else this.drawResponse();
	}

	drawUser() {
		const { content } = this.message;
		const images = typeof content === "string" ? [] : content.filter((one) => one.image_url);
		const shown = images.map((one) => make("img.thumb", { src: one.image_url.url, alt: t("attached") }));
		const text = written(this.message);
		fill(this.prose, shown.length > 0 && make("div.row", shown), text && make("p.as-is", text));
	}

	drawResponse() {
		const { reasoning, text } = this.parts();
		this.reasoned.hidden = !reasoning;
		if (reasoning) this.reasoning.replaceChildren(markdown(reasoning));
		this.prose.replaceChildren(markdown(text));
		this.show = null;
	}

	parts() {
		const { reasoning, text } = thought(this.message.content);
		return { reasoning: this.message.reasoning || reasoning, text };
	}

	/** Draws a response that grows. */
	grow() {
		const { reasoning, text } = this.parts();
		this.show ??= { text: growing(this.prose), reasoning: growing(this.reasoning) };
		this.reasoned.hidden = !reasoning;
		this.show.reasoning(reasoning);
		this.show.text(text);
	}

	/** Draws what belongs to the state of the message: actions, measurements, errors. */
	end() {
		const { message, view } = this;
		const { conversation } = view;
		const isRunning = conversation.running?.message === message;
		const versions = conversation.versions(message);
		const state = `${message.state} ${isRunning} ${versions.length} ${Boolean(conversation.running)}`;
		if (state === this.state) return;
		const wasRunning = this.show;
		this.state = state;
		if (isRunning) this.element.setAttribute("aria-busy", "true");
		else this.element.removeAttribute("aria-busy");
		// Link definitions at the end of a response change its beginning.
		if (wasRunning && !isRunning && /^ {0,3}\[[^\]]+\]:/m.test(message.content)) this.drawResponse();
		const isInterrupted = message.state === "running" && !isRunning;
		const canRetry = !isRunning && !conversation.running;
		const note = { stopped: t("stopped"), done: message.measured ? measured(message.measured) : "" }[message.state] ?? (isInterrupted ? t("interrupted") : "");
		const isFailed = message.state === "failed" || isInterrupted;
		const small = (words, name, onclick) => button(words, { name, small: true, onclick });
		fill(
			this.foot,
			message.role === "assistant" && make("p.note", note),
			!isRunning && written(message) && copyButton(() => thought(written(message)).text),
			canRetry && message.role === "user" && small(t("edit"), "edit", () => this.edit()),
			canRetry && message.role === "assistant" && !isFailed && small(t("regenerate"), "again", () => view.respond(message.parent)),
			canRetry && isFailed && button(t("retry"), { name: "again", onclick: () => this.retry() }),
			versions.length > 1 && !conversation.running && this.switcher(versions),
		);
		fill(this.error, message.state === "failed" && failure(message.error));
	}

	retry() {
		const { message, view } = this;
		this.prose.replaceChildren();
		this.show = null;
		view.respond(message.parent, message);
	}

	switcher(versions) {
		const at = versions.indexOf(this.message);
		const go = (words, name, to) => button(words, { name, small: true, disabled: !versions[to], onclick: () => this.view.conversation.select(versions[to]) });
		return make("span.row", go(t("previous"), "left", at - 1), make("span.note", t("version", { number: at + 1, count: versions.length })), go(t("next"), "right", at + 1));
	}

	edit() {
		const { message, view } = this;
		const input = make("textarea", { rows: 3, "aria-label": t("message"), value: written(message) });
		const end = () => {
			this.drawUser();
			this.foot.hidden = false;
		};
		const save = async () => {
			const text = input.value.trim();
			if (!text) return;
			const content = typeof message.content === "string" ? text : [...message.content.filter((one) => one.image_url), { type: "text", text }];
			const edited = await view.conversation.say(content, message.parent);
			await view.respond(edited.id);
		};
		const form = make("form.stack", { onsubmit: save }, input, make("div.actions", button(t("cancel"), { class: "quiet", onclick: end }), button(t("send"), { class: "primary", type: "submit" })));
		this.foot.hidden = true;
		fill(this.prose, form);
		input.focus();
	}
}

function measured({ usage, seconds: took, firstSeconds, model }) {
	const tokens = usage?.completion_tokens;
	const speed = tokens > 1 && took > firstSeconds && t("tokensPerSecond", { speed: number((tokens - 1) / (took - firstSeconds), 1) });
	const used = tokens !== undefined && t("tokens", { input: usage.prompt_tokens ?? 0, output: tokens });
	return [model, used, speed, seconds(took)].filter(Boolean).join(" · ");
}
