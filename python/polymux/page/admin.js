// The Server view: the server's state, refreshed every few seconds. Its requests need an API key with
// the scope `administration`.

import { chart } from "./charts.js";
import { announce, button, copyButton, empty, failure, fill, heading, make, skeleton, table } from "./dom.js";
import { DEEDS, openDeed } from "./keys.js";
import { ask } from "./server.js";
import { bytes, moment, seconds } from "./text.js";
import { number, t } from "./texts.js";

const AGAIN_AFTER_MS = 5000;
/** Ten minutes. */
const MOST_POLLS = 120;
/** For each state of an engine or model: its color and the name of its text. */
const STATES = {
	ready: ["good", "stateReady"],
	idle: ["idle", "stateIdle"],
	loading: ["busy", "stateLoading"],
	failed: ["bad", "stateFailed"],
	absent: ["idle", "stateNotInstalled"],
};
/** What this page polled, for the charts. Kept while another view is open. */
const polls = [];

const sum = (list, name) => list.reduce((all, one) => all + (one[name] ?? 0), 0);
const isApi = (one) => one.kind === "api";

function section(title, columns, rows, none, ...more) {
	const shown = rows.length ? table(title, columns, rows, true) : make("p.note", none);
	return make("section.card.stack", make("div.row", make("h2", title), ...more), shown);
}

const named = (...names) => names.map((name) => t(name));

function badge({ state, detail }) {
	const [kind, words] = STATES[state] ?? ["idle", "stateUnknown"];
	return make("span", make(`span.badge.${kind}`, make("span.dot"), t(words)), detail && make("span.note", ` ${detail}`));
}

function tile(title, value, note) {
	return make("div.card.tile", make("p.note", title), make("p.value", value), note && make("p.note", note));
}

function tiles({ memory, store, requests }) {
	const others = requests.filter((one) => !isApi(one));
	const api = requests.filter(isApi);
	return make(
		"div.tiles",
		tile(t("serverMemory"), bytes(memory.server_bytes)),
		tile(t("apiRequests"), String(sum(api, "requests")), t("errorsAndOthers", { errors: sum(api, "failures"), others: sum(others, "requests") })),
		tile(t("storedFiles"), bytes(store.used_bytes), t("storeLimit", { limit: bytes(store.limit_bytes), time: seconds(store.retention_s) })),
	);
}

function note({ memory, requests, engines, keys }) {
	polls.push({
		at: performance.now(),
		requests: sum(requests.filter(isApi), "requests"),
		tokens: sum(keys, "tokens"),
		running: sum(engines, "running"),
		memory: memory.engines_bytes,
	});
	polls.splice(0, polls.length - MOST_POLLS);
}

/** The change of a counter per second between polls. */
function rates(name) {
	return polls.slice(1).map((one, n) => Math.max(0, (one[name] - polls[n][name]) / ((one.at - polls[n].at) / 1000)));
}

function charts({ memory, store, engines }) {
	const decimal = (value) => number(value, 1);
	const limit = memory.engines_limit_bytes;
	const shown = (value) => (limit === null ? bytes(value) : t("ofLimit", { used: bytes(value), limit: bytes(limit) }));
	return [
		chart(t("requestsPerSecond"), rates("requests"), decimal),
		chart(t("tokenRate"), rates("tokens"), decimal),
		chart(t("activeRequests"), polls.map((one) => one.running), String, t("waitingAndJobs", { waiting: sum(engines, "waiting"), jobs: store.jobs_running })),
		chart(t("engineMemory"), polls.map((one) => one.memory), shown, t("freeMemory", { free: bytes(memory.free_bytes) })),
	];
}

function quota(one) {
	const found = [
		one.requests_per_minute !== null && t("quotaPerMinute", { count: one.requests_per_minute }),
		one.concurrent !== null && t("quotaConcurrent", { count: one.concurrent }),
		one.max_estimate_s !== null && t("quotaJobTime", { time: seconds(one.max_estimate_s) }),
	].filter(Boolean);
	return found.join(", ") || t("none");
}

function use(one) {
	const found = [t("requestCount", { count: one.requests }), one.tokens > 0 && t("tokenCount", { count: one.tokens }), one.work_s > 0 && t("workTime", { time: seconds(one.work_s) })];
	return found.filter(Boolean).join(", ");
}

function act(words, name, onclick) {
	return button(words, { class: "quiet", "aria-label": `${words} ${name}`, onclick });
}

/** The buttons for a key. The key of this page can only be rotated: other actions could lock the user out. */
function deeds(one, state, changed) {
	const found = Object.keys(DEEDS).filter((deed) => deed !== "create" && (deed === "rotate" || !one.own));
	return make("div.row", ...found.map((deed) => act(t(DEEDS[deed].name), one.name, () => openDeed(deed, state, changed, one))));
}

