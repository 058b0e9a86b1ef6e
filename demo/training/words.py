"""Words and values in two groups: those that training may use, and those held out for the evaluation.

* The checksum of a word or value decides its group. So no list of held-out words is needed, and no seed can move a
  word to the other group. (Of phrasings, the last of each list are held out: see ``asking.py``.)
* Kinds with too few values are in both groups: numbers below 100, times, weekdays, colours, adjectives, symbols of
  shares, currencies, rooms, and commands of the shell.
* Every choice uses the ``random.Random`` that is passed in.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence

HELD_OUT_OF = 8  # one text in eight is held out

PEOPLE = """Anna Ben Carla David Emma Felix Greta Hugo Ines Jonas Karin Leo Maria Nils Olga Paul Rosa Sven Tina Ugo Vera
Walter Yara Zoe Alice Bob Carol Dave Erin Frank Grace Heidi Ivan Judy Mallory Peggy Trent Victor Wendy Omar Priya Chen
Yuki Amir Fatima Kofi Lars Mei Noah Liam Sofia Mateo Aisha Diego Elena Igor Jamal""".split()
SURNAMES = """Smith Meyer Rossi Novak Silva Tanaka Kim Patel Olsen Dubois Garcia Kowalski Brown Becker Moreau Costa Ito
Nguyen Hansen Weber Romano Santos Ivanov Ahmed Jones Wagner Fischer Laurent Berg Lindgren""".split()
CITIES = """Paris London Berlin Rome Madrid Oslo Bergen Vienna Prague Lisbon Dublin Athens Warsaw Zurich Geneva Milan
Munich Hamburg Lyon Porto Seville Naples Tokyo Kyoto Osaka Seoul Beijing Shanghai Delhi Mumbai Cairo Lagos Nairobi
Toronto Boston Chicago Denver Seattle Austin Dallas Houston Miami Lima Bogota Quito Havana Sydney Perth Helsinki Tallinn
Riga Vilnius Kyiv Budapest Sofia Bucharest Istanbul Ankara Tehran Baghdad Karachi Dhaka Bangkok Hanoi Manila Jakarta
Amsterdam Brussels Copenhagen Stockholm Reykjavik Edinburgh Glasgow Marseille Valencia Krakow Antwerp Basel Turin""".split()
TWO_WORD_CITIES = [
    "New York",
    "San Francisco",
    "Los Angeles",
    "Rio de Janeiro",
    "Buenos Aires",
    "Cape Town",
    "Hong Kong",
    "Mexico City",
    "New Delhi",
    "Kuala Lumpur",
    "San Diego",
    "Tel Aviv",
    "Abu Dhabi",
    "Las Vegas",
]
COUNTRIES = """France Germany Italy Spain Norway Sweden Finland Denmark Poland Austria Portugal Greece Ireland Japan China
India Brazil Peru Chile Canada Mexico Egypt Kenya Ghana Iceland Turkey Vietnam Thailand Hungary Romania Estonia""".split()
THINGS = """lamp chair table phone laptop camera bicycle car guitar piano clock radio printer kettle heater fan router jacket
shoes hat watch backpack tent bottle pen notebook monitor keyboard mouse speaker drill hammer sofa desk mirror carpet
coffee tea bread cheese milk apples rice soup pizza salad pasta cake honey butter juice""".split()
COLOURS = "red green blue yellow orange purple black white grey brown pink silver gold teal".split()
ADJECTIVES = """small large fast slow new old cheap bright quiet warm cold light heavy early late short long daily weekly
monthly public private final simple urgent""".split()
ANIMALS = "fox cat dog bear owl mouse horse rabbit wolf duck frog lion tiger whale hen goat".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday today tomorrow".split()
WORDS = """report plan budget draft summary project team lunch dinner party review launch invoice contract garden kitchen
office holiday training travel music history science market energy water river mountain winter summer spring morning
evening story picture message letter meeting update version release server network backup design lesson exam garage
harbour bridge castle museum station airport festival concert marathon workshop survey""".split()
LANGUAGES = (
    "English German French Spanish Italian Polish Dutch Greek Danish Swedish Japanese Korean Turkish Arabic".split()
)
EXTENSIONS = "pdf txt csv png jpg md py json docx zip".split()
DOMAINS = "example.com example.org mail.test post.example acme.test".split()

ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl cr dr fl fr gl gr kl kr pl pr sh sk sl st str th tr".split()
VOWELS = "a e i o u a e i o u ai ea ee ia io oa oo ou".split()
CODAS = ["", "", "", "", "n", "r", "s", "l", "m", "t", "d", "k", "x", "nd", "rt", "st", "ck", "ng", "lm", "sh"]


def held_out(text: str) -> bool:
    """True if a text is held out for the evaluation."""
    return zlib.crc32(text.lower().encode()) % HELD_OUT_OF == 0


class Words:
    """Draws from one group: with ``held`` only words that are held out, by default only the others.

    ``known`` are words that training sees from other sources: they never count as held out.
    """

    def __init__(self, rng: random.Random, held: bool = False, known: frozenset[str] = frozenset()) -> None:
        self.rng = rng
        self.held = held
        self.known = known

    def allows(self, text: str) -> bool:
        """True if a text is in this group."""
        return not held_out(text) if not self.held else held_out(text) and text.lower() not in self.known

    def pick(self, texts: Sequence[str]) -> str:
        """Return one text of a list that is in this group, or an invented word if none is found."""
        for _ in range(40):
            text = self.rng.choice(texts)
            if self.allows(text):
                return text
        return self.invented()

    def invented(self, low: int = 1, high: int = 2) -> str:
        """Return a pronounceable word without a meaning."""
        rng = self.rng
        while True:
            parts = [
                rng.choice(ONSETS) + rng.choice(VOWELS) + (rng.choice(CODAS) if rng.random() < 0.6 else "")
                for _ in range(rng.randint(low, high))
            ]
            text = "".join(parts)
            if rng.random() < 0.2:
                text = rng.choice("aeiou") + text
            if 3 <= len(text) <= 8 and self.allows(text):
                return text

    def number(self, low: int, high: int) -> int:
        """Return a whole number between these two, both included."""
        while True:
            value = self.rng.randint(low, high)
            if abs(value) < 100 or self.allows(str(value)):
                return value

    def name(self) -> str:
        """Return a name for anything: mostly an invented word, capitalised."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.62:
            return self.invented().capitalize()
        if kind < 0.72:
            return f"{self.invented().capitalize()} {self.invented(1, 2).capitalize()}"
        if kind < 0.86:
            return self.pick(CITIES)
        return self.pick(PEOPLE)

    def person(self) -> str:
        rng = self.rng
        first = self.pick(PEOPLE) if rng.random() < 0.5 else self.invented(2, 2).capitalize()
        if rng.random() < 0.6:
            return first
        return f"{first} {self.pick(SURNAMES) if rng.random() < 0.5 else self.invented().capitalize()}"

    def city(self) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return self.pick(CITIES)
        if kind < 0.56:
            return self.pick(TWO_WORD_CITIES)
        return self.invented(2, 2).capitalize()

    def thing(self) -> str:
        kind = self.rng.random()
        if kind < 0.4:
            return self.pick(THINGS)
        if kind < 0.6:
            return f"{self.rng.choice(COLOURS + ADJECTIVES)} {self.pick(THINGS)}"
        return self.invented()

    def code(self) -> str:
        """Return an identifier: letters and digits in some order."""
        rng = self.rng
        while True:
            letters = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(rng.randint(1, 3)))
            digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(2, 4)))
            text = rng.choice(
                [
                    letters + "-" + digits,
                    letters + digits,
                    digits + letters,
                    "#" + digits,
                    letters.lower() + "_" + digits,
                ]
            )
            if self.allows(text):
                return text

    def date(self) -> str:
        while True:
            rng = self.rng
            text = f"{rng.randint(2019, 2031)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
            if self.allows(text):
                return text

    def time(self) -> str:
        return f"{self.rng.randint(0, 23):02}:{self.rng.choice((0, 5, 10, 15, 20, 30, 40, 45, 50)):02}"

    def email(self) -> str:
        return f"{self.pick(PEOPLE).lower() if self.rng.random() < 0.5 else self.invented()}@{self.rng.choice(DOMAINS)}"

    def file(self) -> str:
        rng = self.rng
        stem = self.pick(WORDS) if rng.random() < 0.5 else self.invented()
        if rng.random() < 0.3:
            stem += rng.choice("_-") + (str(rng.randint(1, 99)) if rng.random() < 0.5 else self.invented(1, 2))
        if rng.random() < 0.25:
            stem = "/" * rng.randint(0, 1) + self.invented(1, 2) + "/" + stem
        return f"{stem}.{rng.choice(EXTENSIONS)}"

    def phrase(self) -> str:
        """Return a few words: a title, a text, a query. It has no word that could introduce another argument."""
        rng = self.rng
        words: list[str] = []
        for i in range(count := rng.randint(2, 4)):
            kind = rng.random()
            if 0 < i < count - 1 and kind < 0.2:
                word = rng.choice(["the", "of", "my", "our", "a"])
            elif kind < 0.6:
                word = self.pick(WORDS)
            elif kind < 0.8:
                word = self.invented(1, 2)
            else:
                word = rng.choice(ADJECTIVES)
            words.append(word if word not in words else self.invented(1, 2))
        text = " ".join(words)
        return text.capitalize() if rng.random() < 0.4 else text
