// Tagged arguments: X1 to X9, P9 to P15, K6.
import { convert, declared, propertiesOf, typesOf } from "./schema.mjs";
import { escapeRegExp, skip, spellings, startsWithAny, trim, trimEnd } from "./text.mjs";

// Return {end}, {} if the output is cut, {before: true} if it is cut before the call commits, null if this is no call.
export function readTagged(calls, from, call, syntax, tool) {
  return new Tagged(calls, call, syntax, tool).read(from);
}

class Tagged {
  constructor(calls, call, syntax, tool) {
    Object.assign(this, { calls, call, syntax, tool, text: calls.text });
    const literals = (marker) => spellings(marker).map(trim).filter(Boolean);
    this.keyOpens = literals(syntax.key_open);
    this.keyCloses = literals(syntax.key_close);
    this.valueOpens = literals(syntax.value_open);
    this.valueCloses = literals(syntax.value_close);
    this.typeOpens = literals(syntax.type_open);
    this.typeCloses = literals(syntax.type_close);
    this.ends = calls.reader.ends;
    this.callOpens = [calls.frame.call_open, calls.frame.section_open, calls.frame.body.name_open].flatMap(literals);
    this.seen = new Set();
    this.members = [];
  }

  read(from) {
    const { text } = this;
    let pos = from;
    for (;;) {
      const here = skip(text, pos);
      if (here >= text.length) return this.cutAt("", this.members.length === 0);
      const open = startsWithAny(text, here, this.keyOpens);
      if (open) {
        const next = this.readArgument(here + open.length);
        if (next === null || typeof next === "object") return next;
        pos = next;
        continue;
      }
      const close = startsWithAny(text, here, this.calls.closes);
      if (close) return this.done(here);
      if (!this.members.length) {
        const partial = this.keyOpens.concat(this.calls.closes).some((one) => one.startsWith(text.slice(here)));
        return partial ? { before: true } : null;
      }
      if (startsWithAny(text, here, this.callOpens)) return this.done(here);
      const doubled = startsWithAny(text, here, this.valueCloses); // P12
      this.call.recovered = true;
      if (doubled) {
        pos = here + doubled.length;
        continue;
      }
      // P13: text between arguments is dropped.
      const stops = [...this.keyOpens, ...this.calls.closes].map((one) => text.indexOf(one, here)).filter((at) => at >= 0);
      if (!stops.length) return this.cutAt("", false);
      pos = Math.min(...stops);
    }
  }

  done(end) {
    this.call.arguments = `{${this.members.join(", ")}}`;
    return { end };
  }

  cutAt(tail, before) {
    if (before && tail === "") return { before: true };
    const parts = tail === "" ? this.members : [...this.members, tail];
    this.call.arguments = `{${parts.join(", ")}`;
    return {};
  }

  readArgument(from) {
    const { text, syntax } = this;
    let best = -1;
    let length = 0;
    for (const one of [...this.keyCloses, ...this.valueOpens]) {
      const at = text.indexOf(one, from);
      if (at >= 0 && (best < 0 || at < best || (at === best && one.length > length))) [best, length] = [at, one.length];
    }
    if (best < 0) return this.cutAt(`"${escaped(trim(text.slice(from)))}`, false);
    const { key, isString } = this.keyOf(trim(text.slice(from, best)));
    let pos = this.valueOpens.some((one) => text.startsWith(one, best)) && !this.keyCloses.some((one) => text.startsWith(one, best)) ? best : best + length;
    let type = null;
    const typed = startsWithAny(text, skip(text, pos), this.typeOpens);
    if (typed) {
      const begin = skip(text, pos) + typed.length;
      const end = Math.min(...this.typeCloses.map((one) => text.indexOf(one, begin)).filter((at) => at >= 0));
      type = trim(text.slice(begin, end));
      pos = end + startsWithAny(text, end, this.typeCloses).length;
    }
    if (this.valueOpens.length) {
      const here = skip(text, pos);
      const open = startsWithAny(text, here, this.valueOpens);
      if (!open) {
        if (here >= text.length) return this.cutAt(`${JSON.stringify(key)}: "`, false);
        this.call.recovered = true; // P14
        return here;
      }
      pos = here + open.length;
    }
    this.seen.add(key);
    let schema = declared(this.tool, key);
    if (isString === "true" && (!schema || typesOf(schema, this.tool.parameters).types.has("string"))) schema = { type: "string" };
    if (isString === "false") schema = { type: ["null", "integer", "number", "boolean", "object", "array", "string"] };
    if (["null", "integer", "number", "boolean", "object", "array", "string"].includes(type)) schema = { type };
    return this.readValue(pos, key, schema);
  }

