// Streaming responses of the chat operations.

import { events } from "./events.js";
import { ServerError, open, unreachable } from "./server.js";

/** Streams a chat response. Calls `onText(whole)` with the text so far, at most once per frame. */
export async function streamed(operation, body, { signal, onText }) {
	const asked = performance.now();
	const found = { text: "", usage: null, model: "", seconds: 0, firstSeconds: 0 };
	let drawing = 0;
	const draw = () => {
		drawing = 0;
		onText(found.text);
	};
	try {
		const answer = await open(operation.path, { method: "POST", body: { ...body, stream: true }, signal });
		for await (const { data } of events(answer.body)) {
			if (data === "[DONE]") return found;
			const piece = read(JSON.parse(data), found);
			if (piece && !found.text) found.firstSeconds = (performance.now() - asked) / 1000;
			found.text += piece;
			if (piece) drawing ||= requestAnimationFrame(draw);
		}
		throw new ServerError(0, { error: "the connection was closed before the end of the response", code: "cut" });
	} catch (error) {
		throw error instanceof TypeError ? unreachable() : error;
	} finally {
		cancelAnimationFrame(drawing);
		found.seconds = (performance.now() - asked) / 1000;
		onText(found.text);
	}
}

function read(chunk, found) {
	if (chunk.error) {
		const error = typeof chunk.error === "object" ? chunk.error : { message: chunk.error };
		throw new ServerError(0, { ...error, error: error.message });
	}
	found.usage = chunk.usage ?? found.usage;
	found.model = chunk.model ?? found.model;
	return chunk.response ?? chunk.choices?.[0]?.delta?.content ?? "";
}
