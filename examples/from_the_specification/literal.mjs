// Literal arguments: L1 to L7, P16 to P20, K6. Writes JSON.
import { convert, declared, propertiesOf, typesOf } from "./schema.mjs";
import { skip, startsWithAny, trim, trimEnd } from "./text.mjs";

// Return where the arguments end, or null at the end of the output. `call.arguments` gets the JSON.
export function readLiteral(text, from, call, syntax, tool, frame) {
  return new Literal(text, call, syntax, tool, frame).read(from);
}

const CLOSERS = { "(": ")", "[": "]", "{": "}" };
const SIMPLE = { n: "\n", t: "\t", r: "\r", "\\": "\\", "'": "'", '"': '"', a: "\x07", b: "\b", f: "\f", v: "\v", 0: "\0", "\n": "" };

class Cut extends Error {}

class Literal {
  constructor(text, call, syntax, tool, { closes, list }) {
    this.text = text;
    this.call = call;
    this.tool = tool;
    this.closes = closes;
    this.list = list;
    this.open = syntax.open ?? "(";
    this.close = syntax.close ?? ")";
    this.assign = syntax.assign ?? "=";
    this.quotes = syntax.quotes ?? ["'", '"'];
    this.escapes = syntax.escapes ?? true;
    this.quoted = syntax.quoted ?? "strings";
    this.words = syntax.words ?? ["True", "False", "None"];
    this.out = "";
    this.openers = [];
    this.count = 0;
  }

  read(from) {
    this.pos = from + this.open.length;
    this.openers = [this.close];
    try {
      const first = skip(this.text, this.pos);
      if (first >= this.text.length) throw new Cut();
      this.items(true);
      this.call.arguments = this.out === "" ? "{}" : `${this.out}}`;
      return this.pos;
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      this.call.arguments = this.out;
      return null;
    }
  }

  peek() {
    this.pos = skip(this.text, this.pos);
    if (this.pos >= this.text.length) throw new Cut();
    return this.text[this.pos];
  }

  // Read the items of the arguments up to the close.
  items() {
    for (;;) {
      const c = this.peek();
      if (c === ",") {
        this.pos += 1;
        continue;
      }
      if (this.ends(c)) return;
      const key = this.key(this.assign);
      if (key === null && this.open !== "(") {
        this.call.recovered = true;
        this.pos += 1;
        continue;
      }
      const name = key ?? Object.keys(propertiesOf(this.tool?.parameters ?? {}))[this.count] ?? String(this.count);
      this.count += 1;
      this.out += `${this.out === "" ? "{" : ", "}${JSON.stringify(name)}: `;
      this.top = name;
      this.value(1);
      this.dropTo();
    }
  }

  // P13 for literals: text between a value and what follows is dropped.
  dropTo() {
    const c = this.peek();
    if (c === "," || this.ends(c, true)) return;
    this.call.recovered = true;
    while (this.pos < this.text.length && !",)]}".includes(this.text[this.pos])) this.pos += 1;
    this.peek();
  }

  // True if the innermost bracket closes here; P18 closes what is open inside.
  ends(c, look = false) {
    const at = this.openers.lastIndexOf(c);
    if (at < 0 || !")]}".includes(c)) return false;
    if (look) return true;
    if (at === this.openers.length - 1) this.pos += 1;
    else this.call.recovered = true;
    this.openers.pop();
    return true;
  }

