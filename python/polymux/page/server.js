// Requests to the server that serves this page, and the API key of this tab.

import { t } from "./texts.js";

/** Base URL of the server: the parent of this file's directory. The page works below any prefix. */
const BASE = new URL("../", import.meta.url);
const KEY = "polymux.key";
const JSON_TYPE = { "Content-Type": "application/json" };

export class ServerError extends Error {
	constructor(status, body) {
		super(body.error ?? t("returnedStatus", { status }));
		this.status = status;
		this.code = body.code ?? "";
		this.param = body.param ?? "";
		this.requestId = body.request_id ?? "";
	}
}

export function unreachable(hasFile = false) {
	noteReach(false);
	return new ServerError(0, { error: t(hasFile ? "unreachableOrFile" : "unreachable"), code: "unreachable" });
}

/** The API key, sent in the Authorization header only. It is stored for this tab, or on this device if the user wants that. */
export const key = {
	get: () => sessionStorage.getItem(KEY) || localStorage.getItem(KEY) || "",
	set(text, isRemembered = false) {
		for (const place of [sessionStorage, localStorage]) place.removeItem(KEY);
		if (text) (isRemembered ? localStorage : sessionStorage).setItem(KEY, text);
	},
	/** Whether this device remembers the key. */
	isRemembered: () => !sessionStorage.getItem(KEY) && localStorage.getItem(KEY) !== null,
};

/** Calls `call` when another tab remembers or forgets a key. */
export function onRemembered(call) {
	addEventListener("storage", (event) => event.key === KEY && !sessionStorage.getItem(KEY) && call());
}

let noteReach = () => {};
/** Calls `call(isReachable)` after each request. */
export function onReach(call) {
	noteReach = call;
}

let wantsKey = () => {};
export function onUnauthorized(call) {
	wantsKey = call;
}

export function address(path) {
	return new URL(path.replace(/^\//, ""), BASE);
}

function headers(more) {
	return { ...(key.get() && { Authorization: `Bearer ${key.get()}` }), ...more };
}

function failed(status, text) {
	let body = {};
	try {
		body = JSON.parse(text);
		if (typeof body.error === "object") body = { ...body.error, error: body.error.message };
	} catch {
		// Not JSON, such as the error page of a proxy.
	}
	const error = new ServerError(status, body);
	if (status === 401) wantsKey(error);
	return error;
}

/** Sends a request and resolves with the response when its headers arrive. Throws ServerError. */
export async function open(path, { method = "GET", body, signal } = {}) {
	let answer;
	try {
		const fields = headers(body !== undefined && JSON_TYPE);
		const sent = body === undefined ? undefined : JSON.stringify(body);
		const where = address(path);
		answer = await fetch(where, { method, headers: fields, body: sent, signal, cache: "no-store", credentials: "omit" });
	} catch (error) {
		throw error.name === "AbortError" ? error : unreachable();
	}
	noteReach(true);
	if (!answer.ok) throw failed(answer.status, await answer.text().catch(() => ""));
	return answer;
}

/** Sends a request and resolves with the JSON of the response, or null for status 204. */
export async function ask(path, options) {
	const answer = await open(path, options);
	return answer.status === 204 ? null : answer.json();
}

/** The query of the next page of a list of the server; empty after the last one. */
export const nextOf = (page) => (page.next ? new URL(page.next).search : "");

/** Posts a form or JSON and reports upload progress, which fetch does not support. */
export function send(path, body, { prefer, signal, onUpload } = {}) {
	return new Promise((resolve, reject) => {
		const request = new XMLHttpRequest();
		request.open("POST", address(path));
		const isForm = body instanceof FormData;
		const fields = headers({ ...(!isForm && JSON_TYPE), ...(prefer && { Prefer: prefer }) });
		for (const [name, value] of Object.entries(fields)) request.setRequestHeader(name, value);
		request.upload.onprogress = (event) => event.lengthComputable && onUpload?.(event.loaded, event.total);
		request.onload = () => {
			if (request.status >= 400) return reject(failed(request.status, request.responseText));
			const metrics = request.getResponseHeader("Polymux-Metrics");
			resolve({ status: request.status, value: JSON.parse(request.responseText), metrics });
		};
		request.onerror = () => reject(unreachable(isForm));
		request.onabort = () => reject(new DOMException("", "AbortError"));
		signal?.addEventListener("abort", () => request.abort());
		request.send(isForm ? body : JSON.stringify(body));
	});
}

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
const SIGNED = /\/(?:media|songs)\/[^/]+(?:\/(?:cover|audio))?$/;

/**
 * Rewrites a signed link of this server to the origin of this page, because the page loads files from
 * its origin only. The host names may differ, such as localhost and 127.0.0.1. Returns null for links
 * to other servers.
 */
export function own(link, base = null) {
	if (!URL.canParse(link)) return null;
	const url = new URL(link);
	const path = SIGNED.exec(url.pathname)?.[0];
	if (!path || !url.searchParams.has("sig")) return null;
	const loopback = LOOPBACK.includes(url.hostname) && LOOPBACK.includes(BASE.hostname) && url.port === BASE.port;
	const known = base !== null && link.startsWith(base);
	return known || loopback || url.origin === BASE.origin ? new URL(path.slice(1) + url.search, BASE).href : null;
}

/** The prefix of a job's links. */
export function baseOf(prediction) {
	return prediction.urls?.get?.split("api/v1/predictions/")[0] ?? null;
}
