// Jobs: the states of those that this page started or shows, and the card of a job. Jobs continue
// without the page, and after a reload the page finds them again.

import { announce, button, failure, fill, make, scrolled } from "./dom.js";
import { events } from "./events.js";
import { uploadedOf } from "./inputs.js";
import { showOutput } from "./results.js";
import { ask, baseOf, key, open } from "./server.js";
import { moment, seconds } from "./text.js";
import { t } from "./texts.js";

const KEPT = "polymux.jobs";
const MOST_KEPT = 50;
const ENDS = ["succeeded", "failed", "canceled", "aborted"];
/** For each state: the name of its text, and its color. */
const STATES = {
	starting: ["jobWaiting", "busy"],
	processing: ["jobRunning", "busy"],
	succeeded: ["jobDone", "good"],
	failed: ["jobFailed", "bad"],
	canceled: ["jobCanceled", "idle"],
	aborted: ["jobCanceled", "idle"],
};
const AGAIN_AFTER_MS = 1000;
const POLL_AFTER_MS = 2000;
/** Browsers open six connections to a server, and other requests need some. Further jobs are polled. */
const MOST_STREAMS = 2;
/** With more jobs, one request for the newest jobs replaces one for each. */
const MOST_SINGLE = 3;
/** Watched jobs by ID: the last state, whether this tab started it, the callbacks, and the stream. */
const watched = new Map();
let timer = 0;

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
	follow(prediction).isOwn = !isOver(prediction);
	drawCount();
}

export const isOver = (prediction) => ENDS.includes(prediction.status);

/** The operation of a job: this tab started it, or the job's model belongs to one operation. */
export function operationOf(prediction, operations) {
	const name = kept().find((one) => one.id === prediction.id)?.operation ?? prediction.model;
	return operations.find((one) => one.name === name) ?? operations.find((one) => one.variants.some((variant) => variant.model === prediction.model)) ?? null;
}

/** Watches the events of a job until it ends. Reconnects after a connection error. */
async function stream(id, { signal }) {
	while (!signal.aborted) {
		try {
			const answer = await open(`api/v1/predictions/${id}/events`, { signal });
			for await (const { name, data } of events(answer.body)) if (name === "prediction") tell(id, JSON.parse(data));
		} catch (error) {
			if (isLost(error)) {
				forget(id);
				return;
			}
		}
		if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
	}
}

/** Whether the job was deleted, or the key must not see it. */
function isLost(error) {
	return error.status >= 400 && error.status < 500 && error.status !== 429;
}

function plan() {
	const isWanted = [...watched.values()].some((one) => !one.stream);
	if (isWanted && !timer) timer = setTimeout(poll, POLL_AFTER_MS);
}

async function poll() {
	const ids = [...watched].filter(([, one]) => !one.stream).map(([id]) => id);
	try {
		const newest = ids.length > MOST_SINGLE ? (await ask("api/v1/predictions")).results : [];
		for (const id of ids) {
			try {
				tell(id, newest.find((one) => one.id === id) ?? (await ask(`api/v1/predictions/${id}`)));
			} catch (error) {
				if (!isLost(error)) throw error;
				forget(id);
			}
		}
	} catch {
		// The next poll tries again.
	}
	timer = 0;
	plan();
}

function tell(id, prediction) {
	const one = watched.get(id);
	if (!one) return;
	one.prediction = prediction;
	for (const call of [...one.calls]) call(prediction);
	if (isOver(prediction)) {
		if (one.isOwn) announce(t("jobEnded", { state: t(STATES[prediction.status][0]) }));
		forget(id);
	}
}

function forget(id) {
	watched.get(id)?.stream?.abort();
	watched.delete(id);
	drawCount();
}

function follow(prediction) {
	const known = watched.get(prediction.id);
	if (known || isOver(prediction)) return known ?? {};
	const made = { prediction, calls: new Set(), stream: null, isOwn: false };
	watched.set(prediction.id, made);
	plan();
	return made;
}

/** Calls `call` with each new state of an unfinished job, until the returned function is called. */
export function listen(prediction, call, { isStreamed = false } = {}) {
	if (isOver(prediction)) return () => {};
	const { id } = prediction;
	const one = follow(prediction);
	one.calls.add(call);
	const streams = [...watched.values()].filter((other) => other.stream).length;
	if (isStreamed && !one.stream && streams < MOST_STREAMS) {
		one.stream = new AbortController();
		stream(id, one.stream);
	}
	return () => {
		one.calls.delete(call);
		if (watched.get(id) !== one || one.calls.size) return;
		one.stream?.abort();
		one.stream = null;
		if (one.isOwn) plan();
		else forget(id);
	};
}

