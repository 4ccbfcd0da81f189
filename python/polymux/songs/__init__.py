"""The catalogue of one's own music: what is in it, and which song a piece of sound is of.

`catalogue.py` is what others use. Below it: `database.py` keeps the truth in
SQLite, `table.py` its rows, `index.py` the search for sound that is made of it, `indexer.py` and
`scanner.py` what comes in, `text_search.py` the search by name.
"""
