// The Playground view: a card for each operation, and a page with its form and result.

import { availability, availabilityBadge, availabilityNote } from "./availability.js";
import { chatModels } from "./conversations.js";
import { announce, button, empty, failure, fill, heading, icon, make } from "./dom.js";
import { formOf, uploadBar, variantChoice } from "./forms.js";
import { Inputs, setUploaded } from "./inputs.js";
import { jobCard, track } from "./jobs.js";
import { growing } from "./markdown.js";
import { showOutput } from "./results.js";
import { ask, send } from "./server.js";
import { streamed } from "./streaming.js";
import { t } from "./texts.js";

/** The name of the title, and the icon, of each family of operations. */
const FAMILIES = { chat: ["familyChat", "chat"], audio: ["familyAudio", "songs"], image: ["familyImage", "picture"], video: ["familyVideo", "play"], text: ["familyText", "copy"] };
const CHATS = ["chat", "free_chat"];
/** In narrower windows, the result is below the form. */
const NARROW = "(max-width: 960px)";

/** Shows the operation that the URL names, or all operations. */
export function showPlayground(place, { operations }, name) {
	const operation = operations.find((one) => one.name === name);
	if (operation) return showOperation(place, operation);
	place.append(heading(t("playground"), t("playgroundLead", { count: operations.length })));
	const names = new Map();
	for (const [family, [title, drawn]] of Object.entries(FAMILIES)) {
		const cards = operations.filter((one) => one.family === family).map((one) => {
			const words = make("span", make("strong", one.title), make("span.note", one.summary));
			names.set(one.name, words);
			return make("li", make("a.card.operation", { href: `#/playground/${one.name}` }, icon(drawn), words));
		});
		if (cards.length) place.append(make("section", make("h2", t(title)), make("ul.cards", ...cards)));
	}
	availability().then((list) => names.forEach((words, one) => words.append(availabilityBadge(list, one) ?? "")));
}

function showOperation(place, operation) {
	const run = new Run(operation);
	const back = make("a.back", { href: "#/playground" }, icon("left"), t("allOperations"));
	place.append(back, heading(operation.title, operation.summary), make("div.split", run.form, run.panel));
	return () => run.leave();
}

/** The form and the result of an operation. It runs one request at a time. */
class Run {
	constructor(operation) {
		this.operation = operation;
		this.inputs = new Inputs(operation.name);
		this.aborting = null;
		this.unwatch = () => {};
		this.note = make("div");
		this.fields = make("div");
		this.start = button(t("run"), { name: "play", class: "primary", type: "submit", title: t("runHint") });
		this.stop = button(t("stop"), { name: "stop", class: "danger", hidden: true, onclick: () => this.aborting?.abort() });
		const reset = button(t("resetForm"), { class: "quiet", onclick: () => this.reset() });
		this.result = make("div.result", { "aria-live": "polite" });
		this.nothing();
		const { variants } = operation;
		const chosen = variants.find((one) => one.id && one.id === this.inputs.kept.variant) ?? variants[0];
		this.form = make(
			"form.card.stack",
			{ onsubmit: () => this.submit(), onkeydown: (event) => this.pressed(event) },
			variantChoice(operation, chosen, (variant) => this.choose(variant)),
			this.note,
			this.fields,
			make("div.actions.run", reset, this.stop, this.start),
		);
		this.code = make("div.stack.api", { hidden: true });
		const tab = (name, isCode) => {
			const input = make("input", { type: "radio", name: "panel", id: `panel-${name}`, checked: !isCode, onchange: () => this.showCode(isCode) });
			return make("span.tab", input, make("label", { for: input.id }, t(name)));
		};
		const tabs = make("fieldset.row", make("legend.unseen", t("result")), make("div.tabs", tab("output", false), tab("api", true)));
		this.panel = make("section.card.stack", { "aria-labelledby": "result-title" }, make("h2.unseen", { id: "result-title" }, t("result")), tabs, this.result, this.code);
		for (const kind of ["input", "change"]) this.form.addEventListener(kind, () => this.drawCode?.());
		this.choose(chosen);
		availability().then((list) => {
			this.available = list;
			this.drawNote();
		});
		this.resume();
	}

