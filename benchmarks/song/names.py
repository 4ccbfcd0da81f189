"""Invented titles and artists in several languages and scripts."""

# ruff: noqa: RUF001 - these languages have letters that look like others

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.song.signals import generator


@dataclass(frozen=True)
class Tags:
    """Tags of a file."""

    title: str
    artist: str
    album: str
    year: int


# Language to words for titles: first words, second words, and words to put between them.
WORDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "english": (
        "Silver|Broken|Midnight|Golden|Hollow|Distant|Burning|Paper|Velvet|Northern|Quiet|Electric|"
        "Crooked|Borrowed|Restless|Winter|Neon|Tidal|Scarlet|Wandering",
        "River|Heart|Letter|Garden|Machine|Lantern|Horizon|Feather|Harbour|Echo|Summer|Mirror|"
        "Carousel|Satellite|Avalanche|Window|Orchard|Shadow|Railway|Thunder",
        (" ", " ", " ", " of the ", " & ", " (and the) "),
    ),
    "german": (
        "Über|Grüne|Stille|Müde|Kühle|Schöne|Süße|Letzte|Weiße|Fröhliche|Dunkle|Späte",
        "Brücken|Straßen|Träume|Vögel|Nächte|Wälder|Türme|Flüsse|Sterne|Gärten|Hügel|Wölfe",
        (" ", " ", " der ", " für "),
    ),
    "french": (
        "Été|Forêt|Rivière|Poussière|Lumière|Fenêtre|Étoile|Chanson|Fièvre|Île|Pêche|Château",
        "perdue|d'hiver|bleutée|française|cachée|rêvée|d'automne|éphémère|salée|dorée|oubliée",
        (" ", " ", " très ", " jamais "),
    ),
    "spanish": (
        "Corazón|Mañana|Canción|Luna|Niño|Camión|Jardín|Pasión|Otoño|Señal|Balcón|Rincón",
        "vacío|perdido|de papel|del océano|español|azul|de algodón|sin dueño|lejano|de carbón",
        (" ", " ", " tan ", " más "),
    ),
    "portuguese": (
        "Saudação|Coração|Manhã|Estação|Canção|Irmã|Ilusão|Avião|Lição|Verão",
        "de março|do sertão|distante|à beira|sem fim|do pássaro|amanhã|de ninguém",
        (" ", " ", " não "),
    ),
    "polish": (
        "Łódka|Żółta|Źródło|Ćma|Świat|Śnieg|Gwiazda|Dłoń|Książka|Jesień",
        "wędrowna|zażółcona|pośród łąk|w mgle|płonąca|spóźniona|bez końca|śpiąca|ułańska",
        (" ", " ", " i "),
    ),
    "nordic": (
        "Ørken|Åska|Ångest|Måne|Blå|Fjäll|Sjö|Løvet|Þoka|Skärgård|Hjärta|Æra",
        "over havet|i mörkret|på søen|utan ände|ved åen|í þögn|med stjärnor|som föll",
        (" ", " ", " og "),
    ),
    "turkish": (
        "Işık|Yağmur|Gönül|Çiçek|Şehir|Rüya|Ağaç|Gözyaşı|Düş|Kış",
        "sokağı|ülkesi|kıyısında|şarkısı|gölgesi|bahçesi|yıldızı|ığdır|özlemi",
        (" ", " "),
    ),
    "russian": (
        "Белая|Ночная|Последняя|Тихая|Северная|Чужая|Ёлочная|Дальняя",
        "дорога|звезда|песня|зима|река|любовь|метель|станция|тишина",
        (" ", " "),
    ),
    "greek": ("Χαμένη|Μικρή|Παλιά|Γλυκιά|Κρυφή", "αγάπη|θάλασσα|νύχτα|άνοιξη|φωνή|βροχή", (" ",)),
    "japanese": (
        "夜空|青い|君の|桜|東京|ひとりの|雨の|さよなら",
        "花火|電車|手紙|物語|約束|メロディー|帰り道|ワルツ",
        ("", "の", "と"),
    ),
    "chinese": (
        "月光|春天|远方|红色|城市|最后的|海边",
        "来信|旅人|爱情|列车|故乡|秘密|星星",
        ("", "的", ""),
    ),
    "korean": ("푸른|마지막|새벽|너의|작은", "편지|바다|노래|약속|그림자|계절", (" ",)),
}
FIRST_NAMES = (
    "Mara|Jonas|Ødger|Björn|Łucja|Çelik|Zoë|Inês|André|Ximena|Søren|Václav|Þóra|Aiko|Nadia|Tomás|"
    "Renée|Ada|Otis|Lupe|Wanda|Ilse|Ramón|Françoise|Günther|Émile|Dmitri|Ioanna|美咲|小明|지우"
)
LAST_NAMES = (
    "Kestrel|O'Dwyer|Ångström|Müller-Voss|Łapiński|Núñez|D'Arcy|Öztürk|Sørby|Přibyl|Marchetti|"
    "Fairweather|Quill|Björnsdóttir|Tanaka|Gonçalves|Lefèvre|Brightwater|Stößel|Ibáñez|田中|王|김"
)
BANDS = (
    "The Paper Lanterns|Glass & Gravel|Die Späten Züge|Los Tejados Rojos|Les Marées Hautes|AC/OK|"
    "N.O.R.T.H.|Tape Loop #9|Ørsted Choir|DJ Kaffeeklatsch|The The Ands|Kvartetten Åsnan|¿Quién?|"
    "Blue Kettle|夜行列車|Птицы|!!?|Motorhöme|Señor Ático|Two Left Shoes|Σκιές|Half-Past Never|"
    "3 Sisters|Harbour 54|Sigrún og Sól|Orquestra do Rés-do-Chão|2nd Floor|Żaby"
)
FORMS = (
    "{}", "{}", "{}", "{}", "{}", "{}", "{} (Remastered 2011)", "{} [Acoustic]", "{}!", "{}?",
    "{} - Live in Kraków", "{} (feat. {other})", "{} ft. {other}", "{}, Pt. 2", "“{}”",
    "{} / {other}", "¡{}!", "{}...", "{} (Interlude)", "No. 7: {}",
)  # fmt: skip


