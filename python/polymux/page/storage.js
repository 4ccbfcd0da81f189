// Conversations in IndexedDB. Without it, such as in some private windows, they are kept in memory.

import { address } from "./server.js";

const VERSION = 1;
/** Several servers may share an origin, below different prefixes. */
const NAME = `polymux ${address("page/").pathname}`;

/** Stores by name, used if the browser refuses the database. */
const memory = { conversations: new Map(), messages: new Map() };
let opening = null;

function database() {
	opening ??= new Promise((resolve) => {
		let request;
		try {
			request = indexedDB.open(NAME, VERSION);
		} catch {
			resolve(null);
			return;
		}
		request.onupgradeneeded = () => {
			request.result.createObjectStore("conversations", { keyPath: "id" });
			request.result.createObjectStore("messages", { keyPath: "id" }).createIndex("conversation", "conversation");
		};
		request.onsuccess = () => {
			// Another tab with a newer page must not wait for this one.
			request.result.onversionchange = () => request.result.close();
			resolve(request.result);
		};
		request.onerror = () => resolve(null);
		request.onblocked = () => resolve(null);
	});
	return opening;
}

/** Whether the browser keeps conversations. */
export async function isPermanent() {
	return (await database()) !== null;
}

function answer(request) {
	return new Promise((resolve, reject) => {
		request.onsuccess = () => resolve(request.result);
		request.onerror = () => reject(request.error);
	});
}

function done(transaction) {
	return new Promise((resolve, reject) => {
		transaction.oncomplete = () => resolve();
		transaction.onabort = () => reject(transaction.error);
	});
}

/** All conversations, the newest first. */
export async function readConversations() {
	const base = await database();
	const all = base ? await answer(base.transaction("conversations").objectStore("conversations").getAll()) : [...memory.conversations.values()];
	return all.sort((one, other) => other.updated - one.updated);
}

/** A conversation with its messages, or null. */
export async function readConversation(id) {
	const base = await database();
	if (!base) {
		const record = memory.conversations.get(id);
		return record ? { record, messages: [...memory.messages.values()].filter((one) => one.conversation === id) } : null;
	}
	const transaction = base.transaction(["conversations", "messages"]);
	const messages = answer(transaction.objectStore("messages").index("conversation").getAll(id));
	const record = await answer(transaction.objectStore("conversations").get(id));
	return record ? { record, messages: await messages } : null;
}

/** Writes a conversation and some of its messages. */
export async function write(record, messages = []) {
	const base = await database();
	if (!base) {
		memory.conversations.set(record.id, record);
		for (const one of messages) memory.messages.set(one.id, one);
		return;
	}
	const transaction = base.transaction(["conversations", "messages"], "readwrite");
	transaction.objectStore("conversations").put(record);
	for (const one of messages) transaction.objectStore("messages").put(one);
	await done(transaction);
}

/** Deletes a conversation with its messages. */
export async function remove(id) {
	const base = await database();
	if (!base) {
		memory.conversations.delete(id);
		for (const one of [...memory.messages.values()]) if (one.conversation === id) memory.messages.delete(one.id);
		return;
	}
	const transaction = base.transaction(["conversations", "messages"], "readwrite");
	transaction.objectStore("conversations").delete(id);
	const messages = transaction.objectStore("messages");
	const cursor = messages.index("conversation").openKeyCursor(IDBKeyRange.only(id));
	cursor.onsuccess = () => {
		if (!cursor.result) return;
		messages.delete(cursor.result.primaryKey);
		cursor.result.continue();
	};
	await done(transaction);
}

/** The IDs of the conversations that have a message with this text. */
export async function search(text) {
	const wanted = text.toLowerCase();
	const found = new Set();
	const look = (one) => written(one).toLowerCase().includes(wanted) && found.add(one.conversation);
	const base = await database();
	if (!base) {
		for (const one of memory.messages.values()) look(one);
		return found;
	}
	const cursor = base.transaction("messages").objectStore("messages").openCursor();
	await new Promise((resolve, reject) => {
		cursor.onerror = () => reject(cursor.error);
		cursor.onsuccess = () => {
			if (!cursor.result) return resolve();
			look(cursor.result.value);
			cursor.result.continue();
		};
	});
	return found;
}

/** The text of a message, without images. */
export function written({ content }) {
	return typeof content === "string" ? content : content.map((one) => one.text ?? "").join("");
}