  keyOf(raw) {
    const pattern = this.syntax.key ?? "{key}";
    const source = escapeRegExp(pattern).replace("\\{key\\}", "(?<key>.+?)").replace("\\{string\\}", "(?<string>\\w+)").replace("\\{type\\}", "(?<type>\\w+)");
    const found = new RegExp(`^${source}$`, "s").exec(raw);
    return { key: trim(found?.groups.key ?? raw), isString: found?.groups.string };
  }

  readValue(from, key, schema) {
    const { text } = this;
    const stops = [...this.valueCloses, ...this.keyOpens, ...this.calls.closes, ...this.callOpens];
    let quoted = 0; // P15: quoted calls whose closes have not come
    for (let at = from; at < text.length; at++) {
      const found = startsWithAny(text, at, stops);
      if (!found) continue;
      const end = at + found.length;
      if (this.valueCloses.includes(found)) {
        const chain = this.chain(end);
        if (quoted && chain.last && !this.endsOutput(chain.end) && !this.isOpener(chain.end)) {
          quoted = 0;
          this.call.recovered = true;
          at = chain.end - 1;
          continue;
        }
        if (!quoted && this.mayFollow(end)) return this.takeValue(from, at, end, key, schema, false);
        if (quoted && (this.endsOutput(chain.end) || this.isOpener(chain.end))) return this.takeValue(from, at, end, key, schema, false);
        this.call.recovered = true; // P11
      } else if (this.keyOpens.includes(found)) {
        if (!quoted && this.beginsArgument(at, end)) return this.takeValue(from, at, at, key, schema, true);
        if (this.keyAt(end) !== null) this.call.recovered = true;
      } else if (this.calls.closes.includes(found)) {
        const chain = this.chain(at);
        if (!quoted && chain.whole && (this.endsOutput(chain.end) || this.isOpener(chain.end))) {
          return this.takeValue(from, at, at, key, schema, true);
        }
        this.call.recovered = true;
      } else {
        if (this.isOpener(at)) quoted += 1;
        this.call.recovered = true;
      }
      at = end - 1;
    }
    this.call.recovered = false;
    const value = this.trimmed(text.slice(from), true);
    return this.cutAt(`${JSON.stringify(key)}: ${this.cutValue(value, schema)}`, false);
  }

  // K6
  cutValue(value, schema) {
    const json = convert(value, schema, this.tool?.parameters);
    return json[0] === '"' ? json.slice(0, -1) : json;
  }

  takeValue(from, at, end, key, schema, recovered) {
    if (recovered) this.call.recovered = true;
    const value = this.trimmed(this.text.slice(from, at), false);
    this.members.push(`${JSON.stringify(key)}: ${convert(this.plain(value), schema, this.tool?.parameters)}`);
    return end;
  }

  // X8
  plain(value) {
    if (this.syntax.escape === "xml") return unescapeXml(value);
    const found = this.syntax.escape === "cdata" && /^\s*<!\[CDATA\[([^]*)\]\]>\s*$/.exec(value);
    return found ? found[1] : value;
  }

  // X4
  trimmed(value, isCut) {
    const before = this.syntax.trim ?? 0;
    const after = this.syntax.trim_after ?? before;
    for (let i = 0; i < before; i++) value = value.replace(/^\r?\n/, "");
    if (!isCut) for (let i = 0; i < after; i++) value = value.replace(/\r?\n$/, "");
    return value;
  }

