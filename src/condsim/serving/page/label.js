// The page to label texts or pairs: one question at a time, by keyboard or by touch.

import { ask, make, problem } from "./api.js";

const id = (name) => document.getElementById(name);
// Keys of the answers to pairs, next to 1 and 2.
const PAIR_KEYS = { y: "same", n: "different" };
let state = null;
let busy = false;

function choice({ value, texts }, index) {
  const key = make("kbd", { textContent: index < 9 ? String(index + 1) : "" });
  const count = make("small", { textContent: String(texts) });
  return make("li", {}, make("button", { type: "button", click: () => answer(value) }, key, ` ${value} `, count));
}

function show(next) {
  // Values keep their places, so that a key means the same all the time.
  const known = state ? state.order : [];
  const names = next.values.map((item) => item.value);
  next.order = [...known.filter((name) => names.includes(name)), ...names.filter((name) => !known.includes(name))];
  state = next;
  const done = next.texts.length === 0;
  const counts = Object.fromEntries(next.values.map((item) => [item.value, item.texts]));
  document.body.classList.toggle("pairs", next.pairs);
  document.body.classList.toggle("done", done);
  const [before, after] = done ? ["All labeled:", ""] : next.pairs ? ["Is", "the same?"] : ["What is", "here?"];
  id("before-condition").textContent = before;
  id("condition").textContent = next.condition;
  id("after-condition").textContent = after;
  const texts = done ? ["Everything has an answer. Thank you!"] : next.texts;
  id("texts").replaceChildren(...texts.map((text) => make("blockquote", { className: "subject", textContent: text })));
  id("values").replaceChildren(...next.order.map((name, index) => choice({ value: name, texts: counts[name] }, index)));
  id("new").hidden = next.pairs;
  id("answers").hidden = done;
  if (done) id("use").open = true;
  for (const name of ["silent", "skip"]) id(name).hidden = done;
  id("undo").disabled = next.labeled === 0 && !done;
  figure(next);
}

function figure(next) {
  const hasFigure = next.auc !== null;
  id("start").hidden = hasFigure;
  id("start").value = next.labeled;
  id("learned").hidden = !hasFigure;
  id("use").hidden = !hasFigure;
  const enough = next.enough ? " More labels help little now." : "";
  id("line").textContent = hasFigure ? `${next.labeled} labeled.${enough}` : next.line;
  id("threshold").textContent = next.threshold;
  if (!hasFigure) return;
  // The scale goes from 50, chance, to 100.
  const place = (number) => Math.max(0, Math.min(100, 2 * (number - 50)));
  const gain = next.auc - next.zero_shot;
  id("auc").textContent = next.auc.toFixed(1);
  const more = gain < 0.05 ? "as without labels" : `${gain.toFixed(1)} more than without labels`;
  id("gain").textContent = `between ${next.low.toFixed(0)} and ${next.high.toFixed(0)}; ${more}`;
  id("mark").style.left = `${place(next.auc)}%`;
  id("before").style.left = `${place(next.zero_shot)}%`;
  id("interval").style.left = `${place(next.low)}%`;
  id("interval").style.right = `${100 - place(next.high)}%`;
  curve(next);
  const [labels, criterion] = next.files;
  id("commands").textContent = next.pairs
    ? `condsim dedupe texts.csv --condition ${criterion} --at-least 0.5 --output kept.csv\ncondsim adapt ${labels} --condition "${next.condition}" --output model`
    : `condsim assign texts.csv --criterion ${criterion} --output assigned.csv\ncondsim cluster texts.csv --condition ${criterion} --output clustered.csv`;
}

function curve({ history }) {
  id("history").hidden = history.length < 3;
  if (history.length < 3) return;
  const [first, last] = [history[0][0], history.at(-1)[0]];
  const figures = history.flatMap(([, ...both]) => both);
  const low = Math.min(...figures) - 1;
  const high = Math.max(...figures) + 1;
  const across = (labels) => (300 * (labels - first)) / (last - first);
  const down = (figure) => 60 - (60 * (figure - low)) / (high - low);
  const [without, learned] = id("curve").children;
  learned.setAttribute("points", history.map(([labels, auc]) => `${across(labels)},${down(auc)}`).join(" "));
  without.setAttribute("points", history.map(([labels, , zero]) => `${across(labels)},${down(zero)}`).join(" "));
}

async function send(path, body) {
  if (busy) return;
  busy = true;
  document.body.classList.add("waiting");
  try {
    show(await ask(path, body));
    problem("");
  } catch (error) {
    // Another page may have changed what is asked.
    if (body) show(await ask("v1/label").catch(() => state));
    problem(error.message, { reveal: true });
  } finally {
    busy = false;
    document.body.classList.remove("waiting");
  }
}

function answer(value) {
  if (state?.texts.length) send("v1/label", { texts: state.texts, value });
}

const undo = () => send("v1/label/undo", {});

id("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = id("value").value.trim();
  id("value").value = "";
  id("value").blur();
  if (value) answer(value);
});
id("skip").addEventListener("click", () => answer("skip"));
id("silent").addEventListener("click", () => answer("does not say"));
id("undo").addEventListener("click", undo);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === id("value")) {
    if (event.key === "Escape") id("value").blur();
    return;
  }
  if (event.target.tagName === "INPUT" || state === null) return;
  const keys = { s: () => answer("skip"), d: () => answer("does not say"), u: undo };
  const number = Number(event.key);
  if (number >= 1 && number <= 9 && number <= state.order.length) answer(state.order[number - 1]);
  else if (state.pairs && PAIR_KEYS[event.key]) answer(PAIR_KEYS[event.key]);
  else if (keys[event.key]) keys[event.key]();
  else if (!state.pairs && (event.key === "/" || event.key === "n")) id("value").focus();
  else return;
  event.preventDefault();
});

send("v1/label");
