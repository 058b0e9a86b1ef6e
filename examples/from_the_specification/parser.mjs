// A parser of whole outputs, written from the pages of the Format specification alone. It does not know untemplate's code.
// Comments name the rules. It reads text only, and Formats without element arguments.
import { argumentsStatus } from "./schema.mjs";
import { readLiteral } from "./literal.mjs";
import { readTagged } from "./tagged.mjs";
import { escapeRegExp, jsonEnd, skip, spellings, startsWithAny, trim, trimEnd, trimStart, WS } from "./text.mjs";
import { isQuoted } from "./quotations.mjs";

export class Unsupported extends Error {}

export function parse(format, { tools, prompt, text }) {
  const reader = new Reader(format, tools);
  reader.begin(prompt);
  reader.read(text);
  return reader.message();
}

class Reader {
  constructor(format, tools) {
    this.format = format;
    this.tools = tools;
    this.inline = format.reasoning?.inline ? spellings(format.reasoning.open)[0] : null; // R9
    this.reasoningMarkers = this.inline === null ? format.reasoning : undefined;
    this.channels = format.channels ?? null;
    // T9: without tools there are no calls.
    const none = tools !== null && tools.length === 0;
    this.frames = none ? [] : (format.tools ?? []).map((one) => new Frame(one, format));
    this.noTools = none;
    this.ends = spellings(format.turn?.end).map(trim);
    this.clear();
    this.inReasoning = false;
  }

  clear() {
    this.reasoning = "";
    this.content = "";
    this.calls = [];
    this.atStart = true; // R1, T10: no text of content yet
    this.touches = false; // the last thing was a marker
    this.afterCall = false; // M4
    this.afterReasoning = false;
    this.section = null;
    this.quotedUntil = -1; // Q11
    this.openText = 0; // closes that are text, R5
    this.lastKind = "";
  }

  message() {
    const reasoning = trim(this.reasoning) ? this.reasoning : ""; // R10
    return { reasoning, content: this.content, tool_calls: this.calls };
  }

  // -- the beginning: S1 to S5 -----------------------------------------------------------------------------------

  begin(prompt) {
    const reasoning = this.reasoningMarkers;
    this.onlyCloses = Boolean(reasoning) && !reasoning.open; // R8
    if (prompt === null) {
      this.inReasoning = reasoning?.start === "open" || this.onlyCloses;
      this.prefix = this.inline !== null && this.format.reasoning.start === "open";
      return;
    }
    const tail = this.tail(prompt);
    if (tail !== null) {
      this.inReasoning = this.onlyCloses;
      this.read(tail, true);
      const [inReasoning, touches] = [this.inReasoning, this.touches];
      this.clear();
      this.inReasoning = inReasoning;
      this.touches = touches && tail !== "";
      return;
    }
    const end = trimEnd(prompt);
    this.inReasoning = reasoning?.start === "open";
    if (spellings(reasoning?.open).some((one) => end.endsWith(trim(one)))) this.inReasoning = true;
    else if (spellings(reasoning?.close).some((one) => end.endsWith(trim(one)))) this.inReasoning = false;
  }

  tail(prompt) {
    let end = -1;
    for (const one of spellings(this.format.turn?.start).map(trimEnd)) {
      const at = prompt.lastIndexOf(one);
      if (at >= 0) end = Math.max(end, at + one.length);
    }
    const tail = end < 0 ? null : prompt.slice(end);
    return tail === null || this.ends.some((one) => tail.includes(one)) ? null : tail;
  }

  // -- text and markers ------------------------------------------------------------------------------------------

  read(text, isPrompt = false) {
    this.isPrompt = isPrompt;
    this.text = isPrompt ? text : this.withoutTurnEnd(text);
    if (this.inline !== null) this.readInline();
    this.pos = 0;
    this.search = 0;
    if (this.channels) {
      this.readMessages();
      return;
    }
    if (!this.inReasoning && this.bareCalls()) return;
    while (this.step());
  }

  // R9: empty reasoning is dropped with its markers.
  readInline() {
    const [open, close] = [trim(this.inline), trim(spellings(this.format.reasoning.close)[0])];
    const empty = new RegExp(`^\\s*${escapeRegExp(open)}\\s*${escapeRegExp(close)}\\s*`);
    if (empty.test(this.text)) this.text = this.text.replace(empty, "");
    else if (this.prefix && !trimStart(this.text).startsWith(open)) this.content = this.inline;
  }

  // M8
  withoutTurnEnd(text) {
    for (;;) {
      const end = trimEnd(text);
      const found = this.ends.find((one) => end.endsWith(one));
      if (found === undefined) return text;
      text = trimEnd(end.slice(0, end.length - found.length));
      this.endDropped = true;
    }
  }

