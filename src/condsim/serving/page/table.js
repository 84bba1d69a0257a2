// A pasted table as a heat map.

import { UNREAD, ask, make, shown } from "./api.js";
import { why } from "./why.js";

const MOST = 300; // rows shown
const CELLS = 64; // scores asked for at once: the server marks so many by itself
let drawn = []; // the rows that can be downloaded

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

/** Gives the pairs of a table, and says which rows are left out. */
export function pairsOf(text, header) {
  const rows = cellsOf(text).slice(header ? 1 : 0);
  const pairs = rows.filter((row) => row[0] && row[1]).map((row) => row.slice(0, 2));
  const notes = [];
  const lacking = rows.length - pairs.length;
  if (lacking) notes.push(`${counted(lacking)} without two texts left out.`);
  if (pairs.length > MOST) notes.push(`Only the first ${MOST} of ${pairs.length} rows are shown.`);
  return { pairs: pairs.slice(0, MOST), notes };
}

const counted = (number) => (number === 1 ? "1 row" : `${number} rows`);

/** Gives for each pair a score and a remark for each condition. */
async function scored(pairs, conditions, progress) {
  const rows = [];
  const step = Math.max(1, Math.floor(CELLS / Math.max(1, conditions.length)));
  for (let at = 0; at < pairs.length; at += step) {
    if (at) progress(at);
    const body = { pairs: pairs.slice(at, at + step) };
    if (conditions.length) body.conditions = conditions;
    const { scores, remarks, unread = [] } = await ask("v1/score", body);
    scores.forEach((row, number) => rows.push(row.map((score, which) => (
      { score, remark: unread.includes(number) ? UNREAD : remarks?.[number][which] ?? "" }
    ))));
  }
  return rows;
}

const quoted = (cell) => `"${String(cell).replaceAll('"', '""')}"`;

/** Saves the heat map as a file. */
export function download() {
  const lines = drawn.map((row) => row.map(quoted).join(","));
  const href = URL.createObjectURL(new Blob([`\ufeff${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
  make("a", { href, download: "scores.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** Scores a table and draws it. */
export async function drawTable(text, header, conditions) {
  const place = document.getElementById("heat");
  const note = document.getElementById("table-note");
  const button = document.getElementById("download");
  const { pairs, notes } = pairsOf(text, header);
  const clear = () => {
    place.replaceChildren();
    button.hidden = true;
  };
  if (!pairs.length) {
    clear();
    note.textContent = text.trim() ? "No row has two texts yet." : "";
    return;
  }
  const say = (...sentences) => { note.textContent = [...sentences, ...notes].join(" "); };
  let rows;
  say(`Scoring ${counted(pairs.length)} …`);
  try {
    rows = await scored(pairs, conditions, (done) => say(`Scoring: ${done} of ${counted(pairs.length)} …`));
  } catch (error) {
    clear();
    note.textContent = "";
    throw error;
  }
  const silent = rows.flat().some(({ remark }) => remark);
  say(`${counted(pairs.length)} scored.`, ...(silent ? ["Gray scores mean little: point at one to see why."] : []));
  button.hidden = false;
  const names = conditions.length ? conditions : ["as a whole"];
  const head = make("tr", {}, ...["First text", "Second text", ...names].map((name) => make("th", { scope: "col" }, name)));
  const body = pairs.map(([first, second], number) => {
    const cells = rows[number].map(({ score, remark }, which) => {
      const cell = make(
        "td",
        { className: remark ? "heat silent" : "heat", title: remark },
        make(
          "button",
          {
            type: "button",
            "aria-label": [shown(score), `row ${number + 1}`, names[which], remark].filter(Boolean).join(", ") + ": why?",
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
  drawn = [["sentence1", "sentence2", ...names.map((name) => `score: ${name}`)]];
  pairs.forEach((pair, number) => drawn.push([...pair, ...rows[number].map(({ score }) => score.toFixed(3))]));
  place.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}
