// The page of a job: its result, inputs and details.

import { announce, button, copyButton, empty, failure, fill, icon, make, skeleton } from "./dom.js";
import { Inputs } from "./inputs.js";
import { removeRow } from "./joblist.js";
import { isOver, jobCard, operationOf, subjectOf } from "./jobs.js";
import { ask } from "./server.js";
import { moment } from "./text.js";
import { t } from "./texts.js";

export function showJob(place, { operations }, id) {
	const body = make("div.stack", skeleton(6));
	let leave = () => {};
	let isLeft = false;
	place.append(make("a.back", { href: "#/jobs" }, icon("left"), t("allJobs")), body);

	async function load() {
		try {
			const prediction = await ask(`api/v1/predictions/${encodeURIComponent(id)}`);
			if (!isLeft) draw(prediction);
		} catch (error) {
			if (isLeft) return;
			if (error.status === 404) removeRow(id);
			fill(body, make("h1", t("job")), error.status === 404 ? empty("jobs", t("noJob"), make("p", t("noJobHint"))) : failure(error));
		}
	}

	function draw(prediction) {
		const operation = operationOf(prediction, operations);
		const title = operation?.title ?? prediction.model;
		document.title = `${[title, subjectOf(prediction.input).slice(0, 60)].filter(Boolean).join(": ")} · polymux`;
		const card = jobCard(prediction, title, {
			open: true,
			level: 1,
			onRemoved() {
				removeRow(id);
				announce(t("deleted"));
				location.hash = "#/jobs";
			},
		});
		card.element.classList.add("card");
		leave = card.leave;
		fill(body, card.element, inputs(prediction, operation), details(prediction));
	}

	load();
	return () => {
		isLeft = true;
		leave();
	};
}

function facts(pairs) {
	return make("dl.details", ...pairs.map(([name, value]) => make("div", make("dt", name), make("dd", value))));
}

function inputs(prediction, operation) {
	const fields = new Map((operation?.variants ?? []).flatMap((one) => one.fields).map((one) => [one.name, one]));
	const given = Object.entries(prediction.input ?? {}).filter(([, value]) => (value ?? "") !== "");
	const text = (name, value) => fields.get(name)?.labels?.[value] ?? (typeof value === "string" ? value.replace(/^file:/, "") : JSON.stringify(value));
	const again = operation && button(t("runAgain"), { name: "again", onclick: () => runAgain(operation, prediction) });
	const shown = given.length ? facts(given.map(([name, value]) => [fields.get(name)?.title ?? name, text(name, value)])) : make("p.note", t("noInputs"));
	return make("section.card.stack", make("div.row", make("h2", t("inputs")), again), shown);
}

/** Opens the form of the operation with the inputs of a job, except files. */
function runAgain(operation, { input, model }) {
	const variant = operation.variants.find((one) => one.model === model) ?? operation.variants[0];
	const isSent = ({ name, type, default: usual }) => type !== "file" && input[name] !== usual && (input[name] ?? null) !== null && !`${input[name]}`.startsWith("data:");
	const values = Object.fromEntries(variant.fields.filter(isSent).map(({ name }) => [name, input[name]]));
	const [alternatives] = (variant.rules ?? []).filter((one) => one.rule === "exactly_one").map((one) => one.fields);
	const source = alternatives?.find((name) => name in values);
	new Inputs(operation.name).keep({ variant: variant.id ?? null, job: null, values, source });
	location.hash = `#/playground/${operation.name}`;
}

function details(prediction) {
	const known = [
		["jobId", make("span.row", make("code", prediction.id), copyButton(() => prediction.id))],
		["model", prediction.model],
		["engineModel", prediction.engine_model],
		["created", moment(prediction.created_at)],
		["started", moment(prediction.started_at)],
		["ended", isOver(prediction) && moment(prediction.completed_at)],
	];
	return make("section.card.stack", make("h2", t("details")), facts(known.filter(([, value]) => value).map(([name, value]) => [t(name), value])));
}
