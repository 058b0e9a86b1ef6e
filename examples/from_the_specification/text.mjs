// White space, spellings and the end of JSON values: M1, M2, F3, A4.
export const WS = " \t\r\n";

export const trimStart = (text) => text.replace(/^[ \t\r\n]+/, "");
export const trimEnd = (text) => {
  let end = text.length;
  while (end && WS.includes(text[end - 1])) end -= 1;
  return text.slice(0, end);
};
export const trim = (text) => trimStart(trimEnd(text));

export function spellings(marker) {
  if (marker === undefined || marker === null) return [];
  return typeof marker === "string" ? [marker] : [marker.text, ...(marker.accepted ?? [])];
}

export function skip(text, pos) {
  while (pos < text.length && WS.includes(text[pos])) pos += 1;
  return pos;
}

// Return the longest of the literals at a place; an empty string if there is none.
export function startsWithAny(text, pos, literals) {
  let best = "";
  for (const one of literals) if (one.length > best.length && text.startsWith(one, pos)) best = one;
  return best;
}

export const escapeRegExp = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// Return {end} of the JSON value at a place, {broken: place}, or {} if the text ends first.
export function jsonEnd(text, pos) {
  if (text[pos] === '"') {
    for (let i = pos + 1; i < text.length; i++) {
      if (text[i] === "\\") i += 1;
      else if (text[i] === '"') return { end: i + 1 };
    }
    return {};
  }
  if (text[pos] !== "{" && text[pos] !== "[") {
    const found = /^[^,\]}\s]+/.exec(text.slice(pos, pos + 4096));
    if (!found) return { broken: pos };
    return pos + found[0].length < text.length ? { end: pos + found[0].length } : {};
  }
  const open = [];
  for (let i = pos; i < text.length; i++) {
    const c = text[i];
    if (c === '"') {
      const string = jsonEnd(text, i);
      if (string.end === undefined) return {};
      i = string.end - 1;
    } else if (c === "{" || c === "[") open.push(c === "{" ? "}" : "]");
    else if (c === "}" || c === "]") {
      if (open.pop() !== c) return { broken: i };
      if (!open.length) return { end: i + 1 };
    }
  }
  return {};
}
