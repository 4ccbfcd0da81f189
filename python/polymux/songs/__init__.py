"""The music library: identifies your music by its sound, and finds it by name.

Other packages use `song_index.py`. It builds on `database.py` (the SQLite database, which is the
source of truth), `table.py` (rows), `fingerprint_index.py` (the search by sound, derived from the
database), `scanner.py` and `indexer.py` (finding and adding files), and `text_search.py` (search by
name).
"""
