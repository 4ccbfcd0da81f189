// The server that the page came from: where it is, the key, and every way to ask it.

/** What all addresses begin with: the folder above this file's, wherever that is mounted. */
const BASE = new URL("../", import.meta.url);
const KEY = "polymux.key";
const JSON_TYPE = { "Content-Type": "application/json" };

/** What the server answered instead of what was wanted. */
export class ServerError extends Error {
	constructor(status, told) {
		super(told.error ?? `the server answered with status ${status}`);
		this.status = status;
		this.code = told.code ?? "";
		this.param = told.param ?? "";
		this.requestId = told.request_id ?? "";
	}
}

export function unreachable(hasFile = false) {
	const told = `the server cannot be reached: it may have stopped, or the connection is cut${hasFile ? "; or the file was changed or moved since it was chosen" : ""}`;
	return new ServerError(0, { error: told, code: "unreachable" });
}

/** The key lives in this tab alone, and leaves it in a header only. */
export const key = {
	get: () => sessionStorage.getItem(KEY) ?? "",
	set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

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
	let told = {};
	try {
		told = JSON.parse(text);
		if (typeof told.error === "object") told = { ...told.error, error: told.error.message };
	} catch {
		// No JSON: a proxy's page.
	}
	const error = new ServerError(status, told);
	if (status === 401) wantsKey(error);
	return error;
}

/** Asks, and gives the answer while its body is still to come. */
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
	if (!answer.ok) throw failed(answer.status, await answer.text().catch(() => ""));
	return answer;
}

/** Asks, and gives the answer's JSON; null where it has none. */
export async function ask(path, options) {
	const answer = await open(path, options);
	return answer.status === 204 ? null : answer.json();
}

/** Sends a form, or what becomes JSON; tells how many bytes have gone, which fetch cannot. */
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
const SIGNED = /\/(?:media|songs)\/[^/]+(?:\/cover)?$/;

/**
 * A link of the server's, as it is to be followed from here; null where it leads elsewhere. The page may
 * have come under another name than links have, such as localhost, and shows files of that one alone.
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

/** What a prediction's links begin with. */
export function baseOf(prediction) {
	return prediction.urls?.get?.split("api/v1/predictions/")[0] ?? null;
}
