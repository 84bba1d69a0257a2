// A pasted table as a heat map.

import { ask, make, shown } from "./api.js";
import { why } from "./why.js";

const MOST = 300; // rows shown
const CELLS = 500; // scores asked for at once

/** Reads rows of cells; tabs go first, and quotes may hold both marks and line ends. */
export function cellsOf(text) {
  const mark = text.includes("\t") ? "\t" : ",";
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[at + 1] === '"') cell += text[(at += 1)];
      else quoted = false;
    } else if (sign === '"' && !cell.trim()) {
      quoted = true;
      cell = "";
    } else if (sign === mark) {
      row.push(cell.trim());
      cell = "";
    } else if (sign === "\n") {
      rows.push([...row, cell.trim()]);
      row = [];
      cell = "";
    } else cell += sign;
  }
  rows.push([...row, cell.trim()]);
  return rows.filter((one) => one.some(Boolean));
}

/** Gives the pairs of a table, and how many rows have no two texts. */
export function pairsOf(text, header) {
  const rows = cellsOf(text).slice(header ? 1 : 0);
  const pairs = rows.filter((row) => row[0] && row[1]).map((row) => row.slice(0, 2));
  return { pairs: pairs.slice(0, MOST), left: rows.length - Math.min(pairs.length, MOST) };
}

async function scored(pairs, conditions) {
  const scores = [];
  const step = Math.max(1, Math.floor(CELLS / Math.max(1, conditions.length)));
  for (let at = 0; at < pairs.length; at += step) {
    const body = { pairs: pairs.slice(at, at + step) };
    if (conditions.length) body.conditions = conditions;
    scores.push(...(await ask("v1/score", body)).scores);
  }
  return scores;
}

/** Scores a table and draws it. */
export async function drawTable(text, header, conditions) {
  const place = document.getElementById("heat");
  const { pairs, left } = pairsOf(text, header);
  const rows = pairs.length === 1 ? "1 row" : `${pairs.length} rows`;
  document.getElementById("table-note").textContent =
    (text.trim() ? `${rows} scored. ` : "") + (left ? `${left} left out: without two texts, or past ${MOST}.` : "");
  if (!pairs.length) {
    place.replaceChildren();
    return;
  }
  const scores = await scored(pairs, conditions);
  const names = conditions.length ? conditions : ["as a whole"];
  const head = make("tr", {}, ...["First text", "Second text", ...names].map((name) => make("th", { scope: "col" }, name)));
  const body = pairs.map(([first, second], number) => {
    const cells = scores[number].map((score, which) => {
      const cell = make(
        "td",
        { className: "heat" },
        make(
          "button",
          {
            type: "button",
            "aria-label": `${shown(score)}, row ${number + 1}, ${names[which]}: why?`,
            click: () => why(first, second, conditions[which]),
          },
          shown(score),
        ),
      );
      cell.style.setProperty("--score", score.toFixed(3));
      return cell;
    });
    return make("tr", {}, make("td", { dir: "auto" }, first), make("td", { dir: "auto" }, second), ...cells);
  });
  place.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}
