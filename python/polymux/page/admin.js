// The server itself, for keys that may see it: looked at again every few seconds while it is open.

import { empty, failure, fill, heading, make, skeleton } from "./dom.js";
import { ask } from "./server.js";
import { bytes, moment, seconds } from "./text.js";

const AGAIN_AFTER_MS = 5000;
const KINDS = { ready: "good", idle: "idle", loading: "busy", failed: "bad" };

function table(title, columns, rows, none) {
  const head = make("thead", {}, make("tr", {}, ...columns.map((one) => make("th", { scope: "col" }, one))));
  const body = make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell, n) => make(n ? "td" : "th", n ? {} : { scope: "row" }, cell)))));
  const shown = rows.length ? make("div.wide", { tabIndex: 0, role: "region", "aria-label": title }, make("table", {}, head, body)) : make("p.note", {}, none);
  return make("section.card.stack", {}, make("h2", {}, title), shown);
}

function badge({ state, detail }) {
  return make("span", {}, make(`span.badge.${KINDS[state] ?? "idle"}`, {}, make("span.dot"), state), detail && make("span.note", {}, ` ${detail}`));
}

function tile(title, value, note) {
  return make("div.card.tile", {}, make("p.note", {}, title), make("p.value", {}, value), note && make("p.note", {}, note));
}

function tiles({ memory, store, requests, engines }) {
  const count = requests.reduce((sum, one) => sum + one.requests, 0);
  const failures = requests.reduce((sum, one) => sum + one.failures, 0);
  const busy = engines.reduce((sum, one) => sum + one.running, 0);
  const waiting = engines.reduce((sum, one) => sum + one.waiting, 0);
  const limit = memory.engines_limit_bytes === null ? "" : ` of ${bytes(memory.engines_limit_bytes)}`;
  return make(
    "div.tiles",
    {},
    tile("Engines’ memory", bytes(memory.engines_bytes) + limit, `${bytes(memory.free_bytes)} free on the machine`),
    tile("Server’s memory", bytes(memory.server_bytes)),
    tile("At work", String(busy), `${waiting} waiting, ${store.jobs_running} jobs`),
    tile("Requests", String(count), `${failures} refused or failed`),
    tile("Files kept", bytes(store.used_bytes), `of ${bytes(store.limit_bytes)}, for ${seconds(store.keep_s)}`),
  );
}

function quota(one) {
  const found = [
    one.requests_per_minute !== null && `${one.requests_per_minute} a minute`,
    one.concurrent !== null && `${one.concurrent} at once`,
    one.longest_estimate_s !== null && `work up to ${seconds(one.longest_estimate_s)}`,
  ].filter(Boolean);
  return found.join(", ") || "none";
}

function tables(told) {
  const places = (one) => `${one.running} of ${one.slots}${one.waiting ? `, ${one.waiting} waiting` : ""}`;
  return [
    table("Engines", ["Engine", "State", "At work", "Operations", "Models"], told.engines.map((one) => [one.name, badge(one), places(one), one.operations.join(", "), one.models?.join(", ") ?? ""]), "There are no engines."),
    table("Upstreams", ["Upstream", "State", "At work", "Server", "Operations"], told.upstreams.map((one) => [one.name, badge(one), places(one), `${one.host} (${one.kind})`, one.operations.join(", ")]), "No server of somebody else is asked."),
    table("Models", ["Model", "Engine", "Size", "Licence", "Problem"], told.models.map((one) => [one.name, one.family, bytes(one.bytes), one.license || "not said", one.problem]), "No models are in the folder of models."),
    table("Keys and quotas", ["Key", "Scopes", "Quota", "Requests", "Made", "Expires"], told.keys.map((one) => [`${one.name} (${one.id})`, one.scopes?.join(", ") ?? "all", quota(one), String(one.requests), moment(one.created_at), moment(one.expires_at) || "never"]), "There are no keys."),
    table("Requests since the start", ["Address", "Requests", "Refused or failed", "Mean time"], told.requests.map((one) => [one.operation, String(one.requests), String(one.failures), seconds(one.mean_s)]), "Nothing was asked yet."),
  ];
}

/** Everything at a glance. */
export function showAdministration(place) {
  const body = make("div.stack", {}, skeleton(6));
  place.append(heading("Server", "Engines, models, memory, keys and upstreams, as they are now."), body);
  let shown = "";
  let timer = 0;
  let isOver = false;

  async function look() {
    try {
      const told = await ask("api/v1/administration");
      const now = JSON.stringify(told);
      if (isOver) return;
      // Redrawn where something has changed, and nobody is reading a table by keyboard.
      if (now !== shown && !body.contains(document.activeElement)) {
        const moved = [...body.querySelectorAll(".wide")].map((one) => one.scrollLeft);
        fill(body, tiles(told), tables(told));
        [...body.querySelectorAll(".wide")].forEach((one, n) => (one.scrollLeft = moved[n] ?? 0));
        shown = now;
      }
    } catch (error) {
      if (isOver) return;
      fill(body, error.status === 403 ? empty("key", "This key may not see that", make("p", {}, error.message)) : failure(error));
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
