// Two texts under conditions, the tabs and the permanent link.

import { UNREAD, ask, isCondition, latest, make, problem, say, shown, verdict } from "./api.js";
import { startSearch } from "./search.js";
import { download, drawTable } from "./table.js";
import { hideWhy, why } from "./why.js";

const field = (name) => document.getElementById(name);
const EXAMPLES = {
  "Two dinners": [
    "The waiter was rude, but the soup was delicious.",
    "Our waitress was friendly; the soup was tasteless.",
    ["the attitude of the staff", "the type of food"],
  ],
  "Two phones": [
    "The battery lasts two days, but the screen is dim.",
    "Battery for two days and a bright screen.",
    ["the battery life", "the screen"],
  ],
  "Two matches": [
    "Three people watch a tennis match.",
    "A trio plays table tennis in a garage.",
    ["the number of people", "the sport", "the place"],
  ],
  "Two surfers": [
    "A windsurfer skims the water",
    "The surfer is riding a wave",
    ["the base of the object", "how it is propelled"],
  ],
};
const TABLE = "A man throws a ball.\tA girl kicks a ball.\n"
  + "Two dogs sleep on a sofa.\tA dog runs along the beach.\n"
  + "She slices tomatoes.\tA chef cuts up vegetables.";
const TABLE_CONDITIONS = "the action\nthe number of animals or people\nthe object";
const LINKED = { // fields in the permanent link
  rows: "rows", tc: "table-conditions", q: "query", sc: "search-conditions", w: "where", n: "top", l: "least",
};

let conditions = [];
let view = "pair";

function barOf(condition, place) {
  const whole = place < 0;
  const name = whole ? "the texts as a whole" : condition;
  const title = whole
    ? make("span", { className: "grow whole" }, name)
    : make("input", {
      className: "grow",
      value: condition,
      "aria-label": `Condition ${place + 1}`,
      input: (event) => {
        conditions[place] = event.target.value;
        changed();
      },
    });
  const reason = make("button", {
    type: "button",
    className: "quiet",
    "aria-label": `Why this score: ${name}`,
    click: () => why(field("first").value, field("second").value, whole ? null : conditions[place].trim()),
  }, "Why?");
  const figures = [make("span", { className: "verdict" }), make("span", { className: "number" }, "–")];
  const row = make("div", { className: "row" }, title, ...figures, reason);
  if (!whole) {
    const remove = () => {
      conditions.splice(place, 1);
      drawBars();
      changed();
      field("condition").focus();
    };
    row.append(make("button", {
      type: "button", className: "quiet", "aria-label": `Remove the condition ${name}`, click: remove,
    }, "×"));
  }
  const bar = make("div", { className: "bar", "aria-hidden": "true" }, make("span"));
  return make("li", {}, row, bar, make("p", { className: "note remark" }));
}

function drawBars() {
  field("bars").replaceChildren(...conditions.map(barOf), barOf("", -1));
}

function setBar(line, score, { word = "", remark = "", silent = false } = {}) {
  line.classList.remove("waiting");
  line.classList.toggle("silent", silent);
  line.querySelector(".number").textContent = score === null ? "–" : shown(score);
  line.querySelector(".verdict").textContent = word;
  line.querySelector(".remark").textContent = remark;
  line.querySelector(".bar > span").style.width = `${100 * (score ?? 0)}%`;
}

async function scorePair() {
  const pair = [field("first").value, field("second").value];
  const lines = [...field("bars").children];
  if (!pair.every((text) => text.trim())) {
    for (const line of lines) setBar(line, null);
    return;
  }
  lines.forEach((line) => line.classList.add("waiting"));
  const places = conditions.map((_, place) => place).filter((place) => isCondition(conditions[place]));
  const given = places.map((place) => conditions[place]);
  const under = given.length ? ask("v1/score", { pairs: [pair], conditions: given }) : { scores: [[]] };
  // Some models know no score without a condition.
  const whole = ask("v1/score", { pairs: [pair] }).catch(() => ({ scores: [[null]] }));
  let found;
  try {
    found = await under;
  } catch (error) {
    lines.forEach((line) => setBar(line, null)); // no old scores under an error
    throw error;
  }
  if (lines[0] !== field("bars").firstElementChild) return; // drawn anew; another call is on its way
  const scores = found.scores[0];
  const { scores: [[wholeScore]], unread } = await whole;
  lines.forEach((line) => setBar(line, null));
  const said = scores.map((score, which) => {
    const remark = unread ? UNREAD : found.remarks?.[0][which] ?? "";
    const word = remark ? "" : verdict(score);
    setBar(lines[places[which]], score, { word, remark, silent: Boolean(remark) });
    return `${given[which]}: ${shown(score)}, ${remark || word}`;
  });
  setBar(lines.at(-1), wholeScore, { remark: unread ? UNREAD : "not calibrated: it only ranks pairs", silent: Boolean(unread) });
  say(said.join("; "));
}

