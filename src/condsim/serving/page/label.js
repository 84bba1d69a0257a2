// The page to label texts: one text at a time, by keyboard or by touch.

import { ask } from "./api.js";

const id = (name) => document.getElementById(name);
let state = null;
let busy = false;

function button(value, texts, index) {
  const item = document.createElement("li");
  const choice = document.createElement("button");
  choice.type = "button";
  const key = document.createElement("kbd");
  key.textContent = index < 9 ? String(index + 1) : "";
  const count = document.createElement("small");
  count.textContent = String(texts);
  choice.append(key, ` ${value} `, count);
  choice.addEventListener("click", () => answer(value));
  item.append(choice);
  return item;
}

function show(next) {
  // Values keep their places, so that a key means the same all the time.
  const known = state ? state.order : [];
  const names = next.values.map((value) => value.value);
  next.order = [...known.filter((name) => names.includes(name)), ...names.filter((name) => !known.includes(name))];
  state = next;
  const counts = Object.fromEntries(next.values.map((value) => [value.value, value.texts]));
  id("condition").textContent = next.condition;
  id("text").textContent = next.text ?? "Every text has an answer.";
  id("values").replaceChildren(...next.order.map((name, index) => button(name, counts[name], index)));
  id("line").textContent = next.line;
  id("meter").hidden = next.auc === null;
  if (next.auc !== null) {
    // The scale goes from 50, chance, to 100.
    const place = (figure) => `${Math.max(0, Math.min(100, 2 * (figure - 50)))}%`;
    id("mark").style.left = place(next.auc);
    id("before").style.left = place(next.zero_shot);
    id("interval").style.left = place(next.low);
    id("interval").style.right = `${100 - parseFloat(place(next.high))}%`;
  }
  for (const name of ["silent", "skip"]) id(name).disabled = next.text === null;
}

async function send(path, body) {
  if (busy) return;
  busy = true;
  document.body.classList.add("waiting");
  try {
    show(await ask(path, body));
    id("problem").textContent = "";
  } catch (error) {
    id("problem").textContent = error.message;
  } finally {
    busy = false;
    document.body.classList.remove("waiting");
  }
}

function answer(value) {
  if (state?.text != null) send("v1/label", { text: state.text, value });
}

id("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = id("value").value.trim();
  id("value").value = "";
  id("value").blur();
  if (value) answer(value);
});
id("skip").addEventListener("click", () => answer("skip"));
id("silent").addEventListener("click", () => answer("does not say"));
id("undo").addEventListener("click", () => send("v1/label/undo", {}));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === id("value")) {
    if (event.key === "Escape") id("value").blur();
    return;
  }
  if (event.target.tagName === "INPUT") return;
  const keys = { s: () => answer("skip"), d: () => answer("does not say"), u: () => send("v1/label/undo", {}) };
  const number = Number(event.key);
  if (number >= 1 && number <= 9 && state && number <= state.order.length) answer(state.order[number - 1]);
  else if (keys[event.key]) keys[event.key]();
  else if (event.key === "/" || event.key === "n") id("value").focus();
  else return;
  event.preventDefault();
});

send("v1/label");
