// Search in the index of the server, if it has one.

import { ask, make, problem, say, shown } from "./api.js";
import { why } from "./why.js";

const field = (name) => document.getElementById(name);

/** Reads conditions, one a line, each with a weight after a colon or none. */
export function weighted(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const parts = lines.map((line) => /^(.*\S)\s*:\s*(\d*\.?\d+)$/.exec(line) ?? [line, line, "1"]);
  return { conditions: parts.map((part) => part[1]), weights: parts.map((part) => Number(part[2])) };
}

function drawn(hit, query, index) {
  const text = make("p", { dir: "auto", className: "grow" }, hit.text);
  const fill = make("span");
  fill.style.width = `${100 * hit.score}%`;
  const each = Object.entries(hit.scores).map(([condition, score]) =>
    make(
      "button",
      { type: "button", className: "quiet", click: () => why(query, hit.text, condition) },
      `${condition} ${shown(score)}: why?`,
    ));
  const others = index.columns.filter((name) => hit.columns[name] !== hit.text && hit.columns[name] != null);
  return make(
    "li",
    {},
    make("div", { className: "row" }, text, make("span", { className: "number" }, shown(hit.score))),
    make("div", { className: "bar", "aria-hidden": "true" }, fill),
    make("p", { className: "note" }, others.map((name) => `${name}: ${JSON.stringify(hit.columns[name])}`).join(" · ")),
    make("div", { className: "each" }, ...each),
  );
}

/** Shows the search tab and lets it search. */
export function startSearch(index) {
  field("tab-search").hidden = false;
  const prepared = index.prepared.length ? ` Prepared: ${index.prepared.join(", ")}.` : "";
  field("columns").textContent = `Columns: ${index.columns.join(", ")}.${prepared}`;
  field("search").addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = field("query").value;
    const body = { query, top: Number(field("top").value) || 10, ...weighted(field("search-conditions").value) };
    if (!body.conditions.length) {
      delete body.conditions;
      delete body.weights;
    }
    if (field("where").value.trim()) body.where = field("where").value;
    if (field("least").value) body.at_least = Number(field("least").value);
    try {
      const { results } = await ask("v1/search", body);
      problem("");
      field("hits").replaceChildren(...results.map((hit) => drawn(hit, query, index)));
      if (!results.length) field("hits").append(make("li", {}, "Nothing was found."));
      say(`${results.length} texts were found.`);
    } catch (error) {
      problem(error.message);
    }
  });
}
