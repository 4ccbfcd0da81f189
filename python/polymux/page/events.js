// Parses server-sent events from a byte stream (HTML standard, section 9.2.6). EventSource is not used
// because it supports neither POST nor an Authorization header.

/**
 * Yields the events of a body as {name, data}. A character may be split between two chunks, and lines
 * may end in CR, LF or CRLF. Comments are skipped, and the data lines of an event are joined.
 */
export async function* events(body) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	let name = "";
	let data = [];
	try {
		while (true) {
			const { value, done } = await reader.read();
			rest += value ?? "";
			const lines = rest.split(/\r\n|\n|\r(?!$)/);
			rest = lines.pop();
			for (const line of lines) {
				if (line === "") {
					if (data.length) yield { name, data: data.join("\n") };
					[name, data] = ["", []];
					continue;
				}
				const [, field, text] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
				if (field === "event") name = text ?? "";
				else if (field === "data") data.push(text ?? "");
			}
			if (done) return;
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}
