"""The music library: identifies your music by its sound, and finds it by name.

Other packages use `catalogue.py`. It builds on `database.py` (the SQLite database, which is the
source of truth), `table.py` (rows), `index.py` (the song index, derived from the database),
`scanner.py` and `indexer.py` (finding and adding files), and `text_search.py` (search by name).
"""
