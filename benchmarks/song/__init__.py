"""Song recognition: seeded sets of music, snippets and queries, and the scores of recognizers."""
