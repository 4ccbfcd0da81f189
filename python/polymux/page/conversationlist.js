// The list of conversations beside the chat: search, open, delete.

import { announce, button, fill, make } from "./dom.js";
import { isRunning, listed, onChange, removeAll } from "./conversations.js";
import { confirmed } from "./dialogs.js";
import { moment } from "./text.js";
import { t } from "./texts.js";

/** The search finds the others. */
const MOST_SHOWN = 200;

export class ConversationList {
	constructor({ onNew, onRemoved }) {
		this.current = null;
		this.search = make("input", { type: "search", "aria-label": t("search"), placeholder: t("search"), autocomplete: "off", oninput: () => this.draw() });
		this.items = make("ul.conversations");
		this.clear = button(t("deleteAll"), { class: "quiet", hidden: true, onclick: () => this.removeAll(onRemoved) });
		this.element = make("nav.conversation-list", { "aria-label": t("conversations") }, button(t("newChat"), { name: "plus", onclick: onNew }), this.search, this.items, this.clear);
		this.turn = 0;
		this.unwatch = onChange(({ isText }) => !isText && this.draw());
		this.draw();
	}

	leave() {
		this.unwatch();
	}

	/** Whether a narrow screen shows the list. Wide screens always do. */
	get isOpen() {
		return this.element.classList.contains("open");
	}

	set isOpen(is) {
		this.element.classList.toggle("open", is);
	}

	/** Marks the conversation with this ID as the current one. */
	mark(id) {
		this.current = id;
		this.draw();
	}

	async draw() {
		const mine = ++this.turn;
		const text = this.search.value.trim();
		const found = await listed(text);
		if (mine !== this.turn) return;
		const rows = found.slice(0, MOST_SHOWN).map((one) => {
			const when = make("span.note", moment(one.updated));
			const title = make("span.title", one.title || t("untitled"));
			const dot = isRunning(one.id) && make("span.dot.busy", { title: t("generating") });
			return make("li", make("a", { href: `#/chat/${one.id}`, "aria-current": one.id === this.current && "page" }, title, when, dot));
		});
		const none = make("li.note", text ? t("noMatch") : t("noConversations"));
		fill(this.items, rows.length ? rows : none);
		this.clear.hidden = !found.length || text !== "";
	}

	async removeAll(onRemoved) {
		if (!(await confirmed(t("deleteAllQuestion"), t("deleteAll")))) return;
		await removeAll();
		announce(t("deleted"));
		onRemoved();
	}
}
