// Search in the index of the server, if it has one.

import { ask, make, problem, say, shown } from "./api.js";
import { hideWhy, why } from "./why.js";

const field = (name) => document.getElementById(name);

/** Reads conditions, one a line, each with a weight after a colon or none. */
export function weighted(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const parts = lines.map((line) => /^(.*\S)\s*:\s*(\d*\.?\d+)$/.exec(line) ?? [line, line, "1"]);
  return { conditions: parts.map((part) => part[1]), weights: parts.map((part) => Number(part[2])) };
}

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

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
  // The key comes last: it says less than any other column.
  others.sort((one, two) => (String(hit.columns[one]) === hit.key) - (String(hit.columns[two]) === hit.key));
  const values = others.map((name) => `${name}: ${written(hit.columns[name])}`);
  return make(
    "li",
    {},
    make("div", { className: "row" }, text, make("span", { className: "number" }, shown(hit.score))),
    make("div", { className: "bar", "aria-hidden": "true" }, fill),
    make("p", { className: "note" }, values.join(" · ")),
    make("div", { className: "each" }, ...each),
  );
}

/** Shows the search tab and lets it search. */
export function startSearch(index) {
  field("tab-search").hidden = false;
  const prepared = index.prepared.length ? ` Prepared: ${index.prepared.join(", ")}.` : "";
  field("columns").textContent = `Columns: ${index.columns.join(", ")}.${prepared}`;
  field("query").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) field("search").requestSubmit();
  });
  field("search").addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = field("query").value;
    // Neither old texts nor an old error stay during a search.
    field("hits").replaceChildren();
    hideWhy();
    problem("");
    if (!query.trim()) {
      problem("Write a text to search for.", { reveal: true });
      return;
    }
    const body = { query, top: Number(field("top").value) || 10, ...weighted(field("search-conditions").value) };
    if (!body.conditions.length) {
      delete body.conditions;
      delete body.weights;
    }
    if (field("where").value.trim()) body.where = field("where").value;
    if (field("least").value) body.at_least = Number(field("least").value);
    const button = field("start-search");
    button.disabled = true;
    button.textContent = "Searching …";
    say("Searching.");
    try {
      const { results } = await ask("v1/search", body);
      field("hits").replaceChildren(...results.map((hit) => drawn(hit, query, index)));
      if (!results.length) field("hits").append(make("li", {}, "No text was found: a lower score or another filter lets more through."));
      say(`${results.length} texts were found.`);
    } catch (error) {
      problem(error.message, { reveal: true });
    } finally {
      button.disabled = false;
      button.textContent = "Search";
    }
  });
}
