// Asks the server; the key is kept in memory only.

let key = "";
const form = document.getElementById("key");
const waiting = [];

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = document.getElementById("key-value");
  key = field.value.trim();
  field.value = "";
  form.hidden = true;
  for (const again of waiting.splice(0)) again();
});

function keyGiven() {
  if (form.hidden) {
    form.hidden = false;
    document.getElementById("key-value").focus();
  }
  return new Promise((resolve) => waiting.push(resolve));
}

/** Asks a route and gives its JSON; waits for a key where the server wants one. */
export async function ask(path, body) {
  for (let tries = 0; ; tries += 1) {
    const sent = key;
    const headers = sent ? { Authorization: `Bearer ${sent}` } : {};
    const options = { headers };
    if (body !== undefined) {
      options.method = "POST";
      options.body = JSON.stringify(body);
      headers["Content-Type"] = "application/json";
    }
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      throw new Error("The server cannot be reached.");
    }
    if (response.status === 401) {
      if (sent === key) await keyGiven(); // else it was given while this request was under way
      continue;
    }
    const pause = Number(response.headers.get("Retry-After"));
    if (pause && tries < 3) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(pause, 10)));
      continue;
    }
    const found = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(found.error?.message ?? `The server answered ${response.status}.`);
    return found;
  }
}

/** Runs what was asked for last: soon after the last call, and never two at once. */
export function latest(work, wait) {
  let timer;
  let running = false;
  let again = false;
  async function run() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      await work();
      problem("");
    } catch (error) {
      problem(error.message);
    } finally {
      running = false;
      if (again) {
        again = false;
        run();
      }
    }
  }
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, wait);
  };
}

/** Shows an error, or none; scrolls to it after a click. */
export function problem(text, { reveal = false } = {}) {
  const place = document.getElementById("problem");
  place.textContent = text;
  if (text && reveal) place.scrollIntoView({ block: "center" });
}

let saying;
/** Says something to those who listen, once typing has paused. */
export function say(text) {
  clearTimeout(saying);
  saying = setTimeout(() => { document.getElementById("said").textContent = text; }, 900);
}

/** Makes an element; a property that is a function listens to that event. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export const shown = (score) => score.toFixed(2);

/** Says in words what a score under a condition means. */
export function verdict(score) {
  if (score >= 0.75) return "agree";
  if (score >= 0.5) return "rather agree";
  return score >= 0.25 ? "rather differ" : "differ";
}

/** Tells whether a condition has more than punctuation, which no model takes. */
export const isCondition = (text) => /[\p{L}\p{N}\p{S}]/u.test(text);

/** What the page says of texts that the model cannot read. */
export const UNREAD = "the model cannot read a text: its words or characters are not in the vocabulary";