  markers() {
    const found = [];
    const add = (marker, kind, frame) => spellings(marker).forEach((one) => trim(one) && found.push([trim(one), kind, frame]));
    const reasoning = this.reasoningMarkers;
    if (reasoning) {
      add(reasoning.open, "reasoning_open");
      add(reasoning.close, "reasoning_close");
    }
    if (this.format.content && !this.inReasoning) {
      add(this.format.content.open, "wrap");
      add(this.format.content.close, "wrap");
    }
    for (const frame of this.frames) {
      for (const marker of frame.openers(this.section === frame)) add(marker, "calls", frame);
      if (this.section === frame) add(frame.section_close, "section_close", frame);
    }
    return found;
  }

  step() {
    const next = this.next(this.markers());
    if (next === null) {
      this.say(this.text.slice(this.pos), false);
      return false;
    }
    const { at, literal, kind } = next;
    const end = at + literal.length;
    if (kind === "calls") return this.atCalls(at, literal);
    if (kind === "reasoning_open" && !this.opensReasoning(at)) {
      if (!this.inReasoning) this.openText += 1;
      return this.asText(end);
    }
    if (kind === "reasoning_close" && !this.inReasoning) {
      if (this.inBackticks(at, end)) return this.asText(end);
      if (this.openText) {
        this.openText -= 1;
        return this.asText(end);
      }
      // R7: dropped; white space stays after content.
      const keeps = !this.atStart || trim(this.text.slice(this.pos, at)) !== "";
      this.say(this.text.slice(this.pos, at), !keeps);
      if (keeps) this.touches = false;
      else this.touches = true;
      this.pos = this.search = end;
      return true;
    }
    if (kind === "reasoning_close" && this.inBackticks(at, end)) return this.asText(end);
    if (this.inReasoning && kind !== "reasoning_close" && kind !== "reasoning_open") return this.asText(end);
    this.say(this.text.slice(this.pos, at), true);
    this.pos = this.search = end;
    this.touches = true;
    this.afterCall = false;
    if (kind === "reasoning_open") this.inReasoning = true;
    if (kind === "reasoning_close") {
      this.inReasoning = false;
      this.afterReasoning = true;
      if (this.atStart && !this.isPrompt && this.bareCalls()) return false;
    }
    if (kind === "section_close") {
      this.section = null;
      this.afterCall = true;
      this.touches = false;
    }
    return true;
  }

  next(markers) {
    let best = null;
    for (const [literal, kind, frame] of markers) {
      const at = this.text.indexOf(literal, this.search);
      if (at < 0) continue;
      if (best === null || at < best.at || (at === best.at && literal.length > best.literal.length)) best = { at, literal, kind, frame };
    }
    return best;
  }

  asText(end) {
    this.search = end;
    return true;
  }

  // Append text that ends at a marker, or at the end of the output: M3, M4.
  say(text, marker) {
    if (this.touches && !this.afterCall) text = trimStart(text);
    if (marker) text = trimEnd(text);
    if (this.afterCall && trim(text) === "") text = "";
    if (text === "") return;
    if (this.inReasoning) this.reasoning += text;
    else {
      this.content += text;
      if (trim(text)) this.atStart = false;
    }
    this.touches = false;
    this.afterCall = false;
    this.afterReasoning = false;
  }

  before(at) {
    return this.text.slice(this.pos, at);
  }

  opensReasoning(at) {
    const text = this.before(at);
    const blank = trim(text) === "";
    if (this.inReasoning) return blank && trim(this.reasoning) === ""; // R3
    if (blank && (this.atStart || this.afterReasoning)) return true; // R1
    if (blank && this.afterCall) return true; // R5
    const before = this.content + text;
    if (this.fenceOpen(before)) return false;
    if (/\n[ \t\r]*$/.test(text)) return true;
    const last = before.at(-1);
    return this.reasoningMarkers.repeats === true && !WS.includes(last) && last !== "`";
  }

