//! Load the vectors, and run a parser over those of one level, read whole.
//!
//!     cargo run -- ../../vectors/src/untemplate_vectors/data clean
//!
//! `parse` knows only that text without markers is content. Put your parser in its place.
use serde_json::{json, Value};
use std::{env, fs, path::Path};

fn parse(_format: &Value, _tools: &Value, _prompt: &Value, output: &str) -> Value {
    json!({"reasoning": "", "content": output, "tool_calls": []})
}

/// True if two arguments are the same JSON, or the same text.
fn same(one: &str, other: &str) -> bool {
    match (serde_json::from_str::<Value>(one), serde_json::from_str::<Value>(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn is_right(message: &Value, expect: &Value) -> bool {
    let empty = Vec::new();
    let calls = message["tool_calls"].as_array().unwrap_or(&empty);
    let wanted = expect["tool_calls"].as_array().unwrap_or(&empty);
    message["reasoning"] == expect["reasoning"]
        && message["content"] == expect["content"]
        && calls.len() == wanted.len()
        && calls.iter().zip(wanted).all(|(call, one)| {
            call["name"] == one["name"]
                && same(call["arguments"].as_str().unwrap_or(""), one["arguments"].as_str().unwrap_or(""))
        })
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let read = |name: &str| fs::read_to_string(Path::new(&arguments[1]).join(name)).expect(name);
    let formats: Value = serde_json::from_str(&read("formats.json")).expect("formats.json");
    let tools: Value = serde_json::from_str(&read("tools.json")).expect("tools.json");
    let (mut right, mut all) = (0, 0);
    for line in read("vectors.jsonl").lines() {
        let vector: Value = serde_json::from_str(line).expect("a vector");
        if vector["level"] != arguments[2].as_str() || vector.get("policy").is_some() {
            continue;
        }
        let offered = vector["tools"].as_str().map_or(&vector["tools"], |name| &tools[name]);
        let format = &formats[vector["format"].as_str().expect("format")];
        let message = parse(format, offered, &vector["prompt"], vector["output"].as_str().expect("output"));
        all += 1;
        right += usize::from(is_right(&message, &vector["expect"]));
    }
    println!("{right} of {all}");
}