const pairSoon = latest(scorePair, 25);
const tableSoon = latest(
  () => drawTable(field("rows").value, field("header").checked, linesOf("table-conditions").filter(isCondition)),
  150,
);

function linesOf(name) {
  return field(name).value.split("\n").map((line) => line.trim()).filter(Boolean);
}

let writing;
function changed() {
  hideWhy();
  if (view === "pair") pairSoon();
  if (view === "table") tableSoon();
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState(null, "", linkOf()), 300);
}

function linkOf() {
  const state = new URLSearchParams({ v: view });
  if (view === "pair") {
    state.set("a", field("first").value);
    state.set("b", field("second").value);
    for (const one of conditions) state.append("c", one);
  } else {
    for (const [short, name] of Object.entries(LINKED)) {
      if (field(name).closest("section").id === `view-${view}`) state.set(short, field(name).value);
    }
    if (view === "table" && field("header").checked) state.set("h", "1");
  }
  return `#${state}`;
}

function restore() {
  const state = new URLSearchParams(location.hash.slice(1));
  const [first, second, given] = Object.values(EXAMPLES)[0];
  field("first").value = state.get("a") ?? first;
  field("second").value = state.get("b") ?? second;
  conditions = state.has("a") ? state.getAll("c") : [...given];
  field("rows").value = TABLE;
  field("table-conditions").value = TABLE_CONDITIONS;
  for (const [short, name] of Object.entries(LINKED)) if (state.has(short)) field(name).value = state.get(short);
  document.querySelector("#search details").open = Boolean(field("where").value || field("least").value);
  field("header").checked = state.get("h") === "1";
  drawBars();
  show(["pair", "table", "search"].includes(state.get("v")) ? state.get("v") : "pair");
}

function show(wanted) {
  view = wanted;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.dataset.view === view;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    field(`view-${tab.dataset.view}`).hidden = !chosen;
  }
  problem("");
  changed();
}

function start() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const tab of tabs) {
    tab.addEventListener("click", () => show(tab.dataset.view));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const there = tabs.filter((one) => !one.hidden);
      const next = there[(there.indexOf(tab) + step + there.length) % there.length];
      next.focus();
      next.click();
    });
  }
  const inputs = ["first", "second", "header", ...Object.values(LINKED)];
  for (const name of inputs) field(name).addEventListener("input", changed);
  field("add").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = field("condition").value.trim();
    if (!given) return;
    conditions.push(given);
    field("condition").value = "";
    drawBars();
    changed();
  });
  for (const [name, [first, second, given]] of Object.entries(EXAMPLES)) {
    const fill = () => {
      [field("first").value, field("second").value, conditions] = [first, second, [...given]];
      drawBars();
      changed();
    };
    field("examples").append(make("button", { type: "button", className: "quiet", click: fill }, name));
  }
  field("link").addEventListener("click", async () => {
    history.replaceState(null, "", linkOf());
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      said = "The address above is the link";
    }
    field("link").textContent = said;
    setTimeout(() => { field("link").textContent = "Copy link"; }, 2000);
  });
  field("download").addEventListener("click", download);
  window.addEventListener("hashchange", restore);
  restore();
}

start();
ask("v1/models").then(({ data: [model] }) => {
  field("model").textContent = model.id;
  if (model.index) startSearch(model.index);
  else if (view === "search") show("pair");
}, (error) => problem(error.message));
