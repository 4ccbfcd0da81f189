// The Jobs view: all jobs of the API key, with search, filters and bulk delete.

import { announce, button, empty, failure, fill, heading, icon, make, skeleton } from "./dom.js";
import { confirmed } from "./dialogs.js";
import { badgeOf, duration, isOver, listen, operationOf, subjectOf } from "./jobs.js";
import { LongList } from "./longlist.js";
import { isImage } from "./results.js";
import { ask, baseOf, key, nextOf, own } from "./server.js";
import { moment } from "./text.js";
import { language, t } from "./texts.js";

const PATH = "api/v1/predictions";
const FILTERS = {
	active: ["jobsActive", ["starting", "processing"]],
	done: ["jobDone", ["succeeded"]],
	failed: ["jobFailed", ["failed"]],
	canceled: ["jobCanceled", ["canceled", "aborted"]],
};
/** Concurrent requests of a bulk delete. */
const AT_ONCE = 4;
/** Kept while another view is open: the rows, the query of the next page, the filters, and the scroll position. */
const state = { owner: "", rows: [], next: "", isLoaded: false, search: "", status: "", operation: "", top: 0 };

/** Removes a job that another view has deleted. */
export function removeRow(id) {
	state.rows = state.rows.filter((one) => one.id !== id);
}

/** The parts of a job that the list needs. Whole jobs would fill the memory. */
function rowOf(prediction, operations) {
	const operation = operationOf(prediction, operations);
	const title = operation?.title ?? prediction.model;
	const subject = subjectOf(prediction.input);
	const { id, status, progress, created_at } = prediction;
	const text = [title, subject, prediction.model, prediction.engine_model ?? "", id].join("\n").toLowerCase();
	return { id, status, progress, created_at, title, subject, text, operation: operation?.name ?? "", took: duration(prediction), thumb: thumbOf(prediction) };
}

function thumbOf(prediction) {
	const first = [prediction.output].flat().find((one) => typeof one === "string");
	const href = first && own(first, baseOf(prediction));
	return href && isImage(new URL(href).pathname) ? href : null;
}

