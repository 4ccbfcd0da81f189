// Server-sent events out of a stream of bytes, as the HTML standard has them (9.2.6): EventSource
// itself can neither post nor send a key.

/**
 * The events of a body, as {name, data}. A character may be cut between two pieces, a line may end in
 * CR, LF or both, a comment is passed over, and several lines of data are one text.
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
