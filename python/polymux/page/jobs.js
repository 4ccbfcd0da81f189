// The Jobs view: jobs of the API key, which this page or other clients started. Running jobs are updated
// live, also after a reload of the page.

import { announce, button, empty, failure, fill, heading, make, scrolled, skeleton } from "./dom.js";
import { events } from "./events.js";
import { uploadedOf } from "./inputs.js";
import { showOutput } from "./results.js";
import { ask, baseOf, key, open } from "./server.js";
import { moment, seconds } from "./text.js";

const KEPT = "polymux.jobs";
const MOST_KEPT = 50;
const ENDS = ["succeeded", "failed", "canceled", "aborted"];
const STATES = {
	starting: ["Waiting", "busy"],
	processing: ["Running", "busy"],
	succeeded: ["Done", "good"],
	failed: ["Failed", "bad"],
	canceled: ["Canceled", "idle"],
	aborted: ["Canceled", "idle"],
};
const AGAIN_AFTER_MS = 1000;
/** Watched jobs by ID: the last state, the callbacks, and the controller that ends the watch. */
const watched = new Map();

function kept() {
	return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
}

function keep(jobs) {
	sessionStorage.setItem(KEPT, JSON.stringify(jobs.slice(0, MOST_KEPT)));
}

/** Stores the ID of a job that this page started. The browser keeps it until the tab is closed. */
export function track(prediction, operation) {
	const others = kept().filter((one) => one.id !== prediction.id);
	keep([{ id: prediction.id, operation }, ...others]);
	drawCount();
}

const isOver = (prediction) => ENDS.includes(prediction.status);

/** Watches the events of a job until it ends. Reconnects after a connection error. */
async function watch(id) {
	const one = watched.get(id);
	while (!one.over.signal.aborted) {
		try {
			const answer = await open(`api/v1/predictions/${id}/events`, { signal: one.over.signal });
			for await (const { name, data } of events(answer.body)) if (name === "prediction") tell(id, JSON.parse(data));
		} catch (error) {
			if (error.status >= 400 && error.status < 500 && error.status !== 429) {
				forget(id);
				return;
			}
		}
		if (!one.prediction || !isOver(one.prediction)) await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
	}
}

function tell(id, prediction) {
	const one = watched.get(id);
	if (!one) return;
	one.prediction = prediction;
	for (const call of one.calls) call(prediction);
	if (isOver(prediction)) {
		announce(`Job ended: ${STATES[prediction.status][0]}`);
		forget(id);
	}
	drawCount();
}

function forget(id) {
	watched.get(id)?.over.abort();
	watched.delete(id);
	drawCount();
}

function listen(prediction, call) {
	if (isOver(prediction)) return () => {};
	const { id } = prediction;
	if (!watched.has(id)) {
		watched.set(id, { prediction, calls: new Set(), over: new AbortController() });
		watch(id);
	}
	watched.get(id).calls.add(call);
	return () => watched.get(id)?.calls.delete(call);
}

/** After a reload or a change of the key, watches the unfinished jobs that this tab started. */
export async function resumeJobs() {
	for (const id of [...watched.keys()]) forget(id);
	if (key.get() === "") return;
	for (const { id } of kept()) {
		try {
			const prediction = await ask(`api/v1/predictions/${id}`);
			listen(prediction, () => {});
		} catch (error) {
			if (error.status === 404) keep(kept().filter((one) => one.id !== id));
			else break;
		}
	}
	drawCount();
}

/** Shows the number of running jobs in the navigation. */
export function drawCount() {
	const link = document.querySelector('#places a[href="#/jobs"]');
	link?.querySelector(".count")?.remove();
	if (watched.size) link?.append(make("span.count", String(watched.size), make("span.unseen", " running")));
}

function times(prediction) {
	const took = prediction.completed_at && (new Date(prediction.completed_at) - new Date(prediction.created_at)) / 1000;
	return [moment(prediction.created_at), took > 0 && `took ${seconds(took)}`].filter(Boolean).join(" · ");
}

/** One line about the job's input: a prompt, a URL or a file name. */
function asked(input) {
	const { prompt, prompt_a, query, url, file, audio, image } = input ?? {};
	const found = [prompt, prompt_a, query, url, file, audio, image].find((one) => typeof one === "string");
	return found && make("p.asked", found.length > 160 ? `${found.slice(0, 160)}…` : found);
}

