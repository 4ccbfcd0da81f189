// A long list in the page's scroll area: only the rows near the visible part are in the document.

import { make } from "./dom.js";

/** Rows above and below the visible part, so that the keyboard always finds the next row. */
const MARGIN = 8;
/** Used until the first row is in the document. */
const ASSUMED_PX = 56;

export class LongList {
	/**
	 * `draw(item)` makes the `li` of an item. All rows have the same height, which the style sheet sets.
	 * `onEnd()` is called when the last rows are near. Items have a unique `id`.
	 */
	constructor(label, draw, onEnd) {
		this.element = make("ul.long", { "aria-label": label });
		this.drawRow = draw;
		this.onEnd = onEnd;
		this.items = [];
		this.rows = new Map();
		this.isPlanned = false;
		this.plan = () => {
			if (this.isPlanned) return;
			this.isPlanned = true;
			requestAnimationFrame(() => {
				this.isPlanned = false;
				this.draw();
			});
		};
		addEventListener("scroll", this.plan, { passive: true });
		addEventListener("resize", this.plan);
	}

	leave() {
		removeEventListener("scroll", this.plan);
		removeEventListener("resize", this.plan);
		this.onEnd = () => {};
	}

	/** Shows these items. Rows of items that were shown before stay, except those of `changed`. */
	show(items, changed = []) {
		this.items = items;
		for (const { id } of changed) {
			const old = this.rows.get(id);
			const item = old && items.find((one) => one.id === id);
			if (!item) continue;
			const focused = old.contains(document.activeElement) && [...old.querySelectorAll("a, input")].indexOf(document.activeElement);
			const row = this.drawRow(item);
			old.replaceWith(row);
			this.rows.set(id, row);
			if (focused !== false) row.querySelectorAll("a, input")[focused]?.focus({ preventScroll: true });
		}
		this.draw();
	}

	draw() {
		if (!this.element.isConnected) return;
		const height = this.element.firstElementChild?.offsetHeight || ASSUMED_PX;
		const top = -this.element.getBoundingClientRect().top;
		const first = Math.max(0, Math.floor(top / height) - MARGIN);
		const last = Math.min(this.items.length, Math.ceil((top + innerHeight) / height) + MARGIN);
		const wanted = [];
		for (let n = first; n < last; n++) wanted.push(n);
		// A row with the focus stays at every scroll position.
		const focused = this.items.findIndex(({ id }) => this.rows.get(id)?.contains(document.activeElement));
		if (focused >= 0 && focused < first) wanted.unshift(focused);
		if (focused >= last) wanted.push(focused);
		this.place(wanted, height);
		// The first row tells the height. It is not the assumed one in narrow windows.
		const measured = this.element.firstElementChild?.offsetHeight || height;
		if (measured !== height) {
			this.draw();
			return;
		}
		if (last >= this.items.length) this.onEnd();
	}

	place(wanted, height) {
		this.element.style.height = `${this.items.length * height}px`;
		const ids = new Set(wanted.map((n) => this.items[n].id));
		for (const [id, row] of this.rows) {
			if (ids.has(id)) continue;
			row.remove();
			this.rows.delete(id);
		}
		let next = this.element.firstElementChild;
		for (const n of wanted) {
			const item = this.items[n];
			const row = this.rows.get(item.id) ?? this.drawRow(item);
			this.rows.set(item.id, row);
			row.style.top = `${n * height}px`;
			row.setAttribute("aria-posinset", n + 1);
			row.setAttribute("aria-setsize", this.items.length);
			// Moving a row would take the focus from it.
			if (row === next) next = next.nextElementSibling;
			else this.element.insertBefore(row, next);
		}
	}
}
