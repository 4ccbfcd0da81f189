// The Server view: the server's state, refreshed every few seconds. Its requests need an API key with
// the scope `administration`.

import { announce, button, empty, failure, fill, heading, make, skeleton, table } from "./dom.js";
import { DEEDS, openDeed } from "./keys.js";
import { ask } from "./server.js";
import { bytes, moment, seconds } from "./text.js";

const AGAIN_AFTER_MS = 5000;
const KINDS = { ready: "good", idle: "idle", loading: "busy", failed: "bad" };

function section(title, columns, rows, none, ...actions) {
	const shown = rows.length ? table(title, columns, rows, true) : make("p.note", none);
	return make("section.card.stack", make("div.row", make("h2", title), ...actions), shown);
}

function badge({ state, detail }) {
	return make("span", make(`span.badge.${KINDS[state] ?? "idle"}`, make("span.dot"), state), detail && make("span.note", ` ${detail}`));
}

function tile(title, value, note) {
	return make("div.card.tile", make("p.note", title), make("p.value", value), note && make("p.note", note));
}

function tiles({ memory, store, requests, engines }) {
	const sum = (list, name) => list.reduce((all, one) => all + one[name], 0);
	const limit = memory.engines_limit_bytes === null ? "" : ` of ${bytes(memory.engines_limit_bytes)}`;
	return make(
		"div.tiles",
		tile("Engine memory", bytes(memory.engines_bytes) + limit, `${bytes(memory.free_bytes)} free on the machine`),
		tile("Server memory", bytes(memory.server_bytes)),
		tile("Active requests", String(sum(engines, "running")), `${sum(engines, "waiting")} waiting, ${store.jobs_running} jobs`),
		tile("Requests", String(sum(requests, "requests")), `${sum(requests, "failures")} errors`),
		tile("Stored files", bytes(store.used_bytes), `of ${bytes(store.limit_bytes)}, kept for ${seconds(store.retention_s)}`),
	);
}

function quota(one) {
	const found = [
		one.requests_per_minute !== null && `${one.requests_per_minute} per minute`,
		one.concurrent !== null && `${one.concurrent} concurrent`,
		one.max_estimate_s !== null && `jobs up to ${seconds(one.max_estimate_s)}`,
	].filter(Boolean);
	return found.join(", ") || "none";
}

function act(words, name, onclick) {
	return button(words, { class: "quiet", "aria-label": `${words} ${name}`, onclick });
}

/** The buttons for a key. The key of this page can only be rotated: other actions could lock the user out. */
function deeds(one, state, changed) {
	const found = Object.keys(DEEDS).filter((deed) => deed !== "Create" && (deed === "Rotate" || !one.own));
	return make("div.row", ...found.map((deed) => act(deed, one.name, () => openDeed(deed, state, changed, one))));
}

function sections(state, changed) {
	const places = (one) => `${one.running} of ${one.max_concurrency}${one.waiting ? `, ${one.waiting} waiting` : ""}`;
	async function unload(name) {
		const failed = await ask(`api/v1/administration/engines/${name}/unload`, { method: "POST" }).then(() => null, (error) => error);
		announce(failed?.message ?? `Engine ${name} unloaded`);
		changed(failed);
	}
	return [
		section("Engines", ["Engine", "State", "Active", "Operations", "Models", "Memory"], state.engines.map((one) => [one.name, badge(one), places(one), one.operations.join(", "), one.models?.join(", ") ?? "", one.loaded ? act("Unload", one.name, () => unload(one.name)) : ""]), "No engines configured."),
		section("Upstreams", ["Upstream", "State", "Active", "Server", "Operations"], state.upstreams.map((one) => [one.name, badge(one), places(one), `${one.host} (${one.kind})`, one.operations.join(", ")]), "No upstreams configured."),
		section("Models", ["Model", "Engine", "Size", "License", "Problem"], state.models.map((one) => [one.name, one.family, bytes(one.bytes), one.license || "Unknown", one.problem]), "No models installed."),
		section("Keys and quotas", ["Key", "Scopes", "Quota", "Requests", "Created", "Expires", "Actions"], state.keys.map((one) => [`${one.name} (${one.id}${one.own ? ", yours" : ""})`, one.scopes?.join(", ") ?? "all", quota(one), String(one.requests), moment(one.created_at), moment(one.expires_at) || "never", deeds(one, state, changed)]), "No API keys.", button("Create key", { name: "plus", onclick: () => openDeed("Create", state, changed) })),
		section("Requests since start", ["Operation", "Requests", "Errors", "Average latency"], state.requests.map((one) => [one.operation, String(one.requests), String(one.failures), seconds(one.mean_s)]), "No requests yet."),
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
	const body = make("div.stack", skeleton(6));
	place.append(heading("Server", "Current state of engines, models, memory, keys and upstreams."), body);
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
			// Redraw only after a change, and not while the keyboard focus is in the content or a dialog is open.
			const isRead = body.contains(document.activeElement) || document.querySelector("dialog[open]");
			if (isForced || (now !== shown && !isRead)) {
				redraw(body, failed && failure(failed), tiles(state), sections(state, (why) => look(true, why)));
				shown = now;
			}
		} catch (error) {
			if (isOver) return;
			fill(body, error.status === 403 ? empty("key", "Permission denied", make("p", error.message)) : failure(error));
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