/** A card for a job, whose current state is `first`. The card updates itself until the job has ended. */
export function jobCard(first, title, { open: isOpen = false, level = 3, onRemoved = () => {} } = {}) {
	let prediction = first;
	let shownOutput = "";
	const state = make("span.badge");
	const bar = make("progress", { max: 1, "aria-label": `Progress of ${title}` });
	const time = make("span.note");
	const problem = make("div");
	const preview = make("div.preview");
	const logs = scrolled("pre", "Log");
	const log = make("details.fold", make("summary", "Log"), logs);
	const output = make("div.result");
	const shown = make("details.fold", { open: isOpen, ontoggle: drawOutput }, make("summary", "Result"), output);
	const cancel = button("Cancel", { name: "stop", class: "danger", onclick: () => act("POST", "/cancel", cancel) });
	const remove = button("Delete", { name: "cross", class: "quiet", onclick: () => act("DELETE", "", remove) });
	const head = make("div.job-head", make(`h${level}`, title), state, time);
	const element = make("article.job", { dataset: { job: first.id } }, head, asked(first.input), bar, preview, problem, shown, log, make("div.actions", cancel, remove));

	async function act(method, path, pressed) {
		pressed.disabled = true;
		try {
			const updated = await ask(`api/v1/predictions/${prediction.id}${path}`, { method });
			if (updated) draw(updated);
			else onRemoved(fill(element, make("p.note", "Deleted.")));
		} catch (error) {
			fill(problem, failure(error));
		}
		pressed.disabled = false;
	}

	function drawOutput() {
		const { output: value, report, input } = prediction;
		const now = JSON.stringify(value ?? null);
		if (!shown.open || now === shownOutput) return;
		shownOutput = now;
		fill(output, ...showOutput(value, { base: baseOf(prediction), input, report, files: uploadedOf(prediction.id) }));
	}

	function draw(updated) {
		prediction = updated;
		const [words, kind] = STATES[updated.status] ?? [updated.status, "idle"];
		const over = isOver(updated);
		state.className = `badge ${kind}`;
		fill(state, make("span.dot"), over || !updated.progress ? words : `${words}, ${Math.floor(updated.progress * 100)} %`);
		element.dataset.status = updated.status;
		bar.hidden = over;
		if (updated.progress) bar.value = updated.progress;
		// An update without a preview keeps the last preview. The result replaces it.
		if (over) fill(preview);
		else if (updated.preview?.startsWith("data:image/")) fill(preview, make("img", { src: updated.preview, alt: "Preview" }));
		time.textContent = times(updated);
		logs.textContent = updated.logs ?? "";
		log.hidden = !updated.logs;
		cancel.hidden = over;
		remove.hidden = !over;
		shown.hidden = updated.output === undefined || updated.output === null;
		fill(problem, updated.error && failure({ message: updated.error, code: updated.error_code }));
		drawOutput();
	}

	draw(first);
	return { element, leave: listen(first, draw) };
}

export function showJobs(place, { operations }) {
	const list = make("div.stack");
	const more = button("Load more", { class: "quiet", hidden: true });
	const leaving = [];
	const fresh = button("Refresh", { class: "quiet", onclick: () => load() });
	place.append(heading("Jobs", "Jobs of this API key, newest first. They continue if you close this page.", fresh), list, more);

	const titles = new Map(operations.flatMap((one) => [[one.name, one.title], ...one.variants.map((variant) => [variant.model, one.title])]));
	const begun = () => new Map(kept().map((one) => [one.id, one.operation]));

	async function load(cursor = "") {
		if (!cursor) fill(list, skeleton(4));
		try {
			const page = await ask(`api/v1/predictions${cursor}`);
			const cards = page.results.map((one) => {
				const title = titles.get(begun().get(one.id)) ?? titles.get(one.model) ?? one.model;
				const card = jobCard(one, title, { open: !isOver(one), level: 2, onRemoved: (element) => element.remove() });
				leaving.push(card.leave);
				card.element.classList.add("card");
				return card.element;
			});
			if (cursor) list.append(...cards);
			else fill(list, cards.length ? cards : empty("jobs", "No jobs yet", make("p", "Operations that take long, such as image generation, conversion and transcription, run as jobs. "), make("a", { href: "#/playground" }, "Open the playground")));
			more.hidden = !page.next;
			more.onclick = () => load(new URL(page.next).search);
		} catch (error) {
			fill(list, failure(error));
		}
	}
	load();
	return () => leaving.forEach((leave) => leave());
}
