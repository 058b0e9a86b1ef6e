// Types of values (V1 to V7), a small validator, and statuses (U1).
import { jsonEnd, trim } from "./text.mjs";

function resolve(schema, root) {
  if (typeof schema?.$ref !== "string" || !schema.$ref.startsWith("#")) return null;
  return schema.$ref.slice(1).split("/").slice(1).reduce((part, key) => part?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], root) ?? null;
}

function parts(schema, root) {
  return [resolve(schema, root), ...["allOf", "anyOf", "oneOf"].flatMap((word) => schema?.[word] ?? [])].filter(Boolean);
}

export function propertiesOf(schema, root = schema, depth = 0) {
  if (!schema || depth > 16) return {};
  const inner = parts(schema, root).map((part) => propertiesOf(part, root, depth + 1));
  return Object.assign({}, ...inner.reverse(), schema.properties ?? {});
}

// Return the schema of an argument, or null.
export function declared(tool, key) {
  const schema = tool?.parameters;
  if (!schema) return null;
  const found = propertiesOf(schema);
  if (Object.hasOwn(found, key)) return found[key];
  return typeof schema.additionalProperties === "object" ? schema.additionalProperties : null;
}

const kind = (value) =>
  value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value;

export function typesOf(schema, root, depth = 0) {
  const types = new Set();
  const strings = new Set();
  if (!schema || depth > 16) return { types, strings };
  for (const word of [schema.type ?? []].flat()) types.add(word);
  for (const value of [...(schema.enum ?? []), ...("const" in schema ? [schema.const] : [])]) {
    types.add(kind(value));
    if (typeof value === "string") strings.add(value);
  }
  for (const part of parts(schema, root)) {
    const found = typesOf(part, root, depth + 1);
    found.types.forEach((one) => types.add(one));
    found.strings.forEach((one) => strings.add(one));
  }
  if (!types.size && schema.properties) types.add("object");
  if (!types.size && schema.items) types.add("array");
  if (schema.nullable === true && types.size) types.add("null");
  return { types, strings };
}

const WORDS = { true: "true", True: "true", TRUE: "true", false: "false", False: "false", FALSE: "false" };

// Return the JSON of a value's text: V2 to V7.
export function convert(text, schema, root) {
  const { types, strings } = typesOf(schema, root);
  const asString = JSON.stringify(text);
  if (!types.size || (types.size === 1 && types.has("string")) || strings.has(text)) return asString;
  const exact = types.has("string");
  const scalar = exact ? text : trim(text);
  if (types.has("null") && ["null", "Null", "NULL", "None"].includes(scalar)) return "null";
  if (types.has("integer") || types.has("number")) {
    if (/^-?(0|[1-9]\d*)$/.test(scalar)) return scalar;
    if (types.has("number") && /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(scalar)) return scalar;
    if (!exact && /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(scalar)) {
      const value = Number(scalar);
      if (Number.isFinite(value) && (types.has("number") || Number.isInteger(value))) return String(value);
    }
  }
  if (types.has("boolean")) {
    if (WORDS[scalar]) return WORDS[scalar];
    if (!exact && (scalar === "1" || scalar === "0")) return scalar === "1" ? "true" : "false";
  }
  const value = trim(text);
  if ((types.has("object") && value[0] === "{") || (types.has("array") && value[0] === "[")) {
    try {
      JSON.parse(value);
      return value;
    } catch {
      // V7: literals of Python are not supported here.
    }
  }
  return asString;
}

function isType(value, type) {
  const own = kind(value);
  return own === type || (type === "number" && own === "integer");
}

// True if a value fits a schema: the keywords that tools use.
export function fits(value, schema, root = schema, depth = 0) {
  if (schema === true || schema === undefined || depth > 32) return true;
  if (schema === false) return false;
  const all = (list) => list.every((part) => fits(value, part, root, depth + 1));
  const some = (list) => list.some((part) => fits(value, part, root, depth + 1));
  if (schema.$ref && !fits(value, resolve(schema, root) ?? true, root, depth + 1)) return false;
  if (schema.type && ![schema.type].flat().some((type) => isType(value, type))) return false;
  if (schema.enum && !schema.enum.some((one) => JSON.stringify(one) === JSON.stringify(value))) return false;
  if ("const" in schema && JSON.stringify(schema.const) !== JSON.stringify(value)) return false;
  if (schema.allOf && !all(schema.allOf)) return false;
  if (schema.anyOf && !some(schema.anyOf)) return false;
  if (schema.oneOf && !some(schema.oneOf)) return false;
  if (kind(value) === "array" && schema.items) return value.every((one) => fits(one, schema.items, root, depth + 1));
  if (kind(value) !== "object") return true;
  if ((schema.required ?? []).some((key) => !Object.hasOwn(value, key))) return false;
  return Object.entries(value).every(([key, one]) =>
    fits(one, schema.properties?.[key] ?? schema.additionalProperties ?? true, root, depth + 1),
  );
}

export function argumentsStatus(call, tools, tool) {
  let value;
  try {
    if (jsonEnd(call.arguments, 0) && trim(call.arguments)[0] !== "{") return "invalid_json";
    value = JSON.parse(call.arguments);
  } catch {
    return "invalid_json";
  }
  if (tools !== null && tool === null) return "unknown_tool";
  if (tool?.parameters && !fits(value, tool.parameters)) return "invalid_arguments";
  return call.recovered ? "recovered" : "ok";
}