function pullCommand({ name }) {
	const text = `polymux models pull ${name}`;
	return make("span.row", make("code", text), copyButton(() => text));
}

function models({ models: installed, available_models: others }) {
	const rows = [
		...installed.map((one) => [one.name, badge(one.problem ? { state: "failed", detail: one.problem } : { state: "ready" }), one.family, bytes(one.bytes), one.license || t("unknown")]),
		...others.map((one) => [make("span", one.name, make("span.note", ` ${one.title}`)), badge({ state: "absent" }), one.family, bytes(one.bytes), pullCommand(one)]),
	];
	return section(t("models"), named("model", "state", "engine", "size", "licenseOrCommand"), rows, t("noModels"));
}

function latencies(requests) {
	return requests.map((one) => [one.operation, String(one.requests), String(one.failures), seconds(one.mean_s), seconds(one.p50_s), seconds(one.p95_s)]);
}

function sections(state, changed) {
	const places = (one) => t(one.waiting ? "placesWaiting" : "places", { running: one.running, limit: one.max_concurrency, waiting: one.waiting });
	async function unload(name) {
		const failed = await ask(`api/v1/administration/engines/${name}/unload`, { method: "POST" }).then(() => null, (error) => error);
		announce(failed?.message ?? t("unloaded", { name }));
		changed(failed);
	}
	const memory = (one) => make("span.row", one.memory_bytes ? bytes(one.memory_bytes) : "", one.loaded && act(t("unload"), one.name, () => unload(one.name)));
	const name = (one) => make("span", one.name, make("span.note", ` ${one.id}${one.own ? `, ${t("yours")}` : ""}`));
	const keys = state.keys.map((one) => [name(one), one.scopes?.join(", ") ?? t("everyScope"), quota(one), use(one), moment(one.created_at), moment(one.expires_at) || t("never"), deeds(one, state, changed)]);
	const columns = named("operation", "requests", "errors", "averageLatency", "medianLatency", "highLatency");
	const others = latencies(state.requests.filter((one) => !isApi(one)));
	return [
		section(t("engines"), named("engine", "state", "active", "operations", "models", "memory"), state.engines.map((one) => [one.name, badge(one), places(one), one.operations.join(", "), one.models?.join(", ") ?? "", memory(one)]), t("noEngines")),
		section(t("upstreams"), named("upstream", "state", "active", "server", "operations"), state.upstreams.map((one) => [one.name, badge(one), places(one), `${one.host} (${one.kind})`, one.operations.join(", ")]), t("noUpstreams")),
		models(state),
		section(t("keysAndQuotas"), named("key", "scopes", "quota", "usage", "created", "expiry", "actions"), keys, t("noKeys"), button(t("createAKey"), { name: "plus", onclick: () => openDeed("create", state, changed) })),
		section(t("requestsSinceStart"), columns, latencies(state.requests.filter(isApi)), t("noRequests")),
		section(t("uiAndMonitoring"), columns, others, t("noRequests")),
	];
}

/** Replaces the content and restores the keyboard focus and the scroll positions of tables. */
function redraw(body, ...children) {
	const focused = body.contains(document.activeElement) && document.activeElement.ariaLabel;
	const tables = () => [...body.querySelectorAll(".wide")];
	const moved = tables().map((one) => one.scrollLeft);
	fill(body, ...children);
	tables().forEach((one, n) => (one.scrollLeft = moved[n] ?? 0));
	const labelled = [...body.querySelectorAll("[aria-label]")];
	if (focused !== false) (labelled.find((one) => one.ariaLabel === focused) ?? body.querySelector("button")).focus({ preventScroll: true });
}

export function showAdministration(place) {
	const over = make("div.tiles");
	const body = make("div.stack", skeleton(6));
	place.append(heading(t("server"), t("serverLead")), make("div.stack", over, body));
	let shown = "";
	let timer = 0;
	let isOver = false;

	/** Loads the state. `isForced` redraws even without a change; `failed` is the error of an action. */
	async function look(isForced, failed) {
		clearTimeout(timer);
		try {
			const state = await ask("api/v1/administration");
			const now = JSON.stringify(state);
			if (isOver) return;
			note(state);
			fill(over, ...charts(state));
			// Redraw only after a change, and not while the keyboard focus is in the content or a dialog is open.
			const isRead = body.contains(document.activeElement) || document.querySelector("dialog[open]");
			if (isForced || (now !== shown && !isRead)) {
				redraw(body, failed && failure(failed), tiles(state), sections(state, (why) => look(true, why)));
				shown = now;
			}
		} catch (error) {
			if (isOver) return;
			fill(over);
			fill(body, error.status === 403 ? empty("key", t("permissionDenied"), make("p", error.message)) : failure(error));
			shown = "";
		}
		timer = setTimeout(look, AGAIN_AFTER_MS);
	}
	look();
	return () => {
		isOver = true;
		clearTimeout(timer);
	};
}