/** After a reload or a change of the key, watches the unfinished jobs that this tab started. */
export async function resumeJobs() {
	for (const id of [...watched.keys()]) forget(id);
	if (key.get() === "") return;
	for (const { id } of kept()) {
		try {
			const prediction = await ask(`api/v1/predictions/${id}`);
			if (!isOver(prediction)) follow(prediction).isOwn = true;
			drawCount();
		} catch (error) {
			if (error.status === 404) keep(kept().filter((one) => one.id !== id));
			else break;
		}
	}
}

/** Shows the number of running jobs that this tab started in the navigation. */
export function drawCount() {
	const link = document.querySelector('#places a[href="#/jobs"]');
	const count = [...watched.values()].filter((one) => one.isOwn).length;
	link?.querySelector(".count")?.remove();
	if (count) link?.append(make("span.count", String(count), make("span.unseen", ` ${t("running")}`)));
}

/** How long a job took, or an empty text. */
export function duration(prediction) {
	const took = prediction.completed_at ? (new Date(prediction.completed_at) - new Date(prediction.created_at)) / 1000 : 0;
	return took > 0 ? seconds(took) : "";
}

/** One line about the job's input: the name of the file, and a prompt or a URL. */
export function subjectOf(input) {
	const { file, audio, image, prompt, prompt_a, query, song, url } = input ?? {};
	const firstOf = (...values) => values.find((one) => typeof one === "string" && one && !one.startsWith("data:"));
	const found = [firstOf(file, audio, image)?.replace(/^file:/, ""), firstOf(prompt, prompt_a, query, song, url)];
	const text = found.filter(Boolean).join(" · ");
	return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

/** The state of a job: a colored dot and a word. */
export function badgeOf({ status, progress }) {
	const [name, kind] = STATES[status] ?? ["jobUnknown", "idle"];
	const isBusy = kind === "busy" && progress;
	return make(`span.badge.${kind}`, make("span.dot"), isBusy ? `${t(name)}, ${Math.floor(progress * 100)} %` : t(name));
}

/** A card for a job, whose current state is `first`. The card updates itself until the job has ended. */
export function jobCard(first, title, { open: isOpen = false, level = 3, onRemoved = () => {} } = {}) {
	let prediction = first;
	let shownOutput = "";
	const state = make("span");
	const bar = make("progress", { max: 1, "aria-label": t("progressOf", { title }) });
	const time = make("span.note");
	const problem = make("div");
	const preview = make("div.preview");
	const logs = scrolled("pre", t("log"));
	const log = make("details.fold", make("summary", t("log")), logs);
	const output = make("div.result");
	const shown = make("details.fold", { open: isOpen, ontoggle: drawOutput }, make("summary", t("result")), output);
	const cancel = button(t("cancel"), { name: "stop", class: "danger", onclick: () => request("POST", "/cancel", cancel) });
	const remove = button(t("delete"), { name: "cross", class: "quiet", onclick: () => request("DELETE", "", remove) });
	const head = make("div.job-head", make(`h${level}`, title), state, time);
	const subject = subjectOf(first.input);
	const element = make("article.job", { dataset: { job: first.id } }, head, subject && make("p.asked", subject), bar, preview, problem, shown, log, make("div.actions", cancel, remove));

	async function request(method, path, pressed) {
		pressed.disabled = true;
		try {
			const updated = await ask(`api/v1/predictions/${prediction.id}${path}`, { method });
			if (updated) draw(updated);
			else onRemoved(fill(element, make("p.note", t("deleted"))));
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
		const over = isOver(updated);
		fill(state, badgeOf(updated));
		element.dataset.status = updated.status;
		bar.hidden = over;
		if (updated.progress) bar.value = updated.progress;
		// An update without a preview keeps the last preview. The result replaces it.
		if (over) fill(preview);
		else if (updated.preview?.startsWith("data:image/")) fill(preview, make("img", { src: updated.preview, alt: t("preview") }));
		const took = duration(updated);
		time.textContent = [moment(updated.created_at), took && t("took", { time: took })].filter(Boolean).join(" · ");
		logs.textContent = updated.logs ?? "";
		log.hidden = !updated.logs;
		cancel.hidden = over;
		remove.hidden = !over;
		shown.hidden = updated.output === undefined || updated.output === null;
		fill(problem, updated.error && failure({ message: updated.error, code: updated.error_code }));
		drawOutput();
	}

	draw(first);
	return { element, leave: listen(first, draw, { isStreamed: true }) };
}
