"""Requests written by hand, as people write them to try a model; none comes from the generator.

* A row has the offered tools, the question, and the right calls; without calls, the model should not call.
* The tools are those of vendors' own examples, and others that a demonstration would use. Training knows some of the
  tools and the simplest sentences, because people write these, but it takes no row from this table.
"""

from __future__ import annotations

from typing import Any

from conversations import Conversation

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
STRINGS: dict[str, Any] = {"type": "array", "items": STRING}


def _tool(name: str, description: str, required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {**required, **optional}, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _enum(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _said(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


TOOLS = {
    t["function"]["name"]: t
    for t in [
        _tool(
            "get_weather",
            "Get current temperature for a given location.",
            {"location": _said(STRING, "City and country e.g. Bogotá, Colombia")},
        ),
        _tool(
            "get_current_weather",
            "Get the current weather in a given location",
            {"location": _said(STRING, "The city and state, e.g. San Francisco, CA")},
            unit=_enum("celsius", "fahrenheit"),
        ),
        _tool(
            "get_current_temperature",
            "Get the current temperature for a city",
            {"city": _said(STRING, "The name of the city")},
        ),
        _tool(
            "get_stock_price",
            "Get the current stock price for a given ticker symbol.",
            {"ticker": _said(STRING, "The stock ticker symbol, e.g. AAPL for Apple Inc.")},
        ),
        _tool("get_time", "Get the current time in a given time zone", {"timezone": STRING}),
        _tool(
            "send_email",
            "Send an email to a given recipient with a subject and message.",
            {"to": _said(STRING, "The recipient email address."), "subject": STRING, "body": STRING},
        ),
        _tool("search_web", "Search the web", {"query": STRING}, max_results=INTEGER),
        _tool("add_two_numbers", "Add two numbers", {"a": INTEGER, "b": INTEGER}),
        _tool("multiply", "Multiply two numbers", {"a": NUMBER, "b": NUMBER}),
        _tool("calculator", "Evaluate an arithmetic expression", {"expression": STRING}),
        _tool("get_horoscope", "Get today's horoscope for an astrological sign.", {"sign": STRING}),
        _tool("set_timer", "Set a timer", {"minutes": INTEGER}, label=_said(STRING, "What the timer is for")),
        _tool("turn_on_lights", "Turn on the lights in a room", {"room": STRING}, brightness=INTEGER),
        _tool("set_light", "Switch a light", {"room": STRING, "state": _enum("on", "off")}),
        _tool("play_music", "Play a song", {"song": STRING}, artist=STRING),
        _tool("read_file", "Read a file", {"path": STRING}),
        _tool("write_file", "Write text to a file", {"path": STRING, "content": STRING}),
        _tool("run_command", "Run a shell command", {"command": STRING}),
        _tool("translate_text", "Translate text", {"text": STRING, "target_language": STRING}),
        _tool("convert_currency", "Convert money", {"amount": NUMBER, "from": STRING, "to": STRING}),
        _tool(
            "create_event",
            "Create a calendar event",
            {"title": STRING, "date": _said(STRING, "YYYY-MM-DD")},
            attendees=STRINGS,
        ),
        _tool("get_order_status", "Get the status of an order", {"order_id": STRING}),
        _tool("cancel_order", "Cancel an order", {"order_id": STRING}, reason=STRING),
        _tool(
            "book_table",
            "Book a table in a restaurant",
            {"restaurant": STRING, "guests": INTEGER},
            time=STRING,
        ),
        _tool("get_user", "Look up a user", {"user_id": INTEGER}),
        _tool("list_files", "List the files in a folder", {}, folder=STRING),
        _tool("remind_me", "Set a reminder", {"text": STRING, "time": STRING}),
        _tool("set_alarm", "Set an alarm", {"time": STRING}, repeat=BOOLEAN),
        _tool("get_recipe", "Find a recipe", {"dish": STRING}, vegetarian=BOOLEAN),
        _tool("get_distance", "Distance between two cities", {"origin": STRING, "destination": STRING}),
    ]
}

# The tools, the question, the calls.
ROWS: list[tuple[str, str, list[tuple[str, dict[str, Any]]]]] = [
    ("get_weather", "What is the weather like in Paris today?", [("get_weather", {"location": "Paris"})]),
    ("get_weather", "Is it cold in Reykjavik?", [("get_weather", {"location": "Reykjavik"})]),
    ("get_weather get_stock_price", "weather lisbon", [("get_weather", {"location": "lisbon"})]),
    ("get_current_weather", "What's the weather in Boston in fahrenheit?", [("get_current_weather", {"location": "Boston", "unit": "fahrenheit"})]),
    ("get_current_weather", "What's the weather like in Tokyo and Paris?", [("get_current_weather", {"location": "Tokyo"}), ("get_current_weather", {"location": "Paris"})]),
    ("get_current_weather search_web", "How hot is it in Cairo right now, in celsius please?", [("get_current_weather", {"location": "Cairo", "unit": "celsius"})]),
    ("get_current_temperature", "What is the temperature in New York?", [("get_current_temperature", {"city": "New York"})]),
    ("get_current_temperature get_time", "temperature in Oslo?", [("get_current_temperature", {"city": "Oslo"})]),
    ("get_stock_price", "What is the price of AAPL?", [("get_stock_price", {"ticker": "AAPL"})]),
    ("get_stock_price get_weather", "How is NVDA doing?", [("get_stock_price", {"ticker": "NVDA"})]),
    ("get_time", "What time is it in UTC?", [("get_time", {"timezone": "UTC"})]),
    ("send_email search_web", "Send an email to bob@example.com with subject Lunch saying see you at noon", [("send_email", {"to": "bob@example.com", "subject": "Lunch", "body": "see you at noon"})]),
    ("search_web", "Search the web for python tutorials", [("search_web", {"query": "python tutorials"})]),
    ("search_web get_weather", "Find 5 results about electric cars", [("search_web", {"query": "electric cars", "max_results": 5})]),
    ("search_web", "Google the best pizza in Naples", [("search_web", {"query": "the best pizza in Naples"})]),
    ("add_two_numbers", "What is 3 plus 4?", [("add_two_numbers", {"a": 3, "b": 4})]),
    ("add_two_numbers multiply", "Please add 17 and 25", [("add_two_numbers", {"a": 17, "b": 25})]),
    ("add_two_numbers multiply", "What is 12 times 9?", [("multiply", {"a": 12, "b": 9})]),
    ("calculator", "What is 23 * 17?", [("calculator", {"expression": "23 * 17"})]),
    ("calculator get_weather", "Calculate 100 / 8", [("calculator", {"expression": "100 / 8"})]),
    ("get_horoscope", "What is my horoscope? I am an Aquarius.", [("get_horoscope", {"sign": "Aquarius"})]),
    ("get_horoscope", "Horoscope for Leo please", [("get_horoscope", {"sign": "Leo"})]),
    ("set_timer", "Set a timer for 10 minutes", [("set_timer", {"minutes": 10})]),
    ("set_timer set_alarm", "Set a 25 minute timer for the pizza", [("set_timer", {"minutes": 25, "label": "pizza"})]),
    ("turn_on_lights", "Turn on the lights in the kitchen", [("turn_on_lights", {"room": "kitchen"})]),
    ("turn_on_lights play_music", "Turn on the bedroom lights", [("turn_on_lights", {"room": "bedroom"})]),
    ("set_light", "Turn off the light in the garage", [("set_light", {"room": "garage", "state": "off"})]),
    ("play_music", "Play Yesterday by The Beatles", [("play_music", {"song": "Yesterday", "artist": "The Beatles"})]),
    ("play_music set_timer", "Play Bohemian Rhapsody", [("play_music", {"song": "Bohemian Rhapsody"})]),
    ("read_file run_command", "Read the file README.md", [("read_file", {"path": "README.md"})]),
    ("read_file list_files", "What is in notes.txt?", [("read_file", {"path": "notes.txt"})]),
    ("write_file read_file", 'Write "hello world" to hello.txt', [("write_file", {"path": "hello.txt", "content": "hello world"})]),
    ("run_command", "Run ls -la", [("run_command", {"command": "ls -la"})]),
    ("translate_text", 'Translate "good morning" to Spanish', [("translate_text", {"text": "good morning", "target_language": "Spanish"})]),
    ("convert_currency", "Convert 100 USD to EUR", [("convert_currency", {"amount": 100, "from": "USD", "to": "EUR"})]),
    ("create_event", "Create an event called Team lunch on 2026-12-01", [("create_event", {"title": "Team lunch", "date": "2026-12-01"})]),
    ("create_event send_email", "Create an event called Review on 2027-01-15 with Anna and Tom", [("create_event", {"title": "Review", "date": "2027-01-15", "attendees": ["Anna", "Tom"]})]),
    ("get_order_status cancel_order", "Where is my order 81723?", [("get_order_status", {"order_id": "81723"})]),
    ("get_order_status cancel_order", "Please cancel order A-1002", [("cancel_order", {"order_id": "A-1002"})]),
    ("book_table", "Book a table for 4 at Luigi's at 19:30", [("book_table", {"restaurant": "Luigi's", "guests": 4, "time": "19:30"})]),
    ("get_user", "Show me user 42", [("get_user", {"user_id": 42})]),
    ("list_files read_file", "List the files", [("list_files", {})]),
    ("remind_me set_alarm", "Remind me to call mum at 18:00", [("remind_me", {"text": "call mum", "time": "18:00"})]),
    ("set_alarm", "Wake me at 06:45", [("set_alarm", {"time": "06:45"})]),
    ("get_recipe", "I want to cook lasagne, find me a recipe", [("get_recipe", {"dish": "lasagne"})]),
    ("get_distance", "How far is it from Berlin to Munich?", [("get_distance", {"origin": "Berlin", "destination": "Munich"})]),
    ("get_weather get_stock_price", "What is the weather in Rome and the price of MSFT?", [("get_weather", {"location": "Rome"}), ("get_stock_price", {"ticker": "MSFT"})]),
    # Nothing to call.
    ("get_weather", "Hello, how are you?", []),
    ("get_weather get_stock_price", "Thanks, that was helpful!", []),
    ("get_weather", "What is the weather?", []),
    ("send_email", "Tell me a joke", []),
    ("get_stock_price", "What's the weather in Berlin?", []),
    ("set_timer", "Who are you?", []),
    ("play_music", "Send an email to anna@example.com", []),
    ("search_web", "Please count to 5", []),
    ("get_user", "Translate good night to Italian", []),
    ("calculator", "What can you do?", []),
]  # fmt: skip


def conversations() -> list[Conversation]:
    """Return the table as conversations; their answers have no text to compare."""
    found = []
    for tools, question, calls in ROWS:
        answer: dict[str, Any] = {"role": "assistant", "reasoning_content": "", "content": ""}
        if calls:
            answer["tool_calls"] = [
                {"type": "function", "function": {"name": name, "arguments": arguments}} for name, arguments in calls
            ]
        messages = [{"role": "user", "content": question}, answer]
        kind = "calls" if calls else "talk"
        found.append(Conversation(messages, [TOOLS[name] for name in tools.split()], True, kind))
    return found
