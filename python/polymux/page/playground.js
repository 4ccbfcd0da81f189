// The Playground view: a card for each operation, and a page with its form and result.

import { announce, button, empty, failure, fill, heading, icon, make } from "./dom.js";
import { formOf, uploadBar, variantChoice } from "./forms.js";
import { jobCard, track } from "./jobs.js";
import { growing } from "./markdown.js";
import { showOutput } from "./results.js";
import { send } from "./server.js";
import { streamed } from "./streaming.js";
import { t } from "./texts.js";

/** The name of the title, and the icon, of each family of operations. */
const FAMILIES = { chat: ["familyChat", "chat"], audio: ["familyAudio", "songs"], image: ["familyImage", "picture"], video: ["familyVideo", "play"], text: ["familyText", "copy"] };
const CHATS = ["chat", "free_chat"];

/** Shows the operation that the URL names, or all operations. */
export function showPlayground(place, { operations }, name) {
	const operation = operations.find((one) => one.name === name);
	if (operation) return showOperation(place, operation);
	place.append(heading(t("playground"), t("playgroundLead", { count: operations.length })));
	for (const [family, [title, drawn]] of Object.entries(FAMILIES)) {
		const cards = operations.filter((one) => one.family === family).map((one) =>
			make("li", make("a.card.operation", { href: `#/playground/${one.name}` }, icon(drawn), make("span", make("strong", one.title), make("span.note", one.summary)))),
		);
		if (cards.length) place.append(make("section", make("h2", t(title)), make("ul.cards", ...cards)));
	}
}

function showOperation(place, operation) {
	const run = new Run(operation);
	const back = make("a.back", { href: "#/playground" }, t("allOperations"));
	place.append(back, heading(operation.title, operation.summary), make("div.split", run.form, run.panel));
	return () => run.leave();
}

/** The form and the result of an operation. It runs one request at a time. */
class Run {
	constructor(operation) {
		this.operation = operation;
		this.aborting = null;
		this.unwatch = () => {};
		this.fields = make("div");
		this.start = button(t("run"), { name: "play", class: "primary", type: "submit" });
		this.stop = button(t("stop"), { name: "stop", class: "danger", hidden: true, onclick: () => this.aborting?.abort() });
		this.result = make("div.result", { "aria-live": "polite" }, empty("play", t("noOutput"), make("p", t("noOutputHint"))));
		this.form = make(
			"form.card.stack",
			{ onsubmit: () => this.submit() },
			variantChoice(operation, (variant) => this.choose(variant)),
			this.fields,
			make("div.actions", this.stop, this.start),
		);
		this.panel = make("section.card.stack", { "aria-labelledby": "result-title" }, make("h2", { id: "result-title" }, t("result")), this.result);
		this.choose(operation.variants[0]);
	}

	choose(variant) {
		this.variant = variant;
		this.built = formOf(this.operation, variant);
		fill(this.fields, this.built.element);
	}

	leave() {
		this.unwatch();
		this.aborting?.abort();
	}

	async submit() {
		let body;
		this.built.fail(null);
		try {
			body = this.built.body();
		} catch (error) {
			this.built.fail(error);
			return;
		}
		this.unwatch();
		this.aborting = new AbortController();
		this.start.disabled = true;
		this.stop.hidden = false;
		this.panel.scrollIntoView({ block: "nearest" });
		try {
			await this.ask(body, this.aborting.signal);
		} catch (error) {
			this.tell(error);
		} finally {
			this.start.disabled = false;
			this.stop.hidden = true;
		}
	}

	tell(error) {
		if (error.name === "AbortError") {
			fill(this.result, empty("stop", t("stopped")));
			announce(t("stopped"));
			return;
		}
		fill(this.result, failure(error));
		this.built.fail(error);
	}

	async ask(body, signal) {
		const { operation, variant } = this;
		if (CHATS.includes(operation.name) && body.stream) {
			await this.stream(body, signal);
			return;
		}
		const bar = uploadBar();
		fill(this.result, bar.element);
		const path = variant.model ? `${operation.path}?model=${encodeURIComponent(variant.model)}` : operation.path;
		const prefer = operation.job && "respond-async";
		const answer = await send(path, body, { prefer, signal, onUpload: bar.tell });
		if (operation.job && answer.value.id) {
			track(answer.value, operation.name);
			const card = jobCard(answer.value, operation.title, { open: true });
			this.unwatch = card.leave;
			fill(this.result, card.element);
			announce(t("jobStarted"));
		} else {
			fill(this.result, ...showOutput(answer.value, { metrics: answer.metrics }));
			announce(t("resultReady"));
		}
	}

	async stream(body, signal) {
		const text = make("div.prose");
		fill(this.result, text);
		const show = growing(text);
		await streamed(this.operation, body, { signal, onText: show });
		announce(t("responseComplete"));
	}
}
