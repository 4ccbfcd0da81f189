// Conversations and the responses that stream into them. They go on while other views are open.

import { ask } from "./server.js";
import * as storage from "./storage.js";
import { streamed } from "./streaming.js";
import { t } from "./texts.js";

const SAVED_EVERY_MS = 1000;
const LONGEST_TITLE = 60;

/** The open conversations by ID, so that a view finds the one that a response streams into. */
const open = new Map();
const listeners = new Set();
const channel = new BroadcastChannel(`polymux ${new URL(".", import.meta.url).pathname}`);

/**
 * Calls `call({ conversation, message, isText })` after each change. `isText` says that only the text of
 * the message grew. Returns a function that ends this.
 */
export function onChange(call) {
	listeners.add(call);
	return () => listeners.delete(call);
}

function tell(change, isOurs = true) {
	for (const call of listeners) call(change);
	if (isOurs && !change.isText) channel.postMessage(change.conversation?.id ?? null);
}

// Another tab changed a conversation.
channel.onmessage = async ({ data: id }) => {
	const conversation = open.get(id);
	if (conversation && !conversation.running) await conversation.reload();
	tell({ conversation }, false);
};

/** An ID. `crypto.randomUUID` needs HTTPS. */
function newId() {
	const bytes = crypto.getRandomValues(new Uint8Array(12));
	return Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
}

/**
 * A tree of messages. Edits and regenerated responses are siblings: they have the same parent. `leaf` is
 * the last message of the version that is shown.
 */
export class Conversation {
	constructor(settings) {
		const now = Date.now();
		this.record = { id: newId(), title: "", created: now, updated: now, settings, leaf: null };
		this.messages = new Map();
		/** The response that streams: {message, controller}. */
		this.running = null;
		/** The browser refused to store the last change, for example because its storage is full. */
		this.isUnsaved = false;
	}

	get id() {
		return this.record.id;
	}

	/** Opens a stored conversation. Returns null for an unknown ID. */
	static async load(id) {
		if (open.has(id)) return open.get(id);
		const found = await storage.readConversation(id);
		// A second call may have come first.
		if (!found || open.has(id)) return open.get(id) ?? null;
		const conversation = new Conversation({});
		conversation.take(found);
		open.set(id, conversation);
		return conversation;
	}

	take({ record, messages }) {
		this.record = record;
		this.messages = new Map(messages.map((one) => [one.id, one]));
	}

	async reload() {
		const found = await storage.readConversation(this.id);
		if (found && !this.running) this.take(found);
	}

	/** The messages of the version that is shown. */
	path() {
		const found = [];
		for (let one = this.messages.get(this.record.leaf); one; one = this.messages.get(one.parent)) found.push(one);
		return found.reverse();
	}

	/** All versions of a message, the oldest first. */
	versions(message) {
		return [...this.messages.values()].filter((one) => one.parent === message.parent).sort((one, other) => one.created - other.created);
	}

	/** Shows the version with this message, up to its newest answer. */
	async select(message) {
		const newest = new Map();
		for (const one of this.messages.values()) if (!(newest.get(one.parent)?.created > one.created)) newest.set(one.parent, one);
		let leaf = message;
		while (newest.has(leaf.id)) leaf = newest.get(leaf.id);
		this.record.leaf = leaf.id;
		await this.save();
	}

	async save(...messages) {
		open.set(this.id, this);
		this.isUnsaved = await storage.write(this.record, messages).then(() => false, () => true);
		tell({ conversation: this });
	}

	async change(more) {
		Object.assign(this.record, more);
		await this.save();
	}

	async remove() {
		this.stop();
		open.delete(this.id);
		this.isRemoved = true;
		await storage.remove(this.id);
		tell({ conversation: this });
	}

	/** Adds a message of the user after `parent`, the last message if omitted. */
	async say(content, parent = this.record.leaf) {
		const message = this.add("user", content, parent);
		this.record.title ||= titleOf(storage.written(message));
		await this.save(message);
		return message;
	}

	add(role, content, parent) {
		const message = { id: newId(), conversation: this.id, parent, role, content, created: Date.now(), state: "done" };
		this.messages.set(message.id, message);
		this.record.leaf = message.id;
		this.record.updated = message.created;
		return message;
	}