export function showJobs(place, { operations }) {
	// The titles of rows are in one language.
	const owner = `${language()} ${key.get()}`;
	if (state.owner !== owner) Object.assign(state, { owner, rows: [], next: "", isLoaded: false, top: 0 });
	const selected = new Set();
	const leaving = new Map();
	let isLoading = false;
	let isLeft = false;
	let shown = [];

	const search = make("input", { type: "search", "aria-label": t("searchJobs"), placeholder: t("searchJobs"), autocomplete: "off", value: state.search, oninput: () => choose("search", search.value) });
	const choice = (name, label, all, options) =>
		make("select", { "aria-label": label, onchange: (event) => choose(name, event.target.value) }, make("option", { value: "" }, all), ...options.map(([value, words]) => make("option", { value, selected: value === state[name] }, words)));
	const status = choice("status", t("state"), t("allStates"), Object.entries(FILTERS).map(([name, [words]]) => [name, t(words)]));
	const operation = choice("operation", t("operation"), t("allOperations"), operations.filter((one) => one.job).map((one) => [one.name, one.title]));
	const all = make("input", { type: "checkbox", onchange: () => selectAll(all.checked) });
	const count = make("span.note", { role: "status" });
	const remove = button(t("deleteSelected"), { name: "cross", class: "danger", hidden: true, onclick: () => removeSelected() });
	const bar = make("div.job-bar", make("label.check", all, t("selectAll")), count, remove);
	const problem = make("div");
	const none = make("div");
	const list = new LongList(t("jobs"), rowElement, () => more());
	const refresh = button(t("refresh"), { name: "again", class: "quiet", onclick: () => load() });
	place.append(heading(t("jobs"), t("jobsLead"), refresh), make("div.job-filters", search, status, operation), problem, bar, none, list.element);

	function rowElement(row) {
		const name = row.subject ? `${row.title}: ${row.subject}` : row.title;
		const box = make("input", {
			type: "checkbox", "aria-label": t("selectJob", { name }), checked: selected.has(row.id),
			onchange() {
				if (box.checked) selected.add(row.id);
				else selected.delete(row.id);
				drawBar();
			},
		});
		const thumb = row.thumb ? make("img.job-thumb", { src: row.thumb, alt: "", loading: "lazy", decoding: "async" }) : make("span.job-thumb", icon("jobs"));
		const link = make("a", { href: `#/jobs/${row.id}` }, make("strong", row.title), row.subject && make("span.subject", row.subject));
		const time = [moment(row.created_at), row.took].filter(Boolean).join(" · ");
		return make("li.job-row", { dataset: { job: row.id, status: row.status } }, box, thumb, link, badgeOf(row), make("span.note", time));
	}

	function choose(name, value) {
		state[name] = value;
		selected.clear();
		drawAll();
	}

	const isFiltered = () => state.search.trim() !== "" || state.status !== "" || state.operation !== "";

	function matches(row) {
		const wanted = state.search.trim().toLowerCase();
		return (!wanted || row.text.includes(wanted)) && (!state.status || FILTERS[state.status][1].includes(row.status)) && (!state.operation || row.operation === state.operation);
	}

	/** `changed`: rows with another state than in the document. */
	function drawAll(changed = []) {
		if (isLeft) return;
		shown = isFiltered() ? state.rows.filter(matches) : state.rows;
		drawBar();
		if (state.isLoaded && !shown.length && !state.next) fill(none, isFiltered() ? empty("jobs", t("noJobFound")) : noJobs());
		else fill(none, !shown.length && skeleton(4));
		list.show(shown, changed);
	}

	function noJobs() {
		return empty("jobs", t("noJobs"), make("p", t("noJobsHint")), make("a", { href: "#/playground" }, t("openPlayground")));
	}

	function drawBar() {
		bar.hidden = !shown.length;
		const chosen = selected.size;
		const values = { shown: shown.length, loaded: state.rows.length, hasMore: state.next !== "" };
		count.textContent = chosen ? t("selectedJobs", { count: chosen }) : t(isFiltered() ? "foundJobs" : "loadedJobs", values);
		remove.hidden = !chosen;
		all.checked = chosen > 0 && chosen === shown.length;
		all.indeterminate = chosen > 0 && chosen < shown.length;
	}

	function selectAll(isOn) {
		selected.clear();
		if (isOn) for (const { id } of shown) selected.add(id);
		drawAll(shown);
	}

	/** Adds or updates rows of a page of the server's list. */
	function merge(predictions, isFirst) {
		const known = new Map(state.rows.map((one) => [one.id, one]));
		const fresh = [];
		const changed = [];
		for (const one of predictions) {
			const row = rowOf(one, operations);
			const old = known.get(one.id);
			if (!old) fresh.push(row);
			else if (old.status !== row.status || old.progress !== row.progress) changed.push(Object.assign(old, row));
			watch(one);
		}
		state.rows = isFirst ? [...fresh, ...state.rows] : [...state.rows, ...fresh];
		return changed;
	}

	function watch(prediction) {
		if (isOver(prediction) || leaving.has(prediction.id)) return;
		const isKnown = (now) => state.rows.some((one) => one.id === now.id);
		leaving.set(prediction.id, listen(prediction, (now) => isKnown(now) && drawAll(merge([now], true))));
	}

	/** Loads the newest jobs. If none of them is known, the list starts again with them. */
	async function load() {
		isLoading = true;
		fill(problem);
		try {
			const page = await ask(PATH);
			const ids = new Set(state.rows.map((one) => one.id));
			if (!page.results.some((one) => ids.has(one.id))) Object.assign(state, { rows: [], next: nextOf(page) });
			state.isLoaded = true;
			const changed = merge(page.results, true);
			isLoading = false;
			drawAll(changed);
		} catch (error) {
			isLoading = false;
			fail(error);
		}
	}

	async function more() {
		if (isLoading || isLeft || !state.next) return;
		isLoading = true;
		try {
			const page = await ask(`${PATH}${state.next}`);
			state.next = nextOf(page);
			merge(page.results, false);
			isLoading = false;
			drawAll();
		} catch (error) {
			isLoading = false;
			fail(error);
		}
	}

	function fail(error) {
		if (isLeft) return;
		fill(problem, failure(error), state.next && button(t("tryAgain"), { onclick: () => more() }));
		if (!state.rows.length) fill(none);
	}

	async function removeSelected() {
		const ids = [...selected];
		if (!(await confirmed(t("deleteJobsQuestion", { count: ids.length }), t("delete")))) return;
		remove.disabled = true;
		fill(problem);
		const left = [...ids];
		let failed = null;
		async function work() {
			for (let id = left.pop(); id && !failed; id = left.pop()) {
				try {
					await ask(`${PATH}/${id}`, { method: "DELETE" });
				} catch (error) {
					if (error.status !== 404) {
						failed = error;
						return;
					}
				}
				leaving.get(id)?.();
				selected.delete(id);
				removeRow(id);
			}
		}
		await Promise.all(Array.from({ length: AT_ONCE }, work));
		remove.disabled = false;
		if (failed) fail(failed);
		else announce(t("deleted"));
		drawAll();
		all.focus();
	}

	if (state.isLoaded) {
		drawAll();
		requestAnimationFrame(() => scrollTo(0, state.top));
	} else fill(none, skeleton(4));
	load();
	return () => {
		state.top = scrollY;
		isLeft = true;
		list.leave();
		for (const leave of leaving.values()) leave();
	};
}
