// A program for `untemplate conform`: untemplate conform --splits 0 -- node main.mjs
import { createInterface } from "node:readline";
import { parse, Unsupported } from "./parser.mjs";

const formats = {};
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.formats) Object.assign(formats, request.formats);
  else console.log(JSON.stringify({ id: request.id, ...answer(request) }));
}

function answer({ format, tools, prompt, pieces, tokens }) {
  if (tokens) return { unsupported: "it reads text only" };
  try {
    return { message: parse(formats[format], { tools, prompt, text: pieces.join("") }) };
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message };
    throw error;
  }
}
