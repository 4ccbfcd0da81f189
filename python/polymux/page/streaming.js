// Streaming responses of the chat operations.

import { events } from "./events.js";
import { ServerError, open, unreachable } from "./server.js";
import { t } from "./texts.js";

/** A frame. Hidden tabs have no frames, but timers. */
const FRAME_MS = 16;

/** Streams a chat response. Calls `onText(text, reasoning)` with the whole texts so far, at most once per frame. */
export async function streamed(operation, body, { signal, onText }) {
	const asked = performance.now();
	const found = { text: "", reasoning: "", usage: null, model: "", seconds: 0, firstSeconds: 0 };
	let drawing = 0;
	const draw = () => {
		drawing = 0;
		onText(found.text, found.reasoning);
	};
	try {
		const answer = await open(operation.path, { method: "POST", body: { ...body, stream: true }, signal });
		for await (const { data } of events(answer.body)) {
			if (data === "[DONE]") return found;
			const { text, reasoning } = read(JSON.parse(data), found);
			if (!text && !reasoning) continue;
			found.firstSeconds ||= (performance.now() - asked) / 1000;
			found.text += text;
			found.reasoning += reasoning;
			drawing ||= setTimeout(draw, FRAME_MS);
		}
		throw new ServerError(0, { error: t("connectionClosed"), code: "cut" });
	} catch (error) {
		throw error instanceof TypeError ? unreachable() : error;
	} finally {
		clearTimeout(drawing);
		found.seconds = (performance.now() - asked) / 1000;
		onText(found.text, found.reasoning);
	}
}

function read(chunk, found) {
	if (chunk.error) {
		const error = typeof chunk.error === "object" ? chunk.error : { message: chunk.error };
		throw new ServerError(0, { ...error, error: error.message });
	}
	found.usage = chunk.usage ?? found.usage;
	found.model = chunk.model ?? found.model;
	const delta = chunk.choices?.[0]?.delta;
	return { text: chunk.response ?? delta?.content ?? "", reasoning: delta?.reasoning_content ?? "" };
}
