"""Common tools by their usual names, and the ways in which people ask for them.

* The module is a table. ``{x}`` in a question is the value of parameter x. A parameter that the question does not
  mention is optional, and has phrases that are added at the end of the question.
* Values and phrasings have two groups as everywhere. The tools themselves are for training; the evaluation's unseen
  tools come from ``tools.py``.
"""

from __future__ import annotations

from typing import Any

# A parameter: the kind of its values, further fields of its schema, and, if it is optional, phrases for a question.
Row = tuple[str, dict[str, Any], list[str]]

CITY: Row = ("city", {"type": "string", "description": "The name of the city"}, [])
UNIT: Row = (
    "enum",
    {"type": "string", "enum": ["celsius", "fahrenheit"]},
    ["in {v}", "in {v}, please", "({v})", "use {v}"],
)

# name(s), description(s), family, noun, parameters, questions (the last, or the last two of more than ten, for the evaluation alone)
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
        ["What is the price of {symbol} stock?", "How much is {symbol} stock?", "How is {symbol} today?", "How does {symbol} do?", "Is {symbol} up?", "Check {symbol}", "price of {symbol}", "Stock price of {symbol}", "What does {symbol} trade at?", "Quote for {symbol}, please.", "Where does {symbol} stand?"],
    ),
    (
        ["convert_currency", "exchange", "currency_convert"], ["Convert an amount of money", "Convert between currencies"], "lookup", "amount",
        {"amount": ("number", {"type": "number"}, []), "from": ("money", {"type": "string"}, []), "to": ("money", {"type": "string"}, [])},
        ["Convert {amount} {from} to {to}.", "How much is {amount} {from} in {to}?", "What is {amount} {from} in {to}?", "{amount} {from} to {to}", "Change {amount} {from} into {to}, please.", "I have {amount} {from}. What is that in {to}?"],
    ),
    (
        ["calculate", "calculator", "evaluate"], ["Evaluate an expression", "Calculate a mathematical expression", "A calculator"], "lookup", "result",
        {"expression": ("expression", {"type": "string"}, [])},
        ["What is {expression}?", "Calculate {expression}", "How much is {expression}?", "{expression}", "Compute {expression}, please.", "What's {expression}?", "{expression} = ?", "Work out {expression}", "the result of {expression}", "Can you work out {expression}?"],
    ),
    (
        ["add", "add_numbers", "sum"], ["Add two numbers", "The sum of two numbers"], "lookup", "sum",
        {"a": ("number", {"type": "number"}, []), "b": ("number", {"type": "number"}, [])},
        ["Add {a} and {b}", "Can you add {a} to {b}?", "How much is {a} plus {b}?", "{a} plus {b}", "The sum of {a} and {b}, please", "What do {a} and {b} make together?", "Sum up {a} and {b}", "{a} + {b}", "I have {a} and get {b} more. How many is that?", "What does {a} plus {b} make?", "{a} and {b} added?"],
    ),
    (
        ["multiply", "multiply_numbers", "product"], ["Multiply two numbers", "The product of two numbers"], "lookup", "product",
        {"a": ("days", {"type": "integer"}, []), "b": ("days", {"type": "integer"}, [])},
        ["Multiply {a} and {b}", "Can you multiply {a} by {b}?", "How much is {a} times {b}?", "{a} times {b}", "The product of {a} and {b}", "{a} * {b}", "{a} x {b}?", "I have {a} bags with {b} apples each. How many is that?", "What does {a} times {b} make?"],
    ),
    (
        ["subtract", "minus", "subtract_numbers"], ["Subtract a number from another", "The difference of two numbers"], "lookup", "difference",
        {"a": ("number", {"type": "number"}, []), "b": ("number", {"type": "number"}, [])},
        ["How much is {a} minus {b}?", "{a} minus {b}", "{a} less {b}", "What is left of {a} without {b}?", "Take {b} from {a}", "{a} - {b}"],
    ),
    (
        ["get_order_status", "order_status", "track_order", "track_package"], ["Get the status of an order", "Track an order", "Where an order is"], "lookup", "status",
        {"order_id": ("order", {"type": "string"}, [])},
        ["What is the status of order {order_id}?", "Track order {order_id}", "Where is my package {order_id}?", "Has order {order_id} been sent?", "Status of {order_id}", "When will order {order_id} arrive?", "Check order {order_id} for me", "Where is order {order_id}?", "my order is {order_id}, where is it?", "Order number {order_id}: any news?", "What has become of order {order_id}?", "I am waiting for order {order_id}"],
    ),
    (
        ["cancel_order", "delete_order", "stop_order"], ["Cancel an order", "Cancel the order of a customer"], "action", "order",
        {"order_id": ("order", {"type": "string"}, []), "reason": ("phrase", {"type": "string"}, ["because of {q}", "reason: {v}"])},
        ["Cancel order {order_id}", "I don't want order {order_id} any more", "Cancel my order {order_id}", "Can you cancel {order_id}?", "Stop order {order_id}, please", "Order {order_id} must be cancelled", "Take back order {order_id}"],
    ),
    (
        ["get_user", "find_user", "user_info", "get_customer"], ["Look up a user", "Get a user by id", "The data of a user"], "lookup", "user",
        {"user_id": ("days", {"type": "integer"}, [])},
        ["Who is user {user_id}?", "Look up user {user_id}", "Get the user with the id {user_id}", "Find user number {user_id}", "user {user_id}", "Tell me about user {user_id}", "Give me the data of user {user_id}", "I need user {user_id}", "What do we know about user {user_id}?", "Which user has the number {user_id}?"],
    ),
    (
        ["get_distance", "distance", "how_far"], ["Get the distance between two places", "Distance in kilometers"], "lookup", "distance",
        {"from": CITY, "to": CITY},
        ["How far is {to} from {from}?", "What is the distance between {from} and {to}?", "Distance from {from} to {to}", "How far away is {to} from {from}?", "How many kilometers from {from} to {to}?", "How far do I drive from {from} to {to}?", "How long is the way from {from} to {to}?", "Is it far from {from} to {to}?"],
    ),
    (
        ["run_command", "bash", "shell", "execute"], ["Run a command in the shell", "Run a shell command", "Execute a command"], "action", "command",
        {"command": ("command", {"type": "string"}, [])},
        ["Run the command {command}", "Execute {command}", "Please run `{command}`", "run {command} please", "Run `{command}`", "Can you run {command}?", "Type {command}", "Do a {command}", "Start {command} in the shell", "Now run {command} again", "Let's see what {command} says"],
    ),
    (
        ["write_file", "save_file", "create_file"], ["Write a file", "Write text to a file", "Save text in a file"], "action", "file",
        {"path": ("file", {"type": "string"}, []), "content": ("phrase", {"type": "string"}, [])},
        ['Save "{content}" in {path}', 'Create {path} with the text "{content}"', 'Put "{content}" into {path}', 'Write {path}: {content}', 'Make a file {path} that says "{content}"', 'Save "{content}" as {path}', 'Write "{content}" into the file {path}', 'Create a file {path} with "{content}"', 'Please write to {path}: "{content}"'],
    ),
    (
        ["list_files", "ls", "list_directory"], ["List files", "List the files in a folder"], "bare", "files",
        {"path": ("folder", {"type": "string"}, ["in {v}", "of {v}", "under {v}"])},
        ["List my files", "Which files are there", "Show the files", "What files do I have", "List all files", "Show me what is there", "Give me the files"],
    ),
    (
        ["delete_file", "remove_file"], ["Delete a file", "Remove a file"], "action", "file",
        {"path": ("file", {"type": "string"}, [])},
        ["Delete {path}", "Remove the file {path}", "Get rid of {path}", "Delete the file {path}, please", "I don't need {path} any more", "Throw {path} away"],
    ),
    (
        ["create_event", "add_calendar_event", "create_meeting"], ["Create an event", "Add a meeting with people", "Create a calendar event with attendees"], "action", "event",
        {"title": ("title", {"type": "string"}, []), "date": ("date", {"type": "string", "description": "YYYY-MM-DD"}, []), "attendees": ("people", {"type": "array", "items": {"type": "string"}}, ["with {v}", "and invite {v}", "together with {v}", "for {v}"])},
        ["Create the event {title} on {date}", "Add {title} to the calendar on {date}", "Schedule a meeting called {title} on {date}", "New event {title} on {date}", "Make an appointment named {title} for {date}", "Plan {title} on {date}", 'Put a meeting titled "{title}" on {date}', "Enter {title} on {date}"],
    ),
    (
        ["play_song", "play_track", "start_music"], ["Play a song", "Play a track of an artist"], "action", "song",
        {"title": ("title", {"type": "string"}, []), "artist": ("person", {"type": "string"}, ["by {v}", "from {v}"])},
        ["Play the song {title}", "Please play {title}", "Can you put on {title}", "I would like to hear {title}", "play {title}", "Start {title}", "Let's hear {title}"],
    ),
    (
        ["find_recipe", "get_recipe", "search_recipes"], ["Find a recipe", "Get the recipe for a dish"], "lookup", "recipe",
        {"dish": ("dish", {"type": "string"}, [])},
        ["How do I cook {dish}?", "Recipe for {dish}", "How do I make {dish}?", "I want to make {dish}. How?", "What goes into {dish}?", "Find me a recipe for {dish}", "Show me how to cook {dish}", "I would like to cook {dish}", "What do I need for {dish}?"],
    ),
    (
        ["get_horoscope", "horoscope", "daily_horoscope"], ["Get the horoscope", "Today's horoscope for a sign", "Horoscope by zodiac sign"], "lookup", "horoscope",
        {"sign": ("sign", {"type": "string"}, [])},
        ["What is the horoscope for {sign}?", "I am a {sign}. What do the stars say?", "{sign} horoscope", "Read me the horoscope of {sign}", "My sign is {sign}, what is my horoscope?", "What do the stars have for {sign} today?", "Will {sign} be lucky today?"],
    ),
    (
        ["set_light_on", "turn_on_light", "turn_on_lights", "lights_on"], ["Turn on the light in a room", "Switch the lights of a room on"], "action", "light",
        {"room": ("room", {"type": "string"}, []), "brightness": ("percent", {"type": "integer"}, ["at {v} percent", "with {v} percent", "to {v} %"])},
        ["Light in the {room}, please", "Turn the {room} light on", "Switch the {room} lights on", "It is dark in the {room}", "Turn the lights on in the {room}", "I need light in the {room}", "Lights on in the {room}", "Put the lights on in the {room}"],
    ),
    (
        ["set_volume", "volume"], ["Set the volume", "Change the volume of the speaker"], "action", "volume",
        {"level": ("percent", {"type": "integer"}, []), "device": ("thing", {"type": "string"}, ["on the {v}", "of the {v}"])},
        ["Set the volume to {level}", "Volume {level}", "Turn the volume to {level}", "Make the volume {level}", "Change the volume to {level} percent", "I want the volume at {level}"],
    ),
    (
        ["lock_door", "lock"], ["Lock a door", "Lock one of the doors"], "action", "door",
        {"door": ("room", {"type": "string"}, [])},
        ["Lock the {door} door", "Lock the {door}", "Please lock the door of the {door}", "Is the {door} door locked? Lock it.", "Close and lock the {door}"],
    ),
    (
        ["get_balance", "account_balance", "check_balance"], ["Get the balance of an account", "How much money is in an account"], "lookup", "balance",
        {"account": ("order", {"type": "string"}, [])},
        ["How much money is in account {account}?", "Balance of account {account}", "What is left in {account}?", "What is the balance of {account}?", "Show me the balance of account {account}", "How much is on {account}?"],
    ),
    (
        ["transfer_money", "pay", "send_money", "send_payment"], ["Send money to a person", "Transfer an amount", "Pay someone"], "action", "payment",
        {"amount": ("number", {"type": "number"}, []), "to": ("person", {"type": "string"}, []), "note": ("phrase", {"type": "string"}, ["with the note {q}", "saying {q}"])},
        ["Pay {to} {amount} euros", "Transfer {amount} euros to {to}", "Send {to} {amount} dollars", "Pay {amount} to {to}", "I owe {to} {amount}. Pay it", "Give {to} {amount} dollars", "{amount} euros for {to}"],
    ),
    (
        ["search_products", "find_products", "product_search"], ["Search products", "Find products in the shop"], "action", "products",
        {"query": ("thing", {"type": "string"}, []), "max_price": ("days", {"type": "number"}, ["under {v} euros", "for less than {v}", "below {v}", "up to {v}"])},
        ["Find me a {query}", "I am looking for a {query}", "Show me a {query}", "Do you sell a {query}", "I want to buy a {query}", "Which {query} do you have", "I need a {query}"],
    ),
    (
        ["add_to_cart", "buy", "add_item"], ["Add a product to the cart", "Put a product into the basket"], "action", "product",
        {"product": ("thing", {"type": "string"}, []), "quantity": ("days", {"type": "integer"}, ["{v} times", "({v} of them)"])},
        ["Add {product} to my cart", "Put {product} in the basket", "I take {product}", "Put the {product} into my cart", "Add a {product} to the basket", "{product} into the cart, please"],
    ),
    (
        ["add_todo", "add_task", "create_task", "create_todo"], ["Add a task to the list", "Create a task", "Add a todo"], "action", "task",
        {"task": ("phrase", {"type": "string"}, []), "due": ("date", {"type": "string"}, ["by {v}", "until {v}", "due {v}"])},
        ['Add "{task}" to my list', "New task: {task}", 'Put "{task}" on my todo list', 'Add the task "{task}"', "Todo: {task}", 'Note down the task "{task}"', 'I must not forget the task "{task}"'],
    ),
    (
        ["create_note", "save_note", "take_note"], ["Save a note", "Write a note"], "action", "note",
        {"text": ("phrase", {"type": "string"}, [])},
        ["Note: {text}", 'Write down "{text}"', "Make a note: {text}", 'Take a note that says "{text}"', 'Save the note "{text}"', 'Keep in mind: "{text}"'],
    ),
    (
        ["create_reminder", "remind_me", "set_reminder", "remind"], ["Set a reminder for a time", "Remind the user at a time"], "action", "reminder",
        {"text": ("phrase", {"type": "string"}, []), "time": ("time", {"type": "string"}, [])},
        ["Remind me of {text} at {time}", "At {time}, remind me of {text}", "Reminder at {time}: {text}", 'Tell me "{text}" at {time}', "Remind me at {time} about {text}", "Set a reminder for {time}: {text}", "{text} at {time}, remind me"],
    ),
    (
        ["call_contact", "make_call", "phone", "call"], ["Call a person", "Call somebody on the phone"], "action", "contact",
        {"name": ("person", {"type": "string"}, [])},
        ["Call {name}", "Ring {name}", "Phone {name}, please", "Give {name} a call", "I want to talk to {name}", "Dial {name}", "Get {name} on the phone"],
    ),
    (
        ["get_exchange_rate", "exchange_rate"], ["Get the exchange rate of two currencies", "Exchange rate"], "lookup", "rate",
        {"from": ("money", {"type": "string"}, []), "to": ("money", {"type": "string"}, [])},
        ["What is the exchange rate from {from} to {to}?", "{from} to {to} rate", "How many {to} is one {from}?", "Rate of {from} in {to}", "What do I get in {to} for one {from}?", "How does {from} stand against {to}?"],
    ),
    (
        ["get_capital", "capital"], ["Get the capital of a country", "Capital city of a country"], "lookup", "capital",
        {"country": ("country", {"type": "string"}, [])},
        ["What is the capital of {country}?", "Capital of {country}", "Which city is the capital of {country}?", "Name the capital of {country}", "Tell me the capital of {country}", "{country} has which capital?"],
    ),
    (
        ["square_root", "sqrt"], ["Square root of a number", "Calculate a square root"], "lookup", "root",
        {"number": ("number", {"type": "number"}, [])},
        ["What is the square root of {number}?", "Square root of {number}", "sqrt({number})", "Take the root of {number}", "Which number squared is {number}?"],
    ),
    (
        ["random_number", "get_random_number", "random"], ["A random number", "Draw a random number between two numbers"], "lookup", "number",
        {"min": ("days", {"type": "integer"}, []), "max": ("days", {"type": "integer"}, [])},
        ["Give me a random number between {min} and {max}", "Random number from {min} to {max}", "Pick a number between {min} and {max}", "Any number from {min} to {max}", "Draw a number from {min} to {max}"],
    ),
    (
        ["generate_password", "create_password"], ["Generate a password", "Make a random password"], "action", "password",
        {"length": ("days", {"type": "integer"}, [])},
        ["Make a password with {length} characters", "I need a password of length {length}", "Generate a password with {length} letters", "New password, {length} characters", "Think up a password of {length} characters"],
    ),
    (
        ["open_url", "fetch", "fetch_page", "visit"], ["Open a web page", "Fetch the content of a URL", "Read a web page"], "action", "page",
        {"url": ("url", {"type": "string"}, [])},
        ["Open {url}", "Fetch {url}", "What is on {url}?", "Read the page {url}", "Go to {url}", "Get {url}", "What does {url} say?", "Have a look at {url}"],
    ),
    (
        ["get_price", "product_price", "price_check"], ["Get the price of a product", "How much a product costs"], "lookup", "price",
        {"product": ("thing", {"type": "string"}, [])},
        ["How much is a {product}?", "What does a {product} cost?", "Price of a {product}", "What is the price of the {product}?", "How expensive is a {product}?", "What do I pay for a {product}?"],
    ),
    (
        ["send_email", "send_mail", "email"], ["Send an email", "Send an email to someone"], "action", "email",
        {"to": ("email", {"type": "string"}, []), "subject": ("phrase", {"type": "string"}, ["with the subject {q}", "with subject {q}", "about {q}", "with the subject {v}", "with subject {v}"]), "body": ("phrase", {"type": "string"}, ["saying {q}", "with the text {q}", "saying {v}", "and say {q}", "and write {q}"])},
        ["Send an email to {to}", "Send an e-mail to {to}", "Email {to}", "Mail to {to}", "Write an email to {to}", "Please send a mail to {to}", "Send {to} an email", "Drop {to} a mail"],
    ),
    (
        ["send_message", "send_sms", "message"], ["Send a message to a person", "Send a text message"], "action", "message",
        {"to": ("person", {"type": "string"}, []), "text": ("phrase", {"type": "string"}, [])},
        ["Tell {to} that {text}", 'Send {to} the message "{text}"', "Message {to}: {text}", 'Text {to} "{text}"', "Send a message to {to} saying {text}", "Let {to} know: {text}"],
    ),
    (
        ["set_timer", "start_timer", "timer"], ["Set a timer", "Start a timer for some minutes"], "action", "timer",
        {"minutes": ("days", {"type": "integer"}, []), "label": ("lower", {"type": "string"}, ["for {v}", "called {v}", "labelled {v}"])},
        ["Set a timer for {minutes} minutes", "Timer {minutes} minutes", "Start a {minutes} minute timer", "Wake me in {minutes} minutes", "Set the timer to {minutes} minutes", "{minutes} minutes, please", "Set a {minutes} minute timer", "Tell me when {minutes} minutes are over", "I need {minutes} minutes on the timer"],
    ),
    (
        ["set_alarm", "create_alarm"], ["Set an alarm", "Set an alarm for a time"], "action", "alarm",
        {"time": ("time", {"type": "string"}, []), "day": ("day", {"type": "string"}, ["on {v}", "for {v}"])},
        ["Set an alarm for {time}", "Wake me up at {time}", "I have to get up at {time}", "alarm {time}", "Alarm at {time}", "I need an alarm at {time}", "Please wake me at {time}", "Get me up at {time}"],
    ),
    (
        ["create_reminder", "add_reminder", "remind"], ["Create a reminder", "Remind the user of something"], "action", "reminder",
        {"text": ("phrase", {"type": "string"}, []), "time": ("time", {"type": "string"}, ["at {v}"])},
        ["Remind me: {text}", 'Remind me of "{text}"', "Set a reminder: {text}", 'Add a reminder "{text}"', 'Please remind me about "{text}"', 'Don\'t let me forget "{text}"'],
    ),
    (
        ["search", "web_search", "search_web", "google"], ["Search the web", "Search the internet for a query", "Find pages"], "action", "web",
        {"query": ("query", {"type": "string"}, []), "limit": ("days", {"type": "integer"}, ["with {v} results", "limit {v}", "and give me {v} results", "({v} results)"])},
        ["Search for {query}", "Search the web for {query}", "Look up {query}", "Find out about {query}", "Find results for {query}", "What does the web say about {query}", "Search {query}", "web search: {query}", "Find {query} on the web", "Google {query}", "Look on the internet for {query}"],
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
        {"restaurant": ("restaurant", {"type": "string"}, []), "people": ("days", {"type": "integer"}, []), "time": ("time", {"type": "string"}, ["at {v}"])},
        ["Book a table at {restaurant} for {people} people", "Reserve a table for {people} at {restaurant}", "Table for {people} at {restaurant}", "We are {people} and want to eat at {restaurant}", "A table for {people} people at {restaurant}, please", "Get us a table at {restaurant}, we are {people}", "I need a table for {people} at {restaurant}"],
    ),
    (
        ["find_restaurants", "search_restaurants"], ["Find restaurants in a city", "Search for restaurants"], "action", "restaurants",
        {"city": CITY, "cuisine": ("cuisine", {"type": "string"}, ["with {v} food", "that serve {v} food", "({v})"])},
        ["Find restaurants in {city}", "Find me a restaurant in {city}", "Any good restaurants in {city}", "Where can I eat in {city}?", "Restaurants in {city}", "Show me restaurants in {city}", "I am hungry in {city}"],
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
# Other names of a parameter, by the kind of its values.
SYNONYMS: dict[str, list[str]] = {
    "city": ["location", "place", "town", "city_name", "city", "where"], "upper": ["ticker", "symbol", "stock", "ticker_symbol", "company"],
    "person": ["person", "name", "recipient", "contact", "who", "receiver"], "email": ["email", "recipient", "address", "to_address"],
    "phrase": ["text", "message", "content", "body", "words", "value"], "title": ["title", "name", "song", "track", "label"],
    "number": ["value", "number", "x", "n", "amount"], "days": ["n", "value", "count", "number", "duration", "size"],
    "date": ["date", "day", "when", "on_date"], "time": ["time", "at", "when", "start_time", "clock"],
    "file": ["path", "file", "filename", "file_path", "file_name"], "query": ["query", "q", "search_query", "text", "keywords", "term"],
    "language": ["language", "target_language", "lang", "to_language", "to"], "room": ["room", "location", "area", "where", "room_name"],
    "order": ["id", "order", "number", "order_number", "reference"], "url": ["url", "link", "address", "page", "uri"],
    "lower": ["word", "term", "name", "entry"], "thing": ["product", "item", "name", "product_name", "article"],
    "dish": ["dish", "meal", "food", "name", "dish_name"], "sign": ["sign", "zodiac", "zodiac_sign", "star_sign"],
    "country": ["country", "nation", "country_name", "place"], "command": ["command", "cmd", "shell_command", "line"],
    "percent": ["level", "percent", "value", "brightness"], "restaurant": ["restaurant", "name", "place", "restaurant_name"],
    "people": ["people", "participants", "guests", "invitees", "names"], "expression": ["expression", "formula", "term", "input"],
    "folder": ["folder", "directory", "path", "dir"],
}  # fmt: skip
MONEY = "EUR USD GBP JPY CHF SEK NOK PLN INR CAD euros dollars pounds yen".split()
ROOMS = ["living room", *"kitchen bedroom bathroom garage hall office cellar attic garden nursery".split()]
SIGNS = "Aries Taurus Gemini Cancer Leo Virgo Libra Scorpio Sagittarius Capricorn Aquarius Pisces".split()
DISHES = [
    *"lasagne pizza pancakes soup curry goulash ravioli paella risotto sushi tacos dumplings omelette stew salad".split(),
    "apple pie", "fried rice", "tomato soup", "chicken curry", "chocolate cake", "onion soup", "lemon tart",
]  # fmt: skip
COMMANDS = (
    "ls;ls -l;pwd;git status;git log;git diff;npm test;make;make test;whoami;date;df -h;ps aux;uname -a;top".split(";")
)
CUISINES = "Italian Indian Thai French Greek Mexican Japanese Turkish vegan Chinese Spanish".split()
