// Code that sends the request of a form: curl, Python with polymux, and the OpenAI and Replicate packages.
// The code has no comments, which would need translations.

const KEY = "POLYMUX_API_KEY";
/** The parameters of `chat.completions.create`. The package sends others in `extra_body`. */
const CHAT = new Set("messages model stream temperature top_p max_completion_tokens stop seed n response_format tools tool_choice parallel_tool_calls reasoning_effort service_tier stream_options user frequency_penalty presence_penalty logprobs top_logprobs logit_bias metadata store".split(" "));

/** Quotes a text for a POSIX shell. */
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A value as a Python literal. A file is its name. */
function python(value) {
	if (value === null || value === undefined) return "None";
	if (value === true) return "True";
	if (value === false) return "False";
	if (value instanceof File) return python(value.name);
	if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
	if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${python(name)}: ${python(one)}`).join(", ")}}`;
	return JSON.stringify(value);
}

const opened = (value) => (value instanceof File ? `open(${python(value)}, "rb")` : python(value));

/** A call with an argument per line. */
function call(name, given, write = python) {
	const lines = given.map(([key, value]) => `    ${key}=${typeof value === "object" && value?.code ? value.code : write(value)},\n`);
	return lines.length ? `${name}(\n${lines.join("")})` : `${name}()`;
}

function command({ path, encoding, values, base }) {
	const url = new URL(path, base);
	const lines = [`curl ${shell(url.href)}`, `-H "Authorization: Bearer $${KEY}"`];
	if (values.stream === true) lines[0] = `curl -N ${shell(url.href)}`;
	if (encoding === "json") {
		lines.push('-H "Content-Type: application/json"', `-d ${shell(JSON.stringify(values))}`);
	} else {
		for (const [name, value] of Object.entries(values)) {
			if (value instanceof File) lines.push(`-F ${shell(`${name}=@"${value.name.replace(/["\\]/g, "\\$&")}"`)}`);
			else lines.push(`--form-string ${shell(`${name}=${value}`)}`);
		}
	}
	return lines.join(" \\\n  ");
}

/** What prints the result of an operation, by the name of its class. */
const PRINTED = {
	ChatCompletion: "print(result.text)",
	TextResponse: "print(result.text)",
	OcrText: "print(result.text)",
	Prediction: "print(result.output)",
};

function withPolymux({ operation, variant, values, base }) {
	const fields = new Map(variant.fields.map((one) => [one.name, one.python_name ?? one.name]));
	const given = Object.entries(values).map(([name, value]) => [fields.get(name) ?? name, value]);
	if (operation.variants.length > 1) given.push(["model", variant.model]);
	const begin = `import os\n\nimport polymux\n\nclient = ${call("polymux.Client", [["base_url", base.replace(/\/$/, "")], ["api_key", { code: `os.environ["${KEY}"]` }]])}\n`;
	const asked = call(`client.${operation.name}`, given);
	if (values.stream === true && operation.family === "chat") return `${begin}with ${asked} as stream:\n    for text in stream.texts():\n        print(text, end="", flush=True)\n`;
	const saved = operation.result === "MediaFile" && `print(result.save("result.${operation.family === "video" ? "mp4" : "mp3"}"))`;
	return `${begin}result = ${asked}\n${saved || PRINTED[operation.result] || "print(result)"}\n`;
}

/** The call of the OpenAI package, or null if its API does not have the request. */
function openaiCall({ operation, variant, values }) {
	const entries = Object.entries(values);
	if (operation.name === "chat") {
		const extra = entries.filter(([name]) => !CHAT.has(name));
		const given = [...entries.filter(([name]) => CHAT.has(name)), ...(extra.length ? [["extra_body", Object.fromEntries(extra)]] : [])];
		const asked = `result = ${call("client.chat.completions.create", given)}\n`;
		return values.stream === true
			? `${asked}for chunk in result:\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "", end="", flush=True)\n`
			: `${asked}print(result.choices[0].message.content)\n`;
	}
	if (operation.name === "transcribe" && values.audio) {
		const isTranslated = values.task === "translate";
		const given = [["model", variant.model], ["file", values.audio]];
		if (values.language && !isTranslated) given.push(["language", values.language]);
		return `result = ${call(`client.audio.${isTranslated ? "translations" : "transcriptions"}.create`, given, opened)}\nprint(result.text)\n`;
	}
	if (operation.name === "generate_image" && !values.mask) {
		const { prompt, image, num_outputs: n, width, height, ...extra } = values;
		const given = [["model", variant.model], ["prompt", prompt]];
		if (image) given.push(["image", image]);
		if (n) given.push(["n", n]);
		const size = ["width", "height"].map((name) => values[name] ?? variant.fields.find((one) => one.name === name)?.default);
		if (width || height) given.push(["size", size.join("x")]);
		if (Object.keys(extra).length) given.push(["extra_body", extra]);
		return `result = ${call(`client.images.${image ? "edit" : "generate"}`, given, opened)}\nprint(len(result.data[0].b64_json or result.data[0].url))\n`;
	}
	return null;
}

function withOpenai(request) {
	const asked = openaiCall(request);
	const client = call("OpenAI", [["base_url", new URL("v1", request.base).href], ["api_key", { code: `os.environ["${KEY}"]` }]]);
	return asked && `import os\n\nfrom openai import OpenAI\n\nclient = ${client}\n${asked}`;
}

function withReplicate({ operation, variant, values, base }) {
	if (!operation.job) return null;
	const model = variant.model ?? `polymux/${operation.name.replaceAll("_", "-")}`;
	const inputs = Object.entries(values).map(([name, value]) => `        ${python(name)}: ${opened(value)},\n`);
	const client = call("replicate.Client", [["base_url", new URL("replicate", base).href], ["api_token", { code: `os.environ["${KEY}"]` }]]);
	return `import os\n\nimport replicate\n\nclient = ${client}\nresult = client.run(\n    ${python(model)},\n    input={\n${inputs.join("")}    },\n)\nprint(result)\n`;
}

/** The code by its kind. Kinds that do not have the operation are left out. */
export function snippets({ operation, variant, values, base, kinds }) {
	const path = variant.model ? `.${operation.path}?model=${encodeURIComponent(variant.model)}` : `.${operation.path}`;
	const request = { operation, variant, values, base, path, encoding: variant.encoding };
	const all = { curl: command(request), polymux: withPolymux(request), openai: withOpenai(request), replicate: withReplicate(request) };
	return Object.fromEntries(Object.entries(all).filter(([kind, code]) => code && kinds.includes(kind)));
}
