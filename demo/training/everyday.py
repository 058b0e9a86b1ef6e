"""Tools that people do offer, by their usual names, and how people ask for them.

Rules of this module:

* It is a table. ``{x}`` in a question is the value of parameter x; what a question does not mention is optional, and
  has phrases of its own that are put at its end.
* Values and phrasings have two sides as everywhere; the tools themselves are for training (the evaluation's unseen
  tools come from ``tools.py``).
"""

from __future__ import annotations

from typing import Any

# A parameter: the kind of its values, its schema beyond the type, and, if it is optional, how a question says it.
Row = tuple[str, dict[str, Any], list[str]]

CITY: Row = ("city", {"type": "string", "description": "The name of the city"}, [])
UNIT: Row = (
    "enum",
    {"type": "string", "enum": ["celsius", "fahrenheit"]},
    ["in {v}", "in {v}, please", "({v})", "use {v}"],
)

# name(s), description(s), family, noun, parameters, questions (the last for the evaluation alone)
EVERYDAY: list[tuple[list[str], list[str], str, str, dict[str, Row], list[str]]] = [
    (
        ["get_weather", "get_current_weather", "weather", "getWeather", "get_weather"],
        ["Get the current weather in a given city", "Get the weather for a city", "Current weather", "Get the current weather in a given location", "Get current temperature for a given location."],
        "lookup", "weather",
        {"city": CITY, "unit": UNIT},
        ["What is the weather in {city}?", "What's the weather in {city}?", "How is the weather in {city}?", "weather in {city}", "Is it raining in {city}?", "What's the weather like in {city} today?", "How warm is it in {city}?", "Weather {city}", "Tell me the weather in {city}.", "Do I need an umbrella in {city}?", "What is the weather like in {city}?", "How cold is it in {city} right now?", "Can you check the weather in {city} for me?"],
    ),
    (
        ["get_weather", "get_current_weather"],
        ["Get the current weather in a given location", "Get current weather for a location"],
        "lookup", "weather",
        {"location": ("city", {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}, []), "unit": UNIT},
        ["What is the weather in {location}?", "What's the weather like in {location}?", "How is the weather in {location} today?", "Weather in {location}?", "Is it sunny in {location}?", "Tell me the weather in {location}", "What will I need to wear in {location}?"],
    ),
    (
        ["get_forecast", "weather_forecast"], ["Get the weather forecast", "Forecast for the next days in a city"], "lookup", "forecast",
        {"city": CITY, "days": ("days", {"type": "integer"}, ["for {v} days", "for the next {v} days", "over {v} days"])},
        ["What is the forecast for {city}?", "Forecast for {city}", "What does the forecast say for {city}?", "Give me the forecast for {city}.", "Show the forecast in {city}", "What is forecast for {city}?"],
    ),
    (
        ["get_time", "get_current_time", "current_time"], ["Get the current time in a city", "Current local time", "Tells the time"], "lookup", "time",
        {"city": CITY},
        ["What time is it in {city}?", "What is the time in {city}?", "Time in {city}", "Tell me the time in {city}.", "How late is it in {city}?", "what time is it in {city}", "Do you have the time in {city}?"],
    ),
    (
        ["get_stock_price", "stock_price", "get_quote"], ["Get the price of a stock", "Current stock price by symbol"], "lookup", "price",
        {"symbol": ("upper", {"type": "string"}, [])},
        ["What is the price of {symbol}?", "How much is {symbol} stock?", "Stock price of {symbol}", "What does {symbol} trade at?", "Quote for {symbol}, please.", "Where does {symbol} stand?"],
    ),
    (
        ["convert_currency", "exchange", "currency_convert"], ["Convert an amount of money", "Convert between currencies"], "lookup", "amount",
        {"amount": ("number", {"type": "number"}, []), "from": ("money", {"type": "string"}, []), "to": ("money", {"type": "string"}, [])},
        ["Convert {amount} {from} to {to}.", "How much is {amount} {from} in {to}?", "What is {amount} {from} in {to}?", "{amount} {from} to {to}", "Change {amount} {from} into {to}, please.", "I have {amount} {from}. What is that in {to}?"],
    ),
    (
        ["calculate", "calculator", "evaluate"], ["Evaluate an expression", "Calculate a mathematical expression", "A calculator"], "lookup", "result",
        {"expression": ("expression", {"type": "string"}, [])},
        ["What is {expression}?", "Calculate {expression}", "How much is {expression}?", "{expression}", "Compute {expression}, please.", "What's {expression}?", "{expression} = ?", "Can you work out {expression}?"],
    ),
    (
        ["add", "add_numbers", "multiply", "subtract"], ["{Verb} two numbers"], "lookup", "result",
        {"a": ("number", {"type": "number"}, []), "b": ("number", {"type": "number"}, [])},
        ["{Verb} {a} and {b}", "Please {verb} {a} and {b}.", "Can you {verb} {a} and {b}?", "{verb} {a} and {b}", "I want to {verb} {a} and {b}.", "Now {verb} {a} and {b}"],
    ),
    (
        ["send_email", "send_mail", "email"], ["Send an email", "Send an email to someone"], "action", "email",
        {"to": ("email", {"type": "string"}, []), "subject": ("phrase", {"type": "string"}, ["with the subject {q}", "with subject {q}", "about {q}"]), "body": ("phrase", {"type": "string"}, ["saying {q}", "with the text {q}"])},
        ["Send an email to {to}", "Email {to}", "Write an email to {to}", "Please send a mail to {to}", "Send {to} an email", "Drop {to} a mail"],
    ),
    (
        ["send_message", "send_sms", "message"], ["Send a message to a person", "Send a text message"], "action", "message",
        {"to": ("person", {"type": "string"}, []), "text": ("phrase", {"type": "string"}, [])},
        ["Tell {to} that {text}", 'Send {to} the message "{text}"', "Message {to}: {text}", 'Text {to} "{text}"', "Send a message to {to} saying {text}", "Let {to} know: {text}"],
    ),
    (
        ["set_timer", "start_timer", "timer"], ["Set a timer", "Start a timer for some minutes"], "action", "timer",
        {"minutes": ("days", {"type": "integer"}, []), "label": ("lower", {"type": "string"}, ["for {v}", "called {v}", "labelled {v}"])},
        ["Set a timer for {minutes} minutes", "Timer {minutes} minutes", "Start a {minutes} minute timer", "Wake me in {minutes} minutes", "Set the timer to {minutes} minutes", "I need {minutes} minutes on the timer"],
    ),
    (
        ["set_alarm", "create_alarm"], ["Set an alarm", "Set an alarm for a time"], "action", "alarm",
        {"time": ("time", {"type": "string"}, []), "day": ("day", {"type": "string"}, ["on {v}", "for {v}"])},
        ["Set an alarm for {time}", "Wake me up at {time}", "Alarm at {time}", "I need an alarm at {time}", "Please wake me at {time}", "Get me up at {time}"],
    ),
    (
        ["create_reminder", "add_reminder", "remind"], ["Create a reminder", "Remind the user of something"], "action", "reminder",
        {"text": ("phrase", {"type": "string"}, []), "time": ("time", {"type": "string"}, ["at {v}"])},
        ["Remind me: {text}", 'Remind me of "{text}"', "Set a reminder: {text}", 'Add a reminder "{text}"', 'Please remind me about "{text}"', 'Don\'t let me forget "{text}"'],
    ),
    (
        ["search", "web_search", "search_web", "google"], ["Search the web", "Search the internet for a query", "Find pages"], "action", "web",
        {"query": ("query", {"type": "string"}, []), "limit": ("days", {"type": "integer"}, ["with {v} results", "limit {v}"])},
        ["Search for {query}", "Search the web for {query}", "Look up {query}", "Find {query} on the web", "Google {query}", "Look on the internet for {query}"],
    ),
    (
        ["translate", "translate_text"], ["Translate a text", "Translate text to another language"], "lookup", "translation",
        {"text": ("phrase", {"type": "string"}, []), "language": ("language", {"type": "string"}, [])},
        ['Translate "{text}" to {language}', 'Translate "{text}" into {language}.', 'What is "{text}" in {language}?', 'How do I say "{text}" in {language}?', 'Say "{text}" in {language}', 'Put "{text}" into {language}, please'],
    ),
    (
        ["get_news", "news"], ["Get the latest news", "News about a topic"], "lookup", "news",
        {"topic": ("query", {"type": "string"}, [])},
        ["What is the news about {topic}?", "News about {topic}", "Any news on {topic}?", "Show me the news about {topic}", "Tell me the latest on {topic}"],
    ),
    (
        ["play_music", "play_song", "play"], ["Play music", "Play a song"], "action", "song",
        {"song": ("phrase", {"type": "string"}, []), "artist": ("person", {"type": "string"}, ["by {v}"])},
        ['Play "{song}"', 'Play the song "{song}"', 'I want to hear "{song}"', 'Put on "{song}"', 'Please play "{song}"', 'Let me listen to "{song}"'],
    ),
    (
        ["set_light", "control_light", "light"], ["Turn a light on or off", "Switch the lights in a room"], "action", "light",
        {"room": ("room", {"type": "string"}, []), "state": ("enum", {"type": "string", "enum": ["on", "off"]}, [])},
        ["Turn {state} the light in the {room}", "Turn the {room} light {state}", "Switch {state} the {room} lights", "Lights {state} in the {room}", "{room} light {state}", "Please switch the light in the {room} {state}"],
    ),
    (
        ["set_temperature", "set_thermostat"], ["Set the temperature of a room", "Set the thermostat"], "action", "thermostat",
        {"room": ("room", {"type": "string"}, []), "temperature": ("days", {"type": "integer"}, [])},
        ["Set the {room} to {temperature} degrees", "Heat the {room} to {temperature} degrees", "Make it {temperature} degrees in the {room}", "{temperature} degrees in the {room}", "I want {temperature} degrees in the {room}"],
    ),
    (
        ["book_flight", "search_flights", "find_flights"], ["Book a flight", "Find flights between two cities"], "action", "flight",
        {"from": CITY, "to": CITY, "date": ("date", {"type": "string"}, ["on {v}"])},
        ["Book a flight from {from} to {to}", "Flights from {from} to {to}", "I want to fly from {from} to {to}", "Find a flight from {from} to {to}", "Fly me from {from} to {to}", "Get me from {from} to {to} by plane"],
    ),
    (
        ["book_table", "reserve_table"], ["Book a table at a restaurant", "Reserve a table"], "action", "table",
        {"restaurant": ("name", {"type": "string"}, []), "people": ("days", {"type": "integer"}, []), "time": ("time", {"type": "string"}, ["at {v}"])},
        ["Book a table at {restaurant} for {people} people", "Reserve a table for {people} at {restaurant}", "Table for {people} at {restaurant}", "We are {people} and want to eat at {restaurant}", "I need a table for {people} at {restaurant}"],
    ),
    (
        ["find_restaurants", "search_restaurants"], ["Find restaurants in a city", "Search for restaurants"], "action", "restaurants",
        {"city": CITY, "cuisine": ("cuisine", {"type": "string"}, ["with {v} food", "that serve {v} food", "({v})"])},
        ["Find restaurants in {city}", "Where can I eat in {city}?", "Restaurants in {city}", "Show me restaurants in {city}", "I am hungry in {city}"],
    ),
    (
        ["get_directions", "directions", "find_route"], ["Get directions between two places", "Find a route"], "lookup", "route",
        {"origin": CITY, "destination": CITY, "mode": ("enum", {"type": "string", "enum": ["car", "train", "bike", "walk"]}, ["by {v}"])},
        ["How do I get from {origin} to {destination}?", "Directions from {origin} to {destination}", "Route from {origin} to {destination}", "What is the way from {origin} to {destination}?", "Show me the way from {origin} to {destination}"],
    ),
    (
        ["create_event", "add_event", "schedule_meeting"], ["Create a calendar event", "Add an event to the calendar"], "action", "event",
        {"title": ("phrase", {"type": "string"}, []), "date": ("date", {"type": "string"}, []), "time": ("time", {"type": "string"}, ["at {v}"])},
        ['Create an event "{title}" on {date}', 'Add "{title}" to my calendar on {date}', 'Schedule "{title}" for {date}', 'Put "{title}" on {date}', 'Plan "{title}" for {date}'],
    ),
    (
        ["read_file", "open_file", "cat"], ["Read a file", "Read the contents of a file"], "lookup", "content",
        {"path": ("file", {"type": "string"}, [])},
        ["Read {path}", "What is in {path}?", "Show me the file {path}", "Open {path}", "Read the file {path}, please", "What does {path} say?"],
    ),
    (
        ["get_population", "population"], ["Get the population of a place", "Number of people living somewhere"], "lookup", "population",
        {"place": ("city", {"type": "string"}, [])},
        ["How many people live in {place}?", "What is the population of {place}?", "Population of {place}", "How big is {place}?", "Tell me how many people {place} has"],
    ),
    (
        ["define", "define_word", "dictionary"], ["Define a word", "Look up a word in the dictionary"], "lookup", "meaning",
        {"word": ("lower", {"type": "string"}, [])},
        ["What does {word} mean?", "Define {word}", "What is the meaning of {word}?", "Explain the word {word}", "Look up the word {word}", "Meaning of {word}, please"],
    ),
    (
        ["roll_dice", "dice"], ["Roll dice", "Roll some dice"], "bare", "dice",
        {"sides": ("days", {"type": "integer"}, ["with {v} sides"]), "count": ("days", {"type": "integer"}, ["{v} times"])},
        ["Roll the dice", "Roll a die", "Throw the dice", "Roll dice for me", "Please roll the dice"],
    ),
    (
        ["get_time", "now", "get_date"], ["Get the current date and time", "The current time"], "bare", "time",
        {},
        ["What time is it?", "What is the time?", "What day is it?", "What is the date today?", "Tell me the time", "the time, please", "How late is it now?"],
    ),
]  # fmt: skip
MONEY = "EUR USD GBP JPY CHF SEK NOK PLN INR CAD euros dollars pounds yen".split()
ROOMS = ["living room", *"kitchen bedroom bathroom garage hall office cellar attic garden nursery".split()]
CUISINES = "Italian Indian Thai French Greek Mexican Japanese Turkish vegan Chinese Spanish".split()
