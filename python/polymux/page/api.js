// The API tab of an operation: code that sends the request of the form.

import { copyButton, fill, linkOut, make, scrolled } from "./dom.js";
import { address, ask } from "./server.js";
import { snippets } from "./snippets.js";
import { t } from "./texts.js";

const NAMES = { curl: "curl", polymux: "Python", openai: "OpenAI SDK", replicate: "Replicate SDK" };
const COMPATIBLE = { openai: "v1/models", replicate: "replicate/v1/models" };
/** The server sends its description without a key only to the computer on which it runs. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** The kind of code that the user chose last. */
let chosen = "curl";
let kinds = null;

/** The kinds of code that the server supports: its compatibility APIs may be off. */
async function supported() {
	const checks = Object.entries(COMPATIBLE).map(([kind, path]) => ask(path).then(() => kind, () => null));
	kinds ??= Promise.all(checks).then((found) => ["curl", "polymux", ...found.filter(Boolean)]);
	return kinds;
}

/** The code for a request. `read()` returns the operation, the variant and the values of the form. */
export async function drawApi(place, read) {
	const supportedKinds = await supported();
	const code = make("code");
	const block = make("div.code", make("div.code-head", make("span", t("code")), copyButton(() => code.textContent)), scrolled("pre", t("code"), code));
	const tabs = make("div.tabs");
	const draw = () => {
		let found;
		try {
			found = snippets({ ...read(), base: address("").href, kinds: supportedKinds });
		} catch (error) {
			code.textContent = error.message;
			return;
		}
		if (!found[chosen]) chosen = "curl";
		code.textContent = found[chosen];
		const options = Object.keys(found).map((kind) => {
			const choose = () => {
				chosen = kind;
				draw();
				tabs.querySelector(":checked").focus();
			};
			const input = make("input", { type: "radio", name: "code", id: `code-${kind}`, checked: kind === chosen, onchange: choose });
			return make("span.tab", input, make("label", { for: input.id }, NAMES[kind]));
		});
		fill(tabs, options);
	};
	draw();
	const links = LOOPBACK.includes(location.hostname) && make("p.row", linkOut(address("docs").href, t("apiReference")), linkOut(address("openapi.json").href, "OpenAPI"));
	fill(place, make("fieldset", make("legend.unseen", t("code")), tabs), block, make("p.note", t("apiKeyNote", { name: "POLYMUX_API_KEY" })), links);
	return draw;
}