  // Return the key before an assignment, or null if a value is here.
  key(assign) {
    const quote = startsWithAny(this.text, this.pos, this.quotes);
    if (quote) {
      const end = this.text.indexOf(quote, this.pos + quote.length);
      const after = end < 0 ? -1 : skip(this.text, end + quote.length);
      if (after < 0 || !(this.text[after] === ":" || this.text[after] === assign)) return null;
      const key = this.text.slice(this.pos + quote.length, end);
      this.pos = after + 1;
      return key;
    }
    const found = /^([^\s=:,()[\]{}"'<]+)\s*([=:])(?!=)/.exec(this.text.slice(this.pos, this.pos + 1024));
    if (!found) {
      const rest = trim(this.text.slice(this.pos));
      // K6: a key that was cut.
      if (/^[A-Za-z_][\w.-]*$/.test(rest) && this.out !== undefined) {
        this.out += `${this.out === "" ? "{" : ", "}"${rest}`;
        throw new Cut();
      }
      return null;
    }
    this.pos += found[0].length;
    return found[1];
  }

  value(depth) {
    const c = this.peek();
    if (c === "," || ")]}".includes(c)) {
      this.call.recovered = true; // P19
      this.out += "null";
      return;
    }
    const quote = startsWithAny(this.text, this.pos, this.quotes);
    if (quote && !this.text.startsWith(quote.repeat(3), this.pos)) return this.string(quote, depth);
    if (c === "{") return this.braces(depth);
    if (c === "[" || c === "(") return this.array(CLOSERS[c], depth);
    return this.word(depth);
  }

  braces(depth) {
    this.pos += 1;
    const start = this.pos;
    const c = this.peek();
    const before = this.out;
    if (c !== "}" && this.keyAhead() === null) {
      this.pos = start - 1;
      this.out = before;
      return this.array("}", depth);
    }
    this.openers.push("}");
    this.out += "{";
    for (let first = true; ; ) {
      const next = this.peek();
      if (next === ",") this.pos += 1;
      else if (this.ends(next)) break;
      else {
        const key = this.key(":");
        if (key === null) {
          this.pos += 1;
          continue;
        }
        this.out += `${first ? "" : ", "}${JSON.stringify(key)}: `;
        first = false;
        this.value(depth + 1);
      }
    }
    this.out += "}";
  }

  keyAhead() {
    const pos = this.pos;
    const out = this.out;
    let key = null;
    try {
      key = this.key(":");
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      key = "";
    }
    this.pos = pos;
    this.out = out;
    return key;
  }

  array(close, depth) {
    this.pos += 1;
    this.openers.push(close);
    this.out += "[";
    for (let first = true; ; ) {
      const next = this.peek();
      if (next === ",") this.pos += 1;
      else if (this.ends(next)) break;
      else {
        this.out += first ? "" : ", ";
        first = false;
        this.value(depth + 1);
      }
    }
    this.out += "]";
  }

  string(quote, depth) {
    const escapes = quote.length > 1 ? false : quote === this.quotes[0] ? this.escapes : true;
    this.pos += quote.length;
    const isPath = escapes && /^([A-Za-z]:\\[^\\]|\\\\[\w.$-]+\\[^\\])/.test(this.text.slice(this.pos, this.pos + 80)); // P20
    if (isPath) this.call.recovered = true;
    let value = "";
    for (;;) {
      if (this.pos >= this.text.length) {
        this.out += JSON.stringify(value).slice(0, -1);
        throw new Cut();
      }
      if (escapes && !isPath && this.text[this.pos] === "\\") {
        value += this.escape();
        continue;
      }
      if (this.text.startsWith(quote, this.pos)) {
        const after = this.pos + quote.length;
        if (quote.length > 1 || this.mayFollow(after, depth)) {
          this.pos = after;
          break;
        }
        this.call.recovered = true; // P16
      }
      value += this.text[this.pos];
      this.pos += 1;
    }
    const isText = depth > 1 || this.quoted !== "all"; // L6
    this.out += isText ? JSON.stringify(value) : convert(value, declared(this.tool, this.top), this.tool?.parameters);
  }

  escape() {
    const found = /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([^]))/.exec(this.text.slice(this.pos, this.pos + 10));
    if (!found) {
      this.pos = this.text.length;
      return "";
    }
    this.pos += found[0].length;
    const hex = found[1] ?? found[2] ?? found[3];
    if (hex) return String.fromCodePoint(Number.parseInt(hex, 16));
    return SIMPLE[found[4]] ?? found[0];
  }

  mayFollow(from, depth) {
    const here = skip(this.text, from);
    if (here >= this.text.length || startsWithAny(this.text, here, this.closes)) return true;
    const c = this.text[here];
    if (c === ",") {
      const rest = this.text.slice(here + 1);
      if (depth > 1) return /^\s*(["'[({\d\-)\]}]|[Tt]rue|[Ff]alse|None|null|[\w"']+\s*[:=]|$)/.test(rest);
      return /^\s*([^\s=:,()[\]{}"'<\d][^=:,()[\]{}"'<\n]*[=:]|["')\]}]|$)/.test(rest) || (this.open === "(" && /^\s*["'\d[{]/.test(rest));
    }
    // Closes of what is open, in order; then a comma, the close of the list or the end.
    const open = [...this.openers];
    let pos = here;
    while (open.length && this.text[pos] === open.at(-1)) {
      open.pop();
      pos = skip(this.text, pos + 1);
    }
    if (pos === here) return this.openers.includes(c);
    if (pos >= this.text.length || startsWithAny(this.text, pos, [...this.closes, ...this.list])) return true;
    return open.length ? this.text[pos] === "," || ")]}".includes(this.text[pos]) : !this.list.length || this.text[pos] === ",";
  }

  // L5, P17
  word(depth) {
    let end = this.pos;
    let level = 0;
    while (end < this.text.length) {
      const c = this.text[end];
      if ("([{".includes(c)) level += 1;
      else if (")]}".includes(c) && level) level -= 1;
      else if (",)]}".includes(c) && !level) break;
      else if (!level && startsWithAny(this.text, end, this.closes)) break;
      end += 1;
    }
    const word = trimEnd(this.text.slice(this.pos, end));
    const isCut = end >= this.text.length;
    this.pos = end;
    const [yes, no, nothing] = this.words;
    const constants = { [yes]: "true", [no]: "false", [nothing]: "null", true: "true", false: "false", null: "null" };
    if (isCut) {
      const begun = Object.keys(constants).find((one) => one.startsWith(word));
      this.out += begun ? constants[begun].slice(0, word.length) : /^-?\d/.test(word) ? word : `"${JSON.stringify(word).slice(1, -1)}`;
      throw new Cut();
    }
    const { types } = typesOf(depth === 1 ? declared(this.tool, this.top) : null, this.tool?.parameters);
    const wantsString = types.size === 1 && types.has("string");
    if (constants[word]) this.out += constants[word];
    else if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(word)) this.out += wantsString ? JSON.stringify(word) : word;
    else if (/^[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?$|^0x[0-9a-fA-F]+$/.test(word)) {
      if (/^[+-]?0\d/.test(word)) this.call.recovered = true;
      this.out += String(Number(word.replaceAll("_", "")));
    } else if (/\w\s+\w/.test(word) || this.quoted === "optional") {
      if (this.quoted !== "optional") this.call.recovered = true;
      this.out += JSON.stringify(word);
    } else {
      this.call.recovered = true;
      this.out += word;
    }
  }
}