  // X5
  mayFollow(from) {
    const { text } = this;
    let here = skip(text, from);
    for (let again = startsWithAny(text, here, this.valueCloses); again; again = startsWithAny(text, here, this.valueCloses)) {
      here = skip(text, here + again.length); // P12
    }
    if (here >= text.length) return true;
    if (startsWithAny(text, here, [...this.keyOpens, ...this.ends])) return true;
    if (!startsWithAny(text, here, this.calls.closes)) {
      return this.isOpener(here) || [...this.keyOpens, ...this.calls.closes].some((one) => one.startsWith(text.slice(here)));
    }
    // A chain of closes with text on its line is quoted, unless it is whole.
    const chain = this.chain(here);
    if (chain.outermost || this.endsOutput(chain.end)) return true;
    return /^[ \t\r]*\n/.test(text.slice(chain.end)) || this.isOpener(chain.end);
  }

  // Read closes in order from a place.
  chain(from) {
    const { calls, text } = this;
    const groups = [calls.argumentCloses, calls.callCloses, calls.sectionCloses].filter((one) => one.length);
    let end = from;
    let count = 0;
    let index = 0;
    for (let i = 0; i < groups.length; i++) {
      const here = skip(text, end);
      const close = startsWithAny(text, here, groups[i]);
      if (!close) continue;
      if (i > index && count === 0 && groups.length > 1 && i > 0) index = i;
      end = here + close.length;
      count += 1;
      index = i;
    }
    const needed = Math.min(groups.length, 2);
    return { end, last: count > 0, whole: count >= needed, outermost: count > 0 && index === groups.length - 1 };
  }

  endsOutput(from) {
    let here = skip(this.text, from);
    for (let end = startsWithAny(this.text, here, this.ends); end; end = startsWithAny(this.text, here, this.ends)) {
      here = skip(this.text, here + end.length);
    }
    return here >= this.text.length;
  }

  // True if a call opener with its name is at a place.
  isOpener(from) {
    const here = skip(this.text, from);
    const open = startsWithAny(this.text, here, this.callOpens);
    if (!open) return false;
    const { frame } = this.calls;
    const names = spellings(frame.body.name_open).map(trim).filter(Boolean);
    let pos = here + open.length;
    if (names.length && !names.includes(open)) {
      const call = startsWithAny(this.text, skip(this.text, pos), spellings(frame.call_open).map(trim).filter(Boolean));
      if (call && call !== open) pos = skip(this.text, pos) + call.length;
      const name = startsWithAny(this.text, skip(this.text, pos), names);
      if (!name) return false;
      pos = skip(this.text, pos) + name.length;
    }
    return /^[\w.\-]+/.test(this.text.slice(skip(this.text, pos), pos + 80));
  }

  keyAt(from) {
    const places = [...this.keyCloses, ...this.valueOpens].map((one) => this.text.indexOf(one, from)).filter((at) => at >= 0);
    if (!places.length) return null;
    const raw = this.text.slice(from, Math.min(...places));
    return /[\n<]/.test(trimEnd(raw)) ? null : this.keyOf(trim(raw)).key;
  }

  // P9
  beginsArgument(at, end) {
    const key = this.keyAt(end);
    if (!key || this.seen.has(key)) return false;
    const line = this.text.slice(0, at).split("\n").at(-1);
    if (this.calls.reader.tools === null) return trim(line) === "";
    if (/["'`]$/.test(line) || /#|\/\/|--|<!--/.test(line)) return false;
    return Object.hasOwn(propertiesOf(this.tool?.parameters ?? {}), key);
  }
}

const escaped = (text) => JSON.stringify(text).slice(1, -1);

function unescapeXml(text) {
  const names = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
  return text.replace(/&(?:(lt|gt|amp|quot|apos)|#(\d+)|#x([0-9a-fA-F]+));/g, (_, name, number, hex) =>
    name ? names[name] : String.fromCodePoint(number ? Number(number) : Number.parseInt(hex, 16)),
  );
}