	/**
	 * Streams a response to the message with the ID `parent`. Errors become part of the response. With
	 * `again`, a response that failed, the new one takes its place.
	 */
	async respond(operation, parent, again = null) {
		const message = again ?? this.add("assistant", "", parent);
		Object.assign(message, { content: "", reasoning: "", state: "running", error: null, measured: null });
		const controller = new AbortController();
		this.running = { message, controller };
		await this.save(message);
		let saved = performance.now();
		const onText = (text, reasoning) => {
			Object.assign(message, { content: text, reasoning });
			tell({ conversation: this, message, isText: true });
			if (performance.now() - saved < SAVED_EVERY_MS || this.isRemoved) return;
			saved = performance.now();
			storage.write(this.record, [message]).catch(() => {});
		};
		try {
			const found = await streamed(operation, this.body(operation, parent), { signal: controller.signal, onText });
			const { usage, seconds, firstSeconds, model } = found;
			Object.assign(message, { state: "done", measured: { usage, seconds, firstSeconds, model } });
		} catch (error) {
			if (error.name === "AbortError") message.state = "stopped";
			else Object.assign(message, { state: "failed", error: { message: error.message, code: error.code, requestId: error.requestId } });
		}
		this.running = null;
		if (!this.isRemoved) await this.save(message);
		return message;
	}

	stop() {
		this.running?.controller.abort();
	}

	/** The request for a response to the message with this ID. */
	body(operation, parent) {
		const { model, system, temperature, maximumTokens } = this.record.settings;
		const said = [];
		for (let one = this.messages.get(parent); one; one = this.messages.get(one.parent)) said.unshift(one);
		const messages = said.map(({ role, content }) => ({ role, content: role === "assistant" ? thought(content).text : content })).filter((one) => one.content.length);
		if (system) messages.unshift({ role: "system", content: system });
		if (operation.name === "free_chat") return { messages, ...(model && { model }) };
		return {
			model: model || "default",
			messages,
			stream_options: { include_usage: true },
			...((temperature ?? null) !== null && { temperature }),
			...((maximumTokens ?? null) !== null && { max_completion_tokens: maximumTokens }),
		};
	}
}

function titleOf(text) {
	const [line] = text.trim().split("\n", 1);
	return line.length > LONGEST_TITLE ? `${line.slice(0, LONGEST_TITLE - 1).trimEnd()}…` : line;
}

/** Parts the reasoning, as models write it between tags, from the response. */
export function thought(content) {
	const found = /^\s*<think>([^]*?)(?:<\/think>\s*|$)/.exec(content);
	return found ? { reasoning: found[1].trim(), text: content.slice(found[0].length) } : { reasoning: "", text: content };
}

// The part that has arrived must survive if the user closes the page.
addEventListener("pagehide", () => {
	for (const { record, running } of open.values()) if (running) storage.write(record, [running.message]);
});

/** Whether a response streams into the conversation with this ID. */
export function isRunning(id) {
	return Boolean(open.get(id)?.running);
}

/** Whether any response streams. */
export function isAnyRunning() {
	return [...open.values()].some((one) => one.running);
}

/** The conversations whose title or messages contain a text, the newest first. */
export async function listed(text = "") {
	const all = await storage.readConversations();
	if (!text) return all;
	const found = await storage.search(text);
	return all.filter((one) => found.has(one.id) || one.title.toLowerCase().includes(text.toLowerCase()));
}

export async function removeAll() {
	for (const one of await storage.readConversations()) await ((await Conversation.load(one.id))?.remove() ?? storage.remove(one.id));
}

/** The names of the models that can chat. */
export async function chatModels() {
	const { data } = await ask("v1/models");
	return data.filter((one) => one.operation === "chat").map((one) => one.id);
}

/** A conversation as Markdown. */
export function asMarkdown(conversation, { names }) {
	const parts = conversation.path().map((one) => {
		const images = typeof one.content === "string" ? [] : one.content.filter((part) => part.image_url).map(() => t("exportedImage"));
		return [`## ${names[one.role]}`, ...images, thought(storage.written(one)).text].filter(Boolean).join("\n\n");
	});
	return `${[`# ${conversation.record.title}`, ...parts].join("\n\n")}\n`;
}

/** A conversation with all versions as JSON. */
export function asJson(conversation) {
	const { record, messages } = conversation;
	return JSON.stringify({ ...record, messages: [...messages.values()] }, null, "\t");
}
