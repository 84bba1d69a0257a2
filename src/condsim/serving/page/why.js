// Which words carry a score: colored, and with numbers.

import { ask, make, problem, shown } from "./api.js";

const panel = document.getElementById("why");
let opener = null;

function signed(value) {
  const figure = Math.abs(value).toFixed(2);
  return figure === "0.00" ? figure : `${value < 0 ? "−" : "+"}${figure}`;
}

function words(text, strongest) {
  const line = make("p", { className: "words", dir: "auto" });
  for (const word of text.words) {
    const share = Math.abs(word.contribution) / strongest;
    const raises = word.contribution >= 0;
    const one = make(
      "span",
      { className: share < 0.08 ? "word" : `word ${raises ? "raises" : "lowers"}` },
      make("span", {}, word.text),
      make("small", {}, signed(word.contribution)),
    );
    one.style.setProperty("--strength", (0.65 * share).toFixed(2));
    line.append(one, " ");
  }
  return line;
}

/** Hides the explanation, which is of texts that have changed. */
export function hideWhy() {
  panel.hidden = true;
}

function close() {
  hideWhy();
  opener?.focus();
}

panel.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
});

/** Explains a score below what was clicked on. */
export async function why(sentence1, sentence2, condition) {
  if (!sentence1.trim() || !sentence2.trim()) {
    problem("Write both texts first.", { reveal: true });
    return;
  }
  opener = document.activeElement;
  const body = { sentence1, sentence2 };
  if (condition) body.condition = condition;
  panel.hidden = false;
  panel.replaceChildren(make("p", {}, "Looking at the words …"));
  problem("");
  let found;
  try {
    found = await ask("v1/explain", body);
  } catch (error) {
    hideWhy();
    problem(error.message, { reveal: true });
    return;
  }
  const every = found.texts.flatMap((text) => text.words.map((word) => Math.abs(word.contribution)));
  const strongest = Math.max(...every, 1e-9);
  panel.replaceChildren(
    make("h2", {}, `Why ${shown(found.score)}: ${condition || "the texts as a whole"}`),
    ...found.texts.map((text) => words(text, strongest)),
    make(
      "p",
      { className: "note" },
      `Blue words raise the score; orange, underlined ones lower it. It starts at ${shown(found.remainder)}, the score `
        + `when one text is empty, and all words lead from there to ${shown(found.score)}.`,
    ),
    make("button", { type: "button", className: "quiet", click: close }, "Close"),
  );
  panel.focus({ preventScroll: true });
  panel.scrollIntoView({ block: "nearest" });
}