	choose(variant) {
		this.variant = variant;
		this.inputs.keep({ variant: variant.id ?? null });
		this.built = formOf(this.operation, variant, this.inputs);
		if (this.operation.name === "chat") this.offerModels(this.built.controls.get("model"));
		fill(this.fields, this.built.element);
		this.drawCode?.();
		this.drawNote();
	}

	/** Shows code for the request instead of the result. */
	async showCode(is) {
		this.result.hidden = is;
		this.code.hidden = !is;
		document.getElementById(`panel-${is ? "api" : "output"}`).checked = true;
		if (!is || this.drawCode) return;
		const { drawApi } = await import("./api.js");
		this.drawCode = await drawApi(this.code, () => ({ operation: this.operation, variant: this.variant, values: this.built.values() }));
	}

	drawNote() {
		fill(this.note, this.available && availabilityNote(this.available, this.operation.name, this.variant));
	}

	/** Suggests the chat models of the server. */
	async offerModels({ input, state, restore }) {
		if (state() === undefined) restore("default");
		const list = make("datalist", { id: `${input.id}-list` });
		input.setAttribute("list", list.id);
		input.after(list);
		const names = await chatModels().catch(() => []);
		fill(list, [...new Set(["default", ...names])].map((value) => make("option", { value })));
	}

	/** Shows the last job of this operation again. */
	async resume() {
		const { job } = this.inputs.kept;
		if (!job) return;
		const prediction = await ask(`api/v1/predictions/${job}`).catch(() => null);
		if (prediction && !this.aborting && !this.isLeft) this.showJob(prediction);
	}

	reset() {
		this.inputs.clear();
		this.choose(this.variant);
		announce(t("formReset"));
		(this.form.querySelector("textarea, input:not([type=radio])") ?? this.start).focus();
	}

	pressed(event) {
		if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || this.start.hidden) return;
		event.preventDefault();
		this.form.requestSubmit();
	}

	leave() {
		this.isLeft = true;
		this.unwatch();
		this.aborting?.abort();
	}

	nothing() {
		fill(this.result, empty("play", t("noOutput"), make("p", t("noOutputHint"))));
	}

	/** Shows Stop instead of Run, and moves the focus along. */
	busy(is) {
		const had = [this.start, this.stop].includes(document.activeElement);
		this.start.hidden = is;
		this.stop.hidden = !is;
		if (had) (is ? this.stop : this.start).focus();
	}

	async submit() {
		if (this.start.hidden) return;
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
		this.busy(true);
		this.showCode(false);
		try {
			const asked = this.ask(body, this.aborting.signal);
			this.panel.classList.add("ran");
			this.panel.scrollIntoView({ block: matchMedia(NARROW).matches ? "start" : "nearest" });
			await asked;
		} catch (error) {
			this.tell(error);
		} finally {
			this.busy(false);
		}
	}

	tell(error) {
		if (error.name === "AbortError") {
			fill(this.result, empty("stop", t("stopped")));
			announce(t("stopped"));
			return;
		}
		// The field shows the error.
		if (this.built.fail(error)) this.nothing();
		else fill(this.result, failure(error));
	}

	async ask(body, signal) {
		const { operation, variant } = this;
		if (CHATS.includes(operation.name) && body.stream) {
			await this.stream(body, signal);
			return;
		}
		const files = Object.fromEntries(Object.entries(this.built.values()).filter(([, one]) => one instanceof File));
		const bar = uploadBar();
		fill(this.result, bar.element);
		const path = variant.model ? `${operation.path}?model=${encodeURIComponent(variant.model)}` : operation.path;
		const prefer = operation.job && "respond-async";
		const answer = await send(path, body, { prefer, signal, onUpload: bar.tell });
		if (operation.job && answer.value.id) {
			setUploaded(answer.value.id, files);
			track(answer.value, operation.name);
			this.inputs.keep({ job: answer.value.id });
			this.showJob(answer.value);
			announce(t("jobStarted"));
		} else {
			fill(this.result, ...showOutput(answer.value, { metrics: answer.metrics, files }));
			announce(t("resultReady"));
		}
	}

	showJob(prediction) {
		const card = jobCard(prediction, this.operation.title, { open: true });
		this.unwatch = card.leave;
		fill(this.result, card.element);
	}

	async stream(body, signal) {
		const text = make("div.prose");
		fill(this.result, text);
		const show = growing(text);
		await streamed(this.operation, body, { signal, onText: show });
		announce(t("responseComplete"));
	}
}