def one_of(random: np.random.Generator, words: str) -> str:
    """Return one of the words, which are separated by bars."""
    choices = words.split("|")
    return choices[int(random.integers(len(choices)))]


def artist(random: np.random.Generator) -> str:
    """Return a band, a person, or two people."""
    if random.uniform() < 0.45:
        return one_of(random, BANDS)
    names = [f"{one_of(random, FIRST_NAMES)} {one_of(random, LAST_NAMES)}" for _ in range(2)]
    if random.uniform() < 0.15:
        return (" & ", " feat. ", ", ", " x ")[int(random.integers(4))].join(names)
    return names[0]


def title(random: np.random.Generator) -> str:
    """Return a title; one in six is a single word, and some have additions."""
    languages = list(WORDS)
    weights = np.array([6.0] + [1.0] * (len(languages) - 1))
    language = languages[int(random.choice(len(languages), p=weights / weights.sum()))]
    first, second, between = WORDS[language]
    words = [one_of(random, first), one_of(random, second)]
    plain = between[int(random.integers(len(between)))].join(words)
    if random.uniform() < 0.16:
        plain = words[0]
    form = FORMS[int(random.integers(len(FORMS)))]
    return form.format(plain, other=one_of(random, BANDS))


def tags(seed: int, count: int) -> list[Tags]:
    """Return tags; no two have both the same title and the same artist.

    Args:
        seed: Seed of all tags.
        count: Number of tags.
    """
    found: list[Tags] = []
    known = set()
    number = 0
    while len(found) < count:
        random = generator(seed, "tags", number)
        number += 1
        name, by = title(random), artist(random)
        if (name.casefold(), by.casefold()) in known:
            continue
        known.add((name.casefold(), by.casefold()))
        album = title(random) if random.uniform() < 0.8 else ""
        found.append(Tags(name, by, album, int(random.integers(1958, 2026))))
    return found
