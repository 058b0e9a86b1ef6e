// Q1 to Q6: does the text before an opener show that the call is quoted?
import { trim } from "./text.mjs";

// Return true if a JSON object or list that the content begins with is open inside a string.
function inJsonString(before) {
  const text = before.trimStart();
  if (text[0] !== "{" && text[0] !== "[") return false;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === "\n") return false;
      if (c === "\\") i += 1;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (!/[\s{}[\],:0-9.eE+\-truefalsn]/.test(c)) return false;
  }
  return inString;
}

function inDoubleBackticks(line) {
  let open = 0;
  for (const [run] of line.matchAll(/`+/g)) {
    if (!open) open = run.length;
    else if (run.length === open) open = 0;
  }
  return open >= 2;
}

// Return "line" or "inline" for a quotation, or an empty string.
export function isQuoted(before, fence) {
  const line = before.split("\n").at(-1);
  if (inJsonString(before)) return "inline";
  if (!fence && inDoubleBackticks(line)) return "inline";
  if (/^[ \t]*((?:[-*+]|\d+[.)])[ \t]+)*[|>]/.test(line)) return "line";
  if (fence) return /^[ \t]*[+-]/.test(line) || /^(diff|patch)\b/i.test(fence.word) ? "line" : "";
  if (/<(code|pre|kbd|samp|tt|q)(\s[^<>]*)?>$|<!--[ \t]*$|<!\[CDATA\[$/.test(before)) return "inline";
  const mark = line.at(-1);
  if (!mark || !`"'‘‹“„«「『`.includes(mark) || trim(before.slice(0, -1)) === "") return "";
  const rest = line.slice(0, -1);
  const begins = !`"'‘‹`.includes(mark) || rest === "" || /[\s([{<:,=]$/.test(rest);
  const isOpen = mark === '"' && [...rest].filter((c) => c === mark).length % 2 === 1;
  return begins && !isOpen ? "inline" : "";
}
