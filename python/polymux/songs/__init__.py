"""The catalogue of one's own music: what is in it, and which song a piece of sound is of.

`catalogue.py` is what others use. Below it: `connection.py` and `database.py` keep the truth in
SQLite, `table.py` its rows, `index.py` the search for sound that is made of it, `adding.py` and
`walking.py` what comes in, `text_search.py` the search by name.
"""
