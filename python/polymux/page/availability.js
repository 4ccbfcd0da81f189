// Which operations and models can run, and how to make the others available.

import { commands, icon, make } from "./dom.js";
import { ask } from "./server.js";
import { t } from "./texts.js";

/** The server's list: {operation, variant, available, small_model, reason}. Empty if it has none. */
export async function availability() {
	return ask("api/v1/availability").catch(() => []);
}

/** A note about a variant, or null if it can run with a usual model. */
export function availabilityNote(list, operation, variant) {
	const found = list.find((one) => one.operation === operation && (one.variant ?? "") === (variant.id ?? ""));
	if (!found || (found.available && !found.small_model)) return null;
	if (found.available) return make("p.notice", icon("warn"), t("smallModel"));
	return make("div.notice", icon("warn"), make("div.stack", make("strong", t("notAvailable")), make("p", found.reason), ...commands(found.reason)));
}

/** A badge for the card of an operation, or null if one of its models can run. */
export function availabilityBadge(list, operation) {
	const known = list.filter((one) => one.operation === operation);
	if (!known.length || known.some((one) => one.available && !one.small_model)) return null;
	const isSmall = known.some((one) => one.available);
	return make("span.badge", t(isSmall ? "smallModelBadge" : "notAvailable"));
}