  fenceOpen(before) {
    let open = null;
    for (const line of before.split("\n").slice(0, -1)) {
      const found = /^[ \t]*(`{3,}|~{3,})(.*)$/.exec(line);
      if (!found) continue;
      if (open === null) open = { run: found[1], word: trim(found[2]) };
      else if (found[1][0] === open.run[0] && found[1].length >= open.run.length && trim(found[2]) === "") open = null;
    }
    return open;
  }

  inBackticks(at, end) {
    const text = this.content + this.before(at);
    return text.endsWith("`") && !text.endsWith("``") && this.text[end] === "`" && this.text[end + 1] !== "`";
  }

  // -- calls -----------------------------------------------------------------------------------------------------

  atCalls(at, literal) {
    const end = at + literal.length;
    const before = this.content + this.before(at);
    const follows = this.quotedUntil >= 0 && trim(this.text.slice(this.quotedUntil, at)) === "";
    const quotation = this.inReasoning ? "" : follows ? "inline" : isQuoted(before, this.fenceOpen(before));
    if (quotation) {
      if (quotation === "inline") this.quotedUntil = end;
      return this.asText(end);
    }
    if (this.isWord(literal) && !this.beginsSentence(at)) return this.asText(end); // T16
    const found = this.readFrames(at, literal);
    if (found === null) {
      // Q10
      const close = this.closeOf(literal, end);
      const line = (before.split("\n").at(-1) ?? "").trim() !== "" && close >= 0 && this.text.slice(close).split("\n")[0].trim() !== "";
      if (!this.inReasoning && close >= 0 && !line) {
        this.say(this.text.slice(this.pos, at), false);
        this.pos = this.search = close;
        return true;
      }
      return this.asText(end);
    }
    if (this.inReasoning) return this.draft(at, found, end);
    // Q7
    if (before.endsWith("`") && !before.endsWith("``") && found.calls.length && this.text[found.end] === "`") {
      return this.asText(found.end);
    }
    this.say(this.text.slice(this.pos, at), true);
    this.take(found);
    return true;
  }

  take(found) {
    this.calls.push(...found.calls);
    this.pos = this.search = found.end;
    this.section = found.section;
    this.afterCall = true;
    this.touches = false;
    this.openText = 0;
  }

  closeOf(literal, end) {
    for (const frame of this.frames) {
      for (const [open, close] of [["call_open", "call_close"], ["section_open", "section_close"]]) {
        if (!spellings(frame[open]).map(trim).includes(literal)) continue;
        const at = skip(this.text, end);
        const found = startsWithAny(this.text, at, spellings(frame[close]).map(trim));
        if (found) return at + found.length;
      }
    }
    return -1;
  }

  isWord(literal) {
    const accepted = this.frames.flatMap((one) => one.openers(true)).flatMap((marker) => marker.accepted ?? []);
    return !/[<[|]/.test(literal) && accepted.map(trim).includes(literal);
  }

  beginsSentence(at) {
    const text = this.content + this.before(at);
    const blank = trim(text) === "";
    if (blank || this.afterCall) return true;
    return this.tools !== null && (/\n[ \t\r\n]*$/.test(text) || /[.!?][ \t]+$/.test(text));
  }

  // T15: calls at the end of reasoning, and nothing but calls and closes after them.
  draft(at, found, end) {
    let pos = found.end;
    const calls = [...found.calls];
    for (;;) {
      const here = skip(this.text, pos);
      const closes = [...spellings(this.reasoningMarkers?.close), ...this.frames.flatMap((one) => spellings(one.section_close))];
      const close = startsWithAny(this.text, here, closes.map(trim));
      if (close) {
        pos = here + close.length;
        continue;
      }
      if (here >= this.text.length) break;
      const opener = this.frames.flatMap((one) => one.openers(true).flatMap(spellings)).map(trim).find((one) => one && this.text.startsWith(one, here));
      const more = opener === undefined ? null : this.readFrames(here, opener);
      if (more === null) return this.asText(Math.max(end, found.end));
      calls.push(...more.calls);
      pos = more.end;
    }
    this.say(this.text.slice(this.pos, at), true);
    this.inReasoning = false;
    this.take({ ...found, calls, end: this.text.length });
    return true;
  }

  readFrames(at, literal) {
    let cut = null;
    for (const frame of this.frames) {
      const opener = frame.openers(this.section === frame || frame.leavesOut("section")).flatMap(spellings).map(trim);
      if (!opener.includes(literal)) continue;
      const found = new Calls(this, frame).read(at, literal);
      if (found?.calls.length) return found;
      cut ??= found;
    }
    return cut;
  }

  // T10
  bareCalls() {
    for (const frame of this.frames.filter((one) => one.isBare)) {
      const at = skip(this.text, this.pos);
      const found = new Calls(this, frame).read(at, "");
      if (!found?.calls.length) continue;
      const rest = this.text.slice(found.end).split("\n")[0];
      if (!frame.list_open && frame.isNamed && trim(rest)) continue;
      this.touches = true;
      this.take(found);
      while (this.step());
      return true;
    }
    return false;
  }

  isOffered(name) {
    return this.tools === null || this.tools.some((tool) => tool.function.name === name);
  }

  tool(name) {
    return this.tools?.find((tool) => tool.function.name === name)?.function ?? null;
  }

  status(call) {
    if (call.cut) return "incomplete";
    return argumentsStatus(call, this.tools, this.tool(call.name));
  }

  // -- channels: H1 to H8 ----------------------------------------------------------------------------------------

  readMessages() {
    const channels = this.channels;
    this.last = null;
    let header = this.headerAt(0, true);
    if (header === null) return this.plainMessage(0);
    while (header) header = this.readMessage(header, channels);
  }

  plainMessage(from) {
    const text = this.text.slice(from);
    if (trim(text)) this.saying("content", this.messageEnd(from).text === text && from === 0 ? text : trim(text));
  }

  saying(kind, text) {
    if (text === "") return;
    const join = this.channels.join ?? "\n";
    this[kind] += (this[kind] && join) + text;
  }

  // Return the header at a place: where its body begins, and its words; "cut" if the output ends in it.
  headerAt(at, first) {
    const { channels } = this;
    const body = spellings(channels.body).concat(spellings(channels.reasoning_body), spellings(channels.call_body)).map((one) => trim(one) || one); // H2
    const opens = spellings(channels.open).map(trim);
    let pos = skip(this.text, at);
    const opened = startsWithAny(this.text, pos, opens);
    if (opened) pos += opened.length;
    else if (!first) return null;
    let end = -1;
    let mark = "";
    for (const one of body) {
      const found = this.text.indexOf(one, pos);
      if (found >= 0 && (end < 0 || found < end)) [end, mark] = [found, one];
    }
    const words = this.text.slice(pos, end < 0 ? this.text.length : end);
    const parts = [channels.channel, channels.recipient, channels.constraint].flatMap(spellings).map(trim).filter(Boolean);
    const startsRight = opened || parts.some((one) => trimStart(words).startsWith(one)) || (end === pos && end >= 0) || this.isBareHeader();
    if (!startsRight) return null;
    if (words.length > 512 || opens.some((one) => words.includes(one))) return null;
    if (end < 0) return { cut: true, from: at };
    const role = opened && channels.role ? trimStart(words).replace(new RegExp(`^${escapeRegExp(channels.role)}`), "") : words;
    const count = (opened ? 1 : 0) + parts.filter((one) => words.includes(one)).length;
    return { from: at, end: end + mark.length, mark, words: role, parts: count };
  }

  isBareHeader() {
    return !this.channels.recipient && !this.channels.channel;
  }

  word(words, marker) {
    for (const one of spellings(marker).map(trim)) {
      const at = words.lastIndexOf(one);
      if (at >= 0) return /^[ \t]*([^ \t\r\n<]*)/.exec(words.slice(at + one.length))[1];
    }
    return "";
  }

  readMessage(header, channels) {
    if (header.cut) return null; // K4
    let recipient = this.word(header.words, channels.recipient);
    let channel = this.word(header.words, channels.channel);
    if (this.isBareHeader()) {
      const word = trim(header.words);
      const isChannel = [...(channels.reasoning ?? []), ...(channels.content ?? [])].includes(word);
      [recipient, channel] = isChannel ? ["", word] : [word, ""];
    }
    if (["assistant", "user", "all"].includes(recipient)) recipient = "";
    const isCallBody = spellings(channels.call_body).map(trim).includes(header.mark);
    if ((recipient && channels.call_name !== false) || isCallBody) {
      if (isCallBody || this.format.tools?.length) throw new Unsupported("calls in messages as tools write them");
      if (this.noTools) {
        this.content += this.text.slice(header.from);
        return null;
      }
      return this.readCallMessage(header, recipient, channels);
    }
    const isReasoning = (channels.reasoning ?? []).includes(channel) || spellings(channels.reasoning_body).map(trim).includes(header.mark);
    const { text, end } = this.messageEnd(header.end);
    this.saying(isReasoning ? "reasoning" : "content", text);
    return this.afterMessage(end);
  }

  // Find where the text of a message ends: H7, H8.
  messageEnd(from) {
    const closes = [this.channels.close, this.channels.call_close].flatMap(spellings).map(trim).filter(Boolean);
    const heads = [this.channels.open, this.channels.channel].flatMap(spellings).map(trim).filter(Boolean);
    for (let at = from; at < this.text.length; at++) {
      const close = startsWithAny(this.text, at, closes);
      if (close) return { text: trim(this.text.slice(from, at)), end: at + close.length };
      if (!startsWithAny(this.text, at, heads)) continue;
      const header = this.headerAt(at, true);
      const before = this.text.slice(from, at);
      const begins = trim(before) === "" || /\n[ \t]*$|[.!?:][ \t]*$/.test(before);
      if (header && (header.cut ? this.isHeaderBeginning(at) : header.parts >= 2 && this.hasRole(at) || begins)) {
        return { text: trim(before), end: at };
      }
    }
    const text = this.text.slice(from);
    return { text: this.endDropped ? trim(text) : trimStart(text), end: this.text.length };
  }

  hasRole(at) {
    const opened = startsWithAny(this.text, at, spellings(this.channels.open).map(trim));
    return Boolean(opened) && this.text.startsWith(this.channels.role ?? "", skip(this.text, at + opened.length));
  }

  isHeaderBeginning(at) {
    return this.text.slice(at).split(/[ \t\r\n]+/).length <= 3;
  }

  afterMessage(end) {
    if (skip(this.text, end) >= this.text.length) return null;
    const header = this.headerAt(end, true);
    if (header) return header;
    this.saying("content", this.endDropped ? trim(this.text.slice(end)) : trimStart(this.text.slice(end)));
    return null;
  }

  readCallMessage(header, recipient, channels) {
    const name = recipient.startsWith(channels.namespace ?? "") ? recipient.slice((channels.namespace ?? "").length) : recipient;
    const call = { name, arguments: "", recovered: false };
    const closes = [channels.call_close, channels.close].flatMap(spellings).map(trim).filter(Boolean);
    const end = readJsonArguments(this.text, header.end, call, closes, closes);
    this.calls.push({ name, arguments: call.arguments, status: this.status(call) });
    if (end === null) return null;
    const here = skip(this.text, end);
    const close = startsWithAny(this.text, here, closes);
    return this.afterMessage(close ? here + close.length : end);
  }
}

// JSON arguments: A1 to A4, P6, P7. Return where they end, or null at the end of the output.
export function readJsonArguments(text, from, call, closes, empty) {
  const pos = skip(text, from);
  const close = startsWithAny(text, pos, empty);
  if (close) {
    call.arguments = "{}"; // T11
    return pos;
  }
  if (pos >= text.length) {
    call.cut = true;
    return null;
  }
  if (text[pos] === "{") {
    const found = jsonEnd(text, pos);
    const at = outsideStrings(text, pos, closes);
    if (found.end !== undefined && (at < 0 || at >= found.end)) {
      call.arguments = text.slice(pos, found.end);
      return found.end;
    }
    if (at < 0) call.cut = true;
    call.arguments = text.slice(pos, at < 0 ? text.length : trimEnd(text.slice(0, at)).length);
    return at < 0 ? null : at;
  }
  if (text[pos] === '"') {
    const found = jsonEnd(text, pos);
    if (found.end !== undefined) {
      call.arguments = JSON.parse(text.slice(pos, found.end));
      return found.end;
    }
  }
  const at = closes.length ? Math.min(...closes.map((one) => text.indexOf(one, pos)).filter((one) => one >= 0).concat(text.length)) : text.length;
  call.cut = at >= text.length;
  call.arguments = trimEnd(text.slice(pos, at));
  return at >= text.length ? null : at;
}

// Return the place of the first close outside a JSON string, or -1.
function outsideStrings(text, from, closes) {
  let inString = false;
  for (let i = from; i < text.length; i++) {
    if (inString && text[i] === "\\") i += 1;
    else if (text[i] === '"') inString = !inString;
    else if (!inString && startsWithAny(text, i, closes)) return i;
  }
  return -1;
}

class Frame {
  constructor(tools) {
    Object.assign(this, tools);
    this.body = tools.body ?? { kind: "json" };
    this.isNamed = this.body.kind === "named";
    this.arguments = this.isNamed ? (this.body.arguments ?? { kind: "json" }) : null;
    if (this.arguments?.kind === "element") throw new Unsupported("element arguments");
    this.isBare = !tools.section_open && !tools.call_open && !this.body.name_open;
  }

  leavesOut(part) {
    return (this.optional ?? []).includes(part);
  }

  // The markers that begin calls: T2, T3.
  openers(inSection) {
    const found = [];
    if (this.section_open) found.push(this.section_open);
    if (!this.section_open || inSection || this.leavesOut("section")) {
      if (this.call_open) found.push(this.call_open);
      if (!this.call_open || this.leavesOut("call")) {
        if (this.body.name_open) found.push(this.body.name_open);
      }
    }
    return found;
  }
}

// The calls of one frame.
class Calls {
  constructor(reader, frame) {
    Object.assign(this, { reader, frame, text: reader.text });
    const literals = (marker) => spellings(marker).map(trim).filter(Boolean);
    this.literals = literals;
    this.callCloses = literals(frame.call_close);
    this.sectionCloses = literals(frame.section_close);
    this.argumentCloses = literals(frame.body.arguments_close);
    this.listCloses = literals(frame.list_close);
    this.closes = [...this.argumentCloses, ...this.callCloses, ...this.sectionCloses];
  }

  // Return {calls, end, section}; null if this is text. Without calls the output has ended in it (K3).
  read(at, literal) {
    const { frame } = this;
    let pos = at + literal.length;
    let inSection = this.literals(frame.section_open).includes(literal) && Boolean(literal);
    let opened = !inSection && literal !== "";
    if (!literal) inSection = false;
    if (inSection || this.reader.section === frame) inSection = true;
    let inList = false;
    const calls = [];
    if (frame.list_open && !opened) {
      const here = skip(this.text, pos);
      const list = startsWithAny(this.text, here, this.literals(frame.list_open));
      if (list) [pos, inList] = [here + list.length, true];
      else if (!frame.list_optional) return here >= this.text.length && literal ? { calls: [], end: here, section: null } : null;
    }
    let openedBy = opened ? literal : "";
    for (;;) {
      const call = this.readCall(pos, openedBy, inList);
      if (call === null || call.cut === "before") {
        if (calls.length) break;
        return call === null || !literal ? null : { calls: [], end: this.text.length, section: null };
      }
      calls.push({ name: call.name, arguments: call.arguments, status: this.reader.status(call) });
      pos = call.end;
      const next = this.between(pos, inSection, inList);
      pos = next.pos;
      if (next.left) {
        return { calls, end: pos, section: next.closed || !inSection || !frame.section_close ? null : frame };
      }
      openedBy = next.openedBy;
    }
    return { calls, end: pos, section: inSection && frame.section_close ? frame : null };
  }

  // T4, T12, T13: what follows a call.
  between(pos, inSection, inList) {
    const { frame, text } = this;
    let here = skip(text, pos);
    if (inList) {
      const close = startsWithAny(text, here, this.listCloses);
      if (close) {
        inList = false;
        pos = here + close.length;
        here = skip(text, pos);
        const stray = startsWithAny(text, here, (frame.stray_closes ?? []).map(trim));
        if (stray) pos = here + stray.length;
        here = skip(text, pos);
        if (!inSection) return { pos, left: true, closed: true };
        const section = startsWithAny(text, here, this.sectionCloses);
        return section ? { pos: here + section.length, left: true, closed: true } : { pos, left: true };
      }
    }
    const stray = startsWithAny(text, here, (frame.stray_closes ?? []).map(trim));
    if (stray) {
      pos = here + stray.length;
      here = skip(text, pos);
    }
    // P2: a second close.
    const again = startsWithAny(text, here, this.callCloses);
    if (again && !this.sectionCloses.includes(again)) {
      pos = here + again.length;
      here = skip(text, pos);
    }
    const separators = this.literals(frame.separator);
    const separator = startsWithAny(text, here, separators);
    if (separator) {
      const after = skip(text, here + separator.length);
      if (frame.isBare || inList || inSection) here = after;
    }
    const section = inSection && startsWithAny(text, here, this.sectionCloses);
    if (section) return { pos: here + section.length, left: true, closed: true };
    if (here >= text.length || this.isCutClose(here)) return { pos: text.length, left: true, closed: true };
    const mayFollow = inSection || inList || (frame.isBare && separator);
    const open = startsWithAny(text, here, this.literals(frame.call_open));
    if (open && mayFollow) return { pos: here + open.length, openedBy: open };
    const named = startsWithAny(text, here, this.literals(frame.body.name_open));
    if (named && mayFollow && (!frame.call_open || frame.leavesOut("call"))) return { pos: here, openedBy: "" };
    const unmarked = !frame.call_open && !frame.body.name_open && mayFollow;
    if (unmarked && (frame.isNamed ? /[\p{L}\p{N}_]/u.test(text[here]) : text[here] === "{")) return { pos: here, openedBy: "" };
    return { pos, left: true };
  }

  // K7
  isCutClose(from) {
    const rest = trimEnd(this.text.slice(from));
    return rest.length > 1 && [...this.callCloses, ...this.sectionCloses, ...this.listCloses].some((one) => one.startsWith(rest));
  }

  readCall(pos, openedBy, inList) {
    const { frame, text } = this;
    const isName = this.literals(frame.body.name_open).includes(openedBy) && openedBy !== "" && !this.literals(frame.call_open).includes(openedBy);
    if (!openedBy && frame.call_open && !isName) {
      const here = skip(text, pos);
      const open = startsWithAny(text, here, this.literals(frame.call_open));
      if (!open && !(frame.leavesOut("call") && startsWithAny(text, here, this.literals(frame.body.name_open)))) {
        return here >= text.length ? { cut: "before" } : null;
      }
      if (open) pos = here + open.length;
    }
    return frame.isNamed ? this.readNamed(pos, isName, inList) : this.readObject(pos);
  }

  // -- bodies of the kind json: J1 to J6 ---------------------------------------------------------------------------

  readObject(from) {
    const { body } = this.frame;
    const { text } = this;
    const pos = skip(text, from);
    if (pos >= text.length) return { cut: "before" };
    if (text[pos] !== "{" || text[pos + 1] === "\\") return null; // Q9
    const call = { name: "", arguments: null, recovered: false };
    const names = [body.name_key ?? "name", ...(body.accepted_name_keys ?? [])];
    const keys = [body.arguments_key ?? "arguments", ...(body.accepted_arguments_keys ?? ["parameters"])];
    const constants = [...(body.constants ?? []).map(([key]) => key), body.id_key].filter(Boolean);
    const others = [];
    let depth = 1;
    let at = pos + 1;
    const cut = () => {
      if (!call.name || (!call.committed && this.frame.isBare)) return this.frame.isBare ? null : { cut: "before" };
      if (!call.committed) return { cut: "before" };
      return { ...call, arguments: call.arguments ?? "", cut: true, end: text.length };
    };
    for (;;) {
      at = skip(text, at);
      if (at >= text.length) return cut();
      if (text[at] === "}") {
        at += 1;
        depth -= 1;
        if (depth === 0) break;
        continue;
      }
      if (text[at] === ",") {
        if (call.name) call.committed = true;
        at += 1;
        continue;
      }
      if (text[at] !== '"') {
        const close = startsWithAny(text, at, this.closes); // P4
        if (!close || !call.name || call.arguments === null) return call.committed ? { ...call, arguments: "", end: at } : null;
        call.recovered = true;
        break;
      }
      const keyEnd = jsonEnd(text, at);
      if (keyEnd.end === undefined) return cut();
      const key = JSON.parse(text.slice(at, keyEnd.end));
      at = skip(text, keyEnd.end);
      if (at >= text.length) return cut();
      if (text[at] !== ":") return null;
      at = skip(text, at + 1);
      if (at >= text.length) return cut();
      if (body.nested_key === key && text[at] === "{" && depth === 1) {
        depth = 2;
        at += 1;
        continue;
      }
      const isArguments = (keys.includes(key) && call.arguments === null) || (body.name_is_key && !call.name);
      if (isArguments) {
        if (body.name_is_key) {
          if (text[at] !== "{") return null;
          call.name = key;
        }
        call.committed = Boolean(call.name);
        const value = this.readArgumentsOf(at, call);
        if (value === null) return call.name ? { ...call, cut: true, end: text.length } : cut();
        at = value;
        continue;
      }
      const end = jsonEnd(text, at);
      if (end.end === undefined) return cut();
      const raw = text.slice(at, end.end);
      if (names.includes(key) && !call.name) {
        if (raw[0] !== '"') return null;
        call.name = JSON.parse(raw);
        if (!call.name) return null;
      } else if (!constants.includes(key) && !(key === "type" && raw === '"function"')) others.push([key, raw]);
      at = end.end;
    }
    if (!call.name) return null;
    if (call.arguments === null) {
      if (this.frame.isBare) return null; // T10
      call.arguments = others.length ? `{${others.map(([key, raw]) => `${JSON.stringify(key)}: ${raw}`).join(", ")}}` : "{}";
    } else if (others.length) call.recovered = true; // P8
    if (this.frame.isBare && !this.reader.isOffered(call.name)) return null;
    return this.closed(call, at);
  }

  readArgumentsOf(at, call) {
    const { text } = this;
    if (text.startsWith("null", at)) {
      call.arguments = "{}"; // A3
      return at + 4;
    }
    const found = jsonEnd(text, at);
    if (text[at] === "[" && found.end !== undefined) {
      call.arguments = text.slice(at, found.end);
      return found.end;
    }
    return readJsonArguments(text, at, call, this.closes, []);
  }

  // -- bodies of the kind named: N1 to N6 --------------------------------------------------------------------------

  readNamed(from, openedByName, inList) {
    const { frame, text } = this;
    const { body } = frame;
    let pos = from;
    if (body.name_open && !openedByName) {
      const here = skip(text, pos);
      const open = startsWithAny(text, here, this.literals(body.name_open));
      if (!open) return here >= text.length || this.literals(body.name_open).some((one) => one.startsWith(text.slice(here))) ? { cut: "before" } : null;
      pos = here + open.length;
    }
    const ends = [
      ...this.literals(body.name_close).map((one) => [one, "name"]),
      ...this.literals(body.id_open).map((one) => [one, "id"]),
      ...this.literals(body.empty_close).map((one) => [one, "empty"]),
      ...this.argumentOpeners().map((one) => [one, "arguments"]),
      ...this.closes.map((one) => [one, "close"]),
    ];
    let best = null;
    for (const [one, kind] of ends) {
      const at = text.indexOf(one, pos);
      if (at >= 0 && (!best || at < best.at || (at === best.at && one.length > best.one.length))) best = { at, one, kind };
    }
    const raw = text.slice(pos, best ? best.at : text.length);
    if (/[<>{}()[\]"'`,;=\s]/.test(this.nameOf(trim(raw), body))) return null; // T14
    if (!best) return raw.length > 512 || (trim(raw) === "" && frame.isBare) || /[.!?][ ]*$/.test(raw) ? null : frame.isBare ? null : { cut: "before" };
    const name = this.nameOf(trim(raw), body);
    if (!/[\p{L}\p{N}_]/u.test(name)) return null;
    if (frame.isBare && !this.reader.isOffered(name)) return null;
    const call = { name, arguments: "", recovered: false };
    let at = best.at;
    if (best.kind === "id") {
      const stop = this.literals(body.name_close).map((one) => text.indexOf(one, at)).filter((one) => one >= 0);
      if (!stop.length) return { cut: "before" };
      const close = Math.min(...stop);
      at = close + startsWithAny(text, close, this.literals(body.name_close)).length;
    } else if (best.kind === "name") at += best.one.length;
    if (best.kind === "empty") return { ...call, arguments: "{}", end: at + best.one.length };
    if (best.kind === "close") {
      if (this.literals(body.name_close).length) call.recovered = true; // P5
      call.arguments = "{}";
      return this.closed(call, at);
    }
    return this.readArguments(at, call, inList);
  }

  argumentOpeners() {
    const { arguments: syntax } = this.frame;
    if (syntax.kind === "json") return ["{"];
    if (syntax.kind === "tagged") return this.literals(syntax.key_open);
    return [syntax.open ?? "("];
  }

  nameOf(raw, body) {
    const pattern = body.name ?? "{name}";
    const source = escapeRegExp(pattern).replace("\\{name\\}", "(?<name>.+)").replace("\\{index\\}", "\\d+").replace("\\{id\\}", ".+?");
    return new RegExp(`^${source}$`).exec(raw)?.groups.name ?? raw;
  }

  readArguments(at, call, inList) {
    const { text, frame } = this;
    const { arguments: syntax } = frame;
    const tool = this.reader.tool(call.name);
    if (syntax.kind === "tagged") {
      const found = readTagged(this, at, call, syntax, tool);
      if (found === null) return null;
      if (found.before) return { cut: "before" };
      if (found.end === undefined) return { ...call, cut: true, end: text.length };
      return this.closed(call, found.end);
    }
    if (syntax.kind === "literal") {
      const here = skip(text, at);
      const end = readLiteral(text, here, call, syntax, tool, { closes: this.closes, list: inList ? this.listCloses : [] });
      if (end === null) return call.arguments === "" ? (frame.isBare ? null : { cut: "before" }) : { ...call, cut: true, end: text.length };
      return this.closed(call, end);
    }
    const here = skip(text, at);
    if (here >= text.length) return { cut: "before" };
    const close = startsWithAny(text, here, this.closes);
    if (text[here] !== "{" && text[here] !== '"' && !close) return null; // T6
    if (text[here] === "{" && text[here + 1] === "\\") return null; // Q9
    const end = readJsonArguments(text, here, call, this.closes.length ? this.closes : this.literals(frame.call_open), this.closes);
    if (end === null) return { ...call, cut: true, end: text.length };
    return this.closed(call, end);
  }

  closed(call, at) {
    const end = this.afterClose(at, call);
    return { ...call, end };
  }

  // Read the closes of a call: P1, P3.
  afterClose(from, call) {
    const { text } = this;
    let pos = from;
    let here = skip(text, pos);
    const inner = startsWithAny(text, here, this.argumentCloses);
    if (inner) {
      pos = here + inner.length;
      here = skip(text, pos);
    }
    const stray = /^[\]})"'`,;]{1,8}/.exec(text.slice(here, here + 9));
    if (stray && this.callCloses.length) {
      const after = skip(text, here + stray[0].length);
      if (startsWithAny(text, after, this.callCloses)) {
        call.recovered = true;
        here = after;
      }
    }
    const close = startsWithAny(text, here, this.callCloses);
    return close ? here + close.length : pos;
  }
}
